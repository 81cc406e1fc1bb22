//! What goes between the clients and the server, and what each of them does with it.

use halftrack::client::ClientEvent;
use halftrack::server::World;
use halftrack::session::ConnectionId;
use halftrack::{Tick, Timestamp, Token};
use halftrack_netem::Passage;

use super::Lab;
use crate::check::Rule;
use crate::pace::Wake;
use crate::seat::Seat;
use crate::truth::Told;
use crate::watch::{GroupWatch, Note};

/// A sender asks for the next bytes of a stream only below this fill, as a program with a real socket does: QUIC's
/// send window in `halftrack-io`. Until then a newer snapshot replaces the one that waits. Without the bound, a link
/// with too low a rate queues snapshots for seconds, and each one that arrives is too old to build on.
const SEND_BUFFER_BYTES: usize = 64 * 1_024;

/// What the server may have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spoken {
    Nothing,
    Streams,
    Everything,
}

impl<W: World> Lab<W> {
    /// What has arrived at the server is handed over.
    pub(super) fn deliver_up(&mut self, index: usize) -> Spoken {
        let seat = &mut self.seats[index];
        if seat.due > self.now {
            return Spoken::Nothing;
        }
        let Some(connection) = seat.connection else { return Spoken::Nothing };
        let mut spoken = Spoken::Nothing;
        let time = self.server.time(self.now);
        let measuring = self.measuring;
        let mut note = Note {
            tally: &mut self.tally,
            checks: &mut self.checks,
            measuring: self.measuring,
            counting: self.now >= self.start + self.config.warm_up,
            at_s: self.now.saturating_since(self.start).as_secs_f64(),
            client: index,
            trace: self.trace.as_mut().filter(|trace| measuring && trace.client == index),
        };
        while let Some(bytes) = seat.up.stream.poll(self.now) {
            seat.input.stream(self.now, time, &bytes, &mut note);
            self.server.handle_stream(self.now, connection, &bytes);
            spoken = Spoken::Streams;
        }
        while let Some(bytes) = seat.up.datagrams.poll(self.now) {
            seat.input.datagram(self.now, time, &bytes, &mut note);
            self.server.handle_datagram(self.now, connection, &bytes);
        }
        spoken
    }

    /// A client is handed what has arrived, wakes and draws, as far as that is due; and what it says is put on its way.
    pub(super) fn act(&mut self, index: usize) -> Spoken {
        let now = self.now;
        let seat = &mut self.seats[index];
        if now < seat.frozen_until {
            return Spoken::Nothing;
        }
        let local = seat.local(now);
        seat.hear_of_the_end(now);
        let mut spoken = Spoken::Nothing;
        if seat.dialling.is_some_and(|there| now >= there) && seat.passage == Passage::Open {
            seat.dialling = None;
            self.connect(index);
            spoken = Spoken::Streams;
        }
        let seat = &mut self.seats[index];
        let measuring = self.measuring;
        let mut note = Note {
            tally: &mut self.tally,
            checks: &mut self.checks,
            measuring: self.measuring,
            counting: self.now >= self.start + self.config.warm_up,
            at_s: now.saturating_since(self.start).as_secs_f64(),
            client: index,
            trace: self.trace.as_mut().filter(|trace| measuring && trace.client == index),
        };
        while let Some(bytes) = seat.down.stream.poll(now) {
            seat.client.handle_stream(local, &bytes);
            seat.note_session();
            seat.own.states(now, &seat.client, &mut note);
            seat.group.states(now, &seat.client, &mut note);
            seat.hear_of_lives(now, &mut note);
        }
        while let Some(bytes) = seat.down.datagrams.poll(now) {
            seat.client.handle_datagram(local, &bytes);
            seat.own.states(now, &seat.client, &mut note);
            seat.group.states(now, &seat.client, &mut note);
            seat.hear_of_lives(now, &mut note);
        }
        if seat.wake == Wake::Boundary && seat.client.poll_timeout().is_some_and(|due| local >= due) {
            seat.client.handle_timeout(local);
            let woken = seat.woken(local);
            note.check(woken <= Seat::<W::Game>::MAX_WAKES, Rule::Bounds, || {
                format!("woke {woken} times in a second: whoever waits for its timeouts never sleeps")
            });
        }
        let acts = seat.wake == Wake::Boundary || local >= seat.frames.due();
        if local >= seat.frames.due() {
            self.draw(index);
        }
        self.hear(index);
        // Whoever acts only on frames says something only then, whenever it may have made up its mind.
        if acts {
            self.carry_up(index);
        }
        spoken
    }

    /// One frame of a client.
    fn draw(&mut self, index: usize) {
        let (now, time, newest) = (self.now, self.server.time(self.now), self.server.tick());
        let seat = &mut self.seats[index];
        let local = seat.local(now);
        seat.frames.drawn(local);
        let pressed = seat.bot.presses();
        if self.ended.is_none()
            && let Some(input) = seat.bot.drive(local, &mut seat.client)
        {
            seat.client.set_input(local, input);
            seat.input.wishes(now, &seat.client, input);
            let more = seat.bot.presses().zip(pressed).map_or(0, |(after, before)| after - before);
            if more > 0 {
                seat.emit.presses(&seat.client, more);
            }
        }
        seat.client.frame(local);
        seat.bot.look(local, &seat.client);
        let measuring = self.measuring;
        let mut note = Note {
            tally: &mut self.tally,
            checks: &mut self.checks,
            measuring: self.measuring,
            counting: self.now >= self.start + self.config.warm_up,
            at_s: now.saturating_since(self.start).as_secs_f64(),
            client: index,
            trace: self.trace.as_mut().filter(|trace| measuring && trace.client == index),
        };
        let (up_us, down_us) = seat.ways_us();
        seat.own.judge(now, &seat.client, &self.server, &mut note);
        seat.own.frame((local, time, newest), up_us, &seat.client, &mut note);
        seat.input.frame(now, &seat.client, &mut note);
        seat.remote.epoch(self.server.epoch());
        let mut truth = self.server.world().truth_mut();
        seat.remote.frame((local, time, newest), down_us, &seat.client, &mut truth, &mut note);
        drop(truth);
        seat.hear_of_lives(now, &mut note);
        let truth = self.server.world().truth();
        let lately = self.config.server.cadence.ticks_in(GroupWatch::<W::Game>::JUMPS);
        let since = Tick::new(newest.number().saturating_sub(lately));
        let was_altered = |id| truth.was_altered(id, since, newest);
        seat.group.frame(local, &seat.client, (seat.emit.foretold(), &was_altered), &mut note);
        drop(truth);
        if let Some(player) = seat.client.player() {
            seat.group.judge(now, player, &self.server, &mut note);
        }
        let Seat { group, emit, client, .. } = &mut *seat;
        emit.frame((now, time), client, group.ids(), &self.server, &mut note);
        if self.ended.is_none() {
            let owns = seat.client.player().is_some_and(|player| !self.server.owned(player).is_empty());
            seat.recovered(now, owns, &mut note);
            seat.plays(now, owns, self.config.rough, &mut note);
        }
    }

    /// What a client tells its host.
    pub(super) fn hear(&mut self, index: usize) {
        while let Some(event) = self.seats[index].client.poll_event() {
            let seat = &mut self.seats[index];
            match event {
                ClientEvent::Connect => seat.dialling = Some(self.now + seat.round_trip()),
                ClientEvent::Close => {
                    seat.dialling = None;
                    let mut bytes = Vec::new();
                    let said = seat.client.poll_stream(&mut bytes);
                    if let Some(connection) = seat.connection.take()
                        && seat.passage == Passage::Open
                    {
                        if said {
                            self.server.handle_stream(self.now, connection, &bytes);
                        }
                        self.server.handle_disconnected(self.now, connection);
                    }
                }
                ClientEvent::Restarted(_) => seat.restarted(),
                ClientEvent::Game(bytes) => {
                    seat.bot.hear(&seat.client, &bytes);
                    self.heard(index, &bytes);
                }
                _ => {}
            }
        }
    }

    fn heard(&mut self, index: usize, event: &[u8]) {
        let Some(player) = self.seats[index].client.player() else { return };
        let told = self.server.world().truth_mut().told(player, event);
        let events = &mut self.tally.events;
        match told {
            Told::Next => events.told += 1,
            Told::After(left_out) => events.lost += left_out as u64,
            Told::Never => events.duplicated += 1,
            Told::Gone => return,
        }
        let at = (self.now.saturating_since(self.start).as_secs_f64(), Some(index));
        self.checks.check(told == Told::Next, at, Rule::EventsOnce, || format!("{told:?}: {event:?}"));
    }

    /// A connection is there, at both ends.
    fn connect(&mut self, index: usize) {
        self.connections += 1;
        let connection = ConnectionId::new(self.connections);
        let token = u128::from(self.connections) << 64 | u128::from(self.dice.roll());
        let seat = &mut self.seats[index];
        seat.up.clear();
        seat.down.clear();
        seat.connection = Some(connection);
        seat.closed = None;
        seat.input.connected();
        self.server.handle_connected(self.now, connection, seat.sync_link, Token::new(token.to_le_bytes()));
        seat.client.handle_connected(seat.local(self.now), seat.sync_link);
    }

    /// The connection of a client goes away under both.
    pub(super) fn cut(&mut self, index: usize) {
        let Some(seat) = self.seats.get_mut(index) else { return };
        seat.up.clear();
        seat.down.clear();
        if let Some(connection) = seat.connection.take() {
            self.server.handle_disconnected(self.now, connection);
            seat.client.handle_disconnected(seat.local(self.now), None);
        }
    }

    /// What a client says is put on its way.
    fn carry_up(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        if seat.connection.is_none() {
            return;
        }
        let mut sent = 0;
        self.bytes.clear();
        let mut full = false;
        if seat.up.stream.under_way_bytes() < SEND_BUFFER_BYTES && seat.client.poll_stream(&mut self.bytes) {
            sent += self.bytes.len();
            full = seat.up.stream.send(self.now, &self.bytes).is_err();
        }
        while let Some(bytes) = seat.client.poll_datagram() {
            sent += bytes.len();
            seat.up.datagrams.send(self.now, bytes);
        }
        self.tally.up_bytes += if self.measuring { sent as u64 } else { 0 };
        if full {
            self.cut(index);
        }
    }

    /// What the server says to a client is put on its way.
    pub(super) fn carry_down(&mut self, index: usize, spoken: Spoken) {
        let seat = &mut self.seats[index];
        let Some(connection) = seat.connection else { return };
        let (mut sent, mut snapshots) = (0, 0);
        self.bytes.clear();
        let mut full = false;
        if seat.down.stream.under_way_bytes() < SEND_BUFFER_BYTES
            && self.server.poll_stream(connection, &mut self.bytes)
        {
            sent += self.bytes.len();
            full = seat.down.stream.send(self.now, &self.bytes).is_err();
        }
        if spoken == Spoken::Everything {
            while let Some(bytes) = self.server.poll_datagram(connection) {
                snapshots += bytes.len();
                seat.down.datagrams.send(self.now, bytes);
            }
        }
        if self.measuring {
            self.tally.down_bytes += (sent + snapshots) as u64;
            if let Some(trace) = self.trace.as_mut().filter(|trace| trace.client == index) {
                trace.down.push((self.now.saturating_since(self.start).as_secs_f64(), sent + snapshots));
            }
            if let Some(player) = seat.client.player().filter(|_| snapshots > 0) {
                self.tally.snapshot_bytes += snapshots as u64;
                self.tally.moving_entities += self.server.world().truth().moving_others(player);
            }
        }
        if full {
            self.cut(index);
        }
    }

    /// Connections that the server wants closed.
    pub(super) fn close(&mut self) {
        while let Some((connection, reason)) = self.server.poll_close() {
            let seat = self.seats.iter_mut().find(|seat| seat.connection == Some(connection));
            if let Some(seat) = seat {
                seat.connection = None;
                if seat.passage == Passage::Open {
                    // What is still on its way arrives before the end does.
                    let mut last_words = Vec::new();
                    while let Some(bytes) = seat.down.stream.poll(Timestamp::from_micros(u64::MAX)) {
                        last_words.extend_from_slice(&bytes);
                    }
                    self.server.poll_stream(connection, &mut last_words);
                    seat.closed = Some((last_words, reason));
                    if self.now >= seat.frozen_until {
                        seat.hear_of_the_end(self.now);
                    }
                }
            }
            self.server.handle_closed(connection);
        }
    }
}
