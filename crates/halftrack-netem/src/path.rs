//! What both kinds of link share: config, dice, the loss chain, the rate and the moment.

use halftrack::Timestamp;

use crate::bottleneck::Bottleneck;
use crate::config::LinkConfig;
use crate::delay::Delay;
use crate::error::NetemError;
use crate::loss::LossChain;
use crate::random::Random;
use crate::stats::LinkStats;

/// Whether anything gets through a link.
///
/// ```
/// use halftrack::Timestamp;
/// use halftrack_netem::{DatagramLink, LinkConfig, Passage};
///
/// let mut link = DatagramLink::new(LinkConfig::default(), 1)?;
/// link.set_blocked(Timestamp::ZERO, Passage::Blocked);
/// link.send(Timestamp::ZERO, b"into the void");
/// assert_eq!(link.poll(Timestamp::ZERO), None);
/// # Ok::<(), halftrack_netem::NetemError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// What the config lets through gets through.
    #[default]
    Open,
    /// A partition: nothing gets through.
    Blocked,
}

/// What happens to one transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    Corrupted,
}

#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) config: LinkConfig,
    pub(crate) delay: Delay,
    pub(crate) bottleneck: Bottleneck,
    pub(crate) passage: Passage,
    pub(crate) stats: LinkStats,
    loss: LossChain,
    random: Random,
    now: Timestamp,
}

impl Path {
    /// `purpose` keeps the links of a pair from rolling the same dice.
    pub(crate) fn new(config: LinkConfig, seed: u64, purpose: u64) -> Result<Self, NetemError> {
        config.check()?;
        Ok(Self {
            config,
            delay: Delay::new(config.delay, config.jitter),
            bottleneck: Bottleneck::new(config.rate_bits_per_second),
            passage: Passage::Open,
            stats: LinkStats::default(),
            loss: LossChain::new(config.loss, config.burst),
            random: Random::new(seed, purpose),
            now: Timestamp::ZERO,
        })
    }

    pub(crate) fn set_config(&mut self, config: LinkConfig) -> Result<(), NetemError> {
        config.check()?;
        self.config = config;
        self.delay = Delay::new(config.delay, config.jitter);
        self.bottleneck.set_rate(config.rate_bits_per_second);
        self.loss.set(config.loss, config.burst);
        Ok(())
    }

    /// Moves on to `now`, never back.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.stats.backwards += u64::from(now < self.now);
        self.now = self.now.max(now);
        self.now
    }

    /// Counts what is sent, and hands out the dice that decide about it. They are its own, so that one more draw for
    /// one datagram leaves all others as they were.
    pub(crate) fn count_sent(&mut self, bytes: &[u8]) -> Random {
        self.stats.sent += 1;
        self.stats.bytes_sent += bytes.len() as u64;
        self.random.fork()
    }

    pub(crate) fn count_delivered(&mut self, bytes: &[u8]) {
        self.stats.delivered += 1;
        self.stats.bytes_delivered += bytes.len() as u64;
    }

    /// Draws what happens to a transmission that follows the last, and counts it.
    pub(crate) fn fate(&mut self, dice: &mut Random) -> Fate {
        let lost = self.loss.takes(dice);
        self.count_fate(lost, dice)
    }

    /// The same for one that follows so long after the last that its burst is over.
    pub(crate) fn fate_apart(&mut self, dice: &mut Random) -> Fate {
        let lost = dice.happens(self.config.loss);
        self.count_fate(lost, dice)
    }

    fn count_fate(&mut self, lost: bool, dice: &mut Random) -> Fate {
        let corrupted = dice.happens(self.config.corrupt);
        let fate = match (lost, corrupted) {
            (true, _) => Fate::Lost,
            (false, true) => Fate::Corrupted,
            (false, false) => Fate::Arrives,
        };
        self.stats.lost += u64::from(fate == Fate::Lost);
        self.stats.corrupted += u64::from(fate == Fate::Corrupted);
        fate
    }

    /// Bytes that fit beyond the bottleneck in the longest delay.
    pub(crate) fn bytes_in_delay(&self) -> usize {
        let micros = self.delay.longest().as_micros();
        let bits = self.config.rate_bits_per_second.map_or(0, |rate| u128::from(rate) * micros / 1_000_000);
        usize::try_from(bits / 8).unwrap_or(usize::MAX)
    }

    /// Forgets what was under way, and counts it.
    pub(crate) fn clear(&mut self, under_way: usize) {
        self.stats.cleared += under_way as u64;
        self.bottleneck.clear();
    }
}
