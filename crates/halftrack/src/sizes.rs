//! How large corrections were: counts in classes and sums, for each cause, small enough for a report to the server.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;

/// Sizes of corrections in one respect: metres, or radians.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCounts {
    classes: [u64; Self::CLASSES],
    /// Sum of all sizes, in thousandths.
    thousandths: u64,
}

impl SizeCounts {
    /// Upper edges of the classes, in thousandths of a metre or a radian: two for each factor of ten. The smallest is what
    /// a screen shows at best; above the largest, corrections snap.
    const EDGES: [u64; Self::CLASSES - 1] = [1, 3, 10, 30, 100, 300, 1_000, 3_000];
    /// Classes, the one above the last edge included.
    pub const CLASSES: usize = 9;

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// All sizes together, in metres or radians.
    pub fn sum(&self) -> f64 {
        self.thousandths as f64 / 1e3
    }

    /// The upper edge of each class but the last, in metres or radians, and how many were so large or smaller.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let edges = Self::EDGES.into_iter().map(|edge| edge as f64 / 1e3);
        edges.zip(self.classes.into_iter().scan(0, |seen, count| {
            *seen += count;
            Some(*seen)
        }))
    }

    fn class_mut(&mut self, size: f64) -> Option<&mut u64> {
        // What is no number is in the last: it is larger than anything.
        let class = Self::EDGES.iter().position(|edge| size <= *edge as f64 / 1e3);
        self.classes.get_mut(class.unwrap_or(Self::CLASSES - 1))
    }

    fn record(&mut self, size: f64, most: u64) {
        if let Some(count) = self.class_mut(size) {
            *count = count.saturating_add(1);
        }
        self.thousandths = self.thousandths.saturating_add(thousandths(size, most));
    }

    /// Takes one back that was recorded.
    fn forget(&mut self, size: f64, most: u64) {
        if let Some(count) = self.class_mut(size) {
            *count = count.saturating_sub(1);
        }
        self.thousandths = self.thousandths.saturating_sub(thousandths(size, most));
    }

    fn merge(&mut self, other: &Self) {
        for (sum, more) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.saturating_add(more);
        }
        self.thousandths = self.thousandths.saturating_add(other.thousandths);
    }

    /// What has come since `before`, as far as it fits, and counts it into that.
    fn take_since(&self, before: &mut Self) -> ReportedCounts {
        let mut fresh = ReportedCounts::default();
        let counts = fresh.classes.iter_mut().zip(self.classes).zip(&mut before.classes);
        for ((fresh, now), before) in counts {
            *fresh = u16::try_from(now.saturating_sub(*before)).unwrap_or(u16::MAX);
            *before += u64::from(*fresh);
        }
        let sum = self.thousandths.saturating_sub(before.thousandths);
        fresh.thousandths = u32::try_from(sum).unwrap_or(u32::MAX);
        before.thousandths += u64::from(fresh.thousandths);
        fresh
    }

    /// Counts in what a client reports. Its sum is held to what its classes allow: a client may claim anything, and no
    /// claim is worth more than the corrections it is of.
    fn add(&mut self, reported: &ReportedCounts, most: u64) {
        let lower = [0].into_iter().chain(Self::EDGES);
        let upper = Self::EDGES.into_iter().chain([most]);
        let (mut least, mut largest) = (0u64, 0u64);
        let counts = self.classes.iter_mut().zip(reported.classes).zip(lower.zip(upper));
        for ((sum, count), (lower, upper)) in counts {
            let count = u64::from(count);
            *sum = sum.saturating_add(count);
            least += count * lower.min(most);
            largest += count * upper.min(most);
        }
        let sum = u64::from(reported.thousandths).clamp(least, largest);
        self.thousandths = self.thousandths.saturating_add(sum);
    }
}

/// A size in thousandths, and `most` for what is larger, or is no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from zero to `most`")]
fn thousandths(size: f64, most: u64) -> u64 {
    let size = (size * 1e3).round();
    if size < most as f64 { size.max(0.0) as u64 } else { most }
}

/// Sizes of the corrections of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseSizes {
    /// In position, metres.
    pub distance: SizeCounts,
    /// In rotation, radians.
    pub angle: SizeCounts,
}

/// Sizes of corrections by their cause.
///
/// The [`CorrectionStats`](crate::CorrectionStats) of a client have its own; [`ServerStats`](crate::server::ServerStats)
/// have those that all clients of a room reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionSizes([CauseSizes; Cause::ALL.len()]);

impl CorrectionSizes {
    /// A correction counts as a kilometre at most: a claim of more would say nothing of the others.
    const MOST_DISTANCE: u64 = 1_000_000;
    /// Half a turn.
    const MOST_ANGLE: u64 = 3_142;

    /// Those of one cause.
    pub fn of(&self, cause: Cause) -> CauseSizes {
        self.iter().find_map(|(each, sizes)| (each == cause).then_some(sizes)).unwrap_or_default()
    }

    /// Those of every cause, in order of precedence.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, CauseSizes)> {
        Cause::ALL.into_iter().zip(self.0)
    }

    /// Counts those of another in.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            sum.distance.merge(&more.distance);
            sum.angle.merge(&more.angle);
        }
    }

    fn cause_mut(&mut self, cause: Cause) -> Option<&mut CauseSizes> {
        Cause::ALL.iter().zip(&mut self.0).find_map(|(each, sizes)| (*each == cause).then_some(sizes))
    }

    /// Counts a correction of so many metres and radians.
    pub(crate) fn record(&mut self, cause: Cause, distance: f64, angle: f64) {
        if let Some(sizes) = self.cause_mut(cause) {
            sizes.distance.record(distance, Self::MOST_DISTANCE);
            sizes.angle.record(angle.abs(), Self::MOST_ANGLE);
        }
    }

    /// Takes a correction back that was recorded with these sizes.
    pub(crate) fn forget(&mut self, cause: Cause, distance: f64, angle: f64) {
        if let Some(sizes) = self.cause_mut(cause) {
            sizes.distance.forget(distance, Self::MOST_DISTANCE);
            sizes.angle.forget(angle.abs(), Self::MOST_ANGLE);
        }
    }

    /// What has come since `before`, as far as it fits into a report, and counts it into that.
    pub(crate) fn take_since(&self, before: &mut Self) -> Vec<ReportedSizes> {
        let mut report = vec![];
        for (cause, (now, before)) in (0..).zip(self.0.iter().zip(&mut before.0)) {
            if now != before {
                let distance = now.distance.take_since(&mut before.distance);
                let angle = now.angle.take_since(&mut before.angle);
                report.push(ReportedSizes { cause, distance, angle });
            }
        }
        report
    }

    /// Counts in what a client reports.
    pub(crate) fn add(&mut self, reported: &[ReportedSizes]) {
        for each in reported {
            if let Some(sizes) = self.0.get_mut(usize::from(each.cause)) {
                sizes.distance.add(&each.distance, Self::MOST_DISTANCE);
                sizes.angle.add(&each.angle, Self::MOST_ANGLE);
            }
        }
    }
}

/// Sizes of the corrections of one cause since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedSizes {
    /// The cause's place in [`Cause::ALL`].
    pub cause: u8,
    /// In position, metres.
    pub distance: ReportedCounts,
    /// In rotation, radians.
    pub angle: ReportedCounts,
}

/// Sizes in one respect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCounts {
    /// How many in each class: up to 1, 3, 10, 30, 100, 300, 1,000 and 3,000 thousandths, and above.
    pub classes: [u16; SizeCounts::CLASSES],
    /// All of them together, in thousandths.
    pub thousandths: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sizes: &SizeCounts) -> Vec<u64> {
        sizes.cumulative().map(|(_, count)| count).collect()
    }

    #[test]
    fn sizes_are_in_the_class_whose_edge_they_do_not_exceed() {
        let mut sizes = CorrectionSizes::default();
        for distance in [0.0, 0.001, 0.0011, 0.1, 2.9, 3.1, 5_000.0, f64::NAN, f64::INFINITY] {
            sizes.record(Cause::Collision, distance, -0.2);
        }
        let CauseSizes { distance, angle } = sizes.of(Cause::Collision);
        assert_eq!(counts(&distance), [2, 3, 3, 3, 4, 4, 4, 5]);
        assert_eq!((distance.count(), counts(&angle)), (9, vec![0, 0, 0, 0, 0, 9, 9, 9]));
        // Three of a kilometre at most, 2.9, 3.1 and a little.
        assert!((distance.sum() - 3_006.102).abs() < 1e-9, "{}", distance.sum());
        assert!((angle.sum() - 1.8).abs() < 1e-9, "{}", angle.sum());
        assert_eq!(sizes.of(Cause::Death), CauseSizes::default());
        sizes.forget(Cause::Collision, 2.9, 0.2);
        assert_eq!(counts(&sizes.of(Cause::Collision).distance), [2, 3, 3, 3, 4, 4, 4, 4]);
    }

    #[test]
    fn a_report_has_what_is_new_and_the_server_counts_the_same() {
        let (mut client, mut told, mut server) =
            (CorrectionSizes::default(), CorrectionSizes::default(), CorrectionSizes::default());
        for step in 0..50u32 {
            client.record(Cause::LateInput, f64::from(step) * 0.07, f64::from(step) * 0.06);
            if step % 7 == 0 {
                client.record(Cause::Respawn, 40.0, 3.0);
                let report = client.take_since(&mut told);
                assert_eq!(report.iter().map(|each| each.cause).collect::<Vec<_>>(), [2, 9]);
                server.add(&report);
            }
        }
        server.add(&client.take_since(&mut told));
        assert_eq!(server, client);
        assert_eq!(client.take_since(&mut told), []);
    }

    #[test]
    fn a_lie_is_bounded_by_the_corrections_that_it_is_of() {
        let huge = ReportedCounts { classes: [0, 2, 0, 0, 0, 0, 0, 0, 1], thousandths: u32::MAX };
        let none = ReportedCounts { classes: [0; 9], thousandths: u32::MAX };
        let tiny = ReportedCounts { classes: [0, 0, 0, 0, 0, 0, 0, 4, 0], thousandths: 0 };
        let mut server = CorrectionSizes::default();
        server.add(&[ReportedSizes { cause: 0, distance: huge, angle: huge }]);
        let CauseSizes { distance, angle } = server.of(Cause::Resync);
        assert_eq!((distance.count(), distance.sum(), angle.sum()), (3, 1_000.006, 3.148));
        server.add(&[ReportedSizes { cause: 0, distance: none, angle: none }]);
        assert_eq!(server.of(Cause::Resync), CauseSizes { distance, angle }, "of no correction, no size");
        server.add(&[ReportedSizes { cause: 1, distance: tiny, angle: none }]);
        assert_eq!(
            server.of(Cause::Teleport).distance.sum(),
            4.0,
            "four above a metre are four metres at least"
        );
        server.add(&[ReportedSizes { cause: 200, distance: huge, angle: huge }]);
        let many = ReportedSizes {
            cause: 0,
            distance: ReportedCounts { classes: [u16::MAX; 9], ..huge },
            angle: huge,
        };
        (0..100).for_each(|_| server.add(&[many]));
        assert!(server.of(Cause::Resync).distance.sum().is_finite());
    }
}
