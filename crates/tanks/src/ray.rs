//! Where a shot ends: a ray against walls, obstacles and hulls.
//!
//! Knows shapes and metres, neither tanks nor time.

use crate::arena::{Arena, Obstacle};
use crate::collide::{HULL_RADIUS, Vec2};
use crate::rules::{Hull, forward};

/// A way straight ahead, from a point.
///
/// ```
/// use tanks::{Arena, Hull, Ray};
///
/// let north = Ray::new([0.0, 20.0], 16_384);
/// assert_eq!(north.to_arena(&Arena::proving_ground()), 12.0);
/// assert_eq!(north.to_hull(Hull { x: 0.0, y: 30.0 }), Some(8.5));
/// assert_eq!(north.to_hull(Hull { x: 2.0, y: 30.0 }), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ray {
    from: Vec2,
    /// One metre long.
    toward: Vec2,
}

impl Ray {
    /// From `from`, metres, in the direction `aim`: 1/65536 turn to the left of east.
    pub fn new(from: [f64; 2], aim: u16) -> Self {
        // A power of two: exact, as headings are.
        Self { from: from.into(), toward: forward(f64::from(aim) / 65_536.0) }
    }

    /// The same along a heading in turns, which need not be on the grid of aims.
    pub(crate) fn along(from: Vec2, heading: f64) -> Self {
        Self { from, toward: forward(heading) }
    }

    /// The point after so many metres.
    pub(crate) fn point(&self, metres: f64) -> Vec2 {
        self.from + self.toward * metres
    }

    /// Metres to the first outer wall, block or pillar; zero from inside one.
    pub fn to_arena(&self, arena: &Arena) -> f64 {
        let [width, height] = arena.size();
        let wall = |at: f64, toward: f64, half: f64| {
            if toward == 0.0 { f64::INFINITY } else { ((half.copysign(toward) - at) / toward).max(0.0) }
        };
        let (x, y) = ((self.from.x, self.toward.x), (self.from.y, self.toward.y));
        let walls = wall(x.0, x.1, width / 2.0).min(wall(y.0, y.1, height / 2.0));
        arena.obstacles().iter().filter_map(|obstacle| self.to_obstacle(obstacle)).fold(walls, f64::min)
    }

    /// Metres to a hull; zero from inside it, and `None` when it is not met.
    pub fn to_hull(&self, hull: Hull) -> Option<f64> {
        self.to_circle(Vec2::new(hull.x, hull.y), HULL_RADIUS)
    }

    /// Whether a point is within `reach` metres of the first `length` metres.
    pub(crate) fn passes(&self, point: Vec2, length: f64, reach: f64) -> bool {
        let to = point - self.from;
        let along = to.dot(self.toward).clamp(0.0, length.max(0.0));
        let off = to - self.toward * along;
        off.dot(off) <= reach * reach
    }

    fn to_obstacle(self, obstacle: &Obstacle) -> Option<f64> {
        match *obstacle {
            Obstacle::Block { min: [left, bottom], max: [right, top] } => {
                let (enter_x, leave_x) = between(self.from.x, self.toward.x, left, right)?;
                let (enter_y, leave_y) = between(self.from.y, self.toward.y, bottom, top)?;
                let (enter, leave) = (enter_x.max(enter_y).max(0.0), leave_x.min(leave_y));
                (enter <= leave).then_some(enter)
            }
            Obstacle::Pillar { center, radius } => self.to_circle(center.into(), radius),
        }
    }

    fn to_circle(self, center: Vec2, radius: f64) -> Option<f64> {
        let from = self.from - center;
        let outside = from.dot(from) - radius * radius;
        if outside <= 0.0 {
            return Some(0.0);
        }
        let approach = from.dot(self.toward);
        let discriminant = approach * approach - outside;
        // The smaller root, in the form that does not cancel.
        (approach < 0.0 && discriminant >= 0.0).then(|| outside / (discriminant.sqrt() - approach))
    }
}

/// From how many to how many metres a coordinate is between `low` and `high`; `None` when it never is.
fn between(at: f64, toward: f64, low: f64, high: f64) -> Option<(f64, f64)> {
    if toward == 0.0 {
        return (low <= at && at <= high).then_some((f64::NEG_INFINITY, f64::INFINITY));
    }
    let (first, second) = ((low - at) / toward, (high - at) / toward);
    Some((first.min(second), first.max(second)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP: f64 = 0.01;

    /// Walks along the ray until `inside` says so.
    fn march(ray: &Ray, limit: f64, inside: impl Fn(Vec2) -> bool) -> Option<f64> {
        let steps = (limit / STEP) as u32;
        (0..=steps).map(|step| f64::from(step) * STEP).find(|way| inside(ray.from + ray.toward * *way))
    }

    #[test]
    fn blocks_are_met_at_their_faces_and_missed_beside_them() {
        let arena =
            Arena::new([40.0, 40.0], vec![Obstacle::Block { min: [5.0, -1.0], max: [7.0, 1.0] }]).unwrap();
        let east = |y: f64| Ray::new([0.0, y], 0).to_arena(&arena);
        assert_eq!([east(0.0), east(1.0), east(-1.0)], [5.0; 3], "an edge belongs to its block");
        assert_eq!([east(1.001), east(-1.001)], [20.0; 2]);
        let west = Ray::new([10.0, 0.0], 32_768).to_arena(&arena);
        assert_eq!(west, 3.0);
        assert_eq!(Ray::new([6.0, 0.0], 0).to_arena(&arena), 0.0, "from inside");
        assert_eq!(Ray::new([8.0, 0.0], 0).to_arena(&arena), 12.0, "what is behind is not met");
        assert_eq!(Ray::new([25.0, 0.0], 0).to_arena(&arena), 0.0, "from outside the arena");
    }

    #[test]
    fn hulls_are_met_just_inside_and_not_just_outside() {
        let ray = Ray::new([0.0, 0.0], 0);
        let hull = |x, y| ray.to_hull(Hull { x, y });
        assert_eq!(hull(10.0, 0.0), Some(10.0 - HULL_RADIUS));
        assert!(hull(10.0, HULL_RADIUS - 1e-6).is_some());
        assert_eq!(hull(10.0, HULL_RADIUS + 1e-6), None);
        assert_eq!(hull(-10.0, 0.0), None);
        assert_eq!(hull(-1.0, 0.0), Some(0.0));
    }

    #[test]
    fn what_may_be_met_is_never_ruled_out() {
        let ray = Ray::new([0.0, 0.0], 0);
        assert!(ray.passes(Vec2::new(5.0, 2.0), 10.0, 2.0) && !ray.passes(Vec2::new(5.0, 2.001), 10.0, 2.0));
        assert!(
            ray.passes(Vec2::new(12.0, 0.0), 10.0, 2.0) && !ray.passes(Vec2::new(12.001, 0.0), 10.0, 2.0)
        );
        assert!(
            ray.passes(Vec2::new(-2.0, 0.0), 10.0, 2.0) && !ray.passes(Vec2::new(-2.001, 0.0), 10.0, 2.0)
        );
    }

    proptest! {
        #[test]
        fn the_arena_is_met_where_a_march_meets_it(x in -47.0f64..47.0, y in -31.0f64..31.0, aim in any::<u16>()) {
            let arena = Arena::proving_ground();
            let ray = Ray::new([x, y], aim);
            let inside = |point: Vec2| arena.clearance([point.x, point.y]) <= 0.0;
            let marched = march(&ray, 120.0, inside).unwrap();
            let found = ray.to_arena(&arena);
            prop_assert!(found <= marched + 1e-9, "found {found}, marched {marched}");
            // A march may step over a corner; then what was found must be a touch of it.
            let touch = ray.from + ray.toward * found;
            prop_assert!(marched - found <= STEP || arena.clearance([touch.x, touch.y]).abs() < 1e-9);
        }

        #[test]
        fn hulls_are_met_where_a_march_meets_them(x in -20.0f64..20.0, y in -20.0f64..20.0, aim in any::<u16>()) {
            let ray = Ray::new([1.0, -2.0], aim);
            let inside = |point: Vec2| {
                let to = point - Vec2::new(x, y);
                to.dot(to) <= HULL_RADIUS * HULL_RADIUS
            };
            let found = ray.to_hull(Hull { x, y });
            match march(&ray, 60.0, inside) {
                Some(marched) => {
                    let found = found.unwrap();
                    prop_assert!(found <= marched + 1e-9 && marched - found <= STEP + 1e-9);
                }
                None => {
                    // Between two steps it can at most graze: a chord no longer than a step.
                    if let Some(found) = found {
                        let chord = ray.from + ray.toward * (found + STEP);
                        let to = chord - Vec2::new(x, y);
                        prop_assert!(to.dot(to) >= HULL_RADIUS * HULL_RADIUS - 1e-9);
                    }
                }
            }
            if found.is_some_and(|found| found <= 30.0) {
                prop_assert!(ray.passes(Vec2::new(x, y), 30.0, HULL_RADIUS + 1e-9));
            }
        }
    }
}
