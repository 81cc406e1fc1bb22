//! What rockets do to tanks: the rules fly them, and the world takes the hit points.

use halftrack::BodyId;
use halftrack::server::{Events, Room};

use super::TankWorld;
use crate::entity::Rocket;
use crate::fighter::Fighter;
use crate::rules::Tanks;

impl TankWorld {
    /// Takes hit points for each rocket that ended at a tank in the newest tick. A rocket belongs to the fighter whose tank
    /// launched it; if that has left, nobody is credited.
    pub(super) fn burst(&mut self, room: &mut Room<'_, Tanks>, events: &mut Events) {
        self.note_launches(room);
        let open = self.round.is_open(room.tick());
        let mut hits = core::mem::take(&mut self.hits);
        hits.clear();
        let ended = room.ended().iter().filter(|ended| open && ended.body.rocket().is_some());
        hits.extend(ended.filter_map(|ended| Some((ended.parent, *ended.touched.ids().first()?))));
        for (parent, target) in &hits {
            let alive = super::tank_of(room, *target).is_some_and(|tank| tank.is_alive());
            if let Some(target) = self.fighter_of(*target).filter(|_| alive) {
                let by = parent.and_then(|parent| self.fighter_of(parent));
                self.damage(room, events, by, target, Rocket::DAMAGE);
            }
        }
        self.hits = hits;
    }

    /// A fighter is in combat when it launches a rocket and when the rocket ends, as after a shot.
    fn note_launches(&mut self, room: &Room<'_, Tanks>) {
        let now = room.cadence().end_of(room.tick());
        let born = room.born().iter().filter_map(|born| room.history(*born)?.parent());
        for parent in born.chain(room.ended().iter().filter_map(|ended| ended.parent)) {
            if let Some(state) = self.fighters.values_mut().find(|state| state.body == parent) {
                state.launched = Some(now);
            }
        }
    }

    /// The fighter in a tank.
    fn fighter_of(&self, body: BodyId) -> Option<Fighter> {
        self.fighters.iter().find(|(_, state)| state.body == body).map(|(fighter, _)| *fighter)
    }
}
