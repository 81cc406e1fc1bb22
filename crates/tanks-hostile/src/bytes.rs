//! Messages as bytes, also those that no client of ours could write.

use halftrack::wire::Frame;
use halftrack::wire::control::{FromClient, Heartbeat, PROTOCOL};
use halftrack::{Completeness, MoveInput, Seq, Tick, TickInput, Token};
use tanks::{Seen, ShootInput, TankInput};

use crate::attack::Field;

/// A frame with any body.
pub(crate) fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    let _ = Frame { kind, body }.append_to(&mut bytes);
    bytes
}

pub(crate) fn frame_of(message: &FromClient) -> Vec<u8> {
    let mut bytes = vec![];
    let _ = message.append_to(&mut bytes);
    bytes
}

/// So many heartbeats: the shortest messages that are answered.
pub(crate) fn heartbeats(count: usize) -> Vec<u8> {
    frame_of(&FromClient::Heartbeat(Heartbeat { sent_micros: 1, received: 0 })).repeat(count)
}

/// Seven bits a byte, lowest first.
pub(crate) fn varint(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// A login, field by field: nothing of it is checked here.
#[derive(Clone, Debug)]
pub(crate) struct LoginBytes {
    pub(crate) room: Vec<u8>,
    pub(crate) protocol: u64,
    pub(crate) shared: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) resume: Option<Token>,
    pub(crate) received: Option<u64>,
    pub(crate) credentials: Option<Vec<u8>>,
}

impl LoginBytes {
    pub(crate) fn new(field: &Field, name: &str) -> Self {
        Self {
            room: vec![],
            protocol: PROTOCOL.into(),
            shared: field.shared,
            name: name.as_bytes().to_vec(),
            resume: None,
            received: Some(0),
            credentials: None,
        }
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.credentials = Some(token.as_bytes().to_vec());
        self
    }

    /// Which room, as it comes first by raw QUIC.
    pub(crate) fn preamble(&self) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(self.room.len()).unwrap_or(u8::MAX)];
        bytes.extend_from_slice(&self.room);
        bytes
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = vec![];
        varint(self.protocol, &mut body);
        varint(self.shared, &mut body);
        varint(self.name.len() as u64, &mut body);
        body.extend_from_slice(&self.name);
        body.push(u8::from(self.resume.is_some()));
        if let Some(token) = self.resume {
            body.extend(postcard::to_allocvec(&token).unwrap_or_default());
            body.push(u8::from(self.received.is_some()));
            if let Some(received) = self.received {
                varint(received, &mut body);
            }
        }
        body.push(u8::from(self.credentials.is_some()));
        if let Some(credentials) = &self.credentials {
            varint(credentials.len() as u64, &mut body);
            body.extend_from_slice(credentials);
        }
        body
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        frame(1, &self.body())
    }
}

/// An input message for a few ticks up to `newest`.
pub(crate) fn input(seq: u16, newest: Tick, change: impl FnOnce(&mut MoveInput<TankInput>)) -> Vec<u8> {
    let mut message = MoveInput {
        seq: Seq::new(seq),
        ack: None,
        newest,
        completeness: Completeness::Closed,
        ticks: vec![TickInput::steady(TankInput::NEUTRAL); 3],
    };
    change(&mut message);
    let mut buffer = vec![0; 1_100];
    let length = message.encode(&mut buffer).unwrap_or(0);
    buffer.truncate(length);
    buffer
}

/// An order to shoot.
pub(crate) fn shot(tick: Tick, at: u8, aim: u16, snapshot: Tick, before_micros: u32) -> FromClient {
    let shot = ShootInput { tick, at, aim, seen: Seen { snapshot, before_micros } };
    FromClient::ShootInput(shot.encode())
}
