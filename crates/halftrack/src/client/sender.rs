//! The client's input on its way to the server: encodes tick inputs, and remembers when each message was sent.

use core::time::Duration;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::input::{Completeness, Inputs, MoveInput};
use crate::lane::SyncLink;
use crate::model::Input;
use crate::seq::Seq;
use crate::sync_watch::PROBE;
use crate::tick::Tick;
use crate::time::Timestamp;

/// Encodes and numbers input messages.
///
/// The newest message holds every tick that is not acknowledged, so it replaces one that the host has not taken.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct InputSender<I: Input> {
    seq: Seq,
    /// When recent messages were sent.
    sent: VecDeque<(Seq, Timestamp)>,
    pub(super) last_sent: Option<Timestamp>,
    /// The open tick when input was last sent.
    pub(super) sent_open: Option<Tick>,
    /// When an open tick is to be sent again.
    pub(super) repeat_at: Option<Timestamp>,
    /// The newest message, and whether the host has taken it.
    datagram: Vec<u8>,
    taken: bool,
    /// Whether it is sent as a datagram too, although it takes the reliable link.
    probe: bool,
    next_probe: Timestamp,
    /// Scratch memory.
    #[serde(skip)]
    message: MoveInput<I>,
}

/// The message that was just encoded, as far as the lead needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoded {
    pub(super) seq: Seq,
    pub(super) newest: Tick,
    /// Whether it has ticks, and the newest of them is complete.
    pub(super) closes_a_tick: bool,
}

impl<I: Input> InputSender<I> {
    /// More messages than are ever on the way.
    const MAX_SENT: usize = 256;
    /// The longest message.
    const MAX_DATAGRAM: usize = SyncLink::DATAGRAM_BYTES;

    pub(super) fn new() -> Self {
        Self {
            seq: Seq::default(),
            sent: VecDeque::with_capacity(Self::MAX_SENT),
            last_sent: None,
            sent_open: None,
            repeat_at: None,
            datagram: Vec::new(),
            taken: true,
            probe: false,
            next_probe: Timestamp::ZERO,
            message: MoveInput::default(),
        }
    }

    /// The session begins anew.
    pub(super) fn forget(&mut self) {
        (self.sent_open, self.repeat_at) = (None, None);
        self.sent.clear();
    }

    /// Whether a loaded sender can have been saved by one.
    pub(super) fn is_sound(&self) -> bool {
        self.sent.len() <= Self::MAX_SENT && self.datagram.len() <= Self::MAX_DATAGRAM
    }

    /// The connection is a new one: the message under way belongs to the old one.
    pub(super) fn connected(&mut self) {
        (self.taken, self.probe) = (true, false);
    }

    /// The server said whether datagrams arrive: probes begin anew.
    pub(super) fn end_probe(&mut self) {
        self.probe = false;
    }

    /// Sends the newest message as a datagram too, now and then.
    pub(super) fn plan_probe(&mut self, now: Timestamp) {
        if now >= self.next_probe {
            (self.probe, self.next_probe) = (true, now + PROBE);
        }
    }

    /// Encodes a message: `inputs` fills in the ticks, and `ack` is the newest snapshot that the server may build on.
    pub(super) fn encode(
        &mut self,
        now: Timestamp,
        ack: Option<Tick>,
        inputs: impl FnOnce(&mut Vec<crate::input::TickInput<I>>) -> Inputs,
    ) -> Encoded {
        let message = &mut self.message;
        message.ticks.clear();
        let Inputs { newest, completeness } = inputs(&mut message.ticks);
        self.seq = self.seq.next();
        (message.seq, message.ack) = (self.seq, ack);
        (message.newest, message.completeness) = (newest, completeness);
        self.datagram.resize(Self::MAX_DATAGRAM, 0);
        let mut length = message.encode(&mut self.datagram);
        while length.is_none() && !message.ticks.is_empty() {
            // The oldest ticks are too late anyway.
            message.ticks.drain(..message.ticks.len().div_ceil(4));
            length = message.encode(&mut self.datagram);
        }
        self.datagram.truncate(length.unwrap_or(0));
        self.taken = length.is_none();
        self.last_sent = Some(now);
        if self.sent.len() >= Self::MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((self.seq, now));
        let closes_a_tick = completeness == Completeness::Closed && !self.message.ticks.is_empty();
        Encoded { seq: self.seq, newest, closes_a_tick }
    }

    /// When the message `seq` was sent.
    pub(super) fn sent_at(&self, seq: Seq) -> Option<Timestamp> {
        self.sent.iter().find(|(sent, _)| *sent == seq).map(|(_, sent)| *sent)
    }

    /// From when on a message is sent even if no tick has ended: acknowledgements and the round trip must go on. Later
    /// than a tick that a slowed clock makes longer.
    pub(super) fn idle_from(&self, interval: Duration) -> Option<Timestamp> {
        self.last_sent.map(|last| last + interval * 3 / 2)
    }

    /// Whether the host has a message to take.
    pub(super) fn has_output(&self) -> bool {
        !self.taken || self.probe
    }

    /// The message for the reliable stream, once.
    pub(super) fn take_for_stream(&mut self) -> Option<&[u8]> {
        let fresh = !core::mem::replace(&mut self.taken, true);
        fresh.then_some(self.datagram.as_slice())
    }

    /// The datagram, once; with `probes_only` just one that is a probe.
    pub(super) fn take_datagram(&mut self, probes_only: bool) -> Option<&[u8]> {
        let due = self.probe || (!probes_only && !self.taken);
        if due {
            self.probe = false;
            self.taken |= !probes_only;
        }
        due.then_some(self.datagram.as_slice())
    }
}
