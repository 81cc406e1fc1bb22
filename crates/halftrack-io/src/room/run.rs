//! The loop of a room: wait, take what has arrived, tick when it is due, hand out. On a thread of its own.
//!
//! A panic of the game ends its room: it is logged with the room's name, and the peers are closed. Other rooms have threads
//! of their own, and go on.

use core::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use halftrack::Timestamp;
use halftrack::server::{Server, World};
use halftrack::session::{ConnectionId, DisconnectReason};

use crate::clock::now;
use crate::pipe::{Arrived, End, Pipe};
use crate::room::Journal;
use crate::room::mail::{Delivery, Mail, Wish};
use crate::room::stats::RoomStats;
use crate::rooms::RoomName;

/// Something to be done on the room's thread.
pub(super) type Call<W> = Box<dyn FnOnce(&mut Server<W>, Timestamp) + Send>;

/// What waits to be done there; `None` when the room is no more.
pub(super) type Calls<W> = Arc<Mutex<Option<VecDeque<Call<W>>>>>;

pub(super) struct Run<W: World> {
    /// For the log.
    name: RoomName,
    server: Server<W>,
    mail: Arc<Mail>,
    calls: Calls<W>,
    peers: BTreeMap<ConnectionId, Arc<Pipe>>,
    stats: RoomStats,
    shown: Arc<Mutex<RoomStats>>,
    /// The newest moment that the server was told.
    told: Timestamp,

    /// Connections that something came from, or that can be written to again.
    heard: Vec<ConnectionId>,

    /// Where the recording goes, if there is one.
    journal: Option<Box<dyn Journal>>,

    // Memory that is used again.
    record: Vec<u8>,
    delivery: Delivery,
    arrivals: Vec<(Timestamp, ConnectionId, Arrived)>,

    /// The reason that peers hear when the room ends.
    end: DisconnectReason,
}

impl<W: World> Run<W> {
    pub(super) fn new(
        name: RoomName,
        server: Server<W>,
        mail: Arc<Mail>,
        calls: Calls<W>,
        shown: Arc<Mutex<RoomStats>>,
        journal: Option<Box<dyn Journal>>,
    ) -> Self {
        Self {
            name,
            server,
            mail,
            calls,
            peers: BTreeMap::new(),
            stats: RoomStats::default(),
            shown,
            told: Timestamp::ZERO,
            heard: Vec::new(),
            journal,
            record: Vec::new(),
            delivery: Delivery::default(),
            arrivals: Vec::new(),
            end: DisconnectReason::Stopped,
        }
    }

    /// Runs the room to its end.
    pub(super) fn run(mut self) {
        // The server of a panic may be half way through a tick. Nothing but its tick is read after that.
        let ended = catch_unwind(AssertUnwindSafe(|| self.serve()));
        if let Err(panic) = ended {
            self.end = DisconnectReason::RoomFailed;
            let tick = self.server.tick().number();
            tracing::error!(room = %self.name, tick, panic = message_of(&*panic), "a room panicked and has ended");
        }
    }

    fn serve(&mut self) {
        while let Some(due) = self.server.poll_timeout() {
            self.mail.wait(Some(due), &mut self.delivery);
            self.turn(due);
        }
    }

    fn turn(&mut self, due: Timestamp) {
        let woken = now();
        self.stats.wakes += 1;
        // First: whoever logs in after it was asked for is not let in.
        self.obey();
        self.let_in();
        self.receive();
        let called = self.call(woken);
        // After what has arrived: after a stall, input that came during it still counts.
        self.told = self.told.max(woken);
        self.server.handle_timeout(self.told);
        // What a peer asked is answered at once. What concerns everybody is of a tick, and goes out with it.
        let all = woken >= due || called || self.delivery.wish != Wish::Serve;
        self.write_down();
        self.hand_out(all);
        if woken >= due {
            let done = now();
            self.stats.tick_delay.record(woken.saturating_since(due));
            self.stats.tick_time.record(done.saturating_since(woken));
            let late = self.server.poll_timeout().is_some_and(|next| done >= next);
            self.stats.overruns += u64::from(late);
            self.stats.input = self.server.all_input_stats();
        }
        self.show();
    }

    /// Before anything that follows from it goes out.
    fn write_down(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        self.record.clear();
        if self.server.poll_record(&mut self.record) && !journal.write(&self.record) {
            self.server.stop_recording();
            self.journal = None;
        }
    }

    fn let_in(&mut self) {
        for newcomer in self.delivery.newcomers.drain(..) {
            self.told = self.told.max(now());
            self.server.handle_connected(self.told, newcomer.connection, newcomer.sync_link, newcomer.token);
            self.peers.insert(newcomer.connection, newcomer.pipe);
            self.stats.connected += 1;
        }
    }

    /// Everything that has arrived, in the order in which it did, at the time at which it did.
    fn receive(&mut self) {
        let mut ended = vec![];
        self.heard.clear();
        for connection in self.delivery.ready.drain(..) {
            self.heard.push(connection);
            let Some(pipe) = self.peers.get(&connection) else { continue };
            let (end, dropped) = pipe.take(&mut self.arrivals, |at, arrived| (at, connection, arrived));
            self.stats.dropped_in += dropped;
            ended.extend(end.map(|end| (connection, end)));
        }
        self.arrivals.sort_by_key(|(at, ..)| *at);
        for (at, connection, arrived) in self.arrivals.drain(..) {
            self.told = self.told.max(at);
            match arrived {
                Arrived::Stream(bytes) => {
                    self.stats.stream_in.add(bytes.len());
                    self.server.handle_stream(self.told, connection, &bytes);
                }
                Arrived::Datagram(bytes) => {
                    self.stats.datagrams_in.add(bytes.len());
                    self.server.handle_datagram(self.told, connection, &bytes);
                }
            }
        }
        for (connection, end) in ended {
            if self.peers.remove(&connection).is_none() {
                continue;
            }
            self.mail.forget(connection);
            match end {
                End::Ours(reason) => {
                    self.stats.count_closed(reason);
                    // Whoever was told not to come back is not waited for.
                    if let Some(player) = self.server.player_of(connection)
                        && reason.end().is_some()
                    {
                        self.server.kick(player);
                    }
                }
                End::Theirs(_) => self.stats.cut += 1,
            }
            self.server.handle_disconnected(self.told, connection);
        }
    }

    fn obey(&mut self) {
        match self.delivery.wish {
            Wish::Serve => {}
            Wish::Drain(within) => self.server.drain(within),
            Wish::Stop => self.server.stop(),
        }
    }

    /// Does what the host wants done here. Gives whether there was anything.
    fn call(&mut self, now: Timestamp) -> bool {
        let mut any = false;
        loop {
            let call = {
                let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                calls.as_mut().and_then(VecDeque::pop_front)
            };
            let Some(call) = call else { break };
            call(&mut self.server, now);
            any = true;
        }
        any
    }

    /// Hands out what there is for everybody, or for those who were heard of.
    fn hand_out(&mut self, all: bool) {
        let Self { server, peers, stats, mail, heard, .. } = self;
        let those = heard.iter().filter(|_| !all).filter_map(|connection| peers.get_key_value(connection));
        for (connection, pipe) in peers.iter().filter(|_| all).chain(those) {
            let datagram = server.poll_datagram(*connection).map(Bytes::copy_from_slice);
            let handed = pipe.hand_out(|into| server.poll_stream(*connection, into), datagram);
            if handed.stream_bytes > 0 {
                stats.stream_out.add(handed.stream_bytes);
            }
            if let Some(bytes) = handed.datagram_bytes {
                stats.datagrams_out.add(bytes);
            }
            stats.dropped_out += u64::from(handed.replaced);
        }
        while let Some((connection, reason)) = server.poll_close() {
            if let Some(pipe) = peers.remove(&connection) {
                pipe.close(reason, |into| server.poll_stream(connection, into));
                stats.count_closed(reason);
                mail.forget(connection);
            }
            server.handle_closed(connection);
        }
    }

    fn show(&mut self) {
        self.stats.server = self.server.stats();
        self.stats.connections = self.peers.len();
        self.stats.players = self.server.players().count();
        self.stats.away = self.server.away();
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.stats;
    }
}

/// The message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The room ends: by a stop, or by a panic of the game. No peer and no caller waits for it any more.
impl<W: World> Drop for Run<W> {
    fn drop(&mut self) {
        let reason = self.end;
        let newcomers = self.mail.close(reason);
        // A stop has closed the peers already. After a panic they are all still here.
        for pipe in self.peers.values() {
            pipe.close(reason, |_| false);
            self.stats.count_closed(reason);
        }
        for newcomer in newcomers.iter().chain(&self.delivery.newcomers) {
            newcomer.pipe.close(reason, |_| false);
        }
        drop(self.calls.lock().unwrap_or_else(PoisonError::into_inner).take());
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.stats.past();
    }
}
