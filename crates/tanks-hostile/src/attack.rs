//! What an attack is: a name, what it does, the answer that is promised, and what came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use halftrack::{Cadence, shared_hash};
use tanks::{Arena, Obstacle, Tanks};

use crate::metrics::Counter;
use crate::server::{Ground, Server};

/// What stops the suite, or an attack: told, and that is the end.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What an attack comes to.
pub(crate) type Attacking<'a> = Pin<Box<dyn Future<Output = Result<Outcome, Failed>> + Send + 'a>>;

/// One attack. Its line in `docs/SECURITY.md` has the same name.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// What is done, in a few words.
    pub(crate) what: &'static str,
    pub(crate) ground: Ground,
    pub(crate) run: fn(&Field) -> Attacking<'_>,
}

/// Declares the attacks of a family, each with the function that runs it.
macro_rules! attacks {
    ($ground:ident: $($name:literal, $what:literal => $run:ident;)*) => {
        pub(crate) const ATTACKS: &[$crate::attack::Attack] = &[$(
            $crate::attack::Attack {
                name: $name,
                what: $what,
                ground: $crate::server::Ground::$ground,
                run: |field| Box::pin($run(field)),
            },
        )*];
    };
}
pub(crate) use attacks;

/// Things counted by what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(pub(crate) BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add(&mut self, what: impl Into<String>, count: usize) {
        *self.0.entry(what.into()).or_default() += count as u64;
    }

    pub(crate) fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (what, count)) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{count} {what}")?;
        }
        Ok(())
    }
}

/// What the server's counters must have come to, soon after the attack.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    AtLeast(Counter, u64),
    AtMost(Counter, u64),
}

/// What came of an attack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) sent: Tally,
    /// What the attackers were told.
    pub(crate) seen: Tally,
    pub(crate) expects: Vec<Expect>,
    /// What should not have been.
    pub(crate) wrong: Vec<String>,
}

impl Outcome {
    pub(crate) fn sent(&mut self, what: &str, count: usize) {
        self.sent.add(what, count);
    }

    pub(crate) fn saw(&mut self, what: impl Into<String>) {
        self.seen.add(what, 1);
    }

    pub(crate) fn expect(&mut self, counter: Counter, at_least: usize) {
        self.expects.push(Expect::AtLeast(counter, at_least as u64));
    }

    pub(crate) fn expect_at_most(&mut self, counter: Counter, most: usize) {
        self.expects.push(Expect::AtMost(counter, most as u64));
    }

    pub(crate) fn check(&mut self, is_so: bool, otherwise: impl Into<String>) {
        if !is_so {
            self.wrong.push(otherwise.into());
        }
    }
}

/// Where attacks happen: the server, and what everybody knows who plays there.
pub(crate) struct Field {
    pub(crate) server: Server,
    pub(crate) arena: Arc<Arena>,
    pub(crate) cadence: Cadence,
    /// A hash of the rules, as a client must send it.
    pub(crate) shared: u64,
    /// How long an attack that could go on for ever does.
    pub(crate) span: Duration,
    pub(crate) seed: u64,
    next_source: AtomicU32,
}

impl Field {
    pub(crate) fn new(server: Server, span: Duration, seed: u64) -> Result<Self, Failed> {
        let site = server.config()?;
        let arena = Arc::new(arena(&site["arena"])?);
        let micros = site["cadence_us"].as_u64().ok_or("no cadence in /config.json")?;
        let cadence = Cadence::new(Duration::from_micros(micros))?;
        let shared = shared_hash(&Tanks::new(Arc::clone(&arena)), cadence);
        Ok(Self { server, arena, cadence, shared, span, seed, next_source: AtomicU32::new(0) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// An address of this machine that nobody has attacked from yet: honest players are at another, so that what one
    /// address is allowed is not theirs.
    pub(crate) fn source(&self) -> IpAddr {
        let number = self.next_source.fetch_add(1, Ordering::Relaxed);
        let first = u32::from(Ipv4Addr::new(127, 1, 0, 1));
        IpAddr::V4(Ipv4Addr::from(first + number % 0x00f0_0000))
    }

    /// Whether there is time for everything, or only for a look.
    pub(crate) fn is_long(&self) -> bool {
        self.span >= Duration::from_secs(4)
    }
}

fn arena(told: &serde_json::Value) -> Result<Arena, Failed> {
    let pair = |value: &serde_json::Value| Some([value[0].as_f64()?, value[1].as_f64()?]);
    let stone = |stone: &serde_json::Value| {
        let (block, pillar) = (&stone["block"], &stone["pillar"]);
        if block.is_object() {
            return Some(Obstacle::Block { min: pair(&block["min"])?, max: pair(&block["max"])? });
        }
        Some(Obstacle::Pillar { center: pair(&pillar["center"])?, radius: pillar["radius"].as_f64()? })
    };
    let obstacles = told["obstacles"].as_array().and_then(|stones| stones.iter().map(stone).collect());
    let size = pair(&told["size"]).ok_or("no arena in /config.json")?;
    Ok(Arena::new(size, obstacles.ok_or("no obstacles in /config.json")?)?)
}
