//! Where tanks are between two ticks.

use halftrack::{Driver, Offset, Pose};
use tanks::{Fighter, Tank, TankPose};

use crate::run::{Run, Shot, Tally};

/// Metres per second that no tank drives, by any parameters: whoever is further away was put there.
const TOO_FAST: f64 = 40.0;
/// Tanks push each other apart; that is no leap.
const PUSHED: f64 = 1.5;

/// A tank at the end of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) fighter: Fighter,
    pub(crate) pose: TankPose,
    pub(crate) hp: u8,
    pub(crate) kills: u32,
    pub(crate) deaths: u32,
    pub(crate) shot: Option<Shot>,
}

/// All tanks at the end of the newest tick, in order of their fighters.
pub(crate) fn rows(run: &Run) -> Vec<Row> {
    let stage = run.playback().stage();
    let row = |fighter: Fighter, tank: &Tank| {
        let Tally { kills, deaths, last_shot, .. } = run.tally(fighter);
        Row { fighter, pose: tank.pose(), hp: tank.hp, kills, deaths, shot: last_shot }
    };
    let players = run.here().iter().filter_map(|(fighter, _)| {
        let tank = fighter.player().and_then(|player| stage.body_of(player))?.tank()?;
        Some(row(*fighter, tank))
    });
    let machines = stage.bodies().filter(|(_, driver, _)| *driver == Driver::World);
    let machines = machines.filter_map(|(id, driver, body)| Some(row(Fighter::of(id, driver), body.tank()?)));
    players.chain(machines).collect()
}

/// The row of a fighter.
pub(crate) fn find(rows: &[Row], fighter: Fighter) -> Option<&Row> {
    let at = rows.binary_search_by_key(&fighter, |row| row.fighter).ok()?;
    rows.get(at)
}

/// How a tank comes from one row to the next; `None` if it does not drive there: it came back, left or was put there.
pub(crate) fn way(before: &Row, after: Option<&Row>, seconds: f64) -> Option<Offset> {
    let after = after.filter(|after| before.hp > 0 || after.hp == 0)?;
    let way = after.pose.offset_from(&before.pose);
    (way.distance() < TOO_FAST * seconds + PUSHED).then_some(way)
}

/// The pose after so much of the way, 0 to 1.
pub(crate) fn along(pose: &TankPose, way: Option<Offset>, share: f64) -> TankPose {
    let part = way.map_or(Offset::ZERO, |way| Offset {
        position: way.position.map(|each| each * share),
        rotation: way.rotation.map(|each| each * share),
    });
    pose.displaced(&part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::PlayerId;

    fn row(x: f64, heading: f64, hp: u8) -> Row {
        let pose = TankPose { x, y: 0.0, heading };
        Row { fighter: PlayerId::new(1).into(), pose, hp, kills: 0, deaths: 0, shot: None }
    }

    #[test]
    fn tanks_glide_where_they_drive_and_turn_the_shorter_way() {
        let (before, after) = (row(1.0, 0.95, 100), row(1.4, 0.05, 75));
        let middle = along(&before.pose, way(&before, Some(&after), 0.05), 0.5);
        assert!((middle.x - 1.2).abs() < 1e-9 && (middle.heading - 1.0).abs() < 1e-9, "{middle:?}");
        assert_eq!(along(&before.pose, way(&before, Some(&after), 0.05), 0.0), before.pose);
    }

    #[test]
    fn nobody_glides_back_to_life_or_to_where_it_was_put() {
        let before = row(1.0, 0.0, 100);
        assert!(way(&before, Some(&row(1.1, 0.0, 0)), 0.05).is_some(), "it drives to where it dies");
        assert_eq!(way(&row(1.0, 0.0, 0), Some(&row(1.1, 0.0, 100)), 0.05), None);
        assert_eq!(way(&before, Some(&row(9.0, 0.0, 100)), 0.05), None);
        assert_eq!(way(&before, None, 0.05), None);
        assert!(way(&before, Some(&row(1.5, 0.0, 100)), 0.05).is_some());
    }
}
