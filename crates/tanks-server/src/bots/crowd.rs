//! Many bots on one thread: each is visited when its frame is due, by one timer for all of them.
//!
//! A task and a timer for each would wake sixty times a second for every bot; this wakes once a millisecond at most, and
//! the clients' own tasks run in between on the same thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use halftrack::Timestamp;
use halftrack::session::SessionState;
use halftrack_flight::FlightConfig;
use halftrack_io::{connect, connect_through, now};
use halftrack_lab::{Dice, Findings, FrameClock, Frames, Witness};

use super::bad_link::BadLink;
use super::bot::{Bot, Count};
use super::company::{CompanyConfig, Phase, Shared, Summary};
use super::error::BotsError;

/// The bots of one thread, while they play.
pub(super) struct Crowd<'a> {
    config: &'a CompanyConfig,
    shared: &'a Shared,
    shown: &'a Mutex<Summary>,
    /// Numbers of those who are still to come, the next one last.
    coming: Vec<usize>,
    next_join: Timestamp,
    bots: Vec<Bot>,
    due: BinaryHeap<Reverse<(Timestamp, usize)>>,
    phase: Phase,
    findings: Findings,
    next_look: Timestamp,
}

/// What the bots of one thread came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Each bot's counts when measuring began, and when it ended.
    pub(super) counts: Vec<(Count, Count)>,
    pub(super) findings: Findings,
}

impl<'a> Crowd<'a> {
    /// How often it looks around: what is shown, and whether something else is wanted.
    const LOOK: Duration = Duration::from_millis(100);
    /// Frames are drawn for no longer than this at a time.
    const BATCH: Duration = Duration::from_millis(2);
    /// A frame that is so late is a sign that there is too much to do. Less than half of one at 60 Hz.
    const BEHIND: Duration = Duration::from_millis(6);
    /// What each keeps of what it was told, if it does: a minute among two hundred, and many among a few.
    const FLIGHT: FlightConfig = FlightConfig { max_bytes: 1 << 20, key_every: Duration::from_secs(15) };
    /// How long leaving may take.
    const FAREWELL: Duration = Duration::from_secs(2);

    /// Bot `first` and every `step`th after it.
    pub(super) fn new(
        config: &'a CompanyConfig,
        shared: &'a Shared,
        shown: &'a Mutex<Summary>,
        (first, step): (usize, usize),
    ) -> Self {
        let mut coming: Vec<_> = (first..config.count).step_by(step.max(1)).collect();
        coming.reverse();
        Self {
            config,
            shared,
            shown,
            coming,
            next_join: now() + config.pause * u32::try_from(first).unwrap_or(0),
            bots: Vec::new(),
            due: BinaryHeap::new(),
            phase: Phase::Playing,
            findings: Findings::default(),
            next_look: Timestamp::ZERO,
        }
    }

    /// Plays until everybody is to leave.
    pub(super) async fn run(mut self) -> Result<Outcome, BotsError> {
        while self.phase != Phase::Leaving {
            let now = now();
            if now >= self.next_join {
                self.join(now)?;
            }
            self.visit(now);
            if now >= self.next_look {
                self.look(now);
            }
            let frame = self.due.peek().map(|next| next.0.0);
            let join = (!self.coming.is_empty()).then_some(self.next_join);
            let next = frame.into_iter().chain(join).fold(self.next_look, Timestamp::min);
            let rest = next.saturating_since(halftrack_io::now());
            if rest.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(rest).await;
            }
        }
        if let Some(folder) = &self.config.flight {
            self.bots.iter().try_for_each(|bot| bot.write_flight(folder))?;
        }
        self.leave().await;
        let counts = self.bots.iter().filter_map(|bot| bot.before.zip(bot.after));
        Ok(Outcome { counts: counts.collect(), findings: self.findings })
    }

    /// Visits those whose frame was due by `now`, for a while: what has arrived is taken in between.
    fn visit(&mut self, now: Timestamp) {
        while let Some(Reverse((_, at))) = self.due.peek().copied().filter(|next| next.0.0 <= now) {
            self.due.pop();
            if let Some(bot) = self.bots.get_mut(at) {
                bot.frame(&mut self.findings);
                self.due.push(Reverse((bot.due(), at)));
            }
            if halftrack_io::now().saturating_since(now) > Self::BATCH {
                break;
            }
        }
    }

    /// Lets the next one come, unless this thread cannot keep up with those who are there.
    fn join(&mut self, now: Timestamp) -> Result<(), BotsError> {
        let config = self.config;
        let behind = self.due.peek().is_some_and(|next| now.saturating_since(next.0.0) > Self::BEHIND);
        self.next_join = now + config.pause * u32::try_from(config.threads).unwrap_or(1);
        if behind {
            return Ok(());
        }
        let Some(index) = self.coming.pop() else { return Ok(()) };
        let client = config.client(index)?;
        let seed = config.seed.wrapping_mul(1_000).wrapping_add(index as u64);
        let witness = Witness::new(index, &client);
        let (target, trust) = (config.target.clone(), config.trust.clone());
        let handle = match config.link {
            Some(link) => connect_through(target, trust, client, Box::new(BadLink::new(link, seed)?))?,
            None => connect(target, trust, client)?,
        };
        if config.flight.is_some() {
            handle.act(|_, client| client.record(Self::FLIGHT, client.rules().setup()))?;
        }
        let frames = FrameClock::new(config.frames, now, Dice::new(seed, "frames"));
        self.due.push(Reverse((frames.due(), self.bots.len())));
        let period = match config.frames {
            Frames::Hz(hz) => Duration::from_secs(1) / hz.max(1),
            Frames::Irregular => Duration::from_millis(40),
        };
        let player = config.play.player(&config.arena, seed);
        self.bots.push(Bot::new(handle, player, witness, (frames, period)));
        Ok(())
    }

    fn look(&mut self, now: Timestamp) {
        self.next_look = now + Self::LOOK;
        let phase = self.shared.phase();
        if phase != self.phase {
            self.phase = phase;
            match phase {
                Phase::Measuring => self.findings.begin(),
                Phase::Measured | Phase::Leaving => self.findings.end(),
                Phase::Playing => {}
            }
            // Whoever has not come by then does not come any more.
            self.coming.clear();
            for bot in &mut self.bots {
                match phase {
                    Phase::Measuring => bot.before = Some(bot.count()),
                    // Whoever is not in any more when it ends counts all the same.
                    Phase::Measured | Phase::Leaving => bot.after = bot.after.or_else(|| Some(bot.count())),
                    Phase::Playing => {}
                }
            }
        }
        let mut sum = Summary::default();
        for bot in &self.bots {
            let count = bot.count();
            let state = bot.state();
            sum.players += usize::from(state == SessionState::LoggedIn);
            sum.ended += usize::from(bot.is_over());
            if state != SessionState::LoggedIn && sum.problem.is_none() {
                sum.problem = bot.problem();
            }
            sum.disconnects += count.link.disconnects;
            sum.shots += count.shots.shots;
            sum.hits += count.shots.hits;
            sum.kills += count.kills;
            sum.late_ticks += bot.add_corrections(&mut sum.by_cause);
        }
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = sum;
    }

    async fn leave(&mut self) {
        self.bots.iter().for_each(Bot::leave);
        let over = now() + Self::FAREWELL;
        let is_out = |bot: &Bot| !matches!(bot.state(), SessionState::LoggedIn | SessionState::LoginPending);
        while now() < over && !self.bots.iter().all(is_out) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The last word is still on its way.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
