//! What the program tells of itself, on standard error: text for people, or JSON for machines.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::config;

/// Changes the level while the program runs.
#[derive(Clone)]
pub(crate) struct LogHandle(reload::Handle<EnvFilter, Registry>);

/// A level that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error(
    "log.level is {level:?}: {problem}; write error, warn, info, debug or trace, or `info,halftrack_io=debug`"
)]
pub(crate) struct LevelError {
    level: String,
    problem: String,
}

fn filter(level: &str) -> Result<EnvFilter, LevelError> {
    let refuse = |problem: String| LevelError { level: level.to_owned(), problem };
    // It warns of every capsule that it does not know, and a peer may send as many as it likes. What is written behind it
    // takes its place.
    let level = format!("web_transport_quinn=error,{level}");
    EnvFilter::try_new(level).map_err(|problem| refuse(problem.to_string()))
}

/// Begins to tell. Where somebody tells already, that goes on.
pub(crate) fn start(config: &config::Log) -> Result<LogHandle, LevelError> {
    let (filter, handle) = reload::Layer::new(filter(&config.level)?);
    let registry = tracing_subscriber::registry().with(filter);
    // A log that cannot be written is lost. Reporting that to standard error, which is what failed, would panic.
    let started = match config.format {
        config::LogFormat::Text => {
            let ansi = std::io::stderr().is_terminal();
            registry
                .with(
                    fmt::layer()
                        .with_writer(std::io::stderr)
                        .with_ansi(ansi)
                        .with_target(false)
                        .log_internal_errors(false),
                )
                .try_init()
        }
        config::LogFormat::Json => {
            let json = fmt::layer()
                .json()
                .flatten_event(true)
                .with_writer(std::io::stderr)
                .log_internal_errors(false);
            registry.with(json).try_init()
        }
    };
    drop(started);
    Ok(LogHandle(handle))
}

impl LogHandle {
    pub(crate) fn reload(&self, config: &config::Log) -> Result<(), LevelError> {
        let filter = filter(&config.level)?;
        // Fails only when nobody listens any more.
        let _ = self.0.reload(filter);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_understood_or_explained() {
        for good in ["info", "debug,halftrack_io=trace", "warn"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        let said = filter("info,halftrack_io=loud").unwrap_err().to_string();
        assert!(said.contains("halftrack_io=loud") && said.contains("write error"), "{said}");
    }
}
