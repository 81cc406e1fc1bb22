//! Rockets, crates and platforms between two ticks, and the births and ends of rockets.

use halftrack::{BodyId, Driver, Offset, Pose};
use tanks::{Entity, Fighter, TankPose};

use crate::moment::along;
use crate::run::Run;
use crate::told::Told;

/// Metres that nothing of them goes within a tick: what is further away was put there.
const LEAP: f64 = 4.0;

/// A body that is no tank, at the end of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thing {
    pub(crate) id: BodyId,
    /// Its number for the page.
    pub(crate) kind: f64,
    pub(crate) pose: TankPose,
    /// The fighter whose tank launched it.
    pub(crate) owner: Option<Fighter>,
}

/// All of them at the end of the newest tick, in order of their ids.
pub(crate) fn things(run: &Run) -> Vec<Thing> {
    let stage = run.playback().stage();
    let thing = |(id, _, body): (BodyId, Driver, &Entity)| {
        let kind = match body {
            Entity::Tank(_) => return None,
            Entity::Rocket(_) => 1.0,
            Entity::Crate(_) => 2.0,
            Entity::Platform(_) => 3.0,
        };
        let parent = stage.history(id).and_then(|history| history.parent());
        Some(Thing { id, kind, pose: body.pose(), owner: parent.map(|parent| owner(run, parent)) })
    };
    stage.bodies().filter_map(thing).collect()
}

/// The fighter in a tank, which may have left.
fn owner(run: &Run, tank: BodyId) -> Fighter {
    let driver = run.playback().stage().history(tank).map_or(Driver::World, |history| history.driver());
    Fighter::of(tank, driver)
}

/// The body of that id.
pub(crate) fn find(things: &[Thing], id: BodyId) -> Option<&Thing> {
    let at = things.binary_search_by_key(&id, |thing| thing.id).ok()?;
    things.get(at)
}

/// Where it is after so much of the way to the next tick, 0 to 1. `None` if it has ended by then.
pub(crate) fn between(before: &Thing, after: Option<&Thing>, share: f64) -> Option<TankPose> {
    let after = after?;
    let way = after.pose.offset_from(&before.pose);
    Some(along(&before.pose, Some(way).filter(|way: &Offset| way.distance() < LEAP), share))
}

/// The rockets that were launched and that ended in the newest tick: how many microseconds into it, and what is told.
pub(crate) fn turns(run: &Run) -> Vec<(u64, Told)> {
    let stage = run.playback().stage();
    let told = |id: BodyId, life, pose: TankPose| Told::Rocket {
        id: id.number(),
        life,
        at: [pose.x, pose.y],
        heading: pose.heading * core::f64::consts::TAU,
    };
    let born = stage.born().iter().filter_map(|id| {
        let history = stage.history(*id)?;
        let at = history.born().map_or(0, |(_, at)| micros(at));
        history.latest().rocket().map(|_| (at, told(*id, "born", history.latest().pose())))
    });
    let ended = stage.ended().iter().filter(|ended| ended.body.rocket().is_some());
    let ended = ended.map(|ended| (micros(ended.at), told(ended.id, "ended", ended.body.pose())));
    born.chain(ended).collect()
}

fn micros(at: core::time::Duration) -> u64 {
    u64::try_from(at.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_glides_unless_it_was_put_there_and_is_gone_when_it_ends() {
        let thing = |x| {
            let pose = TankPose { x, y: 0.0, heading: 0.0 };
            Thing { id: BodyId::new(7), kind: 1.0, pose, owner: None }
        };
        let x = |after: Option<&Thing>| between(&thing(1.0), after, 0.5).map(|pose| pose.x);
        assert_eq!(x(Some(&thing(2.0))), Some(1.5));
        assert_eq!(x(Some(&thing(9.0))), Some(1.0));
        assert_eq!(x(None), None);
        assert_eq!(find(&[thing(3.0)], BodyId::new(7)), Some(&thing(3.0)));
    }
}
