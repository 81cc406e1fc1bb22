//! The group that is predicted with the player's own bodies: its members, their corrections and causes, and steps in the
//! picture when a body joins or leaves.

use std::collections::VecDeque;
use std::time::Duration;

use derive_where::derive_where;
use halftrack::client::Client;
use halftrack::server::{Server, World};
use halftrack::snapshot::Course;
use halftrack::{BodyId, Cause, Fate, Game, Member, PlayerId, Pose, PredictConfig, Role, Tick, Timestamp};

use super::Note;
use crate::check::Rule;
use crate::truth::{Recorded, Truth};

/// Draw time runs half as fast again while it slews, and the clock under it up to a quarter fast.
const RATE: f64 = 1.5 + 0.25;

#[derive_where(Debug)]
pub(crate) struct GroupWatch<G: Game> {
    predict: PredictConfig,
    /// Bodies further apart than this cannot have touched, on either side. Metres.
    contact_reach: f64,
    /// The tick of the newest state that has been looked at.
    newest: Option<Tick>,
    /// Restarts of prediction so far, and the moment of the last one.
    resyncs: u64,
    resync: Option<Timestamp>,
    /// Corrections until the server has had its last word on the input.
    claims: VecDeque<Claim>,
    /// The bodies of the last frame, in order of their ids, and its moment.
    drawn: Vec<Drawn<G::Pose>>,
    last: Option<Timestamp>,
    /// Frames of this session so far, and bodies that were put elsewhere at once.
    frames: u64,
    snapped: u64,
    /// Scratch memory: the frame at hand, and its ids.
    fresh: Vec<Drawn<G::Pose>>,
    ids: Vec<BodyId>,
}

/// A correction of a member.
#[derive(Clone, Copy, Debug)]
struct Claim {
    id: BodyId,
    /// The body that emitted it, which the server may never have made.
    parent: Option<BodyId>,
    at: Timestamp,
    after: Tick,
    through: Tick,
    cause: Cause,
    resynced: bool,
    /// The prediction went so far beyond the state that it assumed neutral input.
    let_go: bool,
    /// Snapshots had a state of it, or of the body that emitted it, in place of its motion.
    sent: bool,
    measured: bool,
}

/// A body in a frame.
#[derive(Clone, Copy, Debug)]
struct Drawn<P> {
    id: BodyId,
    pose: P,
    place: Place,
    /// Metres per second; of the body, and of its corrections.
    top_speed: f64,
    cap_speed: f64,
    slack: f64,
    /// It is displaced by the way of its carrier, or slides back from that.
    carried: bool,
    /// How often it has snapped in the group.
    snapped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Remote,
    /// So far behind prediction time.
    Group(Duration),
}

impl<G: Game> GroupWatch<G> {
    pub(crate) fn new(predict: PredictConfig, contact_reach: f64) -> Self {
        Self {
            predict,
            contact_reach,
            newest: None,
            resyncs: 0,
            resync: None,
            claims: VecDeque::new(),
            drawn: Vec::new(),
            last: None,
            frames: 0,
            snapped: 0,
            fresh: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// The session begins anew.
    pub(crate) fn restarted(&mut self) {
        *self = Self::new(self.predict, self.contact_reach);
    }

    /// The bodies of the last frame but the player's own, in order of their ids.
    pub(crate) fn ids(&self) -> &[BodyId] {
        &self.ids
    }

    /// Something arrived: what came of it.
    pub(crate) fn states(&mut self, now: Timestamp, client: &Client<G>, note: &mut Note<'_>) {
        let Some(known) = client.reconciler() else {
            self.newest = None;
            return;
        };
        let tick = known.predictor().baseline().tick;
        // The state that restarted it may have had no member.
        let resyncs = core::mem::replace(&mut self.resyncs, known.predictor().stats().resyncs);
        if self.resyncs > resyncs {
            self.resync = Some(now);
        }
        let Some(mut after) = self.newest.replace(tick).filter(|newest| *newest < tick) else { return };
        let lasting = self.predict.max_pending * 2;
        let recent = known.recent_of_group();
        let old = recent.len() - recent.rev().take_while(|told| told.server_tick > after).count();
        let mut through = after;
        for told in known.recent_of_group().skip(old) {
            if told.server_tick > through {
                (after, through) = (through, told.server_tick);
            }
            if note.measuring && told.authoritative.is_some() {
                note.tally.correction_per_state_m.add(told.correction_distance);
            }
            let Some(cause) = told.cause else { continue };
            if note.measuring {
                note.tally.group_correction_m.add(told.correction_distance);
            }
            let resynced = self.resync.is_some_and(|at| now.saturating_since(at) <= lasting);
            let beyond = known.predictor().open_tick().since(after);
            let let_go = self.predict.cadence.span_of(beyond) > client.rules().max_hold();
            let measured = note.measuring;
            let parent = known.member(told.id).and_then(Member::parent);
            let mut line = [Some(told.id), parent].into_iter().flatten();
            let sent = line.any(|id| was_sent(client, id, after, through));
            self.claims.push_back(Claim {
                id: told.id,
                parent,
                at: now,
                after,
                through,
                cause,
                resynced,
                let_go,
                sent,
                measured,
            });
        }
    }

    /// Counts what has become final by `now`, and holds each cause against the server's own record.
    pub(crate) fn judge<W: World<Game = G>>(
        &mut self,
        now: Timestamp,
        player: PlayerId,
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        let wait = Duration::from_millis(900).min(self.predict.cadence.span_of(48));
        while let Some(claim) = self.claims.front().copied().filter(|claim| now >= claim.at + wait) {
            self.claims.pop_front();
            if claim.measured {
                note.tally.group.corrections += 1;
                note.tally.group.by_cause.count(claim.cause);
            }
            let truth = server.world().truth();
            let holds = self.holds(&claim, player, server, &truth);
            note.check(holds, Rule::TrueCause, || {
                let Claim { id, after, through, cause, .. } = claim;
                let fates: Vec<_> = ticks(after, through).map(|tick| server.fate(player, tick)).collect();
                format!(
                    "a correction of group member {id} by the state of tick {through}, after that of {after}, is put \
                     down to {cause}; its player's input was {fates:?}"
                )
            });
        }
    }

    /// Whether what a correction is put down to has happened, to the body or to one that emitted it.
    fn holds<W: World<Game = G>>(
        &self,
        claim: &Claim,
        player: PlayerId,
        server: &Server<Recorded<W>>,
        truth: &Truth<G>,
    ) -> bool {
        let Claim { id, after, through, cause, resynced, let_go, sent, .. } = *claim;
        // What stands in for input is held for some ticks, and a state may have waited for room.
        let lookback = Tick::new(after.number().saturating_sub(8));
        let mut line = core::iter::successors(Some(id), |each| {
            truth.parent(*each).or(claim.parent.filter(|_| *each == id))
        })
        .take(8);
        let mut any = |found: &dyn Fn(BodyId) -> bool| line.any(found);
        let had = |wanted: &[Fate]| {
            ticks(after, through)
                .any(|tick| server.fate(player, tick).is_none_or(|fate| wanted.contains(&fate)))
        };
        match cause {
            Cause::Resync => resynced,
            Cause::LateInput | Cause::LostInput => had(&[Fate::Held, Fate::Late, Fate::Lost]),
            Cause::OtherInput => {
                let_go
                    || any(&|id| {
                        !truth.remembers(id, through) || truth.input_changed(id, lookback, through.next())
                    })
            }
            Cause::World => {
                sent || any(&|id| !truth.remembers(id, through) || truth.was_altered(id, lookback, through))
            }
            Cause::Collision => any(&|id| truth.nearest(id, lookback, through) <= self.contact_reach),
            Cause::Teleport | Cause::Respawn | Cause::Death | Cause::Params => {
                any(&|id| truth.causes(id, after, through).contains(cause))
            }
            _ => false,
        }
    }

    /// A body that the world put somewhere else jumps within this time, when its draw time comes to that.
    pub(crate) const JUMPS: Duration = Duration::from_secs(2);

    /// A frame was drawn. By prediction, bodies `over` are gone. `was_altered` tells of the last [`Self::JUMPS`].
    pub(crate) fn frame(
        &mut self,
        now: Timestamp,
        client: &Client<G>,
        (over, was_altered): (&[BodyId], &dyn Fn(BodyId) -> bool),
        note: &mut Note<'_>,
    ) {
        self.collect(client);
        if note.measuring {
            let mut members = 0u32;
            for member in client.group().filter(|member| member.visible().is_some()) {
                members += 1;
                note.tally.draw_lag_ms.add(member.lag().as_secs_f64() * 1e3);
            }
            note.tally.members.add(f64::from(members));
        }
        let span = self.last.map_or(0.0, |last| now.saturating_since(last).as_secs_f64());
        // A client that did nothing for a while draws a new picture, and so does one whose session begins anew.
        let frames = core::mem::replace(&mut self.frames, client.remotes().stats().frames);
        let snapped = client.remotes().stats().snapped + client.group_corrections().snapped;
        let has_snapped = snapped > core::mem::replace(&mut self.snapped, snapped);
        let goes_on = self.last.is_some() && span <= 0.1 && self.frames > frames;
        self.last = Some(now);
        let mut before = self.drawn.iter().peekable();
        for (at, drawn) in self.fresh.iter().enumerate() {
            let twice = at.checked_sub(1).is_some_and(|before| self.fresh[before].id == drawn.id);
            note.tally.group.steps += u64::from(twice && note.measuring);
            note.check(!twice, Rule::DrawnOnce, || format!("{} is drawn twice", drawn.id));
            while let Some(gone) = before.next_if(|before| before.id < drawn.id) {
                if goes_on {
                    vanished(client, gone, over, note);
                }
            }
            let Some(before) = before.next_if(|before| before.id == drawn.id) else { continue };
            if goes_on {
                changed(before, drawn, (span, has_snapped, was_altered), note);
            }
        }
        if goes_on {
            before.for_each(|gone| vanished(client, gone, over, note));
        }
        core::mem::swap(&mut self.drawn, &mut self.fresh);
    }

    /// Lists what is drawn, in order of the ids.
    fn collect(&mut self, client: &Client<G>) {
        self.fresh.clear();
        let rules = client.rules();
        let remotes = client.remotes();
        self.fresh.extend(remotes.iter().map(|remote| {
            let limits = rules.limits(remote.state);
            Drawn {
                id: remote.id,
                pose: remote.visible,
                place: Place::Remote,
                top_speed: limits.top_speed,
                cap_speed: 0.0,
                slack: 4.0 * limits.grid_distance,
                carried: remote.carrier.is_some(),
                snapped: 0,
            }
        }));
        let group = client.group().filter(|member| member.role() != Role::Own);
        self.fresh.extend(group.filter_map(|member| Some((member, *member.visible()?))).map(drawn));
        self.fresh.sort_by_key(|drawn| drawn.id);
        self.ids.clear();
        self.ids.extend(self.fresh.iter().map(|drawn| drawn.id));
    }
}

fn drawn<G: Game>((member, pose): (&Member<G>, G::Pose)) -> Drawn<G::Pose> {
    let config = member.presenter().map(|presenter| *presenter.config());
    Drawn {
        id: member.id(),
        pose,
        place: Place::Group(member.lag()),
        top_speed: config.map_or(0.0, |config| config.top_speed),
        cap_speed: config.map_or(0.0, |config| config.cap_speed),
        slack: config.map_or(0.0, |config| 4.0 * config.deadband_distance),
        carried: member.presenter().is_some_and(|presenter| *presenter.visible() != pose),
        snapped: member.stats().snapped + member.jumps(),
    }
}

/// Whether a client was sent a state of a body in one of these ticks, or knows nothing of it.
fn was_sent<G: Game>(client: &Client<G>, id: BodyId, after: Tick, through: Tick) -> bool {
    let Some(history) = client.crowd().body(id) else { return false };
    ticks(after, through).any(|tick| history.get(tick).is_none_or(|record| record.course == Course::Altered))
}

fn ticks(after: Tick, through: Tick) -> impl Iterator<Item = Tick> {
    (after.number() + 1..=through.number()).map(Tick::new)
}

/// A body of the last frame is in this one, too: if it is on the way between render time and prediction time, it moves on.
fn changed<P: Pose>(
    before: &Drawn<P>,
    drawn: &Drawn<P>,
    (span, any_snapped, was_altered): (f64, bool, &dyn Fn(BodyId) -> bool),
    note: &mut Note<'_>,
) {
    let slews = match (before.place, drawn.place) {
        (Place::Remote, Place::Remote) => return,
        (Place::Remote, Place::Group(_)) => {
            note.tally.group.joins += u64::from(note.measuring);
            true
        }
        (Place::Group(_), Place::Remote) => {
            note.tally.group.leaves += u64::from(note.measuring);
            true
        }
        (Place::Group(before), Place::Group(now)) => before != now,
    };
    let has_snapped = match (before.place, drawn.place) {
        (Place::Group(_), Place::Group(_)) => before.snapped != drawn.snapped,
        // It was drawn at a guess until now.
        (Place::Remote, Place::Group(_)) => drawn.snapped > 0,
        (Place::Group(_), Place::Remote) => any_snapped,
        (Place::Remote, Place::Remote) => false,
    };
    if !slews || has_snapped {
        return;
    }
    let moved = drawn.pose.offset_from(&before.pose).distance();
    let top_speed = before.top_speed.max(drawn.top_speed);
    // A carrier is no faster than what it carries.
    let of_carrier = if before.carried || drawn.carried { top_speed } else { 0.0 };
    let speed = (top_speed + of_carrier) * RATE + before.cap_speed.max(drawn.cap_speed);
    let far = speed * span + before.slack.max(drawn.slack);
    if moved > far && was_altered(drawn.id) {
        return;
    }
    note.tally.group.steps += u64::from(moved > far && note.measuring);
    note.check(moved <= far, Rule::DrawnOnce, || {
        format!(
            "{} went {moved:.4} m in {span:.4} s, {far:.4} at most, from {:?} to {:?}",
            drawn.id, before.place, drawn.place
        )
    });
}

/// A body of the last frame is not drawn any more.
fn vanished<G: Game>(client: &Client<G>, gone: &Drawn<G::Pose>, over: &[BodyId], note: &mut Note<'_>) {
    let known = client.crowd().body(gone.id).filter(|_| !over.contains(&gone.id));
    let there = known.is_some_and(|history| client.rules().pose(history.latest()).is_some());
    let own = client.own().any(|(id, ..)| id == gone.id);
    let lost = there && !own;
    note.tally.group.steps += u64::from(lost && note.measuring);
    note.check(!lost, Rule::DrawnOnce, || format!("{} is there, and not drawn: {:?}", gone.id, gone.place));
}
