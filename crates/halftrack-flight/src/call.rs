//! One call of a client as bytes.
//!
//! ```text
//! moment    1 to 10   signed, microseconds after the moment of the call before; 0 for a poll, which has none
//! kind            1   of the table below
//! contents
//!  0 connect                             7 datagram       bytes
//!  1 logout                              8 timeout
//!  2 set_input     the input             9 frame          digest of the picture, 8 bytes
//!  3 order         bytes                10 poll_event     (only polls that gave something)
//!  4 connected     the sync link        11 poll_stream
//!  5 disconnected  0, or the code       12 poll_datagram
//!  6 stream        bytes
//! ```
//!
//! Everything but the digest is in postcard's format.

use halftrack::session::DisconnectReason;
use halftrack::{SyncLink, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounded::{Bounded, ReadError};
use crate::write::append;

/// A call that changes a client, or that takes something from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de>"))]
pub(crate) enum Call<'a, I> {
    Connect,
    Logout,
    SetInput(I),
    Order(#[serde(borrow, serialize_with = "as_bytes")] &'a [u8]),
    Connected(SyncLink),
    Disconnected(#[serde(with = "code")] Option<DisconnectReason>),
    Stream(#[serde(borrow, serialize_with = "as_bytes")] &'a [u8]),
    Datagram(#[serde(borrow, serialize_with = "as_bytes")] &'a [u8]),
    Timeout,
    /// The digest of the picture is written once the frame is drawn.
    Frame,
    PollEvent,
    PollStream,
    PollDatagram,
}

impl<'a, I: Serialize + DeserializeOwned> Call<'a, I> {
    /// Appends the call. `last` is the moment of the call before, and then of this one.
    pub(crate) fn write(&self, now: Option<Timestamp>, last: &mut Timestamp, to: &mut Vec<u8>) -> bool {
        let now = now.unwrap_or(*last);
        let later = signed_difference(now.as_micros(), last.as_micros());
        *last = now;
        append(&later, to) && append(self, to)
    }

    /// Reads a call, and brings `last` to its moment.
    pub(crate) fn read(last: &mut Timestamp, from: &mut Bounded<'a>) -> Result<Self, ReadError> {
        let later: i64 = from.value()?;
        let moment = last.as_micros().checked_add_signed(later).filter(|moment| moment >> 60 == 0);
        *last = Timestamp::from_micros(moment.ok_or(ReadError::Number)?);
        from.value()
    }
}

/// `left - right`, saturating.
fn signed_difference(left: u64, right: u64) -> i64 {
    let size = i64::try_from(left.abs_diff(right)).unwrap_or(i64::MAX);
    if left >= right { size } else { -size }
}

/// As one byte string: serde writes slices element by element.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn as_bytes<S: serde::Serializer>(bytes: &&[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

/// A reason by its code on the wire, and 0 for none.
mod code {
    use halftrack::session::DisconnectReason;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        reason: &Option<DisconnectReason>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        reason.map_or(0, DisconnectReason::code).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<DisconnectReason>, D::Error> {
        match u32::deserialize(from)? {
            0 => Ok(None),
            code => match DisconnectReason::from_code(code) {
                Some(reason) => Ok(Some(reason)),
                None => Err(D::Error::custom("no reason of a disconnect has this code")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn calls_are_read_as_they_were_written() {
        let calls: [Call<'_, i8>; 16] = [
            Call::Connect,
            Call::Logout,
            Call::SetInput(-8),
            Call::Order(&[1, 2, 3]),
            Call::Order(&[]),
            Call::Connected(SyncLink::Present),
            Call::Connected(SyncLink::Absent),
            Call::Disconnected(None),
            Call::Disconnected(Some(DisconnectReason::Kicked)),
            Call::Stream(&[7; 300]),
            Call::Datagram(&[9]),
            Call::Timeout,
            Call::Frame,
            Call::PollEvent,
            Call::PollStream,
            Call::PollDatagram,
        ];
        let (mut bytes, mut last) = (vec![], moment(500));
        // Backwards as well: a host's clock may do that.
        let moments = [1_000u64, 999, 40_000_000, 0].map(moment);
        for (call, now) in calls.iter().zip(moments.into_iter().cycle()) {
            assert!(call.write(Some(now), &mut last, &mut bytes));
        }
        assert!(Call::<i8>::PollEvent.write(None, &mut last, &mut bytes));
        let (mut from, mut last) = (Bounded::new(&bytes), moment(500));
        for (call, now) in calls.iter().zip(moments.into_iter().cycle()) {
            assert_eq!((Call::read(&mut last, &mut from).as_ref(), last), (Ok(call), now));
        }
        assert_eq!(Call::<i8>::read(&mut last, &mut from), Ok(Call::PollEvent));
        assert_eq!(from.finish(), Ok(()));
    }

    #[test]
    fn moments_lie_below_two_to_the_sixty() {
        let read = |start: u64, later: i64| {
            let mut bytes = vec![];
            assert!(append(&later, &mut bytes) && append(&Call::<i8>::Timeout, &mut bytes));
            let mut last = moment(start);
            Call::<i8>::read(&mut last, &mut Bounded::new(&bytes)).map(|_| last.as_micros())
        };
        assert_eq!(read((1 << 60) - 2, 1), Ok((1 << 60) - 1));
        assert_eq!(read((1 << 60) - 1, 1), Err(ReadError::Number));
        assert_eq!(read(5, -5), Ok(0));
        assert_eq!(read(5, -6), Err(ReadError::Number));
    }

    #[test]
    fn unknown_kinds_and_codes_are_refused() {
        let read = |bytes: &[u8]| Call::<i8>::read(&mut moment(0), &mut Bounded::new(bytes)).is_ok();
        assert!(read(&[0, 12]) && !read(&[0, 13]));
        let last = DisconnectReason::ALL.len() as u8;
        assert!(read(&[0, 5, last]) && !read(&[0, 5, last + 1]));
    }
}
