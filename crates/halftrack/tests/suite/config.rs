//! Every range of every config: just inside is taken, just outside is refused, and the error says what to do.

use core::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::Cart;
use halftrack::session::{ClientSession, SessionConfig, SessionTable, TableConfig};
use halftrack::{
    Cadence, ConfigError, InputQueue, InputQueueConfig, LeadConfig, LeadController, PlayerName, Tick,
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MICRO: Duration = Duration::from_micros(1);

/// A time of a config, by its name in errors.
type Time<C> = (&'static str, fn(&mut C, Duration), Duration, Duration);
/// A number of things of a config.
type Count<C> = (&'static str, fn(&mut C, usize), usize, usize);

fn times<C: Clone, T: Debug>(config: &C, build: fn(C) -> Result<T, ConfigError>, fields: &[Time<C>]) {
    for (field, set, min, max) in fields.iter().copied() {
        let with = |value| {
            let mut config = config.clone();
            set(&mut config, value);
            build(config).map(|_| ())
        };
        assert_eq!((with(min), with(max)), (Ok(()), Ok(())), "{field}");
        let refused = |got| Err(ConfigError::Span { field, got, min, max });
        assert_eq!(with(max + MICRO), refused(max + MICRO));
        if let Some(less) = min.checked_sub(MICRO) {
            assert_eq!(with(less), refused(less));
        }
    }
}

fn counts<C: Clone, T: Debug>(config: &C, build: fn(C) -> Result<T, ConfigError>, fields: &[Count<C>]) {
    for (field, set, min, max) in fields.iter().copied() {
        let with = |value| {
            let mut config = config.clone();
            set(&mut config, value);
            build(config).map(|_| ())
        };
        assert_eq!((with(min), with(max)), (Ok(()), Ok(())), "{field}");
        for got in [min - 1, max + 1] {
            assert_eq!(with(got), Err(ConfigError::Count { field, got, min, max }));
        }
    }
}

#[test]
fn input_queues() {
    for cadence in [Cadence::default(), Cadence::new(200 * MS).unwrap()] {
        let config = InputQueueConfig { cadence, ..InputQueueConfig::default() };
        let tick = cadence.interval();
        times(
            &config,
            |config| InputQueue::new(Arc::new(Cart), config, Tick::new(0)),
            &[
                ("input.horizon", |config, value| config.horizon = value, tick, 10 * SECOND),
                ("input.memory", |config, value| config.memory = value, tick, 10 * SECOND),
            ],
        );
    }
}

#[test]
fn leads() {
    times(
        &LeadConfig::default(),
        |config| LeadController::new(config, Duration::ZERO),
        &[
            ("lead.late_cost", |config, value| config.late_cost = value, 10 * MS, SECOND),
            ("lead.guard", |config, value| config.guard = value, Duration::ZERO, 100 * MS),
            ("lead.max_lead", |config, value| config.max_lead = value, 50 * MS, 10 * SECOND),
        ],
    );
}

#[test]
fn sessions() {
    let config = SessionConfig::new(PlayerName::new("Ada").unwrap(), 1);
    // Other fields are in the way of the widest ranges of these two.
    let patient = SessionConfig { silence: 3_600 * SECOND, max_pause: 600 * SECOND, ..config.clone() };
    times(
        &patient,
        ClientSession::new,
        &[
            ("session.heartbeat", |config, value| config.heartbeat = value, 50 * MS, 60 * SECOND),
            ("session.first_pause", |config, value| config.first_pause = value, 10 * MS, 60 * SECOND),
        ],
    );
    times(
        &config,
        ClientSession::new,
        &[
            ("session.silence", |config, value| config.silence = value, 2 * SECOND, 3_600 * SECOND),
            ("session.login", |config, value| config.login = value, 100 * MS, 60 * SECOND),
            ("session.grace", |config, value| config.grace = value, Duration::ZERO, 3_600 * SECOND),
            ("session.max_pause", |config, value| config.max_pause = value, 250 * MS, 600 * SECOND),
        ],
    );
    counts(
        &config,
        ClientSession::new,
        &[
            ("session.max_log_messages", |config, value| config.max_log_messages = value, 1, 65_536),
            ("session.max_log_bytes", |config, value| config.max_log_bytes = value, 4 * 4_099, 16 << 20),
        ],
    );
}

#[test]
fn tables() {
    let config = TableConfig::new(1);
    times(
        &config,
        SessionTable::new,
        &[
            ("table.grace", |config, value| config.grace = value, Duration::ZERO, 3_600 * SECOND),
            ("table.silence", |config, value| config.silence = value, 100 * MS, 3_600 * SECOND),
        ],
    );
    counts(
        &config,
        SessionTable::new,
        &[
            ("table.capacity", |config, value| config.capacity = value, 1, 32_768),
            ("table.max_log_messages", |config, value| config.max_log_messages = value, 1, 65_536),
            ("table.max_log_bytes", |config, value| config.max_log_bytes = value, 4 * 4_099, 16 << 20),
        ],
    );
}

#[test]
fn errors_say_what_to_do() {
    let config = LeadConfig { guard: 101 * MS, ..LeadConfig::default() };
    let said = LeadController::new(config, Duration::ZERO).unwrap_err().to_string();
    assert_eq!(said, "lead.guard is 101ms; choose one from 0ns to 100ms");
    let config = TableConfig { capacity: 0, ..TableConfig::new(1) };
    let said = SessionTable::new(config).unwrap_err().to_string();
    assert_eq!(said, "table.capacity is 0; choose one from 1 to 32768");
}
