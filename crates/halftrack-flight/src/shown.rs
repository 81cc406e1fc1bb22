//! The picture of a frame as a digest.

use halftrack::client::Client;
use halftrack::{Body, BodyId, Digest, Game, Member};

use crate::bounded::{Bounded, ReadError};
use crate::write::append;

/// Short digests of the parts of a frame's picture. They say which part of a replayed frame differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The visible poses of the player's own bodies.
    pub(crate) visible: u16,
    /// The player's own bodies as predicted.
    pub(crate) predicted: u16,
    /// All other bodies as drawn, those of the group among them.
    pub(crate) others: u16,
    /// Counts of corrections, and the state of the session.
    pub(crate) counts: u16,
}

impl Shown {
    /// The picture of `client`. `memory` is scratch space.
    pub(crate) fn of<G: Game>(client: &Client<G>, memory: &mut Vec<u8>) -> Self {
        // Every own body, and not only the first: the player sees them all.
        memory.clear();
        for (id, _, member) in client.own() {
            append(&id, memory);
            append(&member.map(Member::visible), memory);
        }
        let visible = short(digest(memory));
        let each =
            |digest: Digest, (id, body): (BodyId, &G::Body)| digest.word(id.number()).word(body.digest());
        let own = client.own().map(|(id, body, _)| (id, body));
        let predicted = short(own.fold(Digest::new(), each).finish());
        memory.clear();
        for member in client.group() {
            append(&(member.id(), member.visible(), member.lag()), memory);
        }
        for remote in client.remotes().iter() {
            append(&(remote.id, remote.driver, remote.visible), memory);
        }
        let others = short(digest(memory));
        memory.clear();
        append(&client.state(), memory);
        append(&client.corrections(), memory);
        Self { visible, predicted, others, counts: short(digest(memory)) }
    }

    pub(crate) fn write(self, to: &mut Vec<u8>) {
        for part in [self.visible, self.predicted, self.others, self.counts] {
            to.extend_from_slice(&part.to_le_bytes());
        }
    }

    pub(crate) fn read(from: &mut Bounded<'_>) -> Result<Self, ReadError> {
        let mut part = || -> Result<u16, ReadError> {
            let bytes = from.raw(2)?.first_chunk::<2>().ok_or(ReadError::Truncated)?;
            Ok(u16::from_le_bytes(*bytes))
        };
        Ok(Self { visible: part()?, predicted: part()?, others: part()?, counts: part()? })
    }
}

/// The highest bits of a digest: they are the best mixed.
fn short(digest: u64) -> u16 {
    let [.., low, high] = digest.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A hash of bytes. It finds accidents, not attacks.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(Digest::new(), |digest, word| digest.word(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole.word(rest).word(bytes.len() as u64).finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use halftrack::cart::{Cart, CartBody};
    use halftrack::client::ClientConfig;
    use halftrack::server::{Room, Server, ServerConfig, World};
    use halftrack::session::ConnectionId;
    use halftrack::wire::control::Login;
    use halftrack::{Cadence, Driver, PlayerId, PlayerName, SyncLink, Timestamp, Token};

    use super::*;

    /// Two carts of the player, and one of the world.
    struct Three([f64; 3], Arc<Cart>);

    impl World for Three {
        type Game = Cart;

        fn rules(&self) -> &Arc<Cart> {
            &self.1
        }

        fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Cart>) {
            let drivers = [Driver::Player(player), Driver::Player(player), Driver::World];
            for (driver, x) in drivers.into_iter().zip(self.0) {
                room.spawn(driver, CartBody::at(x)).unwrap();
            }
        }
    }

    /// The picture after a second in a room with carts at these places.
    fn shown(places: [f64; 3]) -> Shown {
        let (mut now, peer) = (Timestamp::from_micros(1_000_000), ConnectionId::new(1));
        let world = Three(places, Arc::new(Cart));
        let mut server = Server::new(ServerConfig::default(), world, now).unwrap();
        let name = PlayerName::new("Ada").unwrap();
        let mut client = Client::new(ClientConfig::new(name, Cadence::default(), Arc::new(Cart))).unwrap();
        client.connect(now);
        server.handle_connected(now, peer, SyncLink::Present, Token::new([1; 16]));
        client.handle_connected(now, SyncLink::Present);
        for _ in 0..200 {
            now = now + Duration::from_millis(5);
            let (mut up, mut down) = (vec![], vec![]);
            client.handle_timeout(now);
            client.frame(now);
            client.poll_stream(&mut up);
            server.handle_stream(now, peer, &up);
            if let Some(datagram) = client.poll_datagram() {
                server.handle_datagram(now, peer, datagram);
            }
            server.handle_timeout(now);
            server.poll_stream(peer, &mut down);
            client.handle_stream(now, &down);
            if let Some(datagram) = server.poll_datagram(peer) {
                client.handle_datagram(now, datagram);
            }
        }
        let begun = client.own().filter(|(.., member)| member.is_some()).count();
        assert_eq!((begun, client.remotes().iter().count()), (2, 1));
        Shown::of(&client, &mut vec![])
    }

    #[test]
    fn a_picture_has_every_own_body_and_every_other_one() {
        let one = shown([0.0, 100.0, 200.0]);
        assert_eq!(shown([0.0, 100.0, 200.0]), one);
        for places in [[1.0, 100.0, 200.0], [0.0, 101.0, 200.0]] {
            let Shown { visible, predicted, others, counts } = shown(places);
            assert!(visible != one.visible && predicted != one.predicted, "{places:?}");
            assert_eq!((others, counts), (one.others, one.counts), "{places:?}");
        }
        let Shown { visible, predicted, others, counts } = shown([0.0, 100.0, 201.0]);
        assert_eq!((visible, predicted, counts), (one.visible, one.predicted, one.counts));
        assert_ne!(others, one.others);
    }
}
