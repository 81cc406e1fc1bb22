//! Parts of the netcode that a player can turn off, to see what each is for. The core never does without them: what is
//! turned off is not shown, or put off, here.

use core::time::Duration;

use halftrack::client::Client;
use halftrack::{Body, BodyId, Pose, Replay, ServerTime};
use tanks::{Entity, TankInput, TankPose, Tanks};

/// What can be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Off: the own tank is drawn where the server has told it to be. Input is sent all the same.
    Prediction,
    /// Off: the own tank is simulated here and never corrected. It drifts.
    Reconciliation,
    /// Off: corrections are drawn at once.
    Smoothing,
    /// Off: others are drawn at the newest state that the server told, and so is the own tank without prediction.
    Interpolation,
    /// Off: a change of input waits for the next tick.
    SubTick,
}

/// Whether a part is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Prediction, Self::Reconciliation, Self::Smoothing, Self::Interpolation, Self::SubTick];

    /// Its name for the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prediction => "prediction",
            Self::Reconciliation => "reconciliation",
            Self::Smoothing => "smoothing",
            Self::Interpolation => "interpolation",
            Self::SubTick => "subtick",
        }
    }

    /// The part of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Which parts are at work: all, until told otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switches([Mode; Part::ALL.len()]);

impl Default for Switches {
    fn default() -> Self {
        Self([Mode::On; Part::ALL.len()])
    }
}

impl Switches {
    pub(crate) fn set(&mut self, part: Part, mode: Mode) {
        for (each, now) in Part::ALL.into_iter().zip(&mut self.0) {
            if each == part {
                *now = mode;
            }
        }
    }

    pub(crate) fn is_off(&self, part: Part) -> bool {
        Part::ALL.into_iter().zip(self.0).any(|(each, mode)| each == part && mode == Mode::Off)
    }
}

/// The own tank without the server's word: what was predicted when reconciliation was turned off, and simulated from
/// there on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drift {
    body: Entity,
    time: ServerTime,
}

impl Drift {
    /// More than this at once is not driven but skipped, as after a hidden tab.
    const LONGEST: Duration = Duration::from_secs(2);

    pub(crate) fn begin(client: &Client<Tanks>) -> Option<Self> {
        let reconciler = client.reconciler()?;
        Some(Self { body: *reconciler.predicted(), time: reconciler.predictor().time() })
    }

    /// Drives on to `time` with `input`, among what the client moves among.
    pub(crate) fn run(&mut self, client: &Client<Tanks>, time: ServerTime, input: TankInput) {
        let Some(reconciler) = client.reconciler() else { return };
        if time.saturating_since(self.time) > Self::LONGEST {
            self.time = time;
        }
        let (rules, cadence) = (&**client.rules(), client.cadence());
        let neighbours = &reconciler.predictor().baseline().neighbours();
        while self.time < time {
            let tick = cadence.tick_at(self.time);
            let end = cadence.end_of(tick);
            let to = end.min(time);
            let mut replay = Replay::new(rules, cadence, tick, neighbours, self.body);
            replay.hold(input, to.saturating_since(self.time));
            self.body = *replay.body();
            if to == end {
                self.body.settle();
            }
            self.time = to;
        }
    }

    pub(crate) fn pose(&self) -> TankPose {
        self.body.pose()
    }
}

/// The own tank as the server has told it: at the moment at which others are drawn, or as of the newest state.
pub(crate) fn told(client: &Client<Tanks>, interpolated: Mode) -> Option<TankPose> {
    let (own, ..) = client.own().next()?;
    let newest = client.authoritative(own).map(|(_, tank)| tank.pose());
    let time = client.remotes().render_time().filter(|_| interpolated == Mode::On);
    time.and_then(|time| between(client, own, time)).or(newest)
}

fn between(client: &Client<Tanks>, own: BodyId, time: ServerTime) -> Option<TankPose> {
    let cadence = client.cadence();
    let history = client.crowd().body(own)?;
    let tick = cadence.tick_at(time);
    let from = history.get(tick.previous()?)?.after.pose();
    let to = history.get(tick)?.after.pose();
    let share =
        time.saturating_since(cadence.start_of(tick)).as_secs_f64() / cadence.interval().as_secs_f64();
    let mut way = to.offset_from(&from);
    way.position = way.position.map(|part| part * share);
    way.rotation = way.rotation.map(|part| part * share);
    Some(from.displaced(&way))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_own_switch() {
        for part in Part::ALL {
            assert_eq!(Part::named(part.name()), Some(part));
            let mut switches = Switches::default();
            assert!(Part::ALL.iter().all(|each| !switches.is_off(*each)));
            switches.set(part, Mode::Off);
            assert!(Part::ALL.iter().all(|each| switches.is_off(*each) == (*each == part)));
            switches.set(part, Mode::On);
            assert!(!switches.is_off(part));
        }
        assert_eq!(Part::named("gravity"), None);
    }
}
