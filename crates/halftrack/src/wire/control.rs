//! The messages of the reliable lane: login and logout, liveness, who is there, and the game's own.
//!
//! Each is a [`Frame`] whose kind is a number of the table below and whose body is the message in postcard's format
//! (integers as varints, options as a byte and the value, texts and bytes with their length first).
//!
//! ```text
//! client to server          server to client
//!  1  Login                 33  LoginAccepted
//!  2  Logout                34  LoginRefused
//!  3  Heartbeat             35  HeartbeatReply
//!  4  ShootInput (bytes)    36  CombatEvent (bytes)
//!  5  MoveInput (bytes)     37  PlayerState (bytes)
//!  6  Report                38  PlayerJoined
//!  7  SyncHeard             39  PlayerLeft
//!                           40  Welcome
//!                           41  Closing
//!                           42  SyncHeard
//!                           43  Bodies (bytes)
//! ```
//!
//! The bodies marked as bytes are not postcard but the message itself, as the game or the sync lane writes it.

use core::fmt;

use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize};

use crate::cause::Cause;
use crate::id::{PlayerId, PlayerName, Token};
use crate::lane::MessageKind;
pub use crate::sizes::{ReportedCounts, ReportedSizes};
use crate::wire::{Frame, WireError};

/// The version of the protocol. Ends with different versions do not talk.
/// 2: a client may come back with a token and nothing else.
/// 3: bodies have ids of their own, players own several or none, and a full state comes in pieces.
pub const PROTOCOL: u16 = 4;

/// The first message of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// [`PROTOCOL`] of the client.
    pub protocol: u16,
    /// A hash of everything that both ends must share: cadence, grid, rules.
    pub shared: u64,
    /// What the player is called.
    pub name: PlayerName,
    /// To come back to a session.
    pub resume: Option<Resume>,
    /// What the host asks for to let somebody in, if it does.
    pub credentials: Option<String>,
}

impl Login {
    /// Bytes of claims at most: see [`crate::server::World::claims`].
    pub const MAX_CLAIMS: usize = 1_024;

    /// The login that a recording keeps, and that a world is given.
    pub(crate) fn recorded(shared: u64, name: PlayerName, claims: Option<String>) -> Self {
        Self { protocol: PROTOCOL, shared, name, resume: None, credentials: claims }
    }
}

/// A session to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// Which.
    pub token: Token,
    /// How many reliable game messages of the server have arrived. None for another process than the one that played: it
    /// has a saved token and nothing else, so it begins anew with the same player.
    pub received: Option<u64>,
}

/// The player is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginAccepted {
    /// As whom.
    pub player: PlayerId,
    /// For coming back.
    pub token: Token,
    /// Whether this is a session that goes on.
    pub continuity: Continuity,
}

/// Whether a session goes on or begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Continuity {
    /// It begins.
    New,
    /// It goes on: so many reliable game messages of the client have arrived.
    Resumed {
        /// How many.
        received: u64,
    },
    /// It could not go on, and begins anew, from full state.
    Restarted(Restart),
}

impl Continuity {
    /// Whether whoever was let in knows nothing that still holds.
    pub const fn begins(self) -> bool {
        !matches!(self, Self::Resumed { .. })
    }
}

/// Why a session could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Restart {
    /// The grace has run out, or the token was never given.
    Unknown,
    /// More was sent meanwhile than is kept.
    Overflow,
    /// The server has lost its last moments: what was seen of them has not happened.
    Rewound,
    /// The client has a saved token and nothing else: see [`Resume::received`]. The player and its body are the same.
    Reclaimed,
}

/// Why a player is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum LoginRefused {
    /// Another version of the protocol.
    #[error("the server speaks version {server} of the protocol: update or reload the client")]
    Protocol {
        /// The server's.
        server: u16,
    },
    /// Other rules, another world or another cadence: the hash that both ends must share differs.
    #[error(
        "the server plays by other rules, on another map or at another cadence: update or reload the client"
    )]
    Rules,
    /// Somebody else has that name.
    #[error("the name is taken: choose another")]
    NameTaken,
    /// No room.
    #[error("the server is full: try again later")]
    Full,
    /// Nobody is let in without credentials.
    #[error("the server needs credentials")]
    CredentialsNeeded,
    /// Those are not good.
    #[error("the credentials are not valid")]
    CredentialsInvalid,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Draining,
    /// An operator keeps them out.
    #[error("the server does not let you in: ask its operator why")]
    Banned,
}

/// The state that a client starts from, right after [`LoginAccepted`] and before any input. Sent again whenever snapshots
/// have no room for all bodies: only the bodies count then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The newest tick that has been simulated.
    pub tick: u32,
    /// The stretch of server time that it belongs to.
    pub epoch: u32,
    /// The bodies that the player owns, whole: the section of [`crate::snapshot::OwnBodies`] without ticks.
    pub own: Vec<u8>,
    /// The length of the state of all bodies at the end of that tick, a snapshot that builds on nothing. It follows in
    /// [`FromServer::Bodies`]. Zero when a session goes on, and the state that the client has still holds.
    pub bodies: u32,
}

impl Welcome {
    /// The most bytes of all bodies: 16,384 bodies of 64 bytes each.
    pub const MAX_BODIES_BYTES: usize = 1 << 20;
}

/// Are you there?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The client's clock, microseconds.
    pub sent_micros: u64,
    /// How many reliable game messages of the server have arrived.
    pub received: u64,
}

/// Yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// What the client's clock showed.
    pub sent_micros: u64,
    /// How long the server took to answer, microseconds.
    pub held_micros: u32,
    /// What the server's clock shows, microseconds.
    pub server_micros: u64,
    /// How many reliable game messages of the client have arrived.
    pub received: u64,
}

/// How a client had to correct itself since its last report, for the server's operator: nothing depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Corrections by their cause, in the order of [`Cause::ALL`].
    pub corrections: [u16; Cause::ALL.len()],
    /// Of these, the ones that snapped.
    pub snapped: u16,
    /// How large they were, for each cause that there is something to say of, in the order of [`Cause::ALL`].
    #[serde(deserialize_with = "checked_sizes")]
    pub sizes: Vec<ReportedSizes>,
}

/// Each cause once, in order: a report is no longer than it has to be.
fn checked_sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ReportedSizes>, D::Error> {
    deserializer.deserialize_seq(SizesInOrder)
}

/// Reads sizes one by one. A `Vec` would take memory for as many as the message claims before any is checked.
struct SizesInOrder;

impl<'de> de::Visitor<'de> for SizesInOrder {
    type Value = Vec<ReportedSizes>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sizes of corrections, each cause once and in order")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut sizes: Vec<ReportedSizes> = Vec::new();
        while let Some(next) = sequence.next_element::<ReportedSizes>()? {
            let is_in_order = sizes.last().is_none_or(|last| last.cause < next.cause);
            if !is_in_order || usize::from(next.cause) >= Cause::ALL.len() {
                return Err(de::Error::custom("causes are out of order or unknown"));
            }
            sizes.push(next);
        }
        Ok(sizes)
    }
}

impl Report {
    /// Adds the counts of another report; they saturate. Sizes are for the server's operator, and are not kept.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.corrections.iter_mut().zip(other.corrections) {
            *sum = sum.saturating_add(count);
        }
        self.snapped = self.snapped.saturating_add(other.snapped);
    }
}

/// The server ends soon: whoever is in may play on until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// At most so long from now, milliseconds.
    pub within_millis: u32,
}

/// Whether the sender of this receives the datagrams of the other end. Said when that changes; until then, they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncHeard {
    /// They arrive. If not, the other end sends sync messages by the reliable link.
    pub arriving: bool,
}

/// A player has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerJoined {
    /// Who.
    pub player: PlayerId,
    /// What it is called.
    pub name: PlayerName,
}

/// A player has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerLeft {
    /// Who.
    pub player: PlayerId,
}

macro_rules! messages {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($kind:literal) $body:tt),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $(
                #[doc = concat!("Kind ", $kind, ".")]
                $variant(messages!(@type $variant $body)),
            )*
        }

        impl $name {
            /// What it is.
            pub const fn kind(&self) -> MessageKind {
                match self { $(Self::$variant(_) => MessageKind::$variant,)* }
            }

            /// Appends it to `stream` as a frame. Gives false, and appends nothing, when it is too long for one.
            #[must_use]
            pub fn append_to(&self, stream: &mut Vec<u8>) -> bool {
                match self {
                    $(Self::$variant(body) => messages!(@write $body $kind body stream),)*
                }
            }

            /// Reads it from a frame.
            ///
            /// # Errors
            /// When the kind is none of these, or the body is not one.
            pub fn read(frame: Frame<'_>) -> Result<Self, WireError> {
                match frame.kind {
                    $($kind => messages!(@read $body frame.body).map(Self::$variant),)*
                    _ => Err(WireError::Invalid { field: "frame.kind" }),
                }
            }
        }
    };
    (@type $variant:ident postcard) => { $variant };
    (@type $variant:ident empty) => { () };
    (@type $variant:ident bytes) => { Vec<u8> };
    (@write postcard $kind:literal $body:ident $stream:ident) => { append_postcard($kind, $body, $stream) };
    (@write empty $kind:literal $body:ident $stream:ident) => { append_postcard($kind, $body, $stream) };
    (@write bytes $kind:literal $body:ident $stream:ident) => { Frame { kind: $kind, body: $body }.append_to($stream) };
    (@read postcard $body:expr) => { read_postcard($body) };
    (@read empty $body:expr) => { read_postcard($body) };
    (@read bytes $body:expr) => { Ok::<_, WireError>($body.to_vec()) };
}

messages! {
    /// What a client says on the reliable lane.
    FromClient {
        Login(1) postcard,
        Logout(2) empty,
        Heartbeat(3) postcard,
        ShootInput(4) bytes,
        MoveInput(5) bytes,
        Report(6) postcard,
        SyncHeard(7) postcard,
    }
}

messages! {
    /// What a server says on the reliable lane.
    FromServer {
        LoginAccepted(33) postcard,
        LoginRefused(34) postcard,
        HeartbeatReply(35) postcard,
        CombatEvent(36) bytes,
        PlayerState(37) bytes,
        PlayerJoined(38) postcard,
        PlayerLeft(39) postcard,
        Welcome(40) postcard,
        Closing(41) postcard,
        SyncHeard(42) postcard,
        Bodies(43) bytes,
    }
}

/// Kinds of frames whose body is written without a message of its own.
impl FromServer {
    pub(crate) const COMBAT_EVENT: u8 = 36;
    pub(crate) const PLAYER_STATE: u8 = 37;
}

impl FromClient {
    pub(crate) const SHOOT_INPUT: u8 = 4;
    pub(crate) const MOVE_INPUT: u8 = 5;
}

fn append_postcard<T: Serialize>(kind: u8, body: &T, stream: &mut Vec<u8>) -> bool {
    let mut buffer = [0; Frame::MAX_BODY];
    match postcard::to_slice(body, &mut buffer) {
        Ok(body) => Frame { kind, body }.append_to(stream),
        Err(_) => false,
    }
}

fn read_postcard<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    let invalid = |_| WireError::Invalid { field: "frame.body" };
    let (message, rest) = postcard::take_from_bytes(body).map_err(invalid)?;
    if rest.is_empty() { Ok(message) } else { Err(WireError::Trailing) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::SizeCounts;
    use crate::wire::FrameReader;
    use proptest::prelude::*;

    fn name() -> PlayerName {
        PlayerName::new("Ada").unwrap()
    }

    fn sizes(causes: &[u8]) -> Vec<ReportedSizes> {
        let largest = ReportedCounts { classes: [u16::MAX; SizeCounts::CLASSES], thousandths: u32::MAX };
        let of = |cause: &u8| ReportedSizes { cause: *cause, distance: largest, angle: largest };
        causes.iter().map(of).collect()
    }

    #[test]
    fn a_report_names_each_cause_once_and_in_order_and_the_longest_fits() {
        let read = |causes: &[u8]| {
            let mut stream = vec![];
            let report = Report { sizes: sizes(causes), ..Report::default() };
            assert!(FromClient::Report(report).append_to(&mut stream));
            let mut rest = stream.as_slice();
            FromClient::read(FrameReader::default().next(&mut rest).unwrap().unwrap())
        };
        assert!(read(&[]).is_ok() && read(&[0, 10]).is_ok());
        assert!(read(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).is_ok());
        let too_many = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        for causes in [&[11][..], &[255], &[0, 0], &[1, 0], &too_many, &[7; 60]] {
            assert_eq!(read(causes), Err(WireError::Invalid { field: "frame.body" }), "{causes:?}");
        }
    }

    fn from_client() -> Vec<FromClient> {
        let login = Login { protocol: 1, shared: 0x0123_4567, name: name(), resume: None, credentials: None };
        let resume = Some(Resume { token: Token::new([7; 16]), received: Some(300) });
        vec![
            FromClient::Login(login.clone()),
            FromClient::Login(Login { resume, credentials: Some("secret".to_owned()), ..login }),
            FromClient::Logout(()),
            FromClient::Heartbeat(Heartbeat { sent_micros: 1 << 40, received: 5 }),
            FromClient::ShootInput(vec![1, 2, 3]),
            FromClient::MoveInput(vec![]),
            FromClient::Report(Report {
                corrections: [0, 1, 2, 3, 4, 5, 6, 700, 0, 9, 10],
                snapped: u16::MAX,
                sizes: sizes(&[1, 7]),
            }),
            FromClient::SyncHeard(SyncHeard { arriving: false }),
        ]
    }

    fn from_server() -> Vec<FromServer> {
        let accepted =
            |continuity| LoginAccepted { player: PlayerId::new(9), token: Token::new([1; 16]), continuity };
        let mut messages = vec![
            FromServer::LoginAccepted(accepted(Continuity::New)),
            FromServer::LoginAccepted(accepted(Continuity::Resumed { received: 1_000 })),
            FromServer::LoginAccepted(accepted(Continuity::Restarted(Restart::Overflow))),
            FromServer::HeartbeatReply(HeartbeatReply {
                sent_micros: 1,
                held_micros: 2,
                server_micros: 3,
                received: 4,
            }),
            FromServer::CombatEvent(vec![9; 100]),
            FromServer::PlayerState(vec![8]),
            FromServer::PlayerJoined(PlayerJoined { player: PlayerId::new(300), name: name() }),
            FromServer::PlayerLeft(PlayerLeft { player: PlayerId::new(300) }),
            FromServer::Welcome(Welcome { tick: 7, epoch: 1, own: vec![1, 2], bodies: 3 }),
            FromServer::Bodies(vec![3]),
            FromServer::Closing(Closing { within_millis: 30_000 }),
            FromServer::SyncHeard(SyncHeard { arriving: true }),
        ];
        let refusals = [
            LoginRefused::Protocol { server: 7 },
            LoginRefused::Rules,
            LoginRefused::NameTaken,
            LoginRefused::Full,
            LoginRefused::CredentialsNeeded,
            LoginRefused::CredentialsInvalid,
            LoginRefused::Draining,
            LoginRefused::Banned,
        ];
        messages.extend(refusals.map(FromServer::LoginRefused));
        messages
    }

    #[test]
    fn every_message_survives_the_wire() {
        let mut stream = vec![];
        for message in from_client() {
            assert!(message.append_to(&mut stream));
        }
        let (mut reader, mut rest, mut read) = (FrameReader::default(), stream.as_slice(), vec![]);
        while let Some(frame) = reader.next(&mut rest).unwrap() {
            read.push(FromClient::read(frame).unwrap());
        }
        assert_eq!(read, from_client());

        let mut stream = vec![];
        for message in from_server() {
            assert!(message.append_to(&mut stream));
        }
        let (mut reader, mut rest, mut read) = (FrameReader::default(), stream.as_slice(), vec![]);
        while let Some(frame) = reader.next(&mut rest).unwrap() {
            read.push(FromServer::read(frame).unwrap());
        }
        assert_eq!(read, from_server());
    }

    #[test]
    fn a_welcome_has_room_for_the_longest_own_bodies_and_a_piece_for_a_whole_frame() {
        let welcome = |own| Welcome { tick: u32::MAX, epoch: u32::MAX, own: vec![1; own], bodies: u32::MAX };
        // Two bytes of length, and three numbers of five.
        let most = Frame::MAX_BODY - 2 - 3 * 5;
        assert!(FromServer::Welcome(welcome(most)).append_to(&mut vec![]));
        assert!(!FromServer::Welcome(welcome(most + 1)).append_to(&mut vec![]));
        assert!(FromServer::Bodies(vec![2; Frame::MAX_BODY]).append_to(&mut vec![]));
        assert!(!FromServer::Bodies(vec![2; Frame::MAX_BODY + 1]).append_to(&mut vec![]));
    }

    #[test]
    fn the_bytes_are_these() {
        let mut stream = vec![];
        assert!(from_client()[0].append_to(&mut stream));
        // length 12, kind 1, protocol 1, shared as a varint, "Ada", no resume, no credentials
        assert_eq!(stream, [12, 0, 1, 1, 0xe7, 0x8a, 0x8d, 0x09, 3, b'A', b'd', b'a', 0, 0]);
    }

    #[test]
    fn bad_names_and_long_bodies_are_refused() {
        let invalid = Err(WireError::Invalid { field: "frame.body" });
        let body = [1, 0xe7, 0x8a, 0x8d, 0x09, 3, b'A', 0x1b, b'a', 0, 0];
        assert_eq!(FromClient::read(Frame { kind: 1, body: &body }), invalid);
        assert_eq!(FromClient::read(Frame { kind: 2, body: &[0] }), Err(WireError::Trailing));
        assert_eq!(
            FromClient::read(Frame { kind: 33, body: &[] }),
            Err(WireError::Invalid { field: "frame.kind" })
        );
        let mut stream = vec![];
        assert!(!FromClient::ShootInput(vec![0; Frame::MAX_BODY + 1]).append_to(&mut stream));
        assert_eq!(stream, []);
    }

    proptest! {
        #[test]
        fn the_decoders_are_total(kind in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = FromClient::read(Frame { kind, body: &body });
            let _ = FromServer::read(Frame { kind, body: &body });
        }

        #[test]
        fn mutated_messages_are_read_or_refused(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), flip in 1u8..) {
            let mut stream = vec![];
            let messages = from_server();
            prop_assert!(messages[which.index(messages.len())].append_to(&mut stream));
            let at = at.index(stream.len());
            stream[at] ^= flip;
            let (mut reader, mut rest) = (FrameReader::default(), stream.as_slice());
            while let Ok(Some(frame)) = reader.next(&mut rest) {
                let _ = FromServer::read(frame);
            }
        }
    }
}
