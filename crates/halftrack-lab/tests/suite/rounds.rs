//! Rounds of the tank game on a bad network: every client hears the same rounds, each change once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::ServerConfig;
use halftrack::{Cadence, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_lab::tank::{Bots, Brawler, TankGame};
use halftrack_lab::{Bot, Happening, Lab, LabConfig, SeatConfig, ShotCount};
use halftrack_netem::LinkConfig;
use tanks::{CombatEvent, Phase, RoundConfig, TankInput, TankWorld, TankWorldConfig, Tanks, Vitals};

/// The rounds that a client heard of, and the scores as it knows them.
#[derive(Default)]
struct Heard {
    rounds: Vec<(u32, Phase)>,
    vitals: Vitals,
    /// The sum of all kills when each round was over.
    kills: Vec<u32>,
}

/// A [`Brawler`] that writes down the rounds.
struct Fighter {
    brawler: Brawler,
    heard: Rc<RefCell<Heard>>,
}

impl Bot<Tanks> for Fighter {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<Tanks>) -> Option<TankInput> {
        self.brawler.drive(now, client)
    }

    fn hear(&mut self, client: &Client<Tanks>, event: &[u8]) {
        self.brawler.hear(client, event);
        let (Ok(event), mut heard) = (CombatEvent::decode(event), self.heard.borrow_mut()) else { return };
        heard.vitals.event(&event);
        if let CombatEvent::Round { number, phase, .. } = event {
            let kills = heard.vitals.iter().map(|(_, vital)| vital.kills).sum();
            heard.rounds.push((number, phase));
            if phase != Phase::Playing {
                heard.kills.push(kills);
            }
        }
    }

    fn combat(&self) -> Option<ShotCount> {
        self.brawler.combat()
    }
}

#[test]
fn combat_12_every_client_hears_every_round_once_on_a_bad_network() {
    const SEED: u64 = 12;
    const PLAYERS: usize = 5;
    let game = TankGame::new(Bots::Brawl, PLAYERS);
    let rounds = RoundConfig { length: Duration::from_secs(25), pause: Duration::from_secs(3) };
    let world = TankWorldConfig {
        arena: Arc::clone(game.arena()),
        rounds: Some(rounds),
        seed: SEED,
        ..TankWorldConfig::default()
    };
    let mut lab =
        Lab::new(LabConfig::new(ServerConfig::default(), SEED), TankWorld::new(world).unwrap()).unwrap();
    let link = LinkConfig {
        delay: Duration::from_millis(40),
        jitter: Duration::from_millis(12),
        loss: 0.02,
        burst: 2.0,
        ..LinkConfig::default()
    };
    let all: Vec<_> = (0..PLAYERS)
        .map(|index| {
            let heard = Rc::default();
            let brawler = Brawler::new(Arc::clone(game.arena()), SEED + index as u64);
            let fighter = Fighter { brawler, heard: Rc::clone(&heard) };
            let seat = SeatConfig::new(game.client(index, Cadence::default()).unwrap(), link);
            lab.join(seat, Box::new(fighter)).unwrap();
            heard
        })
        .collect();
    // The end of the first round, and a client that is cut in it and resumes.
    lab.schedule(Duration::from_millis(24_500), Happening::Reconnect(1));
    lab.run(Duration::from_secs(100));
    lab.drain();

    let measured = lab.measured();
    assert_eq!(measured.invariants.list, [], "no rule of the lab is broken");
    assert_eq!(measured.own.by_cause.unexplained, 0);
    let first = all[0].borrow();
    let numbers: Vec<_> =
        first.rounds.iter().map(|(number, phase)| (*number, *phase == Phase::Playing)).collect();
    assert_eq!(numbers, [(1, true), (1, false), (2, true), (2, false), (3, true), (3, false), (4, true)]);
    let won =
        first.rounds.iter().filter(|(_, phase)| matches!(phase, Phase::Over { winner: Some(_) })).count();
    assert!(won >= 2, "fights have winners: {:?}", first.rounds);
    assert!(
        first.kills.iter().all(|kills| (1..40).contains(kills)),
        "scores begin at zero: {:?}",
        first.kills
    );
    for (seat, heard) in all.iter().enumerate() {
        let heard = heard.borrow();
        assert_eq!(heard.rounds, first.rounds, "seat {seat}");
        assert_eq!(heard.kills, first.kills, "seat {seat}");
    }
}
