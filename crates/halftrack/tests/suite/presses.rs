//! PRESS: each tap acts exactly once on the server, and exactly once on the player's screen.

use std::time::Duration;

use crate::range::{Gallery, Marksman, Range, Thing, Trigger, config, gun_of, range};
use crate::rig::{Dice, Rig, Way, ms};
use halftrack::Cause;
use halftrack::client::{ClientEvent, Life};
use halftrack::session::SessionState;

/// A room with some guns, each of which has a player who taps at random.
struct Shoot {
    rig: Rig<Range>,
    seats: Vec<usize>,
    players: Vec<Marksman>,
    dice: Dice,
}

impl Shoot {
    fn new(ways: &[Way], seed: u64) -> Self {
        let rules = Gallery::default();
        let mut rig = range(rules.clone(), seed);
        let seats = ways.iter().zip(["Ada", "Bob", "Eve"]).map(|(way, name)| {
            let seat = rig.join(config(name, &rules), *way);
            rig.run(ms(700), |_, _, _| {});
            seat
        });
        let seats: Vec<_> = seats.collect();
        let players = vec![Marksman::default(); seats.len()];
        Self { rig, seats, players, dice: Dice(seed ^ 0x5407) }
    }

    /// Plays for a while. `taps` gives the taps between two frames.
    fn play(&mut self, span: Duration, mut taps: impl FnMut(&mut Dice) -> u64) {
        let Self { rig, players, dice, .. } = self;
        rig.run(span, |seat, now, client| {
            let player = &mut players[seat];
            player.look(now, client);
            for _ in 0..taps(dice) {
                player.drive = i8::try_from(dice.below(17)).unwrap() - 8;
                player.tap(now, client);
            }
        });
    }

    /// All that is under way arrives; then every press has acted once on the server and once on each screen.
    fn check(&mut self, context: &str) {
        for seat in &self.seats {
            let seat = &mut self.rig.seats[*seat];
            (seat.up, seat.down, seat.datagrams_cut) =
                (Way::delayed(ms(30)), Way::delayed(ms(30)), (false, false));
        }
        self.play(Duration::from_secs(3), |_| 0);
        for seat in &self.seats {
            let (gun, player) = (gun_of(&self.rig, *seat), &self.players[*seat]);
            let context = format!("{context}, seat {seat}");
            let tick = self.rig.server.tick();
            let Some(Thing::Gun { shots, .. }) = self.rig.server.body(gun, tick).copied() else {
                panic!("no gun")
            };
            assert_eq!(shots, player.presses, "{context}: on the server");
            let born = self.rig.server.world().born_by(gun);
            assert_eq!(born.len(), player.presses as usize, "{context}: bodies");
            assert_eq!(player.born_by(gun), born, "{context}: on the screen");
            player.assert_told_once(&context);
            for id in &born {
                let told = &player.told[id];
                let mut births = told.iter().filter(|(life, ..)| *life == Life::Born);
                let stays = births.all(|(.., cause)| cause.is_none_or(|cause| cause == Cause::Resync));
                assert!(stays, "{context}: a late shot is not revoked: {told:?}");
            }
            assert!(born.iter().all(|id| player.seen.contains_key(id)), "{context}: each was drawn");
            let client = &self.rig.seats[*seat].client;
            let causes = client.corrections();
            assert_eq!(causes.of(Cause::Unexplained), 0, "{context}: {causes:?}");
            assert_eq!(client.stats().check_failed, 0, "{context}");
        }
    }
}

fn lossy(delay: u64, jitter: u64, loss: f64) -> Way {
    Way { delay: ms(delay), jitter: ms(jitter), loss, duplicate: 0.05 }
}

const ONE_IN_SEVEN: fn(&mut Dice) -> u64 = |dice| u64::from(dice.below(7) == 0);

#[test]
fn press_01_taps_shorter_than_a_frame_act_once_each() {
    for way in [Way::IDEAL, Way::delayed(ms(40)), Way::delayed(ms(120))] {
        let mut shoot = Shoot::new(&[way], 3);
        // Twice and three times between two frames, seldom enough that no tick has more changes than it takes.
        let mut frame = 0;
        shoot.play(Duration::from_secs(10), |_| {
            frame += 1;
            if frame % 24 == 0 { 2 + frame / 24 % 2 } else { 0 }
        });
        assert!(shoot.players[0].presses > 50);
        shoot.check(&format!("{way:?}"));
        let client = &shoot.rig.seats[0].client;
        let stats = client.corrections();
        assert_eq!((stats.eased, stats.snapped, stats.negligible), (0, 0, 0), "{way:?}: {stats:?}");
        let revoked = shoot.players[0].told.keys().filter(|id| shoot.players[0].is_revoked(**id)).count();
        assert_eq!(revoked, 0, "{way:?}: all came as sent");
    }
}

#[test]
fn press_02_taps_in_late_and_lost_ticks_act_once_each() {
    for seed in 0..12 {
        let way = lossy(30 + 15 * (seed % 4), 20 + 30 * (seed % 3), 0.05 + 0.05 * (seed % 5) as f64);
        let mut shoot = Shoot::new(&[way, lossy(20, 5, 0.01)], seed);
        for _ in 0..6 {
            shoot.play(ms(1_900), ONE_IN_SEVEN);
            // Nothing of a few ticks arrives in time, or ever by itself.
            shoot.rig.seats[0].datagrams_cut.0 = true;
            shoot.play(ms(60 + 40 * (seed % 4)), ONE_IN_SEVEN);
            shoot.rig.seats[0].datagrams_cut.0 = false;
            // What is sent now comes later than the lead foresees.
            shoot.rig.seats[0].up.delay = way.delay + ms(180);
            shoot.play(ms(90), ONE_IN_SEVEN);
            shoot.rig.seats[0].up.delay = way.delay;
        }
        let client = shoot.rig.seats[0].client.stats();
        assert!(client.late + client.lost > 5, "seed {seed}: {client:?}");
        shoot.check(&format!("seed {seed}"));
    }
}

#[test]
fn press_03_more_taps_than_a_tick_has_changes_act_once_each() {
    for (seed, way) in (0..).zip([Way::IDEAL, Way::delayed(ms(60)), lossy(40, 30, 0.1)]) {
        let mut shoot = Shoot::new(&[way], seed);
        shoot.rig.seats[0].frame = Duration::from_micros(4_167);
        let mut frame = 0;
        shoot.play(Duration::from_secs(6), |_| {
            // Six frames in a row, then a rest: 6 of 16 counts are under way at most.
            frame += 1;
            u64::from(frame % 60 < 6)
        });
        let delayed = shoot.rig.seats[0].client.reconciler().unwrap().predictor().stats().delayed_changes;
        assert!(delayed > 20, "{way:?}: pacing delays changes: {delayed}");
        shoot.check(&format!("{way:?}"));
    }
}

#[test]
fn press_04_taps_over_a_cut_and_a_resume_act_once_each() {
    for seed in 0..8 {
        let mut shoot = Shoot::new(&[Way::delayed(ms(20 + 10 * seed)), Way::IDEAL], seed);
        for round in 0..4 {
            shoot.play(ms(1_313), ONE_IN_SEVEN);
            shoot.rig.cut(0);
            let mut taps = 0;
            shoot.play(ms(400 + 300 * round), |dice| {
                let tap = u64::from(dice.below(12) == 0 && taps < 4);
                taps += tap;
                tap
            });
        }
        shoot.play(Duration::from_secs(6), |_| 0);
        let restarted = |event: &ClientEvent| matches!(event, ClientEvent::Restarted(_));
        assert!(!shoot.rig.seats[0].events.iter().any(restarted), "seed {seed}: resumed");
        assert_eq!(shoot.rig.seats[0].client.state(), SessionState::LoggedIn);
        shoot.check(&format!("seed {seed}"));
    }
}

#[test]
fn press_05_taps_over_a_slip_of_server_time_act_once_each() {
    for seed in 0..6 {
        let mut shoot = Shoot::new(&[Way::delayed(ms(15 + 20 * seed)), lossy(30, 20, 0.05)], seed);
        for stall in [2_700, 900, 3_100] {
            shoot.play(ms(1_717 + 13 * seed), ONE_IN_SEVEN);
            shoot.rig.stalled_until = shoot.rig.now + ms(stall);
            let mut taps = [0; 2];
            let mut call = 0;
            shoot.play(ms(stall), |dice| {
                call += 1;
                let own = &mut taps[call % 2];
                let tap = u64::from(dice.below(20) == 0 && *own < 5);
                *own += tap;
                tap
            });
        }
        assert!(shoot.rig.server.stats().slips >= 2, "{:?}", shoot.rig.server.stats());
        shoot.check(&format!("seed {seed}"));
    }
}

#[test]
fn press_06_substitutes_past_their_hold_keep_the_counters() {
    for (seed, silence) in (0..).zip([200, 260, 500, 1_500, 4_000]) {
        let mut shoot = Shoot::new(&[Way::delayed(ms(35)), Way::IDEAL], seed);
        shoot.play(ms(2_000), ONE_IN_SEVEN);
        // The server lets go of all axes meanwhile, while the client taps now and then.
        shoot.rig.seats[0].datagrams_cut.0 = true;
        let mut taps = 0;
        shoot.play(ms(silence), |dice| {
            let tap = u64::from(dice.below(20) == 0 && taps < 6);
            taps += tap;
            tap
        });
        let x = |shoot: &Shoot| {
            let gun = gun_of(&shoot.rig, 0);
            shoot.rig.server.body(gun, shoot.rig.server.tick()).unwrap().x()
        };
        let before = x(&shoot);
        shoot.play(ms(50), |_| 0);
        // Later on, input takes the reliable link instead.
        assert!(silence != 500 || x(&shoot) == before, "no axis is held for longer than 250 ms");
        shoot.rig.seats[0].datagrams_cut.0 = false;
        shoot.check(&format!("{silence} ms"));
    }
}

/// The host counts from zero for a new gun, and from the gun's own count when it comes back to one in a new process.
#[test]
fn press_07_a_player_who_comes_back_fires_only_what_is_tapped() {
    for seed in 0..4 {
        let mut shoot = Shoot::new(&[Way::delayed(ms(30))], seed);
        shoot.play(ms(2_000 + 130 * seed), ONE_IN_SEVEN);
        while shoot.players[0].presses.is_multiple_of(16) {
            shoot.play(ms(100), ONE_IN_SEVEN);
        }
        shoot.check(&format!("before, seed {seed}"));
        // The process dies, and another has its token.
        let rules = Gallery::default();
        let mut resumed = config("Ada", &rules);
        resumed.session.resume = shoot.rig.seats[0].client.resume_token();
        shoot.rig.cut(0);
        shoot.rig.seats.clear();
        assert_eq!(shoot.rig.join(resumed, Way::delayed(ms(30))), 0);
        let before = shoot.rig.server.world().born.len();
        let mut counted = None;
        let mut taps = 0;
        shoot.rig.run(ms(6_000), |_, now, client| {
            client.frame(now);
            let Some(Thing::Gun { fired, .. }) = client.predicted().copied() else { return };
            let fire = counted.get_or_insert(fired);
            if now.as_micros() / 16_667 % 60 == 0 && taps < 3 {
                (*fire, taps) = ((*fire + 1) % 16, taps + 1);
            }
            client.set_input(now, Trigger { drive: 0, fire: *fire });
        });
        assert_eq!(shoot.rig.seats[0].client.state(), SessionState::LoggedIn);
        let gun = gun_of(&shoot.rig, 0);
        let world = shoot.rig.server.world();
        let fired = world.born.values().skip(before).count();
        let own = world.born_by(gun).len() - shoot.players[0].presses as usize;
        assert_eq!((own, taps), (3, 3), "seed {seed}: {fired} bodies since");
    }
}
