//! A client's input on its way to the server: how early it comes, and what a player's action takes.

use derive_where::derive_where;
use halftrack::client::Client;
use halftrack::wire::FrameReader;
use halftrack::wire::control::FromClient;
use halftrack::{Cadence, Completeness, Game, MoveInput, ServerTime, Tick, Timestamp};

use super::{Note, signed_ms};

#[derive_where(Debug)]
pub(crate) struct InputWatch<G: Game> {
    cadence: Cadence,
    wish: Option<G::Input>,
    action: Option<Action>,
    /// The newest tick whose input has come complete.
    newest: Option<Tick>,
    reader: FrameReader,
    message: MoveInput<G::Input>,
}

/// An action that is not everywhere yet.
#[derive(Clone, Copy, Debug)]
struct Action {
    at: Timestamp,
    on_screen: bool,
    at_server: bool,
}

impl<G: Game> InputWatch<G> {
    pub(crate) fn new(cadence: Cadence) -> Self {
        Self {
            cadence,
            wish: None,
            action: None,
            newest: None,
            reader: FrameReader::default(),
            message: MoveInput::default(),
        }
    }

    /// Another connection: its stream begins anew.
    pub(crate) fn connected(&mut self) {
        self.reader = FrameReader::default();
    }

    /// The session begins anew, and so does prediction.
    pub(crate) fn restarted(&mut self) {
        (self.wish, self.action, self.newest) = (None, None, None);
    }

    /// The player wants `input` from `now` on. Before prediction has begun, nothing comes of it.
    pub(crate) fn wishes(&mut self, now: Timestamp, client: &Client<G>, input: G::Input) {
        if self.wish != Some(input) {
            let begins = self.wish.is_none();
            self.wish = Some(input);
            let counts = client.reconciler().is_some() && !begins;
            self.action = counts.then_some(Action { at: now, on_screen: false, at_server: false });
        }
    }

    /// A frame was drawn at `now`. What was wished for in this very frame shows in the next one.
    pub(crate) fn frame(&mut self, now: Timestamp, client: &Client<G>, note: &mut Note<'_>) {
        let (Some(action), Some(reconciler)) = (&mut self.action, client.reconciler()) else { return };
        if action.on_screen || now <= action.at {
            return;
        }
        let open = reconciler.predictor().pending().last();
        if open.map(|open| open.input.last()) == self.wish {
            action.on_screen = true;
            if note.measuring {
                note.tally.action_to_screen_ms.add(signed_ms(action.at.as_micros(), now.as_micros()));
            }
        }
    }

    /// Bytes of the stream are about to reach the server.
    pub(crate) fn stream(&mut self, now: Timestamp, time: ServerTime, mut bytes: &[u8], note: &mut Note<'_>) {
        let mut reader = core::mem::take(&mut self.reader);
        while let Ok(Some(frame)) = reader.next(&mut bytes) {
            if let Ok(FromClient::MoveInput(body)) = FromClient::read(frame) {
                self.datagram(now, time, &body, note);
            }
        }
        self.reader = reader;
    }

    /// A datagram is about to reach the server, whose clock shows `time`.
    pub(crate) fn datagram(&mut self, now: Timestamp, time: ServerTime, bytes: &[u8], note: &mut Note<'_>) {
        if self.message.decode(bytes).is_err() {
            return;
        }
        let Some(last) = self.message.ticks.last().map(|input| input.last()) else { return };
        if let Some(action) = self.action.as_mut().filter(|action| !action.at_server)
            && Some(last) == self.wish
        {
            action.at_server = true;
            if note.measuring {
                note.tally.action_to_server_ms.add(signed_ms(action.at.as_micros(), now.as_micros()));
            }
        }
        let newest = self.message.newest;
        if self.message.completeness == Completeness::Closed && self.newest.is_none_or(|known| newest > known)
        {
            self.newest = Some(newest);
            if note.measuring {
                let margin = signed_ms(time.as_micros(), self.cadence.end_of(newest).as_micros());
                note.tally.margin_ms.add(margin);
                if let Some(trace) = &mut note.trace {
                    trace.margins.push((note.at_s, margin));
                }
            }
        }
    }
}
