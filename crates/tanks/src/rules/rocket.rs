//! What a rocket does in a step: it flies straight ahead, up to the first wall, tank or crate.

use core::time::Duration;

use halftrack::Step;

use super::Tanks;
use super::tank::micros;
use crate::body::TankPose;
use crate::collide::Vec2;
use crate::entity::{Entity, Rocket};
use crate::ray::Ray;
use crate::rules::Hull;

impl Tanks {
    /// Others stand where they stood at the start of the tick. Its own tank is never in its way.
    pub(super) fn advance_rocket(&self, rocket: &mut Rocket, step: &mut Step<'_, Self>) {
        let ray = Ray::along(Vec2::new(rocket.x, rocket.y), rocket.heading);
        let (mut reach, mut target) = (ray.to_arena(&self.arena), None);
        for other in step.neighbours().iter().filter(|other| Some(other.id) != step.parent()) {
            if !matches!(other.body, Entity::Tank(_) | Entity::Crate(_)) {
                continue;
            }
            let TankPose { x, y, .. } = other.pose();
            // Of two equally near, the first by id.
            if let Some(distance) = ray.to_hull(Hull { x, y }).filter(|distance| *distance < reach) {
                (reach, target) = (distance, Some(other.id));
            }
        }
        let flown = micros(step).min(rocket.left);
        let (way, ends) = (f64::from(flown) * 1e-6 * Rocket::SPEED, flown == rocket.left);
        let hits = reach <= way;
        let Vec2 { x, y } = ray.point(reach.min(way));
        rocket.left -= flown;
        (rocket.x, rocket.y) = (x, y);
        if hits {
            if let Some(target) = target {
                step.touch(target);
            }
            step.remove(Duration::from_micros((reach / Rocket::SPEED * 1e6) as u64));
        } else if ends {
            step.remove(Duration::from_micros(u64::from(flown)));
        }
    }
}
