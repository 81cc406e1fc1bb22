//! One player as the server has it: its input, what it has been shown, and the snapshot that is under way to it.

use core::time::Duration;

use derive_where::derive_where;

use crate::cause::Causes;
use crate::game::Game;
use crate::id::PlayerId;
use crate::input::MoveInput;
use crate::input::{Arrival, Fate, InputQueue, InputStats};
use crate::lane::Link;
use crate::model::Body;
use crate::seq::Seq;
use crate::session::ConnectionId;
use crate::snapshot::{
    Bodies, Echo, Header, MAX_FATES, SNAPSHOT_REST_BYTES, View, fates_that_fit, write_emitted, write_fates,
    write_ids, write_plain_fates,
};
use crate::sync_watch::PROBE;
use crate::tick::{Epoch, Tick};
use crate::time::{ServerTime, Timestamp};
use crate::wire::BitWriter;

/// A player.
#[derive_where(Clone, Debug)]
pub(super) struct Player<G: Game> {
    pub(super) id: PlayerId,
    pub(super) connection: Option<ConnectionId>,
    pub(super) queue: InputQueue<G>,
    pub(super) view: View,
    /// When it may be told of everybody by the reliable lane again.
    pub(super) next_full: Timestamp,
    /// The orders taken so far are within the limit from here on.
    orders_due: Timestamp,
    /// The first tick that the player was there in.
    joined: Tick,
    /// The newest input datagram, and when it came.
    newest_input: Option<(Seq, Timestamp)>,
    /// The newest snapshot for it, not yet taken by the host. Empty when there is none.
    snapshot: Vec<u8>,
    taken: bool,
    /// It is to be sent as a datagram too, although it takes the reliable link.
    probe: bool,
    next_probe: Timestamp,
}

/// All players of a room, in order of their ids, as the bodies are.
#[derive_where(Clone, Debug)]
pub(super) struct Players<G: Game> {
    list: Vec<Player<G>>,
    /// Counters of the players that left.
    past_input: InputStats,
}

impl<G: Game> Players<G> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { list: Vec::with_capacity(capacity), past_input: InputStats::default() }
    }

    fn place(&self, id: PlayerId) -> Result<usize, usize> {
        self.list.binary_search_by_key(&id, |player| player.id)
    }

    pub(super) fn get(&self, id: PlayerId) -> Option<&Player<G>> {
        self.list.get(self.place(id).ok()?)
    }

    pub(super) fn get_mut(&mut self, id: PlayerId) -> Option<&mut Player<G>> {
        let at = self.place(id).ok()?;
        self.list.get_mut(at)
    }

    pub(super) fn insert(&mut self, player: Player<G>) {
        match self.place(player.id) {
            Ok(_) => debug_assert!(false, "a number is not given twice"),
            Err(at) => self.list.insert(at, player),
        }
    }

    pub(super) fn remove(&mut self, id: PlayerId) {
        if let Ok(at) = self.place(id) {
            let gone = self.list.remove(at);
            self.past_input = self.past_input.plus(gone.queue.stats());
        }
    }

    /// The player at a place in the order, for loops that change the server on the way.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut Player<G>> {
        self.list.get_mut(place)
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, Player<G>> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> core::slice::IterMut<'_, Player<G>> {
        self.list.iter_mut()
    }

    /// Counters of all players, those that left included.
    pub(super) fn all_input_stats(&self) -> InputStats {
        self.list.iter().fold(self.past_input, |all, player| all.plus(player.queue.stats()))
    }
}

/// When a snapshot is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) now: Timestamp,
    pub(super) epoch: Epoch,
    /// How long after its tick's end, unless the server is catching up.
    pub(super) late: Option<Duration>,
    pub(super) max_bytes: usize,
}

/// The player's body takes more than [`Body::MAX_BITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyTooLong;

/// What came of an input datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Taken,
    /// Older than one before it.
    Stale,
    /// It acknowledges what was never sent.
    BadAck,
}

impl<G: Game> Player<G> {
    /// Ticks whose fate is told even if the client knows of them. They cost nothing while nothing happens.
    const TOLD_AGAIN: u32 = 12;
    /// Orders that may come at once: a client sends what it ordered during a cut when it is back.
    const MAX_BURST: u32 = 512;

    pub(super) fn new(id: PlayerId, queue: InputQueue<G>, joined: Tick) -> Self {
        Self {
            id,
            connection: None,
            queue,
            view: View::default(),
            next_full: Timestamp::ZERO,
            orders_due: Timestamp::ZERO,
            joined,
            newest_input: None,
            snapshot: Vec::new(),
            taken: true,
            probe: false,
            next_probe: Timestamp::ZERO,
        }
    }

    /// The player is there by another connection: numbers of the old one's datagrams mean nothing on it, and what was
    /// under way by it may be lost.
    pub(super) fn connected(&mut self, connection: ConnectionId) {
        self.connection = Some(connection);
        self.view.cut();
        self.queue.restart_numbering();
        self.newest_input = None;
        (self.taken, self.probe) = (true, false);
    }

    /// Whether another order is within the limit: one for each `interval` in the long run, and a burst on top.
    pub(super) fn may_order(&mut self, now: Timestamp, interval: Duration) -> bool {
        let due = self.orders_due.max(now);
        let within = due.saturating_since(now) < interval * Self::MAX_BURST;
        if within {
            self.orders_due = due + interval;
        }
        within
    }

    /// The connection is gone, and with it what was on its way.
    pub(super) fn disconnected(&mut self) {
        self.connection = None;
        self.queue.cut();
    }

    /// Takes an input message that came by `link` at `now`.
    pub(super) fn receive(
        &mut self,
        now: Timestamp,
        time: ServerTime,
        message: &MoveInput<G::Input>,
        arrival: Arrival,
        link: Link,
    ) -> Received {
        if !self.queue.receive_by(link, time, message, arrival) {
            return Received::Stale;
        }
        self.newest_input = Some((message.seq, now));
        match message.ack {
            Some(tick) if self.view.acknowledge(tick) => Received::Taken,
            Some(_) => Received::BadAck,
            // It has nothing to build on: the next snapshot does not build on anything.
            None => {
                self.view.forget();
                Received::Taken
            }
        }
    }

    /// Writes the snapshot of the newest tick. One that the host has not taken is replaced.
    pub(super) fn write(&mut self, written: Written, bodies: &mut Bodies<G>) -> Result<(), BodyTooLong> {
        let tick = bodies.tick();
        let header = Header { tick, epoch: written.epoch, late: written.late, echo: self.echo(written.now) };
        let told_since = self.told_since(tick);
        self.snapshot.resize(written.max_bytes, 0);
        let mut bits = BitWriter::new(&mut self.snapshot);
        header.write(&mut bits);

        let (ids, knows) = bodies.owned_since(self.id, self.view.acknowledged_snapshot());
        write_ids(ids, knows, &mut bits);
        // Most players own one body: it is looked up once for all ticks.
        let body_of = |body: usize| ids.get(body).and_then(|id| bodies.get(*id));
        let first = body_of(0);
        let own = || first.into_iter().chain((1..ids.len()).filter_map(body_of));
        for body in own() {
            let start = bits.len_bits();
            body.history.latest().write(&G::Body::blank(), &mut bits);
            // spec: GAME-02
            if bits.len_bits() - start > G::Body::MAX_BITS {
                self.taken = true;
                return Err(BodyTooLong);
            }
        }
        write_emitted(own().map(|body| body.emitted()), &mut bits);
        let queue = &self.queue;
        let ticks = tick.since(told_since);
        let left = |bits: &BitWriter<'_>| (written.max_bytes * 8).saturating_sub(bits.len_bits());
        if queue.as_sent_since(told_since) && own().all(|body| body.is_uncaused_since(told_since)) {
            write_plain_fates(ticks, &mut bits);
        } else {
            let causes_of = |tick: Tick, body: usize| {
                let body = if body == 0 { first } else { body_of(body) };
                body.and_then(|body| body.history.get(tick)).map_or(Causes::NONE, |record| record.causes)
            };
            let fates = (0..ticks).map(|index| {
                let tick = Tick::new(told_since.number() + index).next();
                (queue.fate(tick).unwrap_or(Fate::Held), move |body: usize| causes_of(tick, body))
            });
            // Long bodies leave less room for fates. The oldest go first: the client has most likely had them.
            let most = left(&bits).saturating_sub(SNAPSHOT_REST_BYTES / 4 * 8);
            let left_out = fates.len() - fates_that_fit(fates.clone(), ids.len(), most);
            write_fates(fates.skip(left_out), ids.len(), &mut bits);
        }
        let room = left(&bits);
        bodies.write(&mut self.view, room, &mut bits);
        let length = bits.finish();
        debug_assert!(length.is_some(), "what is written fits");
        self.snapshot.truncate(length.unwrap_or(0));
        self.taken = length.is_none();
        Ok(())
    }

    fn echo(&self, now: Timestamp) -> Option<Echo> {
        let (seq, came) = self.newest_input?;
        Some(Echo {
            seq,
            held: Some(now.saturating_since(came)),
            newest: self.queue.newest_margin(),
            least: self.queue.least_margin(),
        })
    }

    /// The tick after which fates are told: the snapshot that the client has, as far as they are remembered; and some
    /// before it, for a tick that was held may have turned out to be late since.
    fn told_since(&self, tick: Tick) -> Tick {
        let remembered = self.queue.remembered().min(u32::try_from(MAX_FATES).unwrap_or(0));
        let oldest = Tick::new(tick.number().saturating_sub(remembered));
        let known = self.view.acknowledged().unwrap_or(self.joined);
        let again = Tick::new(tick.number().saturating_sub(Self::TOLD_AGAIN));
        known.min(again).max(self.joined).max(oldest).min(tick)
    }

    /// Some of the snapshots that take the reliable link because datagrams are lost are probes too.
    pub(super) fn plan_probe(&mut self, now: Timestamp) {
        if now >= self.next_probe && !self.taken {
            (self.probe, self.next_probe) = (true, now + PROBE);
        }
    }

    /// The snapshot that is to be a probe, once.
    pub(super) fn take_probe(&mut self) -> Option<&[u8]> {
        core::mem::take(&mut self.probe).then_some(&self.snapshot)
    }

    /// The snapshot that waits for the host, once.
    pub(super) fn take_snapshot(&mut self) -> Option<&[u8]> {
        (!core::mem::replace(&mut self.taken, true)).then_some(&self.snapshot)
    }
}
