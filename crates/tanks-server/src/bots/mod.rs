//! Bots that load a server: native clients with the real stack, and what they see of it in the lab's figures.
//!
//! ```text
//!   fetch: Base ─ /config.json ─► company: Company ─ one thread ─► crowd: Crowd ─ visits when due ─► bot: Bot
//!        └────── /metrics ─► scrape                                                                   │
//!                               └──────────► report ◄── Findings (halftrack-lab) ◄── Witness ◄────────┘
//! ```

mod bad_link;
mod bot;
mod company;
mod crowd;
mod driver;
mod error;
mod fetch;
mod options;
mod progress;
mod report;
mod scrape;
mod table;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use halftrack_io::{IoError, now};
use tokio::runtime::Builder;

pub(crate) use options::Options;

use company::Company;
use error::BotsError;
use fetch::Base;

use crate::out;
use progress::{Progress, Voice};
use report::Report;
use scrape::Scrape;

/// Whoever comes in takes a moment to know the network.
const WARM_UP: Duration = Duration::from_secs(3);
/// The server has had its last word on every correction by then.
const LAST_WORD: Duration = Duration::from_millis(1_200);
/// Longer than a session tries to get in.
const GETTING_IN: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command.
pub(crate) fn main(options: &Options) -> ExitCode {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(problem) => return failed(&BotsError::Thread(problem)),
    };
    let stop = async {
        // Without a signal handler it cannot be stopped this way, and runs to its end.
        if tokio::signal::ctrl_c().await.is_err() {
            core::future::pending::<()>().await;
        }
    };
    match runtime.block_on(run(options, stop)) {
        Ok(ran) => {
            if let Err(problem) = out::print(table::table(&ran.report)) {
                return failed(&BotsError::Print(problem));
            }
            if ran.ended > 0 {
                let why = ran.why.map_or_else(String::new, |why| format!(": {why}"));
                out::warn(format_args!("{} of {} bots are not in any more{why}", ran.ended, options.count));
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(problem) => failed(&problem),
    }
}

fn failed(problem: &BotsError) -> ExitCode {
    out::warn(format_args!("error: {problem}"));
    ExitCode::FAILURE
}

/// What a run came to.
#[derive(Debug)]
struct Ran {
    report: Report,
    /// Bots that are not in at the end.
    ended: usize,
    /// Why one of these is not in.
    why: Option<Arc<IoError>>,
}

/// Lets bots play and measures them, until `stop` or the end.
async fn run(options: &Options, stop: impl Future<Output = ()>) -> Result<Ran, BotsError> {
    let base: Base = options.connect.parse()?;
    let site = base.site().await?;
    let config = options.company(&base, &site)?;
    config.check(&site)?;
    let room = options.room.as_ref().map_or(site.default_room.as_str(), |room| room.as_str());
    let joining = config.pause * u32::try_from(config.count).unwrap_or(u32::MAX) + GETTING_IN;
    let mut run = Run {
        company: Company::start(config)?,
        progress: Progress::new(if options.quiet { Voice::Quiet } else { Voice::Usual }),
        count: options.count,
    };
    let mut stop = pin!(stop);
    let come =
        run.wait("coming in", joining, &mut stop, |summary, count| summary.players + summary.ended >= count);
    let mut stopped = come.await == Woken::Stopped;
    let summary = run.company.summary();
    if summary.players == 0 && !stopped {
        run.progress.end();
        // Why a thread gave up says more than that nobody is there.
        run.company.measured()?;
        return Err(summary.problem.map_or(BotsError::NobodyInSilently, BotsError::NobodyIn));
    }
    stopped = stopped || run.wait("settling", WARM_UP, &mut stop, |_, _| false).await == Woken::Stopped;
    if stopped {
        run.progress.end();
        run.company.measured()?;
        return Err(BotsError::Stopped);
    }
    // A server that has gone meanwhile has no figures; the bots' are told all the same.
    let before = base.page(Scrape::PATH).await.ok().flatten().map(|page| Scrape::read(&page, room));
    let begun = now();
    run.company.begin();
    let all_ended = |summary: &company::Summary, count| summary.ended >= count;
    run.wait("measuring", Duration::from_secs_f64(options.seconds), &mut stop, all_ended).await;
    run.company.end();
    let seconds = now().saturating_since(begun).as_secs_f64();
    let after = base.page(Scrape::PATH).await;
    run.wait("ending", LAST_WORD, &mut core::future::pending(), |_, _| false).await;
    run.progress.end();
    let company::Summary { players, problem, .. } = run.company.summary();
    let outcome = run.company.measured()?;
    let after = after.ok().flatten().map(|page| Scrape::read(&page, room));
    let server = before.zip(after).map(|(before, after)| after.since(&before));
    let report = Report::new(seconds, &outcome, server);
    if let Some(path) = &options.json {
        write_json(path, &report)?;
    }
    Ok(Ran { report, ended: options.count.saturating_sub(players), why: problem })
}

fn write_json(path: &Path, report: &Report) -> Result<(), BotsError> {
    let failed = |source| BotsError::File { path: path.to_owned(), source };
    let mut text = serde_json::to_string_pretty(report).map_err(|problem| failed(problem.into()))?;
    text.push('\n');
    std::fs::write(path, text).map_err(failed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// It is so, or it is over.
    Done,
    Stopped,
}

struct Run {
    company: Company,
    progress: Progress,
    count: usize,
}

impl Run {
    /// Waits until something is so, `most` at the longest.
    async fn wait(
        &mut self,
        what: &str,
        most: Duration,
        stop: &mut (impl Future<Output = ()> + Unpin),
        is_so: impl Fn(&company::Summary, usize) -> bool,
    ) -> Woken {
        let end = now() + most;
        loop {
            let summary = self.company.summary();
            self.progress.show(what, &summary);
            let now = now();
            if now >= end || is_so(&summary, self.count) || self.company.is_broken() {
                return Woken::Done;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK.min(end.saturating_since(now))) => {}
                () = &mut *stop => return Woken::Stopped,
            }
        }
    }
}
