//! A brawl of 250 tanks, in memory: who comes in knows everybody within a second, and goes on knowing them.

use std::sync::Arc;
use std::time::Duration;

use crate::room_rig::{Rig, Way, ms};
use halftrack::client::ClientConfig;
use halftrack::server::ServerConfig;
use halftrack::session::ConnectionId;
use halftrack::wire::control::{FromClient, Login, PROTOCOL};
use halftrack::{
    Cadence, Completeness, MoveInput, PlayerName, Seq, SyncLink, Tick, TickInput, Token, shared_hash,
};
use tanks::{Arena, Axis, TankInput, TankWorld, TankWorldConfig, Tanks};

/// Tanks that are driven, but whose clients look at nothing: they acknowledge what they were sent two ticks ago.
const BARE: u16 = 245;

fn arena() -> Arc<Arena> {
    Arc::new(Arena::new([100.0, 100.0], vec![]).unwrap())
}

fn config(name: &str) -> ClientConfig<Tanks> {
    let rules = Arc::new(Tanks::new(arena()));
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), rules)
}

struct Brawl {
    rig: Rig<TankWorld>,
    seq: u16,
}

impl Brawl {
    fn new() -> Self {
        let world = TankWorldConfig { arena: arena(), seed: 3, ..TankWorldConfig::default() };
        let config = ServerConfig { capacity: 256, ..ServerConfig::default() };
        let mut rig = Rig::new(config, TankWorld::new(world).unwrap(), 11);
        for number in 0..BARE {
            let mut token = [9; 16];
            [token[0], token[1]] = number.to_le_bytes();
            let connection = bare(number);
            rig.server.handle_connected(rig.now, connection, SyncLink::Present, Token::new(token));
            let shared = shared_hash(&Tanks::new(arena()), Cadence::default());
            let name = PlayerName::new(&format!("tank {number}")).unwrap();
            let login = Login { protocol: PROTOCOL, shared, name, resume: None, credentials: None };
            let mut bytes = vec![];
            assert!(FromClient::Login(login).append_to(&mut bytes));
            rig.server.handle_stream(rig.now, connection, &bytes);
        }
        Self { rig, seq: 0 }
    }

    /// So many ticks; each tank turns towards something else twice a second.
    fn ticks(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.seq += 1;
            let newest = self.rig.server.tick().next();
            for number in 0..BARE {
                let turn = (number * 7 + (self.seq + number) / 10 * 5) % 33;
                let turn = Axis::from_level(i8::try_from(turn).unwrap() - 16);
                let message = MoveInput {
                    seq: Seq::new(self.seq),
                    ack: newest.number().checked_sub(3).map(Tick::new).filter(|_| self.seq > 2),
                    newest,
                    completeness: Completeness::Closed,
                    ticks: vec![TickInput::steady(TankInput { turn, throttle: Axis::FULL, rocket: 0 })],
                };
                let mut bytes = [0; 200];
                let length = message.encode(&mut bytes).unwrap();
                self.rig.server.handle_datagram(self.rig.now, bare(number), &bytes[..length]);
                self.rig.server.poll_stream(bare(number), &mut vec![]);
                self.rig.server.poll_datagram(bare(number));
            }
            self.rig.run(ms(50), |_, now, client| {
                client.set_input(now, TankInput { turn: Axis::ZERO, throttle: Axis::FULL, rocket: 0 });
            });
        }
    }

    /// What the clients know is true; gives for how many bodies.
    fn known(&self) -> Vec<usize> {
        let known = |client: &halftrack::client::Client<Tanks>| {
            let Some(tick) = client.crowd().newest() else { return 0 };
            for (player, history) in client.crowd().bodies() {
                let Some(truth) = self.rig.server.body(player, tick) else { continue };
                assert_eq!(history.get(tick).map(|record| &record.after), Some(truth), "{player} at {tick}");
            }
            client.crowd().bodies().count()
        };
        self.rig.seats.iter().map(|seat| known(&seat.client)).collect()
    }
}

fn bare(number: u16) -> ConnectionId {
    ConnectionId::new(1_000_000 + u64::from(number))
}

#[test]
fn newcomers_to_a_brawl_know_everybody_within_a_second() {
    let mut brawl = Brawl::new();
    brawl.ticks(60);
    let way = Way { delay: ms(30), jitter: ms(15), loss: 0.02, duplicate: 0.01 };
    for (number, stream_lag) in [0, 150, 0, 60].into_iter().enumerate() {
        let seat = brawl.rig.join(config(&format!("newcomer {number}")), way);
        brawl.rig.seats[seat].stream_lag = ms(stream_lag);
        brawl.ticks(20);
        let there = brawl.rig.server.bodies().count();
        assert_eq!(there, usize::from(BARE) + number + 1);
        assert_eq!(brawl.known(), vec![there; number + 1]);
    }
    let healed = brawl.rig.server.stats().full_states;
    // Somebody leaves while they fight on.
    let leaving = brawl.rig.server.player_of(bare(100)).unwrap();
    brawl.rig.server.kick(leaving);
    brawl.ticks(10);
    for _ in 0..20 {
        brawl.ticks(1);
        assert_eq!(brawl.known(), vec![usize::from(BARE) + 3; 4]);
    }
    let stats = brawl.rig.server.stats();
    assert_eq!(stats.full_states, healed, "nobody has to be told anew");
    assert_eq!(stats.bad_acks, 0, "{stats:?}");
    for seat in &brawl.rig.seats {
        let stats = seat.client.stats();
        assert_eq!((stats.check_failed, stats.malformed), (0, 0), "{stats:?}");
    }
}

/// A client that did not look for longer than anything is kept has nothing that a snapshot could build on.
#[test]
fn who_comes_back_to_a_brawl_after_a_pause_is_told_of_everybody() {
    let mut brawl = Brawl::new();
    let seat = brawl.rig.join(config("Ada"), Way::delayed(ms(30)));
    brawl.ticks(50);
    let healed = brawl.rig.server.stats().full_states;
    brawl.rig.seats[seat].frozen_until = brawl.rig.now + Duration::from_millis(3_600);
    brawl.ticks(72 + 20);
    let healed = brawl.rig.server.stats().full_states - healed;
    assert!((1..=2).contains(&healed), "{healed} times");
    assert_eq!(brawl.known(), [usize::from(BARE) + 1]);
}
