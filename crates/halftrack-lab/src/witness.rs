//! What can be measured in a client without knowing the truth: the same figures, for clients on real networks.
//!
//! The truth of others and the server's real clock are left out. Where the lab has the server's clock and the link's mean
//! delay, the client's own estimate of the one and half of its round trip stand in.

use derive_where::derive_where;
use halftrack::client::{Client, ClientConfig, ClientStats};
use halftrack::session::SessionState;
use halftrack::{Game, InputStats, RemoteStats, Seq, Tick, Timestamp};

use crate::check::Checks;
use crate::result::{Input, Invariants, Own, Remote};
use crate::samples::Samples;
use crate::tally::Tally;
use crate::watch::{InputWatch, Note, OwnWatch, RemoteWatch};

/// What was found in any number of clients. Numbers count between [`Self::begin`] and [`Self::end`], and of clients that
/// are logged in; checks always.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    tally: Tally,
    checks: Checks,
    input: InputStats,
    check_failed: u64,
    rtt_ms: Samples,
    measuring: bool,
    /// When somebody last looked, for what is found.
    at: Timestamp,
}

impl Findings {
    /// Numbers count from here on.
    pub fn begin(&mut self) {
        self.measuring = true;
    }

    /// Numbers do not count any more; corrections that have been found wait for their causes to be final, a second.
    pub fn end(&mut self) {
        self.measuring = false;
    }

    /// What was found in other clients as well.
    pub fn append(&mut self, other: Self) {
        self.tally.append(other.tally);
        self.checks.append(other.checks);
        self.input = self.input.plus(&other.input);
        self.check_failed += other.check_failed;
        self.rtt_ms.append(other.rtt_ms);
        self.at = self.at.max(other.at);
    }

    /// The players' own bodies, in so many minutes of all players together.
    pub fn own(&self, minutes: f64) -> Own {
        self.tally.own(self.input.as_sent + self.input.held, minutes)
    }

    /// Their input. What only the server's real clock could tell is zero: `excess_lead_ms` and `action_to_server_ms`.
    pub fn input(&self) -> Input {
        self.tally.input(&self.input)
    }

    /// Other players. What only the truth could tell is zero: the errors of poses.
    pub fn remote(&self) -> Remote {
        self.tally.remote()
    }

    /// Round trips, milliseconds: the shortest of the last seconds, once a second for each client.
    pub fn rtt_ms(&self) -> &Samples {
        &self.rtt_ms
    }

    /// Snapshots whose bodies did not add up.
    pub fn check_failed(&self) -> u64 {
        self.check_failed
    }

    /// What a client can check of what must always hold.
    pub fn invariants(&self) -> Invariants {
        let Checks { checked, violated, list } = self.checks.clone();
        Invariants { checked, violated, list }
    }
}

/// Whether the player is in the game. A client that was cut or has left draws on by itself: how far behind that is says
/// nothing about a network or a server.
fn is_in<G: Game>(client: &Client<G>) -> bool {
    client.state() == SessionState::LoggedIn
}

/// Looks at one client, and does nothing to it.
#[derive_where(Debug)]
pub struct Witness<G: Game> {
    index: usize,
    own: OwnWatch<G>,
    input: InputWatch<G>,
    remote: RemoteWatch,
    client_stats: ClientStats,
    remote_stats: RemoteStats,
    margin: Option<Seq>,
    next_rtt: Timestamp,
}

impl<G: Game> Witness<G> {
    /// For client `index`, which is built from `config`.
    pub fn new(index: usize, config: &ClientConfig<G>) -> Self {
        Self {
            index,
            own: OwnWatch::new(config.predict, f64::INFINITY),
            input: InputWatch::new(config.predict.cadence),
            remote: RemoteWatch::new(config.predict.cadence, config.delay),
            client_stats: ClientStats::default(),
            remote_stats: RemoteStats::default(),
            margin: None,
            next_rtt: Timestamp::ZERO,
        }
    }

    /// The session begins anew.
    pub fn restarted(&mut self) {
        self.input.restarted();
        self.remote.restarted();
    }

    /// The player wants `input` from `now` on.
    pub fn wishes(&mut self, now: Timestamp, client: &Client<G>, input: G::Input) {
        self.input.wishes(now, client, input);
    }

    /// A frame was drawn at `now`. At least one for every 64 snapshots must be.
    pub fn frame(&mut self, now: Timestamp, client: &Client<G>, findings: &mut Findings) {
        self.count(client, findings);
        let (Some(time), Some(round_trip)) = (client.server_time(now), client.round_trip()) else { return };
        let measuring = findings.measuring && is_in(client);
        if measuring {
            self.sample(now, client, findings);
        }
        findings.at = findings.at.max(now);
        let mut note = Note {
            tally: &mut findings.tally,
            checks: &mut findings.checks,
            measuring,
            counting: measuring,
            at_s: now.as_micros() as f64 / 1e6,
            client: self.index,
            trace: None,
        };
        self.own.states(now, client, &mut note);
        self.own.believe(now, client, note.tally);
        let way_us = u64::try_from(round_trip.as_micros() / 2).unwrap_or(u64::MAX);
        // Of ticks and moments that have not been, only the server knows.
        self.own.frame((now, time, Tick::MAX_STATE), way_us, client, &mut note);
        self.input.frame(now, client, &mut note);
        self.remote.render_time(time, way_us, client, &mut note);
    }

    /// What the client itself has counted since it was last looked at.
    fn count(&mut self, client: &Client<G>, findings: &mut Findings) {
        let (stats, remote) = (*client.stats(), *client.remotes().stats());
        let before = core::mem::replace(&mut self.client_stats, stats);
        let drawn = core::mem::replace(&mut self.remote_stats, remote);
        if stats.snapshots != before.snapshots {
            self.states(client, findings);
        }
        if !findings.measuring || !is_in(client) {
            return;
        }
        let input = &mut findings.input;
        let held = stats.held - before.held;
        input.as_sent += (stats.ticks - before.ticks).saturating_sub(held);
        input.held += held;
        input.late += stats.late - before.late;
        input.lost += stats.lost - before.lost;
        findings.tally.mispredicted_ticks += stats.mispredicted - before.mispredicted;
        findings.check_failed += stats.check_failed - before.check_failed;
        // These begin anew with the session.
        let drawn = if remote.frames < drawn.frames { RemoteStats::default() } else { drawn };
        let guessed = |stats: &RemoteStats| stats.extrapolated + stats.held;
        let pictures = |stats: &RemoteStats| stats.exact + stats.interpolated + guessed(stats);
        findings.tally.pictures += pictures(&remote) - pictures(&drawn);
        findings.tally.guessed += guessed(&remote) - guessed(&drawn);
    }

    fn states(&mut self, client: &Client<G>, findings: &mut Findings) {
        let mut note = Note {
            tally: &mut findings.tally,
            checks: &mut findings.checks,
            measuring: findings.measuring,
            counting: findings.measuring,
            at_s: findings.at.as_micros() as f64 / 1e6,
            client: self.index,
            trace: None,
        };
        for remote in client.remotes().iter() {
            self.remote.state(remote.id, remote.state_tick, Tick::MAX_STATE, &mut note);
        }
    }

    fn sample(&mut self, now: Timestamp, client: &Client<G>, findings: &mut Findings) {
        if let Some(margin) = client.margin()
            && self.margin.replace(margin.seq) != Some(margin.seq)
        {
            findings.tally.margin_ms.add(margin.micros as f64 / 1e3);
        }
        if now >= self.next_rtt
            && let Some(round_trip) = client.round_trip()
        {
            self.next_rtt = now + core::time::Duration::from_secs(1);
            findings.rtt_ms.add(round_trip.as_secs_f64() * 1e3);
        }
    }
}
