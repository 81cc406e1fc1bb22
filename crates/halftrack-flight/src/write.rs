//! Values appended to a buffer in postcard's format.

use postcard::ser_flavors::Flavor;
use serde::Serialize;

/// Appends `value` to `to`. Gives whether the value could be written: a type of the game may refuse.
pub(crate) fn append<T: Serialize + ?Sized>(value: &T, to: &mut Vec<u8>) -> bool {
    postcard::serialize_with_flavor(value, Append(to)).is_ok()
}

/// Unlike [`postcard::to_extend`], it leaves the buffer where it is when a value cannot be written.
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
