//! One frame as a flat list of numbers, which the page reads where they are. `API.md` has the layout, and
//! `web/src/client.ts` reads it: change all three together, and [`View::LAYOUT`] with them.

use core::f64::consts::TAU;
use core::time::Duration;

use halftrack::client::Client;
use halftrack::session::SessionState;
use halftrack::{BodyId, Replay, Sampling, Status, Timestamp};
use tanks::{Fighter, TankPose, Tanks};

use crate::bodies;
use crate::record::{difference, millis, numbers, numbers_or_none};

/// What the row of a tank or of another body says of it besides numbers.
pub(crate) mod flag {
    /// The player's, or launched by it.
    pub(crate) const OWN: u32 = 1;
    pub(crate) const ALIVE: u32 = 2;
    /// Past the newest state, by the rules: a guess.
    pub(crate) const GUESSED: u32 = 4;
    /// Past what may be guessed: it stands.
    pub(crate) const HELD: u32 = 8;
    /// Between two states, where the way is not known.
    pub(crate) const BETWEEN: u32 = 16;
    /// Predicted with the player's tank.
    pub(crate) const PREDICTED: u32 = 32;
    /// Predicted until it is drawn as all others again.
    pub(crate) const LEAVING: u32 = 64;
}

/// What the header says of the player besides numbers.
mod own_flag {
    pub(super) const PLAYING: u32 = 1;
    pub(super) const PREDICTING: u32 = 2;
    pub(super) const ALIVE: u32 = 4;
    pub(super) const GUN_READY: u32 = 8;
    pub(super) const STARVED: u32 = 16;
}

/// A tank that is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) fighter: Fighter,
    pub(crate) pose: TankPose,
    pub(crate) flags: u32,
    pub(crate) hp: f64,
    pub(crate) kills: u32,
    pub(crate) deaths: u32,
    /// Radians, of its last shot, and how long ago that was on screen.
    pub(crate) shot: Option<(f64, Duration)>,
    /// The newest that the server told, and how long before the server's now that was.
    pub(crate) told: TankPose,
    pub(crate) told_age_ms: f64,
    /// The platform that carries it.
    pub(crate) carrier: Option<BodyId>,
}

/// What the header has that is not the client's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub(crate) drawn: Option<TankPose>,
    pub(crate) gun_left: Duration,
    pub(crate) gun_cooldown: Duration,
    pub(crate) respawn_in_ms: f64,
    pub(crate) margin_ms: f64,
    pub(crate) jitter_ms: f64,
    pub(crate) corrections: u64,
    pub(crate) last_correction_m: f64,
    pub(crate) last_correction_age_ms: f64,
    pub(crate) input: [f64; 2],
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) events: usize,
    pub(crate) reload_left: Duration,
    pub(crate) reload: Duration,
}

/// The numbers, and what is needed to find speeds.
#[derive(Debug, Default)]
pub(crate) struct View {
    numbers: Vec<f64>,
    last: Vec<(Fighter, TankPose)>,
    current: Vec<(Fighter, TankPose)>,
    last_frame: Option<Timestamp>,
}

impl View {
    /// The number of this layout: the first of the numbers.
    pub(crate) const LAYOUT: u32 = 3;
    /// Numbers before the first tank.
    pub(crate) const HEADER: usize = 64;
    /// Numbers of a tank.
    pub(crate) const TANK: usize = 16;
    /// Numbers of another body.
    pub(crate) const BODY: usize = 12;
    /// Where the header has other bodies and the own rockets.
    const MORE: usize = 52;

    pub(crate) fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// Writes a frame at `now`. The tanks are in order of their fighters, the other bodies in that of their ids.
    pub(crate) fn write(
        &mut self,
        now: Timestamp,
        client: &Client<Tanks>,
        around: &Around,
        tanks: impl Iterator<Item = Drawn>,
        others: &[bodies::Drawn],
        path: PathWish,
    ) {
        self.numbers.clear();
        self.numbers.resize(Self::HEADER, 0.0);
        let seconds = self.last_frame.map_or(0.0, |last| now.saturating_since(last).as_secs_f64());
        self.current.clear();
        let mut count = 0u32;
        for tank in tanks {
            let speed = self.speed(&tank, seconds);
            self.current.push((tank.fighter, tank.pose));
            write_tank(&mut self.numbers, &tank, speed);
            count += 1;
        }
        if seconds > 0.0 || self.last_frame.is_none() {
            core::mem::swap(&mut self.last, &mut self.current);
            self.last_frame = Some(now);
        }
        let path_at = self.numbers.len();
        let points = if path == PathWish::Wanted { write_path(client, &mut self.numbers) } else { 0 };
        let others_at = self.numbers.len();
        others.iter().for_each(|body| write_body(&mut self.numbers, body));
        let header = header(now, client, around);
        for (slot, number) in self.numbers.iter_mut().zip(header) {
            *slot = number;
        }
        let sections = [f64::from(count), Self::HEADER as f64, f64::from(points), path_at as f64];
        for (slot, number) in self.numbers.iter_mut().skip(4).zip(sections) {
            *slot = number;
        }
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let more = [others.len() as f64, others_at as f64, millis(around.reload_left), millis(around.reload)];
        for (slot, number) in self.numbers.iter_mut().skip(Self::MORE).zip(more) {
            *slot = number;
        }
    }

    /// Along the heading, metres per second, from one frame to the next.
    fn speed(&self, tank: &Drawn, seconds: f64) -> f64 {
        let before = self.last.binary_search_by_key(&tank.fighter, |(fighter, _)| *fighter);
        let before = before.ok().and_then(|at| self.last.get(at));
        let Some((_, before)) = before.filter(|_| seconds > 0.0) else { return 0.0 };
        let [x, y, _] = difference(&tank.pose, before);
        let (sin, cos) = libm::sincos(tank.pose.heading * TAU);
        (x * cos + y * sin) / seconds
    }
}

/// Whether the path of what is pending is written too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PathWish {
    #[default]
    None,
    Wanted,
}

/// Its number for the page.
pub(crate) fn state_number(state: SessionState) -> u32 {
    match state {
        SessionState::Idle => 0,
        SessionState::Connecting => 1,
        SessionState::LoginPending => 2,
        SessionState::LoggedIn => 3,
        SessionState::Reconnecting => 4,
        SessionState::Failed(_) => 5,
        SessionState::TimedOut => 6,
        SessionState::LoggedOut => 7,
    }
}

fn span(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// A fighter's key. It is below 2^49, so a number of the page holds it exactly.
fn key(fighter: Fighter) -> f64 {
    fighter.key() as f64
}

/// Everything up to the last number that is not zero.
fn header(now: Timestamp, client: &Client<Tanks>, around: &Around) -> Vec<f64> {
    let own = client.own().next().and_then(|(own, ..)| client.authoritative(own));
    let reconciler = client.reconciler();
    let predictor = reconciler.map(|reconciler| reconciler.predictor());
    let predicted = client.predicted();
    let mut flags = 0;
    for (flag, holds) in [
        (own_flag::PLAYING, client.state() == SessionState::LoggedIn && around.drawn.is_some()),
        (own_flag::PREDICTING, reconciler.is_some()),
        (own_flag::ALIVE, predicted.is_some_and(|tank| tank.is_alive())),
        (own_flag::GUN_READY, around.gun_left.is_zero()),
        (own_flag::STARVED, predictor.is_some_and(|predictor| predictor.status() == Status::Starved)),
    ] {
        flags |= if holds { flag } else { 0 };
    }
    let server = client.server_time(now);
    let remotes = client.remotes();
    let mut header = vec![
        f64::from(View::LAYOUT),
        millis(now),
        f64::from(state_number(client.state())),
        client.player().map_or(-1.0, |player| key(player.into())),
        // 4 to 7: the sections, filled in by the caller.
        0.0,
        0.0,
        0.0,
        0.0,
        f64::from(flags),
        f64::from(predicted.and_then(|body| body.tank()).map_or(0, |tank| tank.hp)),
    ];
    let visible = reconciler.and_then(|reconciler| reconciler.visible()).copied();
    let poses = [
        around.drawn,
        visible,
        reconciler.map(|reconciler| reconciler.predicted().pose()),
        own.map(|(_, tank)| tank.pose()),
    ];
    header.extend(poses.iter().flat_map(|pose| numbers_or_none(pose.as_ref())));
    let offset = reconciler.and_then(|reconciler| reconciler.presenter()).map_or([0.0; 3], |presenter| {
        let offset = presenter.offset();
        let ([x, y, _], [_, _, turned]) = (offset.position, offset.rotation);
        [x, y, turned]
    });
    header.extend(offset);
    let time = |micros: Option<u64>| micros.map_or(f64::NAN, |micros| micros as f64 / 1e3);
    let tick = |tick: Option<u32>| tick.map_or(-1.0, f64::from);
    header.extend([
        around.gun_left.as_secs_f64() * 1e3,
        around.gun_cooldown.as_secs_f64() * 1e3,
        around.respawn_in_ms,
        around.input[0],
        around.input[1],
        time(server.map(|time| time.as_micros())),
        time(predictor.map(|predictor| predictor.time().as_micros())),
        time(remotes.render_time().map(|time| time.as_micros())),
        tick(own.map(|(tick, _)| tick.number())),
        tick(predictor.map(|predictor| predictor.open_tick().number())),
        predictor.map_or(0.0, |predictor| predictor.pending().count() as f64),
        span(client.mean_round_trip()),
        around.jitter_ms,
        span(client.lead()),
        around.margin_ms,
        span(server.and_then(|server| remotes.delay(server))),
        predictor.map_or(0.0, |predictor| f64::from(predictor.clock().rate().ppm())),
        around.corrections as f64,
        around.last_correction_m,
        around.last_correction_age_ms,
        around.bytes_up as f64,
        around.bytes_down as f64,
        around.events as f64,
    ]);
    header
}

fn write_tank(numbers_out: &mut Vec<f64>, tank: &Drawn, speed: f64) {
    let [x, y, heading] = numbers(&tank.pose);
    let [told_x, told_y, told_heading] = numbers(&tank.told);
    let (aim, shot_age) = tank.shot.map_or((f64::NAN, f64::NAN), |(aim, age)| (aim, age.as_secs_f64() * 1e3));
    let row: [f64; View::TANK] = [
        key(tank.fighter),
        x,
        y,
        heading,
        speed,
        tank.hp,
        f64::from(tank.flags),
        aim,
        shot_age,
        f64::from(tank.kills),
        f64::from(tank.deaths),
        told_x,
        told_y,
        told_heading,
        tank.told_age_ms,
        body_or_none(tank.carrier),
    ];
    numbers_out.extend(row);
}

/// An id is below 2^48, so a number of the page holds it exactly.
fn body_or_none(id: Option<BodyId>) -> f64 {
    id.map_or(-1.0, |id| id.number() as f64)
}

fn write_body(numbers_out: &mut Vec<f64>, body: &bodies::Drawn) {
    let [x, y, heading] = numbers(&body.pose);
    let [told_x, told_y, told_heading] = numbers_or_none(body.told.as_ref());
    let row: [f64; View::BODY] = [
        body.id.number() as f64,
        body.kind,
        x,
        y,
        heading,
        f64::from(body.flags),
        body.owner.map_or(-1.0, key),
        span(body.lag),
        body_or_none(body.carrier),
        told_x,
        told_y,
        told_heading,
    ];
    numbers_out.extend(row);
}

/// Where the tank is at the end of every step that the server has not answered, from the newest state on: x, y, heading
/// and the tick.
fn write_path(client: &Client<Tanks>, numbers_out: &mut Vec<f64>) -> u32 {
    let Some(reconciler) = client.reconciler() else { return 0 };
    let predictor = reconciler.predictor();
    let baseline = predictor.baseline();
    let first = baseline.tick.next();
    let neighbours = baseline.neighbours();
    let mut replay = Replay::new(&**client.rules(), client.cadence(), first, &neighbours, baseline.own.body);
    let mut points = 1;
    let mut point = |body: &tanks::Entity, tick: halftrack::Tick| {
        numbers_out.extend(numbers(&body.pose()));
        numbers_out.push(f64::from(tick.number()));
    };
    point(&baseline.own.body, baseline.tick);
    for (tick, step) in predictor.pending_steps() {
        replay.hold(step.input, step.span);
        point(replay.body(), tick);
        points += 1;
    }
    points
}

/// As a flag of a row.
pub(crate) fn sampling_flag(sampling: Sampling) -> u32 {
    match sampling {
        Sampling::Exact => 0,
        Sampling::Interpolated => flag::BETWEEN,
        Sampling::Extrapolated => flag::GUESSED,
        Sampling::Held => flag::HELD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Site;
    use crate::site::tests::told;
    use halftrack::{BodyId, PlayerId};

    #[test]
    fn the_header_is_as_long_as_the_documents_say() {
        let site = Site::read(&told()).unwrap();
        let arena = std::sync::Arc::new(site.arena().unwrap());
        let client = Client::new(site.client(&arena, "Ada", None).unwrap()).unwrap();
        let now = Timestamp::from_micros(5_000);
        let around = Around { events: 9, ..Around::default() };
        let header = header(now, &client, &around);
        assert_eq!((header.len(), header.last()), (48, Some(&9.0)));
        let mut view = View::default();
        view.write(now, &client, &around, core::iter::empty(), &[], PathWish::Wanted);
        let [layout, at, state, own, tanks, start] = *view.numbers().first_chunk().unwrap();
        assert_eq!([layout, at, state, own, tanks, start], [3.0, 5.0, 0.0, -1.0, 0.0, 64.0]);
        assert_eq!(view.numbers().len(), View::HEADER);
    }

    #[test]
    fn the_largest_keys_of_fighters_are_exact_in_a_row() {
        let pose = TankPose { x: 1.0, y: 2.0, heading: 0.0 };
        for fighter in [PlayerId::new(u16::MAX).into(), Fighter::Machine(BodyId::new(u64::MAX))] {
            let (shot, told_age_ms) = (None, 0.0);
            let tank = Drawn {
                fighter,
                pose,
                flags: 0,
                hp: 9.0,
                kills: 0,
                deaths: 0,
                shot,
                told: pose,
                told_age_ms,
                carrier: None,
            };
            let mut row = vec![];
            write_tank(&mut row, &tank, 0.0);
            assert_eq!((row.len(), Fighter::from_key(row[0] as u64)), (View::TANK, fighter));
        }
    }
}
