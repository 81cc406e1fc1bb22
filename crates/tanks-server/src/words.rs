//! Numbers and moments as people write them.

use std::fmt;

/// A count with its noun: `1 room`, `2 rooms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count<N>(pub(crate) N, pub(crate) &'static str);

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for Count<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = self;
        write!(f, "{number} {noun}{}", if *number == N::from(1) { "" } else { "s" })
    }
}

/// Seconds since 1970 as a date in UTC: `2025-11-16 08:00:00 UTC`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Date(pub(crate) u64);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / 86_400, self.0 % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that a leap day is the last day of
/// its year, and 400 years have 146,097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    // From 0000-03-01.
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let said = [0u64, 1, 2].map(|count| Count(count, "room").to_string());
        assert_eq!(said, ["0 rooms", "1 room", "2 rooms"]);
    }

    #[test]
    fn seconds_are_dates() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_799, "2000-02-29 23:59:59 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_763_280_000, "2025-11-16 08:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
        ] {
            assert_eq!(Date(seconds).to_string(), date);
        }
        assert!(!Date(u64::MAX).to_string().is_empty(), "a damaged file may say anything");
    }
}
