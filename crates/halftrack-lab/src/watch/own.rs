//! The bodies that a player owns: what is predicted and shown of them, and whether each correction happened for what it
//! says.

use std::collections::VecDeque;
use std::time::Duration;

use derive_where::derive_where;
use halftrack::client::Client;
use halftrack::server::{Server, World};
use halftrack::{
    BodyId, Cause, Fate, Game, Member, Outcome, PlayerId, Pose, PredictConfig, ServerTime, Tick, Timestamp,
};

use super::body::BodyWatch;
use super::{Note, signed_ms};
use crate::check::Rule;
use crate::tally::Tally;
use crate::trace::TraceFrame;
use crate::truth::Recorded;

#[derive_where(Debug)]
pub(crate) struct OwnWatch<G: Game> {
    predict: PredictConfig,
    /// Bodies further apart than this cannot have touched, on either side. Metres.
    contact_reach: f64,
    /// Whether the word that input was late may be lost, as it may be on a bad network with datagrams.
    pub(crate) word_may_be_lost: bool,
    /// Those that are predicted.
    bodies: Vec<BodyWatch<G>>,
    /// In order of their arrival, and of the ticks that they are about.
    claims: VecDeque<Claim>,
    /// The state whose misprediction was counted last: it may be one of several bodies.
    counted: Option<Tick>,
    /// The lead of the last frame beyond the link's delay, milliseconds.
    pub(crate) excess_ms: Option<f64>,
}

/// A correction, or a misprediction that needed none, until the server has had its last word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) body: BodyId,
    pub(super) at: Timestamp,
    /// It is about the ticks after this one,
    pub(super) after: Tick,
    /// up to this one.
    pub(super) through: Tick,
    pub(super) cause: Option<Cause>,
    pub(super) outcome: Outcome,
    pub(super) distance: f64,
    pub(super) angle: f64,
    pub(super) at_s: f64,
    pub(super) mispredicted: bool,
    pub(super) resynced: bool,
    pub(super) measured: bool,
}

impl Claim {
    fn count(&self, tally: &mut Tally) {
        let Some(cause) = self.cause.filter(|_| self.measured) else { return };
        tally.corrections += 1;
        tally.count_cause(cause);
        let cut = matches!(cause, Cause::Respawn | Cause::Teleport | Cause::Resync);
        tally.snaps += u64::from(matches!(self.outcome, Outcome::Snapped(_)) && !cut);
    }

    /// Adds up how far it moved the body, when it is made.
    fn size(&self, tally: &mut Tally) {
        let moved = !matches!(self.cause, None | Some(Cause::Respawn | Cause::Teleport));
        if moved && self.measured {
            tally.correction_m.add(self.distance);
            tally.correction_deg.add(self.angle.to_degrees());
            if self.cause == Some(Cause::Collision) {
                tally.contact_correction_m.add(self.distance);
            }
        }
    }
}

/// Whether the client can still revise the cause of a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// It had all the time for it.
    Last,
    /// The body is the player's no more: the first word stays.
    First,
}

impl<G: Game> OwnWatch<G> {
    pub(crate) fn new(predict: PredictConfig, contact_reach: f64) -> Self {
        Self {
            predict,
            contact_reach,
            word_may_be_lost: false,
            bodies: Vec::new(),
            claims: VecDeque::new(),
            counted: None,
            excess_ms: None,
        }
    }

    /// The session begins anew: what was claimed of the player that was is for nobody to judge.
    pub(crate) fn restarted(&mut self) {
        self.bodies.clear();
        self.claims.clear();
        (self.counted, self.excess_ms) = (None, None);
    }

    /// Something arrived: what came of it.
    pub(crate) fn states(&mut self, now: Timestamp, client: &Client<G>, note: &mut Note<'_>) {
        let Self { bodies, claims, .. } = self;
        bodies.retain(|known| member_of(client, known.id).is_some());
        let judged = claims.len();
        let Some(predictor) = client.reconciler().map(|known| known.predictor()) else { return };
        for (id, _, member) in client.own() {
            let Some(member) = member else { continue };
            let Some(known) = bodies.iter_mut().find(|known| known.id == id) else {
                bodies.push(BodyWatch::new(member, predictor));
                continue;
            };
            if !known.is_of(member) {
                *known = BodyWatch::new(member, predictor);
                continue;
            }
            let lasting = self.predict.max_pending * 2;
            known.states(now, (member, predictor), lasting, note, |claim| claims.push_back(claim));
        }
        let fresh = claims.make_contiguous().get_mut(judged..).unwrap_or_default();
        fresh.sort_by_key(|claim| claim.through);
        fresh.iter().for_each(|claim| claim.size(note.tally));
    }

    /// The next claim that the server has had its last word on by `now`.
    fn ripe(&mut self, now: Timestamp, client: &Client<G>) -> Option<(Claim, Word)> {
        // Late enough for the last word on held input, early enough for both sides to remember.
        let wait = Duration::from_millis(900).min(self.predict.cadence.span_of(48));
        self.claims.front().filter(|claim| now >= claim.at + wait)?;
        let mut claim = self.claims.pop_front()?;
        let Some(member) = member_of(client, claim.body) else { return Some((claim, Word::First)) };
        let last_word = member.recent().find(|told| told.server_tick == claim.through);
        claim.cause = last_word.map_or(claim.cause, |told| told.cause);
        Some((claim, Word::Last))
    }

    /// Counts what has become final by `now`, and holds each cause against the server's own record.
    pub(crate) fn judge<W: World<Game = G>>(
        &mut self,
        now: Timestamp,
        client: &Client<G>,
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        while let Some((claim, word)) = self.ripe(now, client)
            && let Some(player) = client.player()
        {
            self.judge_one(player, &claim, word, server, note);
        }
    }

    /// Counts what has become final by `now`, on the client's word.
    pub(crate) fn believe(&mut self, now: Timestamp, client: &Client<G>, tally: &mut Tally) {
        while let Some((claim, _)) = self.ripe(now, client) {
            claim.count(tally);
        }
    }

    fn judge_one<W: World<Game = G>>(
        &mut self,
        player: PlayerId,
        claim: &Claim,
        word: Word,
        server: &Server<Recorded<W>>,
        note: &mut Note<'_>,
    ) {
        let ticks = claim.after.number() + 1..=claim.through.number();
        let fates: Vec<_> = ticks.filter_map(|tick| server.fate(player, Tick::new(tick))).collect();
        let truth = server.world().truth();
        let world = truth.causes(claim.body, claim.after, claim.through);
        let had = |wanted: &[Fate]| fates.iter().any(|fate| wanted.contains(fate));
        let by_input = world.is_empty() && had(&[Fate::Held, Fate::Late, Fate::Lost]) && !claim.resynced;
        if claim.measured && claim.mispredicted && by_input && self.counted != Some(claim.through) {
            self.counted = Some(claim.through);
            note.tally.mispredicted_ticks += 1;
        }
        claim.count(note.tally);
        let Some(cause) = claim.cause else { return };
        if claim.measured
            && let Some(trace) = &mut note.trace
        {
            trace.corrections.push((claim.at_s, claim.distance, cause));
        }
        let lookback = Tick::new(claim.after.number().saturating_sub(8));
        // A state that was under way for so long that nobody remembers is for nobody to judge.
        let forgotten = fates.len() < claim.through.since(claim.after) as usize;
        let long_ago = !truth.remembers(claim.body, claim.after.next());
        let holds = match cause {
            Cause::Resync => claim.resynced,
            Cause::LateInput => had(&[Fate::Late]) || forgotten,
            Cause::LostInput => {
                let unrevised = self.word_may_be_lost || word == Word::First;
                had(&[Fate::Held, Fate::Lost]) || forgotten || (unrevised && had(&[Fate::Late]))
            }
            Cause::Collision => {
                let nearest = || truth.nearest(claim.body, lookback, claim.through);
                world.contains(cause) || long_ago || nearest() <= self.contact_reach
            }
            Cause::Teleport | Cause::Respawn | Cause::Death | Cause::Params => {
                world.contains(cause) || long_ago
            }
            _ => false,
        };
        note.check(holds, Rule::TrueCause, || {
            format!(
                "a correction of ticks {} to {} is put down to {cause}; the server did {world:?} to it and has {fates:?}",
                claim.after.next(),
                claim.through,
            )
        });
    }

    /// A frame was drawn at `local`, when the server's clock showed `time`; `way_us` is the link's mean delay.
    pub(crate) fn frame(
        &mut self,
        (local, time, newest): (Timestamp, ServerTime, Tick),
        way_us: u64,
        client: &Client<G>,
        note: &mut Note<'_>,
    ) {
        let stats = client.stats();
        note.check(stats.events_dropped == 0 && stats.backwards == 0, Rule::Bounds, || format!("{stats:?}"));
        let Some(first) = client.reconciler() else {
            self.bodies.iter_mut().for_each(BodyWatch::hide);
            self.excess_ms = None;
            return;
        };
        // All bodies of a player have the same clock and the same input.
        let predictor = first.predictor();
        let pending = predictor.open_tick().since(predictor.baseline().tick);
        let window = self.predict.cadence.ticks_in(self.predict.max_pending) + 1;
        note.check(pending <= window, Rule::Bounds, || format!("{pending} ticks are pending"));
        let lead = signed_ms(time.as_micros(), predictor.clock().at(local).as_micros());
        let excess = lead - way_us as f64 / 1e3;
        self.excess_ms = Some(excess);
        if note.measuring {
            note.tally.lead_ms.add(lead);
            note.tally.excess_lead_ms.add(excess);
            note.tally.pending_ticks.add(f64::from(pending));
        }
        for (place, (id, _, member)) in client.own().enumerate() {
            let Some(member) = member else { continue };
            let baseline = first.predictor().baseline();
            note.check(baseline.tick <= newest, Rule::NothingFromTheFuture, || {
                format!("a state of tick {}, when the newest is {newest}", baseline.tick)
            });
            let Some(known) = self.bodies.iter_mut().find(|known| known.id == id) else { continue };
            let Some((drawn, origin)) = known.frame(local, client, member, note) else { continue };
            let measuring = note.measuring;
            if let Some(trace) = note.trace.as_mut().filter(|_| measuring && place == 0) {
                let place = |pose: &G::Pose| {
                    let [x, y, _] = pose.offset_from(&origin).position;
                    [x, y]
                };
                let authoritative = baseline.get(id).and_then(|actor| client.rules().pose(&actor.body));
                trace.frames.push(TraceFrame {
                    at_s: note.at_s,
                    predicted: place(&drawn.predicted),
                    visible: place(&drawn.visible),
                    authoritative: authoritative.as_ref().map_or_else(|| place(&drawn.predicted), place),
                    lead_ms: lead,
                    ..TraceFrame::default()
                });
            }
        }
    }
}

/// The prediction of a body that the player owns, once it has begun.
fn member_of<G: Game>(client: &Client<G>, id: BodyId) -> Option<&Member<G>> {
    client.own().find(|(own, ..)| *own == id).and_then(|(.., member)| member)
}
