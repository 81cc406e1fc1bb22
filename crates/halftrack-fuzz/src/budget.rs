//! Memory that may be taken: bytes from outside must not decide how much.

/// Does `work`, which may hold `max_bytes` at a time.
pub(crate) fn within<T>(max_bytes: usize, work: impl FnOnce() -> T) -> T {
    let mut done = None;
    let taken = allocation_counter::measure(|| done = Some(work()));
    let most = taken.bytes_max;
    assert!(most <= max_bytes as u64, "{most} bytes at a time, where {max_bytes} are enough");
    done.expect("it was done")
}
