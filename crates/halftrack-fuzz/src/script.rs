//! Choices out of bytes. Bytes that have run out are zeros, so every script is one, and a shorter one does less.

/// What is left of a script.
#[derive(Clone, Debug)]
pub(crate) struct Script<'a> {
    bytes: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether there is nothing left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// One of so many, counted from zero.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    /// So many bytes, or those that are left.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// Up to 255 bytes behind their length.
    pub(crate) fn counted(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte());
        self.bytes(count)
    }

    /// Everything that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.bytes
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.bytes(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// Changes a message as the script likes: bits turned over, cut off, doubled, put in.
    pub(crate) fn mutate(&mut self, message: &mut Vec<u8>) {
        for _ in 0..self.below(4) {
            let at = usize::from(self.u16()) % (message.len() + 1);
            match self.byte() % 5 {
                0 => message.truncate(at),
                1 => message.insert(at, self.byte()),
                2 if message.len() < 4_096 => message.extend_from_within(at..),
                _ => {
                    let turned = self.byte();
                    if let Some(byte) = message.get_mut(at) {
                        *byte ^= turned;
                    }
                }
            }
        }
    }
}
