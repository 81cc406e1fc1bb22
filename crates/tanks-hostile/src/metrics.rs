//! What a server has counted, and which of it is an answer to somebody.

use std::collections::BTreeMap;

/// Every number of `/metrics`, by its series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

/// Counters that say what became of a peer or of what it sent.
const ANSWERS: [&str; 7] = [
    "halftrack_turned_away_total",
    "halftrack_closed_total",
    "halftrack_dropped_total",
    "halftrack_input_missed_total",
    "halftrack_refused_total",
    "halftrack_retries_total",
    "halftrack_bad_acks_total",
];

impl Metrics {
    pub(crate) fn read(text: &str) -> Self {
        let line = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        };
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect())
    }

    pub(crate) fn get(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(0.0)
    }

    /// How many series there are.
    pub(crate) fn series(&self) -> usize {
        self.0.len()
    }

    /// How far a counter has moved since `before`, in all rooms together.
    pub(crate) fn moved(&self, before: &Self, counter: &Counter) -> u64 {
        self.sum(counter).saturating_sub(before.sum(counter))
    }

    fn sum(&self, counter: &Counter) -> u64 {
        self.0.iter().filter(|(series, _)| counter.is(series)).map(|(_, value)| *value as u64).sum()
    }

    /// What has been answered since `before`, in words: counters that moved, the furthest first.
    pub(crate) fn answers(&self, before: &Self) -> Vec<(String, u64)> {
        let mut moved: BTreeMap<String, u64> = BTreeMap::new();
        for (series, value) in &self.0 {
            let by = (value - before.get(series)) as u64;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            if by == 0 || !ANSWERS.contains(&name) {
                continue;
            }
            let name = name.trim_start_matches("halftrack_").trim_end_matches("_total").replace('_', " ");
            let reason =
                labels.split("reason=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
            *moved.entry(format!("{name} {reason}").trim().to_owned()).or_default() += by;
        }
        let mut moved: Vec<_> = moved.into_iter().collect();
        moved.sort_by_key(|(_, by)| core::cmp::Reverse(*by));
        moved
    }
}

/// One counter, by its name and its reason.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    name: &'static str,
    reason: Option<&'static str>,
}

impl Counter {
    pub(crate) const REFUSED: Self = Self { name: "halftrack_refused_total", reason: None };
    pub(crate) const RETRIES: Self = Self { name: "halftrack_retries_total", reason: None };
    pub(crate) const BAD_ACKS: Self = Self { name: "halftrack_bad_acks_total", reason: None };
    pub(crate) const RECORDED: Self = Self { name: "halftrack_recorded_bytes_total", reason: None };
    pub(crate) const FULL_STATES: Self = Self { name: "halftrack_full_states_total", reason: None };
    pub(crate) const SNAPS: Self = Self { name: "halftrack_snaps_total", reason: None };
    pub(crate) const LOGINS: Self = Self { name: "halftrack_logins_total", reason: None };

    /// Connections that the server ended.
    pub(crate) const fn closed(reason: &'static str) -> Self {
        Self { name: "halftrack_closed_total", reason: Some(reason) }
    }

    /// Datagrams that came to nothing.
    pub(crate) const fn dropped(reason: &'static str) -> Self {
        Self { name: "halftrack_dropped_total", reason: Some(reason) }
    }

    /// Whom the door turned away.
    pub(crate) const fn away(reason: &'static str) -> Self {
        Self { name: "halftrack_turned_away_total", reason: Some(reason) }
    }

    /// Ticks whose input was not taken.
    pub(crate) const fn missed(reason: &'static str) -> Self {
        Self { name: "halftrack_input_missed_total", reason: Some(reason) }
    }

    fn is(&self, series: &str) -> bool {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        name == self.name && self.reason.is_none_or(|reason| labels.contains(&format!("reason=\"{reason}\"")))
    }
}

impl core::fmt::Display for Counter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.reason {
            Some(reason) => write!(f, "{}{{reason=\"{reason}\"}}", self.name),
            None => f.write_str(self.name),
        }
    }
}
