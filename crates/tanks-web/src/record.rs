//! The whole session in numbers, within bounds: every correction up to some thousands, and samples that get sparser the
//! longer it lasts.

use core::time::Duration;
use std::collections::VecDeque;

use halftrack::{Cause, Diagnosis, Outcome, Pose, Reconciler, Timestamp};
use serde::Serialize;
use tanks::{TankPose, Tanks};

/// One correction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Correction {
    /// When, by the page's clock.
    at_ms: f64,
    tick: u32,
    cause: &'static str,
    /// Metres.
    distance: f64,
    /// Radians.
    angle: f64,
    outcome: &'static str,
    replayed_ticks: u32,
    /// x, y in metres, heading in radians.
    authoritative: [f64; 3],
    before: [f64; 3],
    after: [f64; 3],
    #[serde(skip)]
    key: Timestamp,
}

impl Correction {
    pub(crate) fn of(diagnosis: &Diagnosis<Tanks>, cause: Cause) -> Self {
        Self {
            at_ms: millis(diagnosis.at),
            tick: diagnosis.server_tick.number(),
            cause: cause.name(),
            distance: diagnosis.correction_distance,
            angle: diagnosis.correction_angle,
            outcome: match diagnosis.outcome {
                Outcome::Unchanged => "unchanged",
                Outcome::Negligible => "negligible",
                Outcome::Eased => "eased",
                Outcome::Snapped(_) => "snapped",
            },
            replayed_ticks: diagnosis.replayed_ticks,
            authoritative: numbers_or_none(diagnosis.authoritative.as_ref()),
            before: numbers_or_none(diagnosis.predicted_before.as_ref()),
            after: numbers_or_none(diagnosis.predicted_after.as_ref()),
            key: diagnosis.at,
        }
    }

    pub(crate) fn distance(&self) -> f64 {
        self.distance
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.key
    }
}

/// One correction of a body that is predicted with the player's tank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Grouped {
    pub(crate) body: u64,
    pub(crate) kind: &'static str,
    pub(crate) correction: Correction,
}

/// What is measured every so often. Milliseconds, metres and counts since the page was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Sample {
    pub(crate) at_ms: f64,
    pub(crate) rtt_ms: f64,
    pub(crate) jitter_ms: f64,
    pub(crate) lead_ms: f64,
    pub(crate) margin_ms: f64,
    pub(crate) remote_delay_ms: f64,
    pub(crate) offset_m: f64,
    pub(crate) pending_ticks: u32,
    pub(crate) corrections: u64,
    pub(crate) made_up_ticks: u64,
    pub(crate) snapshots: u64,
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) players: u32,
}

/// What is kept.
#[derive(Debug)]
pub(crate) struct Record {
    corrections: VecDeque<Correction>,
    /// Corrections since the page was loaded, kept or not.
    count: u64,
    samples: Vec<Sample>,
    every: Duration,
    next: Timestamp,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            corrections: VecDeque::new(),
            count: 0,
            samples: Vec::new(),
            every: Self::FIRST,
            next: Timestamp::ZERO,
        }
    }
}

impl Record {
    /// An hour of a bad link.
    const MAX_CORRECTIONS: usize = 4_096;
    /// Then every second one goes, and they come half as often: from 4,096 at 100 ms it takes seven minutes to the first
    /// time, and an hour to the fourth.
    const MAX_SAMPLES: usize = 4_096;
    const FIRST: Duration = Duration::from_millis(100);

    /// Takes what is new of corrections, and what has turned out of those before.
    pub(crate) fn absorb(&mut self, reconciler: &Reconciler<Tanks>) {
        let known = self.corrections.back().map(|last| last.key);
        for diagnosis in reconciler.recent() {
            let Some(cause) = diagnosis.cause else { continue };
            if known.is_none_or(|known| diagnosis.at > known) {
                if self.corrections.len() >= Self::MAX_CORRECTIONS {
                    self.corrections.pop_front();
                }
                self.corrections.push_back(Correction::of(diagnosis, cause));
                self.count += 1;
            } else if cause == Cause::LateInput {
                // Lost was late: see `Reconciler::revise`.
                let tick = diagnosis.server_tick.number();
                let same = |each: &&mut Correction| each.key == diagnosis.at && each.tick == tick;
                if let Some(told) = self.corrections.iter_mut().rev().find(same) {
                    told.cause = cause.name();
                }
            }
        }
    }

    /// Whether a sample is due.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        now >= self.next
    }

    pub(crate) fn sample(&mut self, now: Timestamp, sample: Sample) {
        if self.samples.len() >= Self::MAX_SAMPLES {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
        self.next = now + self.every;
        self.samples.push(sample);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn last(&self) -> Option<&Correction> {
        self.corrections.back()
    }

    /// The latest corrections, oldest first.
    pub(crate) fn latest(&self, count: usize) -> Vec<Correction> {
        let skip = self.corrections.len().saturating_sub(count);
        self.corrections.iter().skip(skip).copied().collect()
    }

    pub(crate) fn corrections(&self) -> &VecDeque<Correction> {
        &self.corrections
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

/// Milliseconds of the page's clock.
pub(crate) fn millis(at: Timestamp) -> f64 {
    at.as_micros() as f64 / 1e3
}

/// A pose as the page has it: metres, metres, radians.
pub(crate) fn numbers(pose: &TankPose) -> [f64; 3] {
    [pose.x, pose.y, pose.heading * core::f64::consts::TAU]
}

/// The same of a body that may have no pose: it has no numbers then.
pub(crate) fn numbers_or_none(pose: Option<&TankPose>) -> [f64; 3] {
    pose.map_or([f64::NAN; 3], numbers)
}

/// How far one pose is from another, as the page has it.
pub(crate) fn difference(to: &TankPose, from: &TankPose) -> [f64; 3] {
    let offset = to.offset_from(from);
    let ([x, y, _], [_, _, turned]) = (offset.position, offset.rotation);
    [x, y, turned]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_get_sparser_and_never_many() {
        let (mut record, mut now) = (Record::default(), Timestamp::ZERO);
        let end = Timestamp::from_micros(3_600_000_000);
        while now < end {
            if record.is_due(now) {
                record.sample(now, Sample { at_ms: millis(now), ..Sample::default() });
            }
            now = now + Duration::from_millis(50);
        }
        assert!((2_048..=Record::MAX_SAMPLES).contains(&record.samples.len()), "{}", record.samples.len());
        assert_eq!(record.every, Duration::from_millis(1_600));
        assert_eq!(record.samples.first().map(|sample| sample.at_ms), Some(0.0), "from the beginning on");
        let steps = record.samples.windows(2).map(|two| two[1].at_ms - two[0].at_ms);
        assert!(steps.into_iter().all(|step| step <= 1_600.0));
    }
}
