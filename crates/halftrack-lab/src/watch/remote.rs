//! Other bodies as one client draws them, of players and of the world, against where they really were.

use std::time::Duration;

use halftrack::client::Client;
use halftrack::snapshot::Course;
use halftrack::{BodyId, Cadence, DelayConfig, Epoch, Game, Pose, Sampling, ServerTime, Tick, Timestamp};

use super::{Note, signed_ms};
use crate::check::Rule;
use crate::truth::Truth;

#[derive(Debug)]
pub(crate) struct RemoteWatch {
    cadence: Cadence,
    /// How far beyond the newest state a client may draw.
    max_extrapolate: Duration,
    render_time: Option<ServerTime>,
    epoch: Epoch,
    /// What was drawn until the client heard that the server's time had been set back: it stays drawn until that has
    /// come again.
    drawn_before: ServerTime,
    /// How far the last frame was behind, less the link's delay, milliseconds.
    pub(crate) behind_ms: Option<f64>,
    /// The newest state known of each, in order of the ids.
    states: Vec<(BodyId, Tick)>,
    next_forget: Tick,
}

impl RemoteWatch {
    /// A body of which no state has come for so long is gone.
    const KEPT_TICKS: u32 = 1 << 12;

    pub(crate) fn new(cadence: Cadence, delay: DelayConfig) -> Self {
        Self {
            cadence,
            max_extrapolate: delay.max_extrapolate,
            render_time: None,
            epoch: Epoch::default(),
            drawn_before: ServerTime::ZERO,
            behind_ms: None,
            states: Vec::new(),
            next_forget: Tick::default(),
        }
    }

    /// The session begins anew: nobody is known.
    pub(crate) fn restarted(&mut self) {
        let Self { cadence, max_extrapolate, .. } = *self;
        *self = Self::new(cadence, DelayConfig { max_extrapolate, ..DelayConfig::default() });
    }

    /// Now and then, forgets bodies that are gone.
    fn forget<G: Game>(&mut self, client: &Client<G>) {
        let Some(newest) = client.crowd().newest().filter(|newest| *newest >= self.next_forget) else {
            return;
        };
        self.next_forget = Tick::new(newest.number().saturating_add(Self::KEPT_TICKS));
        self.states.retain(|(_, tick)| newest.since(*tick) < Self::KEPT_TICKS);
    }

    /// The server is in `epoch`.
    pub(crate) fn epoch(&mut self, epoch: Epoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.drawn_before = self.render_time.unwrap_or_default();
        }
    }

    /// A frame was drawn at `local`, when the server's clock showed `time` and its newest tick was `newest`; `way_us` is
    /// the link's mean delay.
    pub(crate) fn frame<G: Game>(
        &mut self,
        (local, time, newest): (Timestamp, ServerTime, Tick),
        way_us: u64,
        client: &Client<G>,
        truth: &mut Truth<G>,
        note: &mut Note<'_>,
    ) {
        let Some((shown, behind)) = self.render_time(time, way_us, client, note) else { return };
        let remotes = client.remotes();
        self.unheard_slip(shown, client);
        note.check(shown <= time.max(self.drawn_before), Rule::NothingFromTheFuture, || {
            format!("drawn at {shown:?}, when it is {time:?}")
        });
        if let Some(frame) = note.trace.as_mut().and_then(|trace| trace.frames.last_mut()) {
            let guess = |sampling| matches!(sampling, Sampling::Extrapolated | Sampling::Held);
            let (all, guessed) = remotes.iter().fold((0u32, 0u32), |(all, guessed), remote| {
                (all + 1, guessed + u32::from(guess(remote.sampling)))
            });
            (frame.delay_ms, frame.guessed) = (behind, f64::from(guessed) / f64::from(all.max(1)));
        }
        // Where it is due: one that stands is measured against where it should be.
        let due = remotes.clock().due(local).map_or(shown, |due| due.max(shown));
        for remote in remotes.iter() {
            let finite = remote.visible.offset_from(&remote.visible).is_finite();
            note.check(finite, Rule::Finite, || format!("{} is drawn at {:?}", remote.id, remote.visible));
            self.state(remote.id, remote.state_tick, newest, note);
            if !note.measuring {
                continue;
            }
            let guessed = matches!(remote.sampling, Sampling::Extrapolated | Sampling::Held);
            note.tally.pictures += 1;
            note.tally.guessed += u64::from(guessed);
            let Some((pose, course)) = truth.pose_at(remote.id, due) else { continue };
            let off = remote.visible.offset_from(&pose);
            if course == Course::Own {
                note.tally.pose_error_m.add(off.distance());
                note.tally.pose_error_deg.add(off.angle().to_degrees());
            } else {
                note.tally.contact_error_m.add(off.distance());
            }
        }
    }

    /// A client that has not heard of a slip goes on by the time that it knows. It cannot do otherwise, but it guesses no
    /// further beyond the newest state than ever.
    fn unheard_slip<G: Game>(&mut self, shown: ServerTime, client: &Client<G>) {
        let known = client.reconciler().map(|own| own.predictor().baseline().epoch);
        let newest = client.crowd().newest().map(|newest| self.cadence.end_of(newest));
        let guessed = newest.is_some_and(|newest| shown <= newest + self.max_extrapolate);
        if known != Some(self.epoch) && guessed {
            self.drawn_before = self.drawn_before.max(shown);
        }
    }

    /// The moment at which others were drawn, and how far that is behind, milliseconds.
    pub(crate) fn render_time<G: Game>(
        &mut self,
        time: ServerTime,
        way_us: u64,
        client: &Client<G>,
        note: &mut Note<'_>,
    ) -> Option<(ServerTime, f64)> {
        self.forget(client);
        let shown = client.remotes().render_time()?;
        let rewinds = self.render_time.is_some_and(|before| shown < before);
        note.tally.rewinds += u64::from(rewinds);
        note.check(!rewinds, Rule::NoRewind, || format!("drawn at {shown:?}, after {:?}", self.render_time));
        self.render_time = Some(shown);
        let behind = signed_ms(shown.as_micros(), time.as_micros()) - way_us as f64 / 1e3;
        self.behind_ms = Some(behind);
        if note.measuring {
            note.tally.delay_ms.add(behind);
        }
        Some((shown, behind))
    }

    pub(crate) fn state(&mut self, id: BodyId, tick: Tick, newest: Tick, note: &mut Note<'_>) {
        note.check(tick <= newest, Rule::NothingFromTheFuture, || {
            format!("{id} has a state of tick {tick}, when the newest is {newest}")
        });
        match self.states.binary_search_by_key(&id, |(known, _)| *known) {
            Ok(at) => {
                let known = &mut self.states[at].1;
                note.tally.rewinds += u64::from(tick < *known);
                note.check(tick >= *known, Rule::NoRewind, || {
                    format!("{id} went from tick {known} back to {tick}")
                });
                *known = tick;
            }
            Err(at) => self.states.insert(at, (id, tick)),
        }
    }
}
