//! Fills the ring, and keeps the session's token out of it.
//!
//! The token comes in the message that lets the player in, so it is among the bytes of the stream that are recorded. The
//! recorder remembers their places until the login is over, and then overwrites the token with zeros. A report that is
//! saved before that has zeros there as well.

use core::ops::Range;

use halftrack::client::Client;
use halftrack::session::SessionState;
use halftrack::wire::FrameReader;
use halftrack::wire::control::FromServer;
use halftrack::{Game, Timestamp, Token};

use crate::call::Call;
use crate::preface::Preface;
use crate::report;
use crate::ring::Ring;
use crate::shown::Shown;
use crate::{FlightConfig, FlightStats};

/// Bytes of a message's header: its length and its kind.
const HEADER: usize = 3;

pub(crate) struct Recorder {
    config: FlightConfig,
    /// The client's config, without secrets.
    preface: Vec<u8>,
    setup: Vec<u8>,
    ring: Ring,
    /// The places of the stream's bytes in the newest stretch, from the beginning of a connection until its login is
    /// over.
    login: Vec<Range<usize>>,
    /// Scratch space.
    memory: Vec<u8>,
}

impl Recorder {
    pub(crate) fn new<G: Game>(config: FlightConfig, client: &Client<G>, setup: Vec<u8>) -> Self {
        Self {
            config,
            preface: Preface::of(client.config()).write(),
            setup,
            ring: Ring::new(config.max_bytes),
            login: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// A call is about to be made.
    pub(crate) fn call<G: Game>(&mut self, client: &Client<G>, now: Timestamp, call: &Call<'_, G::Input>) {
        let logging_in = client.state() == SessionState::LoginPending;
        // A new connection ends the old one's login, also when the host did not say that it was gone.
        if !logging_in || matches!(call, Call::Connected(_)) {
            self.end_login(client.state());
        }
        if self.ring.wants_key(now, self.config.key_every) && client.is_at_rest() {
            self.ring.begin(now, self.config.key_every, client);
        }
        self.ring.call(Some(now), call);
        if let Call::Stream(bytes) = call
            && logging_in
        {
            self.login.push(self.ring.newest(bytes.len()));
        }
    }

    /// A frame was drawn.
    pub(crate) fn drawn<G: Game>(&mut self, client: &Client<G>) {
        let shown = Shown::of(client, &mut self.memory);
        self.ring.extend(|to| shown.write(to));
    }

    /// Something was taken from the client.
    pub(crate) fn taken<G: Game>(&mut self, call: &Call<'_, G::Input>) {
        self.ring.call(None, call);
    }

    pub(crate) fn report<G: Game>(&mut self, client: &Client<G>, note: &str) -> Vec<u8> {
        let state = client.state();
        if state != SessionState::LoginPending {
            self.end_login(state);
        }
        // The incomplete message of a login that is under way may be half of the token.
        let hidden = self.secrets(state);
        report::write(&self.preface, &self.setup, note, &self.ring, &hidden)
    }

    pub(crate) fn stats(&self) -> FlightStats {
        self.ring.stats()
    }

    fn end_login(&mut self, state: SessionState) {
        // spec: FLIGHT-02
        if !self.login.is_empty() {
            let secrets = self.secrets(state);
            self.ring.blacken(&secrets);
            self.login.clear();
        }
    }

    /// The places of the token in the bytes of a login: in complete messages, and in one that is not complete.
    ///
    /// The incomplete message of a player who is in is another one, and its rest will come. Of any other only the header
    /// is kept: it is never completed, so its contents make no difference to a replay.
    fn secrets(&self, state: SessionState) -> Vec<usize> {
        if self.login.is_empty() {
            return Vec::new();
        }
        let calls = self.ring.newest_calls();
        let places: Vec<usize> =
            self.login.iter().cloned().flatten().filter(|place| *place < calls.len()).collect();
        let bytes: Vec<u8> = places.iter().filter_map(|place| calls.get(*place).copied()).collect();
        let (tokens, complete) = tokens(&bytes);
        let mut secrets = Vec::new();
        for token in tokens {
            let token = token.as_bytes();
            let found = bytes.windows(token.len()).zip(places.windows(token.len()));
            found
                .filter(|(bytes, _)| bytes == token)
                .for_each(|(_, places)| secrets.extend_from_slice(places));
        }
        if state != SessionState::LoggedIn {
            secrets.extend(places.iter().skip(complete + HEADER));
        }
        secrets
    }
}

/// The tokens in a stream from its beginning, and how many of its bytes are complete messages.
fn tokens(stream: &[u8]) -> (Vec<Token>, usize) {
    let (mut reader, mut rest, mut tokens, mut complete) = (FrameReader::default(), stream, Vec::new(), 0);
    while let Ok(Some(frame)) = reader.next(&mut rest) {
        complete = stream.len() - rest.len();
        match FromServer::read(frame) {
            Ok(FromServer::LoginAccepted(accepted)) => tokens.push(accepted.token),
            Ok(_) => {}
            // The client reads no further.
            Err(_) => break,
        }
    }
    (tokens, complete)
}

#[cfg(test)]
mod tests {
    use halftrack::PlayerId;
    use halftrack::wire::Frame;
    use halftrack::wire::control::{Continuity, LoginAccepted};

    use super::*;

    #[test]
    fn a_header_has_three_bytes() {
        let mut stream = vec![];
        assert!(Frame { kind: 1, body: &[] }.append_to(&mut stream));
        assert_eq!(stream.len(), HEADER);
    }

    #[test]
    fn tokens_are_found_in_complete_messages_only() {
        let token = Token::new([7; 16]);
        let accepted = LoginAccepted { player: PlayerId::new(7), token, continuity: Continuity::New };
        let mut stream = vec![];
        assert!(FromServer::LoginAccepted(accepted).append_to(&mut stream));
        let length = stream.len();
        stream.extend([200, 0, 1]);
        for cut in 0..stream.len() {
            let expected = if cut < length { (vec![], 0) } else { (vec![token], length) };
            assert_eq!(tokens(&stream[..cut]), expected, "cut at {cut}");
        }
    }
}
