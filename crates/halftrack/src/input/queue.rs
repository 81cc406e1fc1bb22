//! A player's input as the server holds it: what has come for ticks not yet simulated, what stands in for what
//! has not, and what became of each tick.
//!
//! One per player, so that no player's ticks touch another's. Knows ticks and messages, neither sockets nor bodies.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};

use crate::cadence::Cadence;
use crate::cause::Cause;
use crate::error::{ConfigError, time_within};
use crate::game::Game;
use crate::input::TickInput;
use crate::input::{Completeness, MoveInput};
use crate::lane::Link;
use crate::model::Input;
use crate::seq::{Seq, StaleFilter};
use crate::tick::Tick;
use crate::time::{ServerTime, whole_micros};

/// What an [`InputQueue`] is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputQueueConfig {
    /// The cadence.
    pub cadence: Cadence,
    /// How far ahead of the newest simulated tick input is taken. Default 1 s: twice the longest lead of a
    /// playable connection. Less refuses honest players; more lets a liar fill memory and plan ahead. From one tick to
    /// 10 s.
    pub horizon: Duration,
    /// How long the fate of a tick is remembered. Default 2 s, as long as a client can have it pending. From one tick, at
    /// which most fates are never told, to 10 s, at which nobody asks for them any more.
    pub memory: Duration,
}

impl Default for InputQueueConfig {
    fn default() -> Self {
        Self { cadence: Cadence::default(), horizon: Duration::from_secs(1), memory: Duration::from_secs(2) }
    }
}

impl InputQueueConfig {
    const LONGEST: Duration = Duration::from_secs(10);

    fn check(&self) -> Result<(), ConfigError> {
        let tick = self.cadence.interval();
        time_within("input.horizon", self.horizon, tick, Self::LONGEST)?;
        time_within("input.memory", self.memory, tick, Self::LONGEST)
    }
}

/// What the server did with the input of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Simulated as it was sent.
    AsSent,
    /// Nothing, or not all, was there in time; whether it was late or lost is not known yet.
    Held,
    /// It came after its tick was simulated, in the datagram that first carried it. By a reliable link it is late as
    /// soon as it is missed: such a link loses nothing, so the input is still on its way.
    Late,
    /// It came first in a later datagram, or never.
    Lost,
}

impl Fate {
    /// The cause that this is of a correction.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            Self::AsSent => None,
            Self::Held | Self::Lost => Some(Cause::LostInput),
            Self::Late => Some(Cause::LateInput),
        }
    }
}

/// Whether the server keeps up while a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It does: how early the input came says something about the connection.
    Live,
    /// It is catching up after a stall of its own: that would say something about the server.
    CatchingUp,
}

/// What a queue has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputStats {
    /// Messages taken.
    pub messages: u64,
    /// Messages older than one taken before; dropped whole.
    pub stale: u64,
    /// Ticks simulated from what was sent.
    pub as_sent: u64,
    /// Ticks simulated from a substitute, or from what had come of them.
    pub held: u64,
    /// Of these, ticks whose own datagram came too late.
    pub late: u64,
    /// Of these, ticks whose own datagram never came.
    pub lost: u64,
    /// Ticks further ahead than the horizon; refused.
    pub far_future: u64,
    /// Ticks that a later message would have altered; kept as they were.
    pub altered: u64,
}

impl InputStats {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            stale: self.stale + other.stale,
            as_sent: self.as_sent + other.as_sent,
            held: self.held + other.held,
            late: self.late + other.late,
            lost: self.lost + other.lost,
            far_future: self.far_future + other.far_future,
            altered: self.altered + other.altered,
        }
    }
}

/// What became of a simulated tick, as the queue keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Known(Fate),
    /// It has not come, and comes by a reliable link: late, whenever that may be.
    OnItsWay,
}

impl Outcome {
    const fn fate(self) -> Fate {
        match self {
            Self::Known(fate) => fate,
            Self::OnItsWay => Fate::Late,
        }
    }

    /// Whether nothing, or not all, has come.
    const fn is_missing(self) -> bool {
        matches!(self, Self::Known(Fate::Held) | Self::OnItsWay)
    }
}

/// One player's input, tick by tick.
///
/// ```
/// use std::sync::Arc;
/// use halftrack::cart::Cart;
/// use halftrack::MoveInput;
/// use halftrack::{Arrival, Fate, InputQueue, InputQueueConfig, Seq, ServerTime, Tick, TickInput};
///
/// let config = InputQueueConfig::default();
/// let mut queue = InputQueue::new(Arc::new(Cart), config, Tick::new(99))?;
/// let message = MoveInput { newest: Tick::new(100), ticks: vec![TickInput::steady(8)], ..MoveInput::default() };
/// queue.receive(ServerTime::from_micros(5_040_000), &message, Arrival::Live);
/// let margin = queue.newest_margin().map(|margin| margin.micros);
/// assert_eq!(margin, Some(10_000), "ten milliseconds before tick 100 is simulated");
/// assert_eq!(queue.take(), (TickInput::steady(8), Fate::AsSent));
/// assert_eq!(queue.take(), (TickInput::steady(8), Fate::Held), "nothing came for 101: the last goes on");
/// # Ok::<(), halftrack::ConfigError>(())
/// ```
#[derive_where(Clone, Debug)]
pub struct InputQueue<G: Game> {
    #[derive_where(skip(Debug))]
    rules: Arc<G>,
    cadence: Cadence,
    horizon_ticks: u32,
    memory_ticks: usize,
    filter: StaleFilter,
    /// The newest tick that has been simulated.
    simulated: Tick,
    /// The newest of them that was not simulated as sent.
    missed: Option<Tick>,
    /// What has come for the ticks after it, one slot each.
    coming: VecDeque<Option<(TickInput<G::Input>, Completeness)>>,
    /// The newest input known, late or not, and its tick: what is held.
    newest: Option<(Tick, G::Input)>,
    /// What became of the simulated ticks, newest last.
    outcomes: VecDeque<Outcome>,
    /// Input comes by a reliable link: what is missing of this tick and later ones is on its way.
    in_order_from: Option<Tick>,
    /// Time slipped in this tick, and the player is not known to have heard of it: its ticks ahead are of a time that
    /// never came.
    slipped: Option<Tick>,
    margins: Margins,
    stats: InputStats,
}

impl<G: Game> InputQueue<G> {
    /// The queue of a player whose first tick is the one after `simulated`.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(rules: Arc<G>, config: InputQueueConfig, simulated: Tick) -> Result<Self, ConfigError> {
        config.check()?;
        let horizon_ticks = config.cadence.ticks_in(config.horizon);
        let memory_ticks = config.cadence.ticks_in(config.memory) as usize;
        let mut coming = VecDeque::with_capacity(horizon_ticks as usize + 1);
        coming.resize(horizon_ticks as usize, None);
        Ok(Self {
            rules,
            cadence: config.cadence,
            horizon_ticks,
            memory_ticks,
            filter: StaleFilter::default(),
            simulated,
            missed: None,
            coming,
            newest: None,
            outcomes: VecDeque::with_capacity(memory_ticks + 1),
            in_order_from: None,
            slipped: None,
            margins: Margins::default(),
            stats: InputStats::default(),
        })
    }

    /// Takes a datagram that arrived at `now`. Gives whether it was newer than those before it.
    pub fn receive(&mut self, now: ServerTime, message: &MoveInput<G::Input>, arrival: Arrival) -> bool {
        self.receive_by(Link::Sync, now, message, arrival)
    }

    /// Takes a message that arrived by `link` at `now`. Gives whether it was newer than those before it.
    pub(crate) fn receive_by(
        &mut self,
        link: Link,
        now: ServerTime,
        message: &MoveInput<G::Input>,
        arrival: Arrival,
    ) -> bool {
        // spec: STALE-01
        if !self.filter.accept(message.seq) {
            self.stats.stale += 1;
            return false;
        }
        self.stats.messages += 1;
        // Whoever has a snapshot of the tick in which time slipped, or a later one, plays in the time that goes on.
        self.slipped = self.slipped.filter(|slipped| message.ack < Some(*slipped));
        let complete = !message.ticks.is_empty() && message.completeness == Completeness::Closed;
        let news = complete && self.is_news(message.newest);
        for (tick, input) in message.numbered() {
            let own = tick == message.newest;
            let completeness = if own { message.completeness } else { Completeness::Closed };
            if tick <= self.simulated {
                self.receive_past(tick, input, own && link == Link::Sync);
            } else if self.slipped.is_some() {
                // When the player wanted this is for nobody to say; that it does is.
                self.newest = Some((self.simulated, input.last()));
            } else {
                self.receive_coming(tick, input, completeness);
            }
        }
        let ahead = message.newest.since(self.simulated);
        // A lost datagram and a redundant copy give no sample; nor does one that is refused.
        if news && ahead <= self.horizon_ticks && arrival == Arrival::Live && self.slipped.is_none() {
            let due = self.cadence.end_of(message.newest);
            let early = i64::try_from(whole_micros(due.saturating_since(now))).unwrap_or(i64::MAX);
            let late = i64::try_from(whole_micros(now.saturating_since(due))).unwrap_or(i64::MAX);
            self.margins.push(Margin { seq: message.seq, micros: early - late });
        }
        self.expect(link, message.numbered().next().map(|(tick, _)| tick));
        true
    }

    /// Whether nothing complete has come for `tick`.
    fn is_news(&self, tick: Tick) -> bool {
        match tick.since(self.simulated).checked_sub(1) {
            Some(ahead) => !matches!(self.coming.get(ahead as usize), Some(Some((_, Completeness::Closed)))),
            None => self.outcome(tick).is_some_and(Outcome::is_missing),
        }
    }

    /// Every tick from `first` on is on its way by `link`, or will be: a message has all ticks that the client has recorded
    /// and seen no state of. Where the order is kept nothing is lost, so what the first tick of a message leaves out was
    /// never recorded.
    fn expect(&mut self, link: Link, first: Option<Tick>) {
        self.in_order_from = match link {
            Link::Reliable if self.slipped.is_none() => self.in_order_from.max(first),
            _ => None,
        };
    }

    /// The tick has been simulated: its input cannot change that. But if the server had made it up, this is what the
    /// player wants.
    ///
    /// A tick that nothing was known to be on its way for was not `first_sent` here, unless this is its own datagram: a
    /// reliable link comes to that only after a cut or a slip, and both lose what was under way.
    fn receive_past(&mut self, tick: Tick, input: &TickInput<G::Input>, first_sent: bool) {
        if self.fate(tick) == Some(Fate::AsSent) {
            return;
        }
        if self.newest.is_none_or(|(newest, _)| tick >= newest) {
            self.newest = Some((tick, input.last()));
        }
        let outcome = self.index_of(tick).and_then(|index| self.outcomes.get_mut(index));
        if let Some(outcome) = outcome.filter(|outcome| outcome.is_missing()) {
            let late = first_sent || *outcome == Outcome::OnItsWay;
            *outcome = Outcome::Known(if late { Fate::Late } else { Fate::Lost });
            self.stats.late += u64::from(late);
            self.stats.lost += u64::from(!late);
        }
    }

    fn receive_coming(&mut self, tick: Tick, input: &TickInput<G::Input>, completeness: Completeness) {
        let ahead = tick.since(self.simulated);
        if ahead > self.horizon_ticks {
            self.stats.far_future += 1;
            return;
        }
        let Some(slot) = self.coming.get_mut(ahead as usize - 1) else { return };
        match slot {
            None => *slot = Some((*input, completeness)),
            // What is complete stays; what is open may be extended, and never altered.
            Some((known, Completeness::Open)) if extends(input, known) => {
                *slot = Some((*input, completeness));
            }
            Some((known, _)) => self.stats.altered += u64::from(!extends(known, input)),
        }
    }

    /// Simulates the next tick: its input, and what that is.
    pub fn take(&mut self) -> (TickInput<G::Input>, Fate) {
        let tick = self.simulated.next();
        let known = self.coming.pop_front().flatten();
        self.coming.push_back(None);
        self.simulated = tick;
        let (input, fate) = match known {
            Some((input, Completeness::Closed)) => (input, Fate::AsSent),
            Some((input, Completeness::Open)) => (input, Fate::Held),
            None => (TickInput::steady(self.substitute(tick)), Fate::Held),
        };
        if known.is_some() {
            self.newest = Some((tick, input.last()));
        }
        match fate {
            Fate::AsSent => self.stats.as_sent += 1,
            _ => {
                self.stats.held += 1;
                self.missed = Some(tick);
            }
        }
        let on_its_way = fate == Fate::Held && self.in_order_from.is_some_and(|first| tick >= first);
        let outcome = if on_its_way { Outcome::OnItsWay } else { Outcome::Known(fate) };
        self.outcomes.push_back(outcome);
        if self.outcomes.len() > self.memory_ticks {
            let forgotten = self.outcomes.pop_front();
            // What has not come by now never will.
            self.stats.lost += u64::from(forgotten.is_some_and(Outcome::is_missing));
        }
        (input, outcome.fate())
    }

    /// Time slipped in the newest tick: ticks that go on from here have the numbers of some that the player has sent for
    /// a time that never came.
    pub(crate) fn slip(&mut self) {
        self.coming.iter_mut().for_each(|slot| *slot = None);
        self.slipped = Some(self.simulated);
        self.in_order_from = None;
    }

    /// The player comes in by `link`, and has sent nothing before: from the next tick on, it sends what it records.
    pub(crate) fn begin(&mut self, link: Link) {
        self.expect(link, Some(self.simulated.next()));
    }

    /// The player had played `input` before this queue was made: its counters of presses go on, and all levels are neutral.
    pub(crate) fn go_on(&mut self, input: G::Input) {
        self.newest = Some((self.simulated, input.released()));
    }

    /// The connection is gone: input that was on its way by it is lost.
    pub(crate) fn cut(&mut self) {
        self.in_order_from = None;
    }

    fn substitute(&self, tick: Tick) -> G::Input {
        let age = self.newest.map_or(Duration::MAX, |(newest, _)| self.cadence.span_of(tick.since(newest)));
        self.rules.substitute(self.newest.map(|(_, input)| input), age)
    }

    /// What became of `tick`, as far as it is remembered.
    pub fn fate(&self, tick: Tick) -> Option<Fate> {
        self.outcome(tick).map(Outcome::fate)
    }

    /// Whether every tick after `tick` was simulated as sent.
    pub(crate) fn as_sent_since(&self, tick: Tick) -> bool {
        self.missed <= Some(tick)
    }

    fn outcome(&self, tick: Tick) -> Option<Outcome> {
        self.index_of(tick).and_then(|index| self.outcomes.get(index)).copied()
    }

    fn index_of(&self, tick: Tick) -> Option<usize> {
        let back = (tick <= self.simulated).then(|| self.simulated.since(tick) as usize)?;
        self.outcomes.len().checked_sub(back + 1)
    }

    /// How many simulated ticks have a fate that is remembered.
    pub(crate) fn remembered(&self) -> u32 {
        u32::try_from(self.memory_ticks).unwrap_or(u32::MAX)
    }

    /// Messages come by another connection from here on, numbered anew.
    pub(crate) fn restart_numbering(&mut self) {
        self.cut();
        self.filter = StaleFilter::default();
    }

    /// The newest tick that has been simulated.
    pub fn simulated(&self) -> Tick {
        self.simulated
    }

    /// The margin of the newest message that had one.
    pub fn newest_margin(&self) -> Option<Margin> {
        self.margins.newest()
    }

    /// The least margin of the last 16 messages that had one: told again in every snapshot, so that a lost one
    /// loses nothing that matters.
    pub fn least_margin(&self) -> Option<Margin> {
        self.margins.least()
    }

    /// What it has counted.
    pub fn stats(&self) -> &InputStats {
        &self.stats
    }
}

/// Whether `longer` is `shorter` with nothing but later changes added.
fn extends<I: Copy + PartialEq>(longer: &TickInput<I>, shorter: &TickInput<I>) -> bool {
    let mut added = longer.changes();
    longer.start() == shorter.start() && shorter.changes().all(|change| added.next() == Some(change))
}

/// How early a message came before its newest tick was simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Margin {
    /// The message.
    pub seq: Seq,
    /// Microseconds; below zero if it came after.
    pub micros: i64,
}

/// The latest margins.
#[derive(Clone, Copy, Debug, Default)]
struct Margins {
    latest: [Option<Margin>; Self::COUNT],
    /// Where the next one goes.
    next: usize,
}

impl Margins {
    const COUNT: usize = 16;

    fn push(&mut self, margin: Margin) {
        if let Some(slot) = self.latest.get_mut(self.next) {
            *slot = Some(margin);
        }
        self.next = (self.next + 1) % Self::COUNT;
    }

    fn newest(&self) -> Option<Margin> {
        let newest = (self.next + Self::COUNT - 1) % Self::COUNT;
        self.latest.get(newest).copied().flatten()
    }

    fn least(&self) -> Option<Margin> {
        self.latest.iter().flatten().min_by_key(|margin| margin.micros).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cadence::SubTick;
    use crate::cart::Cart;
    use proptest::prelude::*;

    /// Tick 99 has been simulated.
    fn queue() -> InputQueue<Cart> {
        InputQueue::new(Arc::new(Cart), InputQueueConfig::default(), Tick::new(99)).unwrap()
    }

    fn message(seq: u16, newest: u32, ticks: &[TickInput<i8>]) -> MoveInput<i8> {
        MoveInput {
            seq: Seq::new(seq),
            newest: Tick::new(newest),
            ticks: ticks.to_vec(),
            ..MoveInput::default()
        }
    }

    fn open(message: MoveInput<i8>) -> MoveInput<i8> {
        MoveInput { completeness: Completeness::Open, ..message }
    }

    fn steady(input: i8) -> TickInput<i8> {
        TickInput::steady(input)
    }

    fn changed(start: i8, changes: &[(u8, i8)]) -> TickInput<i8> {
        let mut tick = steady(start);
        for (index, input) in changes {
            tick.change(SubTick::new(*index).unwrap(), *input).unwrap();
        }
        tick
    }

    /// In time for whatever comes.
    const EARLY: ServerTime = ServerTime::from_micros(4_900_000);

    fn receive(queue: &mut InputQueue<Cart>, message: &MoveInput<i8>) -> bool {
        queue.receive(EARLY, message, Arrival::Live)
    }

    #[test]
    fn input_of_a_time_that_never_came_is_not_played() {
        let mut queue = queue();
        let ahead = [steady(1), steady(2), steady(3)];
        receive(&mut queue, &message(1, 102, &ahead));
        assert_eq!(
            queue.take(),
            (steady(1), Fate::AsSent),
            "the tick in which time slips is one that was sent"
        );
        queue.slip();
        assert_eq!(queue.take(), (steady(1), Fate::Held), "101 is another tick now");
        // Still under way from before: what it wants holds, what it sent for 102 and 103 does not.
        let before =
            MoveInput { ack: Some(Tick::new(99)), ..message(2, 103, &[steady(2), steady(3), steady(4)]) };
        receive(&mut queue, &before);
        assert_eq!(
            queue.newest_margin().map(|margin| margin.seq),
            Some(Seq::new(1)),
            "and says nothing of time"
        );
        assert_eq!(queue.take(), (steady(4), Fate::Held));
        let unknown = message(3, 103, &[steady(5)]);
        receive(&mut queue, &unknown);
        assert_eq!(queue.take(), (steady(5), Fate::Held), "so is what says nothing of what it has seen");
        let knows = MoveInput { ack: Some(Tick::new(100)), ..message(4, 104, &[steady(6)]) };
        receive(&mut queue, &knows);
        assert_eq!(queue.take(), (steady(6), Fate::AsSent), "from then on it plays again");
        receive(&mut queue, &message(5, 105, &[steady(7)]));
        assert_eq!(queue.take(), (steady(7), Fate::AsSent));
    }

    #[test]
    fn stale_01_an_older_message_is_dropped_whole() {
        let mut queue = queue();
        assert!(receive(&mut queue, &message(5, 100, &[steady(1)])));
        assert!(!receive(&mut queue, &message(4, 103, &[steady(7); 4])), "even with ticks that are new");
        assert!(!receive(&mut queue, &message(5, 100, &[steady(7)])), "the same number again");
        assert_eq!(queue.take(), (steady(1), Fate::AsSent));
        assert_eq!(queue.take(), (steady(1), Fate::Held));
        assert_eq!((queue.stats().messages, queue.stats().stale), (1, 2));
    }

    #[test]
    fn stale_01_inside_a_newer_message_simulated_ticks_are_skipped() {
        let mut queue = queue();
        receive(&mut queue, &message(1, 101, &[steady(1), steady(2)]));
        queue.take();
        receive(&mut queue, &message(2, 102, &[steady(7), steady(2), steady(3)]));
        assert_eq!(queue.fate(Tick::new(100)), Some(Fate::AsSent), "it was simulated, and stays so");
        assert_eq!(queue.newest, Some((Tick::new(100), 1)), "and so does what is held of it");
        assert_eq!(queue.take(), (steady(2), Fate::AsSent));
        assert_eq!(queue.take(), (steady(3), Fate::AsSent));
    }

    #[test]
    fn stale_01_what_was_accepted_may_be_extended_and_never_altered() {
        let mut queue = queue();
        let first = changed(1, &[(40, 2)]);
        receive(&mut queue, &open(message(1, 100, &[first])));
        receive(&mut queue, &open(message(2, 100, &[changed(5, &[(40, 2)])])));
        receive(&mut queue, &open(message(3, 100, &[changed(1, &[(41, 2)])])));
        receive(&mut queue, &open(message(4, 100, &[changed(1, &[(40, 3)])])));
        receive(&mut queue, &message(5, 100, &[steady(1)]));
        assert_eq!(
            queue.stats().altered,
            3,
            "to take back a change is no extension, but alters nothing either"
        );
        let longer = changed(1, &[(40, 2), (90, 3)]);
        receive(&mut queue, &message(6, 100, &[longer]));
        receive(&mut queue, &message(7, 100, &[changed(1, &[(40, 2), (90, 3), (200, 4)])]));
        assert_eq!(queue.take(), (longer, Fate::AsSent), "complete, and then closed for good");
        assert_eq!(queue.stats().altered, 4);
    }

    #[test]
    fn stale_01_one_players_ticks_never_affect_anothers() {
        let (mut one, mut other) = (queue(), queue());
        receive(&mut one, &message(900, 110, &[steady(1); 11]));
        assert!(receive(&mut other, &message(3, 100, &[steady(5)])));
        assert_eq!(other.take(), (steady(5), Fate::AsSent));
    }

    #[test]
    fn every_fate_is_counted_and_has_its_cause() {
        let mut queue = queue();
        receive(&mut queue, &message(1, 101, &[steady(6), steady(6)]));
        for _ in 0..5 {
            queue.take();
        }
        assert_eq!((queue.stats().as_sent, queue.stats().held), (2, 3));
        let causes = [Fate::AsSent, Fate::Held, Fate::Late, Fate::Lost].map(Fate::cause);
        let expected = [None, Some(Cause::LostInput), Some(Cause::LateInput), Some(Cause::LostInput)];
        assert_eq!(causes, expected);
    }

    #[test]
    fn server_04_missing_input_is_held_and_then_neutral() {
        let mut queue = queue();
        receive(&mut queue, &message(1, 100, &[steady(6)]));
        queue.take();
        for age in 1..=5 {
            assert_eq!(queue.take(), (steady(6), Fate::Held), "{age} ticks, at most 250 ms");
        }
        assert_eq!(queue.take(), (steady(0), Fate::Held), "300 ms");
    }

    #[test]
    fn server_04_without_any_input_ever_it_is_neutral() {
        assert_eq!(queue().take(), (steady(0), Fate::Held));
    }

    #[test]
    fn server_05_late_input_is_counted_and_held_from_then_on() {
        let mut queue = queue();
        receive(&mut queue, &message(1, 100, &[steady(6)]));
        queue.take();
        queue.take();
        receive(&mut queue, &message(2, 101, &[steady(6), changed(6, &[(30, -4)])]));
        assert_eq!(queue.fate(Tick::new(101)), Some(Fate::Late));
        assert_eq!(queue.stats().late, 1);
        assert_eq!(queue.take(), (steady(-4), Fate::Held), "its newest input is what is held");
    }

    #[test]
    fn server_05_what_comes_first_in_a_later_datagram_was_lost() {
        let mut queue = queue();
        receive(&mut queue, &message(1, 100, &[steady(6)]));
        for _ in 0..3 {
            queue.take();
        }
        receive(&mut queue, &message(3, 102, &[steady(6), steady(1), steady(2)]));
        assert_eq!(queue.fate(Tick::new(101)), Some(Fate::Lost));
        assert_eq!(queue.fate(Tick::new(102)), Some(Fate::Late));
        assert_eq!((queue.stats().late, queue.stats().lost), (1, 1));
        receive(&mut queue, &message(4, 103, &[steady(6), steady(1), steady(2), steady(3)]));
        assert_eq!((queue.stats().late, queue.stats().lost), (1, 1), "and that is told once");
    }

    fn receive_in_order(queue: &mut InputQueue<Cart>, message: &MoveInput<i8>) {
        assert!(queue.receive_by(Link::Reliable, EARLY, message, Arrival::Live));
    }

    #[test]
    fn server_05_input_that_a_reliable_link_still_carries_is_late_as_soon_as_it_is_missed() {
        let mut queue = queue();
        receive_in_order(&mut queue, &message(1, 100, &[steady(6)]));
        queue.take();
        for _ in 0..3 {
            assert_eq!(queue.take(), (steady(6), Fate::Late));
        }
        assert_eq!(queue.stats().late, 0, "it counts when it comes");
        // The messages of 101 and 102 were replaced by that of 103 before they left: nothing was lost.
        receive_in_order(&mut queue, &message(4, 103, &[steady(6), steady(1), steady(2), steady(3)]));
        let fates = [101, 102, 103].map(|tick| queue.fate(Tick::new(tick)));
        assert_eq!(fates, [Some(Fate::Late); 3]);
        assert_eq!((queue.stats().late, queue.stats().lost), (3, 0));
        assert_eq!(queue.take().0, steady(3), "the newest input is held from then on");
    }

    #[test]
    fn server_05_an_open_tick_by_a_reliable_link_is_late_too() {
        let mut queue = queue();
        receive_in_order(&mut queue, &open(message(1, 100, &[steady(6)])));
        assert_eq!(queue.take(), (steady(6), Fate::Late), "its end is on its way");
    }

    #[test]
    fn server_05_a_cut_loses_what_was_on_its_way_by_a_reliable_link() {
        let mut queue = queue();
        queue.begin(Link::Reliable);
        assert_eq!(queue.take().1, Fate::Late, "the first input of a session is on its way");
        receive_in_order(&mut queue, &message(1, 101, &[steady(6), steady(6)]));
        queue.take();
        queue.restart_numbering();
        assert_eq!((queue.take().1, queue.take().1), (Fate::Held, Fate::Held));
        // Everything that the server has not acknowledged is sent again by the new connection.
        receive_in_order(&mut queue, &message(1, 103, &[steady(6), steady(6)]));
        assert_eq!([102, 103].map(|tick| queue.fate(Tick::new(tick))), [Some(Fate::Lost); 2]);
        assert_eq!(queue.take().1, Fate::Late, "from its first message on nothing is lost again");
    }

    #[test]
    fn server_05_ticks_that_were_never_recorded_are_not_late() {
        let mut queue = queue();
        receive_in_order(&mut queue, &message(1, 100, &[steady(6)]));
        queue.take();
        // Prediction has restarted further ahead: 101 and 102 are in no message.
        receive_in_order(&mut queue, &message(2, 104, &[steady(1), steady(2)]));
        let fates = [(); 5].map(|()| queue.take().1);
        assert_eq!(fates, [Fate::Held, Fate::Held, Fate::AsSent, Fate::AsSent, Fate::Late]);
        queue.slip();
        assert_eq!(queue.take().1, Fate::Held, "what was sent for a time that never came is lost");
    }

    #[test]
    fn server_05_what_never_comes_was_lost_when_it_is_forgotten() {
        let mut queue = queue();
        // Two seconds are 40 ticks.
        for _ in 0..40 {
            queue.take();
        }
        assert_eq!((queue.stats().lost, queue.fate(Tick::new(100))), (0, Some(Fate::Held)));
        queue.take();
        assert_eq!((queue.stats().lost, queue.fate(Tick::new(100))), (1, None));
        assert_eq!(queue.fate(Tick::new(999)), None);
    }

    #[test]
    fn server_05_far_future_ticks_are_refused_just_beyond_the_horizon() {
        let mut queue = queue();
        // A second is 20 ticks: 119 is the last.
        receive(&mut queue, &message(1, 120, &[steady(1), steady(2)]));
        assert_eq!(queue.stats().far_future, 1);
        assert_eq!(queue.newest_margin(), None, "and tells nothing of the connection");
        receive(&mut queue, &message(2, u32::MAX, &[steady(7)]));
        assert_eq!(queue.stats().far_future, 2);
        for _ in 100..119 {
            queue.take();
        }
        assert_eq!(queue.take(), (steady(1), Fate::AsSent));
        assert_eq!(queue.take(), (steady(1), Fate::Held), "120 was not taken");
    }

    #[test]
    fn an_open_tick_is_simulated_with_what_has_come_of_it() {
        let mut queue = queue();
        let started = changed(1, &[(40, 2)]);
        receive(&mut queue, &open(message(1, 100, &[started])));
        assert_eq!(queue.take(), (started, Fate::Held), "its end is not known");
        assert_eq!(queue.take().0, steady(2));
    }

    #[test]
    fn margins_are_of_the_newest_closed_tick_and_the_least_of_sixteen() {
        let mut queue = queue();
        // The datagram of number n brings tick 99 + n.
        let mut at = |seq: u16, early: i64, arrival| {
            let tick = 99 + u32::from(seq);
            let due = Cadence::default().end_of(Tick::new(tick)).as_micros();
            let now = ServerTime::from_micros(due.saturating_add_signed(-early));
            queue.receive(now, &message(seq, tick, &[steady(1)]), arrival);
            queue.take();
            queue.least_margin().map(|margin| margin.micros)
        };
        assert_eq!(at(1, 9_000, Arrival::Live), Some(9_000));
        assert_eq!(at(2, -2_000, Arrival::Live), Some(-2_000), "late");
        assert_eq!(at(3, -9_000, Arrival::CatchingUp), Some(-2_000), "that was the server's own fault");
        for seq in 4..19 {
            assert_eq!(at(seq, 5_000, Arrival::Live), Some(-2_000));
        }
        assert_eq!(at(19, 5_000, Arrival::Live), Some(5_000), "seventeen later it is forgotten");
        receive(&mut queue, &message(20, 118, &[steady(1); 3]));
        receive(&mut queue, &open(message(21, 119, &[steady(1)])));
        receive(&mut queue, &message(22, 0, &[]));
        let newest = Margin { seq: Seq::new(19), micros: 5_000 };
        assert_eq!(
            queue.newest_margin(),
            Some(newest),
            "neither a copy, an open tick nor none at all is a sample"
        );
    }

    proptest! {
        /// Whatever comes: one tick of input per tick of time, memory within bounds, and every tick accounted for.
        #[test]
        fn any_messages_leave_the_queue_whole(
            script in prop::collection::vec(
                prop_oneof![
                    Just(None),
                    (any::<u16>(), 0u32..200, prop::collection::vec(crate::input::message_tests::any_tick(), 0..30), any::<bool>())
                        .prop_map(Some),
                ],
                0..200,
            ),
        ) {
            let mut queue = queue();
            let (coming, fates) = (queue.coming.capacity(), queue.outcomes.capacity());
            let mut taken = 0;
            for line in script {
                match line {
                    None => {
                        queue.take();
                        taken += 1;
                    }
                    Some((seq, newest, ticks, is_open)) => {
                        let newest = newest.max(u32::try_from(ticks.len()).unwrap());
                        let sent = message(seq, newest, &ticks);
                        receive(&mut queue, &if is_open { open(sent) } else { sent });
                    }
                }
                let stats = queue.stats();
                prop_assert_eq!(stats.as_sent + stats.held, taken);
                prop_assert!(stats.late + stats.lost <= stats.held);
                prop_assert_eq!(queue.simulated(), Tick::new(99 + u32::try_from(taken).unwrap()));
                prop_assert_eq!((queue.coming.capacity(), queue.outcomes.capacity()), (coming, fates), "no growth");
            }
        }
    }
}
