//! A plan as it stands in its file. Every key that is not here is an error, with its line.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::tank::Bots;

/// What a plan's file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    pub(super) name: String,
    #[serde(default = "seconds")]
    pub(super) seconds: f64,
    #[serde(default = "players")]
    pub(super) players: usize,
    #[serde(default)]
    pub(super) machines: u32,
    #[serde(default)]
    pub(super) crates: u32,
    #[serde(default)]
    pub(super) platforms: u32,
    #[serde(default = "cadence_ms")]
    pub(super) cadence_ms: f64,
    #[serde(default)]
    pub(super) first_tick: u32,
    #[serde(default = "stream_late_cost_ms")]
    pub(super) stream_late_cost_ms: f64,
    #[serde(default = "frame_hz")]
    pub(super) frame_hz: u32,
    #[serde(default = "wake")]
    pub(super) wake: WakeName,
    #[serde(default = "one")]
    pub(super) seed: u64,
    #[serde(default = "one")]
    pub(super) runs: u64,
    #[serde(default = "bots")]
    pub(super) bots: Bots,
    #[serde(default)]
    pub(super) link: LinkKeys,
    #[serde(default)]
    pub(super) client: Vec<ClientKeys>,
    #[serde(default)]
    pub(super) event: Vec<EventKeys>,
    #[serde(default)]
    pub(super) expect: BTreeMap<String, Bound>,
}

fn seconds() -> f64 {
    60.0
}

fn players() -> usize {
    8
}

fn cadence_ms() -> f64 {
    50.0
}

/// The library's default.
fn stream_late_cost_ms() -> f64 {
    halftrack::LeadConfig::default().stream_late_cost.as_secs_f64() * 1e3
}

fn frame_hz() -> u32 {
    60
}

fn wake() -> WakeName {
    WakeName::Frame
}

fn one() -> u64 {
    1
}

fn bots() -> Bots {
    Bots::Brawl
}

/// When a client acts, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WakeName {
    Frame,
    Boundary,
}

/// `[link]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkKeys {
    pub(super) delay_ms: Option<f64>,
    pub(super) jitter_ms: Option<f64>,
    pub(super) keep_order: Option<bool>,
    pub(super) loss: Option<f64>,
    pub(super) burst: Option<f64>,
    pub(super) reorder: Option<f64>,
    pub(super) duplicate: Option<f64>,
    pub(super) corrupt: Option<f64>,
    pub(super) rate_kbps: Option<f64>,
    pub(super) sync_lane: Option<bool>,
    pub(super) clock_ppm: Option<i32>,
}

/// `[[client]]`: the keys of `[link]`, and two more. (A flattened struct could not refuse unknown keys.)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientKeys {
    pub(super) index: usize,
    pub(super) frame_hz: Option<u32>,
    pub(super) wake: Option<WakeName>,
    delay_ms: Option<f64>,
    jitter_ms: Option<f64>,
    keep_order: Option<bool>,
    loss: Option<f64>,
    burst: Option<f64>,
    reorder: Option<f64>,
    duplicate: Option<f64>,
    corrupt: Option<f64>,
    rate_kbps: Option<f64>,
    sync_lane: Option<bool>,
    clock_ppm: Option<i32>,
}

impl ClientKeys {
    /// `link` with what this client has of its own.
    pub(super) fn over(&self, link: &LinkKeys) -> LinkKeys {
        LinkKeys {
            delay_ms: self.delay_ms.or(link.delay_ms),
            jitter_ms: self.jitter_ms.or(link.jitter_ms),
            keep_order: self.keep_order.or(link.keep_order),
            loss: self.loss.or(link.loss),
            burst: self.burst.or(link.burst),
            reorder: self.reorder.or(link.reorder),
            duplicate: self.duplicate.or(link.duplicate),
            corrupt: self.corrupt.or(link.corrupt),
            rate_kbps: self.rate_kbps.or(link.rate_kbps),
            sync_lane: self.sync_lane.or(link.sync_lane),
            clock_ppm: self.clock_ppm.or(link.clock_ppm),
        }
    }
}

/// `[[event]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventKeys {
    pub(super) at_s: f64,
    pub(super) kind: EventKind,
    pub(super) client: Option<usize>,
    pub(super) for_s: Option<f64>,
    pub(super) delay_ms: Option<f64>,
    pub(super) way: Option<WayName>,
}

/// The one direction of `datagrams_cut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WayName {
    Up,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    ServerStall,
    ClientStall,
    Partition,
    DatagramsCut,
    RouteChange,
    Reconnect,
    Leave,
}

/// What a path of the result must be.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// No less than this.
    pub min: Option<f64>,
    /// No more than this.
    pub max: Option<f64>,
}
