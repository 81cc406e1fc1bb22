//! What goes wrong, or changes, and what that does to the lab.

use std::time::Duration;

use halftrack::server::World;
use halftrack::session::SessionState;
use halftrack_netem::Passage;

use super::Lab;

/// Something that goes wrong, or changes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Happening {
    /// The server does nothing for so long.
    ServerStall(Duration),
    /// A client does nothing for so long: neither frames nor arrivals.
    ClientStall(usize, Duration),
    /// Nothing gets through between a client and the server for so long.
    Partition(usize, Duration),
    /// Datagrams between a client and the server are lost for so long. The stream is not.
    DatagramsCut(usize, Cut, Duration),
    /// The one-way delay of a client is another for so long.
    RouteChange(usize, Duration, Duration),
    /// A client's connection is cut under both ends.
    Reconnect(usize),
    /// A client leaves, and comes back as somebody new so long after.
    Leave(usize, Duration),
    /// Whoever is not in, and does not try to be, tries again, until it is in.
    Come(usize),
    /// A partition is over.
    PartitionOver(usize),
    /// A client's delay is what it was.
    RouteBack(usize),
    /// Datagrams of a client arrive again.
    DatagramsBack(usize),
}

/// Directions in which datagrams are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// To the server.
    Up,
    /// To the client.
    Down,
    /// Both.
    Both,
}

impl Happening {
    /// Whose it is; none when it is the server's.
    pub(crate) fn client(&self) -> Option<usize> {
        match *self {
            Self::ServerStall(_) => None,
            Self::ClientStall(client, _)
            | Self::Partition(client, _)
            | Self::RouteChange(client, ..)
            | Self::Reconnect(client)
            | Self::Leave(client, _)
            | Self::Come(client)
            | Self::DatagramsCut(client, ..)
            | Self::PartitionOver(client)
            | Self::RouteBack(client)
            | Self::DatagramsBack(client) => Some(client),
        }
    }

    /// The same of another client.
    pub(crate) fn of_client(self, client: usize) -> Self {
        match self {
            Self::ServerStall(_) => self,
            Self::ClientStall(_, span) => Self::ClientStall(client, span),
            Self::Partition(_, span) => Self::Partition(client, span),
            Self::RouteChange(_, delay, span) => Self::RouteChange(client, delay, span),
            Self::Reconnect(_) => Self::Reconnect(client),
            Self::Leave(_, span) => Self::Leave(client, span),
            Self::Come(_) => Self::Come(client),
            Self::DatagramsCut(_, cut, span) => Self::DatagramsCut(client, cut, span),
            Self::PartitionOver(_) => Self::PartitionOver(client),
            Self::RouteBack(_) => Self::RouteBack(client),
            Self::DatagramsBack(_) => Self::DatagramsBack(client),
        }
    }

    /// How long it lasts.
    pub(crate) fn span(&self) -> Duration {
        match *self {
            Self::ServerStall(span)
            | Self::ClientStall(_, span)
            | Self::Partition(_, span)
            | Self::RouteChange(_, _, span)
            | Self::DatagramsCut(_, _, span)
            | Self::Leave(_, span) => span,
            _ => Duration::ZERO,
        }
    }

    /// The same for so long, if it lasts.
    pub(crate) fn lasting(self, span: Duration) -> Self {
        match self {
            Self::ServerStall(_) => Self::ServerStall(span),
            Self::ClientStall(client, _) => Self::ClientStall(client, span),
            Self::Partition(client, _) => Self::Partition(client, span),
            Self::RouteChange(client, delay, _) => Self::RouteChange(client, delay, span),
            Self::DatagramsCut(client, cut, _) => Self::DatagramsCut(client, cut, span),
            Self::Leave(client, _) => Self::Leave(client, span),
            other => other,
        }
    }
}

impl<W: World> Lab<W> {
    pub(super) fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::ServerStall(span) => {
                self.stalled_until = self.stalled_until.max(now + span);
                self.seats.iter_mut().for_each(|seat| seat.shaken(now + span));
            }
            Happening::Reconnect(index) => {
                self.cut(index);
                self.seats.iter_mut().skip(index).take(1).for_each(|seat| seat.shaken(now));
            }
            Happening::ClientStall(index, span) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.frozen_until = seat.frozen_until.max(now + span);
                    seat.shaken(now + span);
                    // It may find that it was away for too long: whoever is in by then stays in.
                    let looks = now.saturating_since(self.start) + span + Self::LOOKS;
                    self.schedule(looks, Happening::Come(index));
                }
            }
            Happening::Partition(index, span) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.set_passage(now, Passage::Blocked);
                    seat.shaken(now + span);
                    self.schedule(now.saturating_since(self.start) + span, Happening::PartitionOver(index));
                }
            }
            Happening::DatagramsCut(index, cut, span) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.cut_datagrams(now, Some(cut));
                    seat.shaken(now + span + Self::RETURN);
                    self.schedule(now.saturating_since(self.start) + span, Happening::DatagramsBack(index));
                }
            }
            Happening::DatagramsBack(index) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.cut_datagrams(now, None);
                }
            }
            Happening::Leave(index, span) => self.leave(index, span),
            Happening::Come(index) => self.come(index),
            Happening::PartitionOver(index) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    seat.set_passage(now, Passage::Open);
                    // It may have given up meanwhile.
                    self.come(index);
                }
            }
            Happening::RouteChange(index, delay, span) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    // A delay that no link can have was refused when the plan was read.
                    let changed = seat.set_delay(Some(delay));
                    seat.shaken(now);
                    debug_assert!(changed.is_ok(), "{changed:?}");
                    self.schedule(now.saturating_since(self.start) + span, Happening::RouteBack(index));
                }
            }
            Happening::RouteBack(index) => {
                if let Some(seat) = self.seats.get_mut(index) {
                    let changed = seat.set_delay(None);
                    seat.shaken(now);
                    debug_assert!(changed.is_ok(), "{changed:?}");
                }
            }
        }
        for seat in &mut self.seats {
            seat.schedule(now, self.stalled_until);
        }
    }

    /// So long after it wakes, a client knows what has become of its session.
    const LOOKS: Duration = Duration::from_secs(6);

    /// Both ends use datagrams again within this time.
    const RETURN: Duration = Duration::from_secs(1);

    fn leave(&mut self, index: usize, span: Duration) {
        let Some(seat) = self.seats.get_mut(index) else { return };
        let after_start = self.now.saturating_since(self.start);
        if self.now < seat.frozen_until {
            // Whoever does nothing does not leave either.
            let thawed = seat.frozen_until.saturating_since(self.start);
            self.schedule(thawed, Happening::Leave(index, span));
            return;
        }
        seat.recovery = None;
        let local = seat.local(self.now);
        seat.client.logout(local);
        self.hear(index);
        self.schedule(after_start + span, Happening::Come(index));
    }

    /// A server that did not hear a player leave keeps its name for a while: one tries again, as a person does.
    fn come(&mut self, index: usize) {
        const AGAIN: Duration = Duration::from_secs(2);
        let Some(seat) = self.seats.get_mut(index) else { return };
        if seat.client.state() == SessionState::LoggedIn {
            return;
        }
        if self.now >= seat.frozen_until {
            let local = seat.local(self.now);
            seat.client.connect(local);
            self.hear(index);
        }
        self.schedule(self.now.saturating_since(self.start) + AGAIN, Happening::Come(index));
    }
}
