//! GROUP: the predicted group end to end, over bad networks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::range::{Act, Gallery, Marksman, Range, Thing, act, config};
use crate::rig::{Dice, Rig, Way, ms};
use halftrack::client::{Client, ClientConfig, GroupConfig};
use halftrack::server::ServerConfig;
use halftrack::{BodyId, Cause, CorrectionStats, Diagnosis, Role, Timestamp};

const NETWORKS: [Way; 4] = [
    Way::IDEAL,
    Way { delay: Duration::from_millis(20), jitter: Duration::from_millis(4), loss: 0.002, duplicate: 0.0 },
    Way { delay: Duration::from_millis(45), jitter: Duration::from_millis(8), loss: 0.01, duplicate: 0.01 },
    Way { delay: Duration::from_millis(60), jitter: Duration::from_millis(60), loss: 0.08, duplicate: 0.02 },
];

/// Players with a gun each and things between them.
struct Yard {
    rig: Rig<Range>,
    players: Vec<Marksman>,
    dice: Dice,
    /// Fires too.
    armed: bool,
    /// Does nothing.
    still: bool,
}

impl Yard {
    fn new(apart: f64, ways: &[Way], seed: u64) -> Self {
        Self::of(&Gallery::default(), (apart, ways, seed), |config| config)
    }

    fn of(
        rules: &Gallery,
        (apart, ways, seed): (f64, &[Way], u64),
        change: impl Fn(ClientConfig<Gallery>) -> ClientConfig<Gallery>,
    ) -> Self {
        let mut rig = Rig::new(ServerConfig::default(), Range::of(rules.clone(), apart), seed);
        for (way, name) in ways.iter().zip(["Ada", "Bob", "Eve", "Joe"]) {
            rig.join(change(config(name, rules)), *way);
            rig.run(ms(700), |_, _, _| {});
        }
        let players = vec![Marksman::default(); rig.seats.len()];
        Self { rig, players, dice: Dice(seed ^ 0x9409), armed: false, still: false }
    }

    fn play(&mut self, span: Duration) {
        self.watch(span, |_, _, _| {});
    }

    /// The same, and `see` looks at each frame of each player.
    fn watch(&mut self, span: Duration, mut see: impl FnMut(usize, Timestamp, &mut Client<Gallery>)) {
        let Self { rig, players, dice, armed, still } = self;
        rig.run(span, |seat, now, client| {
            let player = &mut players[seat];
            player.look(now, client);
            see(seat, now, client);
            if !*still && dice.below(25) == 0 {
                player.drive = i8::try_from(dice.below(17)).unwrap() - 8;
                if *armed {
                    player.presses += 1;
                }
                client.set_input(now, player.input());
            }
        });
    }

    fn client(&self, seat: usize) -> &Client<Gallery> {
        &self.rig.seats[seat].client
    }

    /// All that is under way arrives; then everything that was told is settled, and all that was corrected is explained.
    fn check(&mut self, context: &str) {
        let ways: Vec<_> = self.rig.seats.iter().map(|seat| (seat.up, seat.down)).collect();
        for seat in &mut self.rig.seats {
            (seat.up, seat.down) = (Way::delayed(ms(30)), Way::delayed(ms(30)));
        }
        let before = (self.armed, self.still);
        (self.armed, self.still) = (false, true);
        self.play(Duration::from_secs(3));
        (self.armed, self.still) = before;
        for (seat, (up, down)) in self.rig.seats.iter_mut().zip(ways) {
            (seat.up, seat.down) = (up, down);
        }
        for seat in 0..self.players.len() {
            let client = self.client(seat);
            let (own, group) = (client.corrections(), client.group_corrections());
            let odd = |diagnosis: &&Diagnosis<Gallery>| diagnosis.cause == Some(Cause::Unexplained);
            let odd: Vec<_> = client
                .reconciler()
                .into_iter()
                .flat_map(|known| known.recent_of_group().filter(odd))
                .collect();
            let unexplained = (own.of(Cause::Unexplained), group.of(Cause::Unexplained));
            assert_eq!(unexplained, (0, 0), "{context}, seat {seat}: {odd:#?}");
            assert_eq!(client.stats().check_failed, 0, "{context}");
            self.players[seat].assert_told_once(context);
        }
    }
}

/// Corrections of the group for other reasons than the input of the player's own that came late.
fn corrected(client: &Client<Gallery>) -> u64 {
    let stats = client.group_corrections();
    let input = stats.of(Cause::LateInput) + stats.of(Cause::LostInput) + stats.of(Cause::Resync);
    stats.negligible + stats.eased + stats.snapped - input
}

#[test]
fn group_01_a_crate_that_one_player_pushes_and_a_lift_that_carries_are_never_corrected() {
    let (mut on_time, mut pushed, mut rode) = (0, 0, 0);
    let networks = NETWORKS.into_iter().chain([Way::delayed(ms(25)), Way::delayed(ms(80))]);
    for (seed, way) in (0..).zip(networks) {
        let mut yard = Yard::new(400.0, &[way], seed);
        for x in [2, -3, 5, -7] {
            act(&mut yard.rig, Act::Crate(x));
        }
        act(&mut yard.rig, Act::Lift(0));
        yard.play(ms(1_500));
        let client = yard.client(0);
        let before =
            (corrected(client), client.group_corrections(), client.stats().held, client.corrections());
        let (mut ridden, mut near) = (0, 0);
        yard.watch(Duration::from_secs(20), |_, _, client| {
            near += client.group().count();
            ridden += usize::from(client.predicted().is_some_and(|gun| gun.x().abs() < 8.0));
        });
        let client = yard.client(0);
        let after = client.group_corrections();
        assert_eq!(corrected(client), before.0, "{way:?}: {after:?}");
        assert!(after.unchanged > before.1.unchanged + 500, "{way:?}: {after:?}");
        let crates = yard.rig.server.bodies().filter_map(|(.., thing)| match thing {
            Thing::Crate { x, .. } => Some(*x),
            _ => None,
        });
        pushed += crates.filter(|x| ![2.0, -3.0, 5.0, -7.0].contains(x)).count();
        rode += ridden;
        assert!(near > 1_000, "{way:?}: {near}");
        if client.stats().held == before.2 {
            on_time += 1;
            let since = |now: CorrectionStats, then: CorrectionStats| {
                (now.negligible - then.negligible, now.eased - then.eased, now.snapped - then.snapped)
            };
            assert_eq!(since(after, before.1), (0, 0, 0), "{way:?}: input on time: {after:?}");
            assert_eq!(since(client.corrections(), before.3), (0, 0, 0), "{way:?}");
        }
        yard.check(&format!("{way:?}"));
    }
    assert!(pushed > 5 && rode > 500, "{pushed} crates were pushed, {rode} frames on the lift");
    assert!(on_time > 0, "on no network did all input come in time");
}

#[test]
fn group_03_corrections_of_members_name_other_players_and_the_world() {
    let (mut by_others, mut world) = ((0, 0), 0);
    for seed in 0..12 {
        let ways = [NETWORKS[seed as usize % 4], NETWORKS[(seed as usize / 2) % 4], NETWORKS[2]];
        let rules = Gallery { rivals: seed % 3 == 2, ..Gallery::default() };
        let mut yard = Yard::of(&rules, (3.0, &ways, seed), |config| config);
        for x in [1, 4, 8, -4] {
            act(&mut yard.rig, Act::Crate(x));
        }
        act(&mut yard.rig, Act::Lift(0));
        yard.armed = seed % 2 == 1;
        yard.play(Duration::from_secs(20));
        yard.check(&format!("two push one crate, seed {seed}"));
        let stats = yard.client(0).group_corrections();
        by_others.0 += stats.of(Cause::OtherInput);
        by_others.1 += stats.of(Cause::Collision);
        for round in 0..6 {
            act(&mut yard.rig, Act::Push(if round % 2 == 0 { 9 } else { -9 }));
            yard.play(ms(700));
        }
        let moved = yard.client(0).group_corrections();
        world += moved.of(Cause::World) - stats.of(Cause::World);
        yard.check(&format!("the world pushes, seed {seed}"));
    }
    assert!(by_others.0 > 50 && by_others.1 > 50 && world > 20, "{by_others:?}, {world} by the world");
}

/// A player's gun goes to a crate and away from it, again and again.
#[test]
fn group_04_joining_and_leaving_move_the_draw_time_and_never_the_place() {
    for (seed, way) in (0..).zip(NETWORKS) {
        let mut yard = Yard::new(400.0, &[way], seed);
        act(&mut yard.rig, Act::Lift(60));
        act(&mut yard.rig, Act::Crate(80));
        yard.play(ms(1_500));
        let mut last: BTreeMap<BodyId, (Timestamp, f64, bool)> = BTreeMap::new();
        let (mut joined, mut left, mut lagging) = (0, 0, 0);
        for round in 0..8 {
            act(&mut yard.rig, Act::Move(0, if round % 2 == 0 { 66 } else { -66 }));
            yard.watch(ms(2_600), |_, now, client| {
                let group = client
                    .group()
                    .filter_map(|member| Some((member.id(), member.visible()?.x, member.lag())));
                let group: Vec<_> = group.collect();
                lagging += group.iter().filter(|(.., lag)| !lag.is_zero()).count();
                let remotes = client.remotes().iter().map(|remote| (remote.id, remote.visible.x));
                let all = group
                    .iter()
                    .map(|(id, x, _)| (*id, *x, true))
                    .chain(remotes.map(|(id, x)| (id, x, false)));
                for (id, x, grouped) in all {
                    if let Some((then, before, was)) = last.insert(id, (now, x, grouped)) {
                        joined += usize::from(grouped && !was);
                        left += usize::from(!grouped && was);
                        // The lift goes 3 m/s, and its time runs at 1.5 of the rate at most.
                        let fastest = 3.0 * 1.5 * now.saturating_since(then).as_secs_f64() + 0.01;
                        let step = (x - before).abs();
                        let lift = (45.0..75.0).contains(&x);
                        assert!(!lift || step <= fastest, "{way:?}: {id} jumps {step} m: {was} to {grouped}");
                    }
                }
            });
        }
        assert!(joined >= 2 && left >= 2 && lagging > 60, "{way:?}: {joined} joined, {left} left, {lagging}");
        yard.check(&format!("{way:?}"));
    }
}

#[test]
fn group_05_a_body_at_the_rim_stays_for_the_linger() {
    let linger = Duration::from_millis(500);
    let mut yard = Yard::new(400.0, &[Way::delayed(ms(30))], 3);
    act(&mut yard.rig, Act::Crate(4));
    yard.play(ms(1_500));
    let crates = |client: &Client<Gallery>| -> Vec<(BodyId, Role)> {
        client.group().map(|member| (member.id(), member.role())).collect()
    };
    assert_eq!(crates(yard.client(0)).len(), 1);
    // It goes out of reach for less than the linger, and stays; then for longer, and leaves.
    for (away, stays) in [(300, true), (2_500, false)] {
        act(&mut yard.rig, Act::Move(0, -200));
        let mut least = 1;
        let mut role = None;
        yard.watch(ms(away), |_, _, client| {
            least = least.min(crates(client).len());
            role = crates(client).first().map(|(_, role)| *role).or(role);
        });
        assert_eq!(
            (least == 1, role),
            (stays, Some(if stays { Role::Group } else { Role::Leaving })),
            "{linger:?}"
        );
        act(&mut yard.rig, Act::Move(0, 200));
        yard.play(ms(1_500));
        assert_eq!(crates(yard.client(0)).len(), 1, "it is back");
    }
    yard.check("rim");
}

#[test]
fn group_06_the_group_is_bounded_and_the_nearest_come_first() {
    for max_bodies in [0, 1, 3, 16] {
        let group = GroupConfig { max_bodies, max_near: 4, ..GroupConfig::default() };
        let mut yard = Yard::of(&Gallery::default(), (400.0, &[Way::delayed(ms(40))], 3), |config| {
            ClientConfig { group, ..config }
        });
        for x in 2..12 {
            act(&mut yard.rig, Act::Crate(x * 3));
        }
        yard.still = true;
        yard.play(Duration::from_secs(2));
        let mut frames = 0;
        yard.still = max_bodies == 3;
        yard.watch(Duration::from_secs(6), |_, _, client| {
            let named = client.group().filter(|member| member.role() == Role::Group).count();
            assert!(named <= max_bodies, "{named} of {max_bodies}");
            let others = client.reconciler().unwrap().predictor().baseline().others();
            let near = others.iter().filter(|actor| actor.role == Role::Near).count();
            assert!(near <= 4, "{near} are near");
            frames += 1;
        });
        assert!(frames > 300);
        let client = yard.client(0);
        let own = client.predicted().unwrap().x();
        let gap = |x: f64| (x - own).abs();
        let farthest = client.group().map(|member| gap(member.predicted().x())).fold(0.0, f64::max);
        let outside =
            client.remotes().iter().map(|remote| gap(remote.state.x())).fold(f64::INFINITY, f64::min);
        // A body that is in the group stays in it while it is near.
        assert!(!yard.still || farthest <= outside, "{max_bodies}: {farthest} inside, {outside} outside");
        yard.check(&format!("{max_bodies} bodies"));
    }
}

/// Each frame draws each body once: [`Marksman::look`] counts. Players and guns come and go meanwhile.
#[test]
fn group_02_each_body_is_drawn_once_over_deaths_cuts_slips_and_new_guns() {
    for seed in 0..8 {
        let mut yard = Yard::new(5.0, &[NETWORKS[seed as usize % 4], NETWORKS[2]], seed);
        yard.armed = true;
        for x in [1, 4, 9, 30] {
            act(&mut yard.rig, Act::Crate(x));
        }
        act(&mut yard.rig, Act::Lift(3));
        for round in 0..3 {
            yard.play(ms(1_300));
            act(&mut yard.rig, Act::Kill(0));
            yard.play(ms(600));
            act(&mut yard.rig, Act::Revive(0));
            act(&mut yard.rig, Act::Disarm(1));
            yard.play(ms(900));
            act(&mut yard.rig, Act::Arm(1, 12));
            yard.play(ms(700));
            yard.rig.cut(0);
            yard.play(ms(1_100));
            if round == 1 {
                yard.rig.stalled_until = yard.rig.now + ms(2_800);
                yard.play(ms(3_500));
            }
        }
        yard.check(&format!("seed {seed}"));
        for seat in 0..2 {
            let client = yard.client(seat);
            let there: Vec<_> = client.crowd().bodies().map(|(id, _)| id).collect();
            let screen: Vec<_> = yard.players[seat].screen.keys().copied().collect();
            assert_eq!(screen, there, "seed {seed}, seat {seat}");
        }
    }
}
