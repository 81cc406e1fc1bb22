//! The login of a connection, read before any room hears of the connection.
//!
//! A link collects the first frame with a [`LoginReader`] and asks the [`Door`](crate::Door) for a room. The
//! bytes then go to that room as they came. So a connection that never logs in costs no room, no thread and no
//! metric series, and a login costs no additional round trip.

use axum::body::Bytes;
use halftrack::session::DisconnectReason;
use halftrack::wire::FrameReader;
use halftrack::wire::control::{FromClient, FromServer, Login, LoginRefused};

use crate::rooms::NoRoom;

/// Collects the first frame of a stream. Holds at most one frame and one piece.
#[derive(Default)]
pub(crate) struct LoginReader {
    frames: FrameReader,
    bytes: Vec<u8>,
}

impl LoginReader {
    /// Takes the next piece of the stream. Gives the login once its frame is complete.
    ///
    /// # Errors
    /// When the first frame is no login.
    pub(crate) fn take(&mut self, mut piece: &[u8]) -> Result<Option<Login>, DisconnectReason> {
        self.bytes.extend_from_slice(piece);
        let frame = self.frames.next(&mut piece).map_err(|_| DisconnectReason::Malformed)?;
        match frame.map(FromClient::read) {
            None => Ok(None),
            Some(Ok(FromClient::Login(login))) => Ok(Some(login)),
            Some(_) => Err(DisconnectReason::Malformed),
        }
    }

    /// Everything that was taken, for the room.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// A connection that gets no room: the close reason, and the answer that goes before it.
#[derive(Debug)]
pub(crate) struct TurnedAway {
    pub(crate) reason: DisconnectReason,
    /// A frame for the stream, or nothing.
    pub(crate) answer: Vec<u8>,
}

impl From<DisconnectReason> for TurnedAway {
    fn from(reason: DisconnectReason) -> Self {
        Self { reason, answer: vec![] }
    }
}

impl From<LoginRefused> for TurnedAway {
    fn from(refused: LoginRefused) -> Self {
        let mut answer = vec![];
        let fits = FromServer::LoginRefused(refused).append_to(&mut answer);
        debug_assert!(fits, "a refusal is a few bytes");
        Self { reason: DisconnectReason::Refused, answer }
    }
}

impl From<NoRoom> for TurnedAway {
    fn from(none: NoRoom) -> Self {
        match none {
            NoRoom::Unknown => DisconnectReason::UnknownRoom.into(),
            NoRoom::Refused(refused) => refused.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::PlayerName;
    use halftrack::wire::Frame;
    use halftrack::wire::control::{Heartbeat, PROTOCOL};

    fn bytes(message: &FromClient) -> Vec<u8> {
        let mut bytes = vec![];
        assert!(message.append_to(&mut bytes));
        bytes
    }

    #[test]
    fn a_login_in_pieces_is_found_and_all_bytes_are_kept() {
        let name = PlayerName::new("Ada").unwrap();
        let login = Login { protocol: PROTOCOL, shared: 7, name, resume: None, credentials: None };
        let heartbeat = FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: 0 });
        let login_bytes = bytes(&FromClient::Login(login.clone()));
        let stream = [login_bytes.clone(), bytes(&heartbeat)].concat();
        let mut reader = LoginReader::default();
        for byte in &stream[..login_bytes.len() - 1] {
            assert_eq!(reader.take(&[*byte]), Ok(None));
        }
        // The piece that ends the login may hold the beginning of something else.
        assert_eq!(reader.take(&stream[login_bytes.len() - 1..]), Ok(Some(login)));
        assert_eq!(reader.into_bytes(), stream);
    }

    #[test]
    fn a_first_frame_that_is_no_login_is_malformed() {
        let mut long = vec![];
        assert!(Frame { kind: 1, body: &[0; 40] }.append_to(&mut long));
        let heartbeat = bytes(&FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: 0 }));
        for stream in [vec![0, 0], vec![0xff, 0xff], vec![1, 0, 99], heartbeat, long] {
            assert_eq!(LoginReader::default().take(&stream), Err(DisconnectReason::Malformed), "{stream:?}");
        }
    }
}
