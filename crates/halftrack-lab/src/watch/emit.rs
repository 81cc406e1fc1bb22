//! The bodies that other bodies emit, as one client is told of them and draws them, held against the server's own.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use derive_where::derive_where;
use halftrack::client::{Certainty, Client, Life, LifeEvent};
use halftrack::server::{Server, World};
use halftrack::session::SessionState;
use halftrack::{BodyId, Cause, Fate, Game, PlayerId, ServerTime, Status, Tick, Timestamp};

use super::Note;
use crate::check::Rule;
use crate::truth::{Recorded, Truth};

#[derive_where(Debug)]
pub(crate) struct EmitWatch<G: Game> {
    /// The player's bodies, and their emissions that this client has an event of.
    own: Vec<BodyId>,
    shots: BTreeMap<BodyId, Shot>,
    /// Presses whose body has not been drawn yet.
    presses: VecDeque<Press>,
    /// The first body of the player, and presses since it is that.
    gun: Option<(BodyId, u32)>,
    /// The tick of the newest state, and of the one before it.
    newest: Tick,
    before: Tick,
    /// Births that were taken back, until the server has had its last word on the input.
    revoked: VecDeque<Revoked>,
    /// Prediction time in the last frames, oldest first; and the number of all frames.
    frames: VecDeque<ServerTime>,
    drawn: u64,
    /// The next emission of the server that has not been looked at.
    next: u64,
    /// Emissions of the server: the player's own ones that were not drawn yet, and others in view.
    undrawn: Vec<u64>,
    views: Vec<View>,
    /// Bodies that are over by prediction.
    foretold: Vec<BodyId>,
    /// Since when the client has been in, predicting and drawing; and its last frame.
    in_since: Option<Timestamp>,
    last: Timestamp,
    game: core::marker::PhantomData<G>,
}

/// A body that the player's bodies emitted, as its client was told.
#[derive(Clone, Copy, Debug)]
struct Shot {
    told: Told,
    drawn: bool,
    /// By prediction it ended before a frame could draw it: it lived for too short a time, or in the past, where a
    /// correction put it.
    brief: bool,
    /// Frames that were drawn before it was heard of as alive.
    frames: u64,
    /// The moment of its birth.
    at: ServerTime,
    /// When it was last heard of.
    heard: Timestamp,
    counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Predicted,
    Confirmed,
    Revoked,
    Ended,
}

/// A press of the button that emits.
#[derive(Clone, Copy, Debug)]
struct Press {
    /// The body that it emits.
    id: BodyId,
    /// Prediction time.
    at: ServerTime,
}

#[derive(Clone, Copy, Debug)]
struct Revoked {
    id: BodyId,
    parent: Option<BodyId>,
    #[allow(dead_code, reason = "a violation shows it")]
    cause: Option<Cause>,
    at: Timestamp,
    /// It is about the ticks after this one,
    after: Tick,
    /// up to this one.
    through: Tick,
    counts: bool,
}

/// An emission of another player's body.
#[derive(Clone, Copy, Debug)]
struct View {
    number: u64,
    seen: bool,
    missed: bool,
}

impl<G: Game> EmitWatch<G> {
    /// A body that lives for less may end between two frames.
    const LONG: Duration = Duration::from_millis(100);
    /// Frames whose moments are kept: four seconds and more.
    const FRAMES: usize = 256;
    /// A body that is over for so long is not drawn any more.
    const OVER: Duration = Duration::from_millis(1_500);
    /// A body that was not heard of for so long is forgotten: longer than anything is pending.
    pub(crate) const KEPT: Duration = Duration::from_secs(4);
    /// A client that draws less often than this does nothing.
    const STALL: Duration = Duration::from_millis(100);

    pub(crate) fn new() -> Self {
        Self {
            own: Vec::new(),
            shots: BTreeMap::new(),
            presses: VecDeque::new(),
            gun: None,
            newest: Tick::default(),
            before: Tick::default(),
            revoked: VecDeque::new(),
            frames: VecDeque::new(),
            drawn: 0,
            next: 0,
            undrawn: Vec::new(),
            views: Vec::new(),
            foretold: Vec::new(),
            in_since: None,
            last: Timestamp::ZERO,
            game: core::marker::PhantomData,
        }
    }

    /// The session begins anew: earlier emissions are not judged.
    pub(crate) fn restarted(&mut self) {
        *self = Self { next: self.next, ..Self::new() };
    }

    /// Bodies that are over by prediction, and may still be there.
    pub(crate) fn foretold(&self) -> &[BodyId] {
        &self.foretold
    }

    /// The player has pressed the button `more` times at this moment.
    pub(crate) fn presses(&mut self, client: &Client<G>, more: u64) {
        let (Some(known), Some((id, ..))) = (client.reconciler(), client.own().next()) else { return };
        let (gun, pressed) = self.gun.get_or_insert((id, 0));
        if *gun != id {
            (*gun, *pressed) = (id, 0);
        }
        for _ in 0..more {
            self.presses.push_back(Press { id: gun.emitted(*pressed), at: known.predictor().time() });
            *pressed += 1;
        }
    }

    /// Takes the client's events of emitted bodies.
    pub(crate) fn hear(
        &mut self,
        now: Timestamp,
        client: &Client<G>,
        events: impl Iterator<Item = LifeEvent<G>>,
        note: &mut Note<'_>,
    ) {
        if let Some(known) = client.reconciler() {
            let tick = known.predictor().baseline().tick;
            if tick > self.newest {
                (self.before, self.newest) = (self.newest, tick);
            }
        }
        for (id, ..) in client.own() {
            if !self.own.contains(&id) {
                self.own.push(id);
            }
        }
        for event in events {
            let is_own = |id: BodyId| self.own.contains(&id) || self.shots.contains_key(&id);
            if self.shots.contains_key(&event.id) || event.parent.is_some_and(is_own) {
                self.take(now, &event, note);
            }
            if event.life == Life::Ended {
                self.foretold.retain(|id| *id != event.id);
                self.foretold.extend((event.certainty == Certainty::Predicted).then_some(event.id));
            }
        }
    }

    fn take(&mut self, now: Timestamp, event: &LifeEvent<G>, note: &mut Note<'_>) {
        let known = self.shots.get(&event.id).map(|shot| shot.told);
        let emit = &mut note.tally.emit;
        let count = u64::from(note.counting);
        let told = match (event.life, event.certainty) {
            (Life::Born, Certainty::Predicted) => {
                emit.born_predicted += count;
                Told::Predicted
            }
            (Life::Born, Certainty::Confirmed) => {
                emit.confirmed += count;
                Told::Confirmed
            }
            (Life::Born, Certainty::Revoked) => {
                emit.revoked += count;
                if count > 0 {
                    emit.revoked_by.count(event.cause.unwrap_or(Cause::Unexplained));
                }
                let (id, parent, cause) = (event.id, event.parent, event.cause);
                let (after, through) = (self.before, self.newest);
                self.revoked.push_back(Revoked {
                    id,
                    parent,
                    cause,
                    at: now,
                    after,
                    through,
                    counts: note.counting,
                });
                Told::Revoked
            }
            (Life::Ended, Certainty::Confirmed) => Told::Ended,
            // It is born all the same.
            (Life::Ended, _) => known.unwrap_or(Told::Predicted),
        };
        let again = match (event.life, told) {
            (Life::Born, Told::Predicted) => known.is_some_and(|known| known != Told::Revoked),
            (Life::Born, Told::Confirmed) => matches!(known, Some(Told::Confirmed | Told::Ended)),
            (Life::Born, Told::Revoked) => known != Some(Told::Predicted),
            _ => known == Some(Told::Ended),
        };
        note.tally.emit.doubled += u64::from(again && note.counting);
        note.check(!again, Rule::EmittedOnce, || {
            format!("{} is {:?} as {:?}, and was {known:?} before", event.id, event.life, event.certainty)
        });
        let (brief, frames, at) = (false, self.drawn, event.at);
        let fresh = Shot { told, drawn: false, brief, frames, at, heard: now, counted: false };
        let shot = self.shots.entry(event.id).or_insert(fresh);
        if event.life == Life::Ended && event.certainty != Certainty::Confirmed {
            let short = event.at.saturating_since(shot.at) < Self::LONG || shot.frames == self.drawn;
            shot.brief = event.certainty == Certainty::Predicted && short;
            if event.certainty == Certainty::Revoked {
                // It lives again, from this frame on.
                shot.frames = self.drawn;
            }
        }
        if event.life == Life::Born && event.certainty == Certainty::Predicted {
            shot.at = event.at;
        }
        (shot.told, shot.heard) = (told, now);
    }

    /// A frame was drawn, in which bodies `drawn` are seen, in order of their ids, when the server's clock showed `time`.
    pub(crate) fn frame<W: World<Game = G>>(
        &mut self,
        (now, time): (Timestamp, ServerTime),
        client: &Client<G>,
        drawn: &[BodyId],
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        let known = client.reconciler().map(|known| known.predictor());
        let is_in = client.state() == SessionState::LoggedIn
            && known.is_some_and(|predictor| predictor.status() == Status::Predicting);
        self.drawn += 1;
        let stalled = now.saturating_since(self.last) > Self::STALL;
        self.last = now;
        self.in_since = self.in_since.filter(|_| is_in && !stalled).or(is_in.then_some(now));
        if let Some(predictor) = known {
            self.frames.push_back(predictor.time());
            if self.frames.len() > Self::FRAMES {
                self.frames.pop_front();
            }
        }
        self.screen(client, drawn, note);
        if let Some(player) = client.player() {
            let truth = server.world().truth();
            self.meet(player, &truth, note);
            self.draw_own((now, time), drawn, &truth, note);
            self.draw_others(client, drawn, &truth, note);
            drop(truth);
            self.judge(now, player, server, note);
        }
        self.forget(now, note);
    }

    /// Frames since `at` in prediction time, this one included.
    fn frames_since(&self, at: ServerTime) -> usize {
        self.frames.iter().rev().take_while(|time| **time > at).count()
    }

    /// How long newborn bodies took to the screen.
    fn screen(&mut self, client: &Client<G>, drawn: &[BodyId], note: &mut Note<'_>) {
        let fresh: Vec<_> =
            drawn.iter().filter(|id| self.shots.get(id).is_some_and(|shot| !shot.drawn)).copied().collect();
        for id in fresh {
            let press = self.presses.iter().position(|press| press.id == id);
            let press = press.and_then(|at| self.presses.remove(at));
            let Some(shot) = self.shots.get(&id).copied() else { continue };
            // Where presses are known, each counts from its own moment; otherwise a body counts from its birth.
            let from = if self.gun.is_some() {
                press.map(|press| press.at)
            } else {
                (shot.told == Told::Predicted).then_some(shot.at)
            };
            let frames = from.map(|at| self.frames_since(at));
            if let Some(frames) = frames.filter(|_| note.counting) {
                note.tally.frames_to_screen.add(frames as f64);
            }
            self.shots.entry(id).and_modify(|shot| shot.drawn = true);
        }
        // While the input has not reached the server, its shots stay on the screen.
        for id in drawn {
            self.shots.entry(*id).and_modify(|shot| shot.heard = self.last);
        }
        if client.reconciler().is_none() {
            self.presses.clear();
        }
    }

    /// Takes the emissions of the server that are new.
    fn meet(&mut self, player: PlayerId, truth: &Truth<G>, note: &mut Note<'_>) {
        let known = truth.emissions();
        for number in self.next.max(known.start)..known.end {
            match truth.emission(number).and_then(|emission| emission.player) {
                Some(owner) if owner == player => {
                    note.tally.emit.shots += u64::from(note.counting);
                    self.undrawn.push(number);
                }
                Some(_) => self.views.push(View { number, seen: false, missed: false }),
                None => {}
            }
        }
        self.next = known.end;
    }

    /// Whether the server's emissions of the player's bodies are drawn, once.
    fn draw_own(
        &mut self,
        (now, time): (Timestamp, ServerTime),
        drawn: &[BodyId],
        truth: &Truth<G>,
        note: &mut Note<'_>,
    ) {
        let Self { undrawn, shots, in_since, drawn: frames, .. } = self;
        undrawn.retain(|number| {
            let Some(emission) = truth.emission(*number) else { return false };
            if drawn.binary_search(&emission.id).is_ok() {
                // A body that its client was told nothing of is drawn all the same.
                let shot = shots.entry(emission.id).or_insert(Shot {
                    told: Told::Confirmed,
                    drawn: true,
                    brief: false,
                    frames: *frames,
                    at: emission.at,
                    heard: now,
                    counted: true,
                });
                (shot.drawn, shot.counted) = (true, true);
                return false;
            }
            let mut brief = false;
            if let Some(shot) = shots.get_mut(&emission.id) {
                (shot.counted, brief) = (true, shot.brief);
                if shot.drawn {
                    return false;
                }
            }
            let Some(end) = emission.end else { return true };
            if time < end + Self::OVER {
                return true;
            }
            let long = end.saturating_since(emission.at) >= Self::LONG && !brief;
            let before = time.saturating_since(emission.at) + Duration::from_secs(1);
            let was_in = in_since.is_some_and(|since| now.saturating_since(since) >= before);
            let lost = long && was_in;
            note.tally.emit.lost += u64::from(lost && note.counting);
            note.check(!lost, Rule::EmittedOnce, || {
                format!("{emission:?} was never drawn by its own client")
            });
            false
        });
    }

    /// Whether others draw what is in view: everything at render time that a snapshot covers.
    fn draw_others(&mut self, client: &Client<G>, drawn: &[BodyId], truth: &Truth<G>, note: &mut Note<'_>) {
        let (Some(render), Some(newest)) = (client.remotes().render_time(), client.crowd().newest()) else {
            return;
        };
        let covered = render <= client.cadence().end_of(newest);
        let emit = &mut note.tally.emit;
        self.views.retain_mut(|view| {
            let Some(emission) = truth.emission(view.number) else { return false };
            if emission.end.is_some_and(|end| end <= render) {
                emit.views += u64::from(note.counting && (view.seen || view.missed));
                emit.unseen += u64::from(note.counting && view.missed);
                return false;
            }
            let is_drawn = drawn.binary_search(&emission.id).is_ok();
            let foretold = self.foretold.contains(&emission.id);
            view.seen |= is_drawn;
            view.missed |= !is_drawn && !foretold && covered && emission.at < render;
            true
        });
    }

    /// Holds births that were taken back against what the server did with the input.
    fn judge<W: World<Game = G>>(
        &mut self,
        now: Timestamp,
        player: PlayerId,
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        let wait = Duration::from_millis(900).min(server.cadence().span_of(48));
        while let Some(revoked) = self.revoked.front().copied().filter(|revoked| now >= revoked.at + wait) {
            self.revoked.pop_front();
            let birth = self.shots.get(&revoked.id).map(|shot| server.cadence().tick_at(shot.at));
            let from = birth.map_or(revoked.after.next(), |birth| birth.min(revoked.after.next()));
            let through = birth.map_or(revoked.through, |birth| birth.max(revoked.through));
            let mut fates =
                from.onwards().take_while(|tick| *tick <= through).map(|tick| server.fate(player, tick));
            let on_time = fates.all(|fate| fate == Some(Fate::AsSent));
            let truth = server.world().truth();
            let before = Tick::new(from.number().saturating_sub(1));
            let left_alone = revoked.parent.is_none_or(|parent| {
                truth.causes(parent, before, through).is_empty()
                    && !truth.was_altered(parent, before, through)
                    && truth.remembers(parent, through)
            });
            let unmatched = on_time && left_alone;
            note.tally.emit.unmatched += u64::from(unmatched && revoked.counts);
            note.check(!unmatched, Rule::EmittedOnce, || {
                format!("{revoked:?}, though the server has simulated ticks {from} to {through} as sent")
            });
        }
    }

    /// Forgets what is long over. A body that was never taken back, and that the server never made, is one too many.
    fn forget(&mut self, now: Timestamp, note: &mut Note<'_>) {
        // While no state comes, nothing is confirmed or revoked.
        let answered = self.in_since.is_some_and(|since| now >= since + Self::KEPT);
        self.shots.retain(|id, shot| {
            if now < shot.heard + Self::KEPT || !answered {
                return true;
            }
            let invented = !shot.counted && matches!(shot.told, Told::Predicted | Told::Confirmed);
            note.tally.emit.doubled += u64::from(invented && note.counting);
            note.check(!invented, Rule::EmittedOnce, || format!("the server never made {id}: {shot:?}"));
            false
        });
        // A press that shows nothing for so long: its body is judged to be lost, if it was.
        let last = self.frames.back().copied().unwrap_or_default();
        while self.presses.front().is_some_and(|press| last >= press.at + Self::KEPT) {
            self.presses.pop_front();
        }
    }
}
