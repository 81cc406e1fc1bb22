//! Lists that are emptied and used again, so that a snapshot like the one before it allocates nothing.

/// Empties `list`. Its memory is used again, up to `keep` items: a peer must not choose how much stays allocated.
pub(crate) fn empty<T>(list: &mut Vec<T>, keep: usize) {
    list.clear();
    list.shrink_to(keep);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_up_to_the_limit() {
        let mut list = Vec::with_capacity(50);
        list.extend(0..50);
        empty(&mut list, 50);
        assert_eq!((list.len(), list.capacity()), (0, 50));
        empty(&mut list, 49);
        assert_eq!(list.capacity(), 49);
        empty(&mut list, 100);
        assert_eq!(list.capacity(), 49);
    }
}
