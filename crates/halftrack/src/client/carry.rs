//! [`Carriers`]: draws bodies where they stand on the bodies that carry them.
//!
//! A platform of the group is drawn at prediction time, or on its way there; a player of another client who rides on it is drawn
//! at render time. Each of the two is where it was at its own moment, so the rider would hang in the air behind the platform.
//! It is drawn at its place on the platform instead: displaced by the way of the platform from the rider's moment to its own.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::others::Others;
use super::own::Own;
use crate::game::Game;
use crate::id::BodyId;
use crate::model::{Offset, Pose};
use crate::reconcile::{Member, Reconciler};
use crate::time::Timestamp;

/// The bodies that are carried, or were a moment ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Carriers {
    /// In order of their ids.
    riders: Vec<Rider>,
}

/// A body that is carried, or was a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rider {
    id: BodyId,
    carrier: Option<BodyId>,
    /// Its displacement in the last frame, and what that goes to.
    shift: Offset,
    target: Offset,
    /// What the displacement lacked when the carrier changed, or was drawn elsewhere at once, and when that was.
    rest: Offset,
    since: Timestamp,
    /// The last frame in which it was drawn.
    drawn: Timestamp,
}

impl Rider {
    /// A body that steps onto a carrier, or off it, slides into its new place within this time.
    const BLEND: Duration = Duration::from_millis(250);

    /// The part of the rest that is left at `now`.
    fn left(&self, now: Timestamp) -> f64 {
        let passed = now.saturating_since(self.since).as_secs_f64() / Self::BLEND.as_secs_f64();
        let left = (1.0 - passed).max(0.0);
        left * left
    }

    /// The carrier's place at two moments: both go at up to 1.5 times its speed, under a clock that may run fast.
    const RATE: f64 = 4.0;
    /// Metres: of a carrier that does not move by itself.
    const SLACK: f64 = 0.01;

    /// Moves on to `now`, where it stands on `carrier` with displacement `target`, which goes at up to `speed`.
    fn place(&mut self, now: Timestamp, carrier: Option<BodyId>, target: Offset, speed: f64) {
        let less = |one: &Offset, other: &Offset| sum(one, &other.scaled(-1.0, -1.0));
        let far = Self::RATE * speed * now.saturating_since(self.drawn).as_secs_f64() + Self::SLACK;
        if carrier != self.carrier || less(&target, &self.target).distance() > far {
            (self.carrier, self.since) = (carrier, now);
            self.rest = less(&self.shift, &target);
        }
        self.target = target;
        let left = self.left(now);
        self.shift = if left > 0.0 { sum(&target, &self.rest.scaled(left, left)) } else { target };
        self.drawn = now;
    }
}

fn sum(one: &Offset, other: &Offset) -> Offset {
    let add = |one: [f64; 3], other: [f64; 3]| [one[0] + other[0], one[1] + other[1], one[2] + other[2]];
    Offset { position: add(one.position, other.position), rotation: add(one.rotation, other.rotation) }
}

impl Carriers {
    pub(super) fn forget(&mut self) {
        self.riders.clear();
    }

    pub(super) fn saved(&self) -> &[Rider] {
        &self.riders
    }

    pub(super) fn restore(&mut self, riders: Vec<Rider>) -> bool {
        self.riders = riders;
        let finite = |rider: &Rider| rider.shift.is_finite() && rider.rest.is_finite();
        self.riders.iter().all(finite) && self.riders.is_sorted_by(|one, other| one.id < other.id)
    }

    /// Places every rider. All bodies have been drawn at `now`.
    pub(super) fn draw<G: Game>(&mut self, now: Timestamp, own: &mut Own<G>, others: &mut Others<G>) {
        // spec: GROUP-07
        if let Some(reconciler) = &mut own.reconciler {
            self.draw_members(now, reconciler, others);
            self.draw_remotes(now, reconciler, others);
        }
        // The others stand on nothing.
        for rider in self.riders.iter_mut().filter(|rider| rider.drawn < now) {
            rider.place(now, None, Offset::ZERO, 0.0);
            match own.reconciler.as_mut().and_then(|reconciler| reconciler.member_mut(rider.id)) {
                Some(member) => member.carry(None, &rider.shift),
                None => others.remotes.carry(rider.id, None, &rider.shift),
            }
        }
        self.riders.retain(|rider| rider.carrier.is_some() || rider.shift != Offset::ZERO);
    }

    fn draw_members<G: Game>(
        &mut self,
        now: Timestamp,
        reconciler: &mut Reconciler<G>,
        others: &mut Others<G>,
    ) {
        for place in 0..reconciler.members().len() {
            let Some((id, carrier, target)) = reconciler.carrier_of(place, others) else { continue };
            let speed = speed_of(reconciler.member(carrier));
            let shift = self.place(now, (id, carrier), target, speed);
            if let Some(member) = reconciler.member_mut(id) {
                member.carry(Some(carrier), &shift);
            }
        }
    }

    fn draw_remotes<G: Game>(&mut self, now: Timestamp, reconciler: &Reconciler<G>, others: &mut Others<G>) {
        let Some(time) = others.remotes.render_time() else { return };
        let Others { remotes, crowd, .. } = others;
        // All at the end of the same tick: as the newest snapshot has them.
        let members = reconciler.members().iter();
        let told = members.filter_map(|member| Some((member, crowd.body(member.id())?.latest())));
        let rules = reconciler.rules();
        for (member, carrier) in told {
            let Some(visible) = member.base() else { continue };
            let mut at_render = None;
            let mut next = None;
            while let Some(id) = remotes.next_rider(next, |body| rules.carries(carrier, body)) {
                next = Some(id);
                if at_render.is_none() {
                    at_render = remotes.pose_at(crowd, member.id(), time);
                }
                let Some(then) = &at_render else { break };
                let target = visible.offset_from(then);
                let shift = self.place(now, (id, member.id()), target, speed_of(Some(member)));
                remotes.carry(id, Some(member.id()), &shift);
            }
        }
    }

    fn place(
        &mut self,
        now: Timestamp,
        (id, carrier): (BodyId, BodyId),
        target: Offset,
        speed: f64,
    ) -> Offset {
        let (shift, rest) = (Offset::ZERO, Offset::ZERO);
        let fresh = Rider { id, carrier: None, shift, target, rest, since: now, drawn: now };
        let at = match self.riders.binary_search_by_key(&id, |rider| rider.id) {
            Ok(at) => at,
            Err(at) => {
                self.riders.insert(at, fresh);
                at
            }
        };
        let Some(rider) = self.riders.get_mut(at) else { return Offset::ZERO };
        rider.place(now, Some(carrier), target, speed);
        rider.shift
    }
}

/// The top speed of a carrier.
fn speed_of<G: Game>(carrier: Option<&Member<G>>) -> f64 {
    carrier.and_then(Member::presenter).map_or(0.0, |presenter| presenter.config().top_speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn east(metres: f64) -> Offset {
        Offset { position: [metres, 0.0, 0.0], ..Offset::ZERO }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    #[test]
    fn a_rider_slides_onto_its_carrier_and_off_it() {
        let (mut carriers, ids) = (Carriers::default(), (BodyId::new(1), BodyId::new(2)));
        let mut place = |millis, metres| carriers.place(at(millis), ids, east(metres), 4.0);
        assert_eq!(place(0, 0.6), Offset::ZERO, "no step at first");
        let mut before = 0.0;
        for millis in (10..=250).step_by(10) {
            let [shift, ..] = place(millis, 0.6).position;
            assert!(shift > before && shift - before < 0.05, "{before} to {shift} at {millis} ms");
            before = shift;
        }
        assert_eq!(place(260, 0.6), east(0.6));
        assert_eq!(place(270, 0.5), east(0.5), "it goes with its carrier");
        let rider = &mut carriers.riders[0];
        rider.place(at(300), None, Offset::ZERO, 0.0);
        assert_eq!(rider.shift, east(0.5));
        rider.place(at(550), None, Offset::ZERO, 0.0);
        assert_eq!(rider.shift, Offset::ZERO);
    }

    #[test]
    fn a_rider_slides_after_a_carrier_that_is_drawn_elsewhere_at_once() {
        let (mut carriers, ids) = (Carriers::default(), (BodyId::new(1), BodyId::new(2)));
        let mut place = |millis, metres| carriers.place(at(millis), ids, east(metres), 4.0);
        assert_eq!((place(0, 0.0), place(16, 0.1)), (Offset::ZERO, east(0.1)));
        let [shift, ..] = place(32, 1.2).position;
        assert!((shift - 0.1).abs() < 1e-9, "no step: {shift}");
        let [shift, ..] = place(48, 1.2).position;
        assert!(shift > 0.1 && shift < 0.4, "{shift}");
        assert_eq!(place(300, 1.2), east(1.2));
    }
}
