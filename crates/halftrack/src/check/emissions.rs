//! Checks of what a body does in a tick besides moving: emissions, contact, and the bodies that are named together with it.

use core::time::Duration;

use super::fields::{Difference, FieldPath, FieldValue, PathPart};
use super::mistake::{GameMistake, Place};
use super::values::body_difference;
use crate::client::GroupConfig;
use crate::game::{Game, Neighbour, Step};
use crate::input::TickInput;
use crate::simulate::{Birth, Moved, TickSimulator};
use crate::tick::Tick;

/// Checks the emissions and the contact of a move.
pub(super) fn check_effects<G: Game>(
    place: Place,
    moved: &Moved<G>,
    newborn: bool,
    bodies: &[Neighbour<G>],
) -> Result<(), GameMistake> {
    if moved.refused > 0 {
        let max = if newborn { 0 } else { Step::<G>::MAX_EMISSIONS };
        return Err(GameMistake::EmissionsRefused { place, count: moved.refused, max, newborn });
    }
    if moved.overdue > 0 {
        return Err(GameMistake::EmissionOverdue { place, count: moved.overdue });
    }
    let unknown = moved.touched.ids().iter().find(|id| bodies.iter().all(|body| body.id != **id));
    unknown.map_or(Ok(()), |id| Err(GameMistake::TouchedUnknown { place, id: *id }))
}

/// Compares the emissions of the open tick, up to some moments, with those of the whole tick.
pub(super) fn check_partial<G: Game>(
    place: Place,
    simulator: &mut TickSimulator<G>,
    (tick, bodies, own): (Tick, &[Neighbour<G>], usize),
    input: &TickInput<G::Input>,
    (births, moments): (&[Birth<G>], &[u32]),
) -> Result<(), GameMistake> {
    let just_after = births.iter().map(|birth| birth.at + 1);
    for into in just_after.chain(moments.iter().copied()) {
        let Some((_, effects)) = simulator.open(tick, bodies, own, input, into) else { continue };
        let mut whole = births.iter().filter(|birth| birth.at < into);
        let count = whole.clone().count();
        let mut difference = (count != effects.emitted.len())
            .then(|| numbers("emissions", effects.emitted.len() as u64, count as u64));
        for emission in &effects.emitted {
            let Some(birth) = whole.next().filter(|_| difference.is_none()) else { break };
            difference = body_difference(&emission.body, &birth.body).or_else(|| {
                (emission.at != birth.at).then(|| numbers("at", u64::from(emission.at), u64::from(birth.at)))
            });
        }
        if let Some(difference) = difference {
            let into = Duration::from_micros(u64::from(into));
            return Err(GameMistake::EmissionDependsOnSpan { place, into, difference });
        }
    }
    Ok(())
}

fn numbers(name: &'static str, first: u64, second: u64) -> Difference {
    let field = FieldPath(vec![PathPart::Name(name)]);
    Difference { field, first: FieldValue::Unsigned(first), second: FieldValue::Unsigned(second) }
}

/// Checks the bodies that `predicts` and `carries` name for body `own`.
pub(super) fn check_named<G: Game>(
    place: Place,
    rules: &G,
    bodies: &[Neighbour<G>],
    own: usize,
) -> Result<(), GameMistake> {
    /// Prediction looks no farther ahead.
    const HORIZON: Duration = Duration::from_secs(1);
    /// With fewer bodies, all may well belong together.
    const MANY: usize = 4;
    let Some(body) = bodies.get(own) else { return Ok(()) };
    let others = || bodies.iter().enumerate().filter(|(at, _)| *at != own);
    let reach = rules.reach(body, HORIZON);
    let is_far = |other: &Neighbour<G>| {
        let other = rules.reach(other, HORIZON);
        reach.zip(other).is_some_and(|(reach, other)| !reach.touches(&other))
    };
    let named = || others().filter(|(_, other)| rules.predicts(body, other)).map(|(_, other)| other);
    let (all, count, far) = (others().count(), named().count(), named().any(is_far));
    let near = named().filter(|other| !is_far(other)).count();
    let max = GroupConfig::default().max_bodies;
    if near > max || (far && count == all && all >= MANY) {
        return Err(GameMistake::PredictsTooMany { place, named: count, others: all, max, far });
    }
    let carrier = |at: usize| {
        let body = bodies.get(at)?;
        bodies.iter().enumerate().find(|(other, carrier)| *other != at && rules.carries(carrier, body))
    };
    let mut at = own;
    for through in 0..bodies.len() {
        let Some((next, _)) = carrier(at) else { break };
        if next == own {
            return Err(GameMistake::CarriersInCircle { place, through: through.saturating_sub(1) });
        }
        at = next;
    }
    Ok(())
}
