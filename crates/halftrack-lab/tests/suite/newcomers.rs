//! Bots that spare newcomers: no shot at a player before its first input.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use halftrack::client::Client;
use halftrack::server::ServerConfig;
use halftrack::{Cadence, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_lab::tank::{Bots, Brawler, TankGame};
use halftrack_lab::{Bot, Lab, LabConfig, SeatConfig};
use halftrack_netem::LinkConfig;
use tanks::{CombatEvent, TankInput, Tanks};

/// A player that reads the page, and drives from some moment on.
struct Newcomer {
    drives_after: Duration,
    /// Its first frame, by its own clock.
    came: Option<Timestamp>,
    /// Times that it was hit.
    hit: Arc<AtomicU32>,
    /// Deaths of any tank that it heard of.
    deaths: Arc<AtomicU32>,
}

impl Bot<Tanks> for Newcomer {
    fn drive(&mut self, now: Timestamp, _: &mut FlightClient<Tanks>) -> Option<TankInput> {
        let forward = TankInput::from_unit(0.3, 1.0).expect("finite");
        let came = *self.came.get_or_insert(now);
        Some(if now >= came + self.drives_after { forward } else { TankInput::NEUTRAL })
    }

    fn hear(&mut self, client: &Client<Tanks>, event: &[u8]) {
        match CombatEvent::decode(event) {
            Ok(CombatEvent::DamageApplied { target, .. }) if target.player() == client.player() => {
                self.hit.fetch_add(1, Ordering::Relaxed);
            }
            Ok(CombatEvent::Death { .. }) => {
                self.deaths.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// Hits on a newcomer that drives after so long, and deaths of anyone, in a minute among five bots.
fn play(drives_after: Duration, seed: u64) -> (u32, u32) {
    let game = TankGame::new(Bots::Brawl, 6);
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), seed), game.world(seed)).unwrap();
    let seat = |index| SeatConfig::new(game.client(index, Cadence::default()).unwrap(), link);
    let (hit, deaths) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let newcomer = Newcomer { drives_after, came: None, hit: Arc::clone(&hit), deaths: Arc::clone(&deaths) };
    lab.join(seat(0), Box::new(newcomer)).unwrap();
    for index in 1..6 {
        let bot = Brawler::new(Arc::clone(game.arena()), seed + index as u64).sparing_newcomers();
        lab.join(seat(index), Box::new(bot)).unwrap();
    }
    lab.run(Duration::from_secs(60));
    (hit.load(Ordering::Relaxed), deaths.load(Ordering::Relaxed))
}

#[test]
fn bots_do_not_shoot_a_player_before_its_first_input() {
    for seed in [3, 14] {
        let (hit, deaths) = play(Duration::from_secs(600), seed);
        assert_eq!(hit, 0, "seed {seed}: a player that never drove was hit");
        assert!(deaths > 3, "seed {seed}: the bots fight each other all the same, {deaths} deaths");
    }
}

#[test]
fn bots_shoot_a_player_that_has_begun_to_drive() {
    let (hit, _) = play(Duration::from_secs(5), 3);
    assert!(hit > 0);
}
