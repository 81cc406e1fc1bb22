//! Connections of the model, and everything under way on them.

use std::collections::VecDeque;

use halftrack::session::{ConnectionId, DisconnectReason};
use halftrack::wire::control::{FromClient, FromServer};
use halftrack::{PlayerId, Token};

use super::fingerprint::Fingerprint;

/// A message or a close under way to a client.
#[derive(Clone, Debug)]
pub(super) enum Down {
    Message(FromServer),
    Closed(DisconnectReason),
}

/// A connection, and the messages under way on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// The client, or the one whose name the thief uses.
    pub(super) client: usize,
    pub(super) thief: bool,
    pub(super) up: VecDeque<FromClient>,
    pub(super) down: VecDeque<Down>,
    /// Nothing gets through any more, in either direction.
    pub(super) cut: bool,
    pub(super) client_gone: bool,
    pub(super) server_gone: bool,
    /// The player that logged in by it, by the model's own book.
    pub(super) player: Option<PlayerId>,
}

impl Link {
    /// Sends a message to the client. It is lost if either end has given up.
    pub(super) fn send_down(&mut self, down: Down) {
        if !self.cut && !self.client_gone && !self.server_gone {
            self.down.push_back(down);
        }
    }

    /// The server has given the connection up.
    pub(super) fn close_server_end(&mut self) {
        self.server_gone = true;
        self.up.clear();
        self.player = None;
    }

    /// The tokens that are under way.
    pub(super) fn add_tokens(&self, hash: &mut Fingerprint) {
        let up = self.up.iter().filter_map(|message| match message {
            FromClient::Login(login) => login.resume.and_then(|resume| token_number(resume.token)),
            _ => None,
        });
        let down = self.down.iter().filter_map(|down| match down {
            Down::Message(FromServer::LoginAccepted(accepted)) => token_number(accepted.token),
            _ => None,
        });
        up.chain(down).for_each(|number| hash.add(&number));
    }
}

/// The token of a session that begins on that connection.
pub(super) fn token(at: usize) -> Token {
    Token::new([u8::try_from(at).unwrap_or(u8::MAX); 16])
}

pub(super) fn token_number(known: Token) -> Option<u8> {
    (0..=u8::MAX).find(|number| token(usize::from(*number)) == known)
}

pub(super) fn number(at: usize) -> ConnectionId {
    ConnectionId::new(at as u64)
}
