//! Which bodies are in a snapshot that has no room for all of them: those who have waited longest come first.

use core::cmp::Reverse;

use crate::game::Game;
use crate::id::BodyId;
use crate::snapshot::encoder::{Base, Chosen, On, SnapshotEncoder};
use crate::snapshot::roster::Rosters;
use crate::snapshot::section::Cost;
use crate::snapshot::view::View;
use crate::tick::Tick;

/// Makes `chosen` the bodies that a snapshot of at most `max_bits` tells the client of `view`, in order. Gives the others,
/// in order, each with the number of snapshots that it has waited for.
pub(crate) fn choose<G: Game>(
    encoder: &mut SnapshotEncoder<'_, G>,
    base: Option<Base<'_>>,
    view: &View,
    rosters: &Rosters,
    max_bits: usize,
    chosen: &mut Vec<Chosen>,
) -> Vec<(BodyId, u32)> {
    encoder.choose_all(base, chosen);
    let mut waiting: Vec<_> = encoder.bodies.iter().map(|kept| (kept.id, view.waiting(kept.id))).collect();
    build_on_what_is_known(encoder, view, rosters, chosen);

    // The order of those who have waited equally long stays.
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|body| Reverse(waiting.get(*body).map_or(0, |(_, snapshots)| *snapshots)));
    let mut cost = Cost::default();
    for body in order {
        let (Some(chosen), Some((_, snapshots))) = (chosen.get(body), waiting.get_mut(body)) else {
            continue;
        };
        let with_it = cost.and(encoder.cost(base, chosen));
        if encoder.max_bits(base, with_it) <= max_bits {
            cost = with_it;
            *snapshots = 0;
        } else {
            *snapshots = snapshots.saturating_add(1);
        }
    }
    chosen.retain(|chosen| waiting.get(chosen.body).is_some_and(|(_, snapshots)| *snapshots == 0));
    waiting.retain(|(_, snapshots)| *snapshots > 0);
    waiting
}

/// Who is not in the base may have been in an earlier snapshot.
fn build_on_what_is_known<G: Game>(
    encoder: &SnapshotEncoder<'_, G>,
    view: &View,
    rosters: &Rosters,
    chosen: &mut [Chosen],
) {
    for chosen in chosen.iter_mut().filter(|chosen| chosen.on == On::Blank) {
        let Some(kept) = encoder.bodies.get(chosen.body) else { continue };
        let known = view.newest_with(kept.id, rosters);
        let usable = |(tick, ..): &(Tick, usize, usize)| encoder.ago(*tick).is_some() && kept.has(*tick);
        if let Some((tick, place, places)) = known.filter(usable) {
            chosen.on = On::Known { tick, place, places };
        }
    }
}
