//! A shooting range on a line: guns that fire by presses, shells that split, crates that guns push, and a lift that carries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use halftrack::client::{Certainty, Client, ClientConfig, Life, LifeEvent};
use halftrack::model::Presses;
use halftrack::server::{Command, CommandRefused, Events, Room, ServerConfig, World};
use halftrack::wire::control::Login;
use halftrack::{
    Body, BodyId, Cadence, Cause, Causes, Driver, Game, Input, MotionLimits, Neighbour, PlayerId, PlayerName,
    Pose2, Reach, Step, Tick, Timestamp,
};

use crate::rig::Rig;

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
pub(crate) struct Trigger {
    #[range(-8..=8)]
    pub(crate) drive: i8,
    #[presses]
    pub(crate) fire: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
#[blank(Thing::Gun { x: 0.0, fired: 0, shots: 0, dead: false })]
pub(crate) enum Thing {
    Gun {
        #[grid(1/1024, -4_000..=4_000)]
        x: f64,
        #[presses]
        fired: u8,
        #[range(0..=1_000_000)]
        shots: u32,
        dead: bool,
    },
    Shell {
        #[grid(1/1024, -4_000..=4_000)]
        x: f64,
        #[micros(0..=2_000_000)]
        left: u32,
        splits: bool,
    },
    Crate {
        #[grid(1/1024, -4_000..=4_000)]
        x: f64,
        #[grid(1/1024, -8..=8)]
        speed: f64,
    },
    /// Goes to and fro by the timetable.
    Lift {
        #[grid(1/1024, -4_000..=4_000)]
        x: f64,
    },
}

impl Thing {
    pub(crate) const fn gun(x: f64) -> Self {
        Self::Gun { x, fired: 0, shots: 0, dead: false }
    }

    pub(crate) const fn x(&self) -> f64 {
        match *self {
            Self::Gun { x, .. } | Self::Shell { x, .. } | Self::Crate { x, .. } | Self::Lift { x } => x,
        }
    }
}

/// The rules.
#[derive(Clone, Debug)]
pub(crate) struct Gallery {
    /// How long a shell flies, microseconds.
    pub(crate) life: u32,
    /// Crates and lifts near a gun are predicted with it, and so are other guns.
    pub(crate) groups: bool,
    pub(crate) rivals: bool,
}

impl Default for Gallery {
    fn default() -> Self {
        Self { life: 330_000, groups: true, rivals: false }
    }
}

impl Gallery {
    pub(crate) const SHELL: f64 = 30.0;
    const GUN: f64 = 1.0;
    const PUSH: f64 = 6.0;

    /// The lift's speed at a moment: two seconds one way, two seconds the other.
    fn lift(step: &Step<'_, Self>) -> f64 {
        if (step.tick().number() / 40) % 2 == 0 { 3.0 } else { -3.0 }
    }

    fn fly(&self, (x, left, splits): (&mut f64, &mut u32, bool), step: &mut Step<'_, Self>) {
        let whole = step.span().subsec_micros();
        let span = (*left).min(whole);
        let (from, to) = (*x, *x + Self::SHELL * f64::from(span) * 1e-6);
        let is_met = |other: &&Neighbour<Self>| {
            let solid = matches!(other.body, Thing::Gun { .. } | Thing::Crate { .. });
            let at = other.body.x();
            solid && step.parent() != Some(other.id) && from < at && at <= to
        };
        let met = step.neighbours().iter().filter(is_met);
        if let Some(met) = met.min_by(|one, other| one.body.x().total_cmp(&other.body.x())) {
            *x = met.body.x();
            step.touch(met.id);
            step.remove(Duration::from_secs_f64((met.body.x() - from) / Self::SHELL));
            return;
        }
        *x = to;
        *left -= span;
        if *left == 0 {
            let at = Duration::from_micros(u64::from(span));
            if splits && span < whole {
                for behind in [0.0, 3.0] {
                    step.emit(Thing::Shell { x: *x - behind, left: self.life, splits: false }, at);
                }
            }
            step.remove(at);
        }
    }
}

impl Game for Gallery {
    type Input = Trigger;
    type Body = Thing;
    type Pose = Pose2;

    fn advance(&self, thing: &mut Thing, input: Trigger, step: &mut Step<'_, Self>) {
        match thing {
            Thing::Gun { x, fired, shots, dead } => {
                let carrier = |other: &&Neighbour<Self>| {
                    matches!(other.body, Thing::Lift { .. })
                        && (other.body.x() - step.own_at_start().x()).abs() < 2.0
                };
                let carrier = step.neighbours().iter().find(carrier).map(|lift| lift.id);
                let ride = |x: &mut f64, step: &mut Step<'_, Self>| {
                    if let Some(lift) = carrier {
                        *x += Self::lift(step) * step.seconds();
                        step.touch(lift);
                    }
                };
                if *dead {
                    *fired = input.fire;
                    ride(x, step);
                    return;
                }
                // Where the gun is at the moment of the press, not at the end of the step.
                let count = Presses::since(*fired, input.fire);
                for press in 0..count {
                    let splits = (*shots + u32::from(press)) % 3 == 2;
                    step.emit(Thing::Shell { x: *x, left: self.life, splits }, Duration::ZERO);
                }
                (*fired, *shots) = (input.fire, *shots + u32::from(count));
                *x += f64::from(input.drive) * Self::GUN * step.seconds();
                ride(x, step);
            }
            Thing::Shell { x, left, splits } => self.fly((x, left, *splits), step),
            Thing::Crate { x, speed } => {
                let own = step.own_at_start().x();
                let mut push = 0.0;
                let near = |other: &&Neighbour<Self>| {
                    matches!(other.body, Thing::Gun { .. }) && (other.body.x() - own).abs() < 1.5
                };
                let pushing = step.neighbours().iter().filter(near);
                let pushing: Vec<_> = pushing.map(|gun| (gun.id, gun.body.x())).collect();
                for (gun, at) in pushing {
                    push += if at <= own { 1.0 } else { -1.0 };
                    step.touch(gun);
                }
                if push != 0.0 {
                    *speed = Self::PUSH * f64::clamp(push, -1.0, 1.0);
                }
                *x += *speed * step.seconds();
                let brake = 4.0 * step.seconds();
                *speed = if speed.abs() <= brake { 0.0 } else { *speed - speed.signum() * brake };
            }
            Thing::Lift { x } => *x += Self::lift(step) * step.seconds(),
        }
    }

    fn pose(&self, thing: &Thing) -> Option<Pose2> {
        Some(Pose2 { x: thing.x(), y: 0.0, heading: 0.0 })
    }

    fn limits(&self, thing: &Thing) -> MotionLimits {
        let top_speed = if matches!(thing, Thing::Shell { .. }) { Self::SHELL } else { 12.0 };
        MotionLimits { top_speed, top_turn: 1.0, grid_distance: 1.0 / 1024.0, grid_angle: 1e-4 }
    }

    fn reach(&self, thing: &Thing, span: Duration) -> Option<Reach> {
        let speed = if matches!(thing, Thing::Shell { .. }) { Self::SHELL } else { 12.0 };
        Some(Reach::plane(thing.x(), 0.0, 1.0, speed * span.as_secs_f64()))
    }

    fn predicts(&self, own: &Thing, other: &Thing) -> bool {
        let movable = matches!(other, Thing::Crate { .. } | Thing::Lift { .. });
        let rival = self.rivals && matches!(other, Thing::Gun { .. });
        ((self.groups && movable) || rival) && !matches!(own, Thing::Shell { .. })
    }

    fn fingerprint(&self) -> u64 {
        u64::from(self.life) << 2 | u64::from(self.groups) << 1 | u64::from(self.rivals)
    }
}

/// An act of the world in the next tick, as the host orders it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Crate(i16),
    Lift(i16),
    /// The gun of the player with this number dies, comes back, is moved so many metres, or is removed.
    Kill(u8),
    Revive(u8),
    Move(u8, i16),
    Disarm(u8),
    /// Every crate is pushed by so many eighths of a metre, without a word.
    Push(i16),
    /// A gun for a player.
    Arm(u8, i16),
}

impl Act {
    pub(crate) fn bytes(self) -> [u8; 4] {
        let (kind, player, value) = match self {
            Self::Crate(x) => (0, 0, x),
            Self::Lift(x) => (1, 0, x),
            Self::Kill(player) => (2, player, 0),
            Self::Revive(player) => (3, player, 0),
            Self::Move(player, by) => (4, player, by),
            Self::Disarm(player) => (5, player, 0),
            Self::Push(by) => (6, 0, by),
            Self::Arm(player, x) => (7, player, x),
        };
        let [low, high] = i16::to_le_bytes(value);
        [kind, player, low, high]
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [kind, player, low, high] = *bytes else { return None };
        let value = i16::from_le_bytes([low, high]);
        Some(match kind {
            0 => Self::Crate(value),
            1 => Self::Lift(value),
            2 => Self::Kill(player),
            3 => Self::Revive(player),
            4 => Self::Move(player, value),
            5 => Self::Disarm(player),
            6 => Self::Push(value),
            7 => Self::Arm(player, value),
            _ => return None,
        })
    }
}

/// A body that the rules removed: in which tick, how far into it, and the bodies that it touched.
pub(crate) type End = (Tick, Duration, Vec<BodyId>);

/// The room: each player has a gun, forty metres from the next.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    rules: Arc<Gallery>,
    acts: Vec<Act>,
    /// Every body that was born, with its parent and the tick.
    pub(crate) born: BTreeMap<BodyId, (BodyId, Tick)>,
    pub(crate) ended: BTreeMap<BodyId, End>,
    /// Metres between guns.
    apart: f64,
}

impl Range {
    pub(crate) fn of(rules: Gallery, apart: f64) -> Self {
        let (born, ended) = (BTreeMap::new(), BTreeMap::new());
        Self { rules: Arc::new(rules), acts: vec![], born, ended, apart }
    }

    /// The bodies that body `parent` emitted.
    pub(crate) fn born_by(&self, parent: BodyId) -> Vec<BodyId> {
        self.born.iter().filter(|(_, (by, _))| *by == parent).map(|(id, _)| *id).collect()
    }

    fn act(&self, act: Act, room: &mut Room<'_, Gallery>) {
        let gun = |player: u8, room: &Room<'_, Gallery>| {
            room.body_of(PlayerId::new(player.into())).map(|(id, gun)| (id, *gun))
        };
        let alter = |player, room: &mut Room<'_, Gallery>, cause, change: &dyn Fn(&mut Thing)| {
            if let Some((id, mut body)) = gun(player, room) {
                change(&mut body);
                room.alter(id, body, Causes::NONE.with(cause)).unwrap();
            }
        };
        let set_dead = |now| {
            move |thing: &mut Thing| {
                if let Thing::Gun { dead, .. } = thing {
                    *dead = now;
                }
            }
        };
        match act {
            Act::Crate(x) => {
                room.spawn(Driver::Nothing, Thing::Crate { x: x.into(), speed: 0.0 }).unwrap();
            }
            Act::Lift(x) => {
                room.spawn(Driver::Nothing, Thing::Lift { x: x.into() }).unwrap();
            }
            Act::Kill(player) => alter(player, room, Cause::Death, &set_dead(true)),
            Act::Revive(player) => alter(player, room, Cause::Respawn, &set_dead(false)),
            Act::Move(player, by) => alter(player, room, Cause::Teleport, &|thing| {
                if let Thing::Gun { x, .. } = thing {
                    *x += f64::from(by);
                }
            }),
            Act::Disarm(player) => {
                if let Some((id, _)) = gun(player, room) {
                    room.remove(id).unwrap();
                }
            }
            Act::Push(by) => {
                let crates: Vec<_> = room
                    .bodies()
                    .filter(|(.., body)| matches!(body, Thing::Crate { .. }))
                    .map(|(id, _, body)| (id, *body))
                    .collect();
                for (id, body) in crates {
                    let Thing::Crate { x, speed } = body else { continue };
                    let pushed = Thing::Crate { x: x + f64::from(by) / 8.0, speed };
                    room.alter(id, pushed, Causes::NONE).unwrap();
                }
            }
            Act::Arm(player, x) => {
                room.spawn(Driver::Player(PlayerId::new(player.into())), Thing::gun(x.into())).unwrap();
            }
        }
    }
}

impl World for Range {
    type Game = Gallery;

    fn rules(&self) -> &Arc<Gallery> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Gallery>) {
        let x = self.apart * f64::from(player.number());
        room.spawn(Driver::Player(player), Thing::gun(x)).unwrap();
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), CommandRefused> {
        self.acts.push(Act::read(command.bytes).ok_or(CommandRefused::Refused { why: "no act" })?);
        Ok(())
    }

    fn resolve(&mut self, room: &mut Room<'_, Gallery>, _: &mut Events) {
        let tick = room.tick();
        for id in room.born() {
            let parent = room.history(*id).and_then(|history| history.parent());
            let ended = room.ended().iter().find(|ended| ended.id == *id).and_then(|ended| ended.parent);
            let fresh = self.born.insert(*id, (parent.or(ended).unwrap(), tick));
            assert!(fresh.is_none(), "{id} was born twice");
        }
        for ended in room.ended() {
            let touched = ended.touched.ids().to_vec();
            let fresh = self.ended.insert(ended.id, (tick, ended.at, touched));
            assert!(fresh.is_none(), "{} ended twice", ended.id);
        }
        for act in std::mem::take(&mut self.acts) {
            self.act(act, room);
        }
    }
}

/// The host orders an act, which the next tick has.
pub(crate) fn act(rig: &mut Rig<Range>, act: Act) {
    rig.server.command(&act.bytes()).unwrap();
}

pub(crate) fn range(rules: Gallery, seed: u64) -> Rig<Range> {
    Rig::new(ServerConfig::default(), Range::of(rules, 400.0), seed)
}

pub(crate) fn config(name: &str, rules: &Gallery) -> ClientConfig<Gallery> {
    ClientConfig::new(PlayerName::new(name).unwrap(), Cadence::default(), Arc::new(rules.clone()))
}

/// The first gun of a seat's player.
pub(crate) fn gun_of(rig: &Rig<Range>, seat: usize) -> BodyId {
    rig.server.owned(rig.seats[seat].client.player().unwrap())[0]
}

/// Everything that a client said of one emitted body.
pub(crate) type Told = Vec<(Life, Certainty, Option<Cause>)>;

/// The player at a seat: presses, and looks at the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marksman {
    pub(crate) drive: i8,
    pub(crate) presses: u32,
    pub(crate) told: BTreeMap<BodyId, Told>,
    pub(crate) parents: BTreeMap<BodyId, Option<BodyId>>,
    /// The bodies that were on screen in the last frame.
    pub(crate) screen: BTreeMap<BodyId, f64>,
    /// Where each body was drawn first.
    pub(crate) seen: BTreeMap<BodyId, f64>,
    /// The birth of each, as it was told last.
    pub(crate) births: BTreeMap<BodyId, LifeEvent<Gallery>>,
    pub(crate) ends: BTreeMap<BodyId, LifeEvent<Gallery>>,
}

impl Marksman {
    pub(crate) fn input(&self) -> Trigger {
        Trigger { drive: self.drive, fire: (self.presses % 16) as u8 }
    }

    /// A tap: down and up between two frames.
    pub(crate) fn tap(&mut self, now: Timestamp, client: &mut Client<Gallery>) {
        self.presses += 1;
        client.set_input(now, self.input());
    }

    /// Looks at the newest frame, in which each body is drawn once; and takes the news.
    pub(crate) fn look(&mut self, now: Timestamp, client: &mut Client<Gallery>) {
        client.frame(now);
        let mut over = BTreeSet::new();
        while let Some(event) = client.poll_life() {
            let LifeEvent { id, parent, life, certainty, cause, .. } = event;
            self.told.entry(id).or_default().push((life, certainty, cause));
            self.parents.insert(id, parent);
            if life == Life::Ended {
                over.insert(id);
                self.ends.insert(id, event);
            } else {
                self.births.insert(id, event);
            }
        }
        let own = client.own().filter_map(|(id, _, member)| Some((id, member?.visible()?.x)));
        let group = client.group().filter_map(|member| Some((member.id(), member.visible()?.x)));
        let remotes = client.remotes().iter().map(|remote| (remote.id, remote.visible.x));
        let mut screen = BTreeMap::new();
        for (id, x) in own.chain(group).chain(remotes) {
            assert_eq!(screen.insert(id, x), None, "{id} is drawn twice");
            self.seen.entry(id).or_insert(x);
        }
        // A body that was on screen, and is in the room still, has not ended by prediction: it is drawn.
        for id in self.screen.keys().filter(|id| !screen.contains_key(id)) {
            let is_there = client.crowd().body(*id).is_some();
            let ended = over.contains(id)
                || self.told.get(id).is_some_and(|told| told.last().unwrap().0 == Life::Ended);
            assert!(!is_there || ended, "{id} is not drawn any more: {:?}", self.told.get(id));
        }
        self.screen = screen;
    }

    /// Births that were on this screen and not revoked, of bodies that `parent` emitted.
    pub(crate) fn born_by(&self, parent: BodyId) -> Vec<BodyId> {
        let of_parent = self.parents.iter().filter(|(_, by)| **by == Some(parent)).map(|(id, _)| *id);
        of_parent.filter(|id| !self.is_revoked(*id)).collect()
    }

    pub(crate) fn is_revoked(&self, id: BodyId) -> bool {
        let last = self.told[&id].iter().rev().find(|(life, ..)| *life == Life::Born);
        last.is_some_and(|(_, certainty, _)| *certainty == Certainty::Revoked)
    }

    /// Each birth and each end was told once, and settled once. One that was revoked may be told again: it comes later.
    pub(crate) fn assert_told_once(&self, context: &str) {
        for (id, told) in &self.told {
            let settled = |wanted: Life| {
                let each =
                    told.iter().filter(|(life, ..)| *life == wanted).map(|(_, certainty, _)| *certainty);
                let each: Vec<_> = each.collect();
                let (last, before) = each.split_last()?;
                let revoked = |pair: &[Certainty]| pair == [Certainty::Predicted, Certainty::Revoked];
                let sound = match last {
                    Certainty::Confirmed => {
                        let before = before.strip_suffix(&[Certainty::Predicted]).unwrap_or(before);
                        before.chunks(2).all(revoked)
                    }
                    Certainty::Revoked => each.chunks(2).all(revoked),
                    Certainty::Predicted => before.chunks(2).all(revoked),
                };
                assert!(sound, "{context}: {id}: {told:?}");
                Some(*last)
            };
            let (born, ended) = (settled(Life::Born), settled(Life::Ended));
            let sound = match born {
                Some(Certainty::Confirmed) => ended != Some(Certainty::Predicted),
                Some(Certainty::Revoked) => ended != Some(Certainty::Confirmed),
                _ => false,
            };
            assert!(sound && told[0].0 == Life::Born, "{context}: {id}: {told:?}");
            let mut causes = told.iter().filter_map(|(.., cause)| *cause);
            assert!(causes.all(|cause| cause != Cause::Unexplained), "{context}: {id}: {told:?}");
        }
    }
}
