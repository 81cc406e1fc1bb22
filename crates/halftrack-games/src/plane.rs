//! Discs on a plane: how they move between walls, and when they meet.

use halftrack::Body;

/// Metres, or metres per second.
pub type Vector = [f64; 2];

/// `vector` plus `times` another.
pub(crate) fn plus([x, y]: Vector, [dx, dy]: Vector, times: f64) -> Vector {
    [x + dx * times, y + dy * times]
}

pub(crate) fn dot([x, y]: Vector, [other_x, other_y]: Vector) -> f64 {
    x * other_x + y * other_y
}

pub(crate) fn length(vector: Vector) -> f64 {
    libm::sqrt(dot(vector, vector))
}

/// The vector of length 1 at this part of a turn.
pub(crate) fn toward(turns: f64) -> Vector {
    let angle = turns * core::f64::consts::TAU;
    [libm::cos(angle), libm::sin(angle)]
}

/// `vector`, no longer than `most`.
pub(crate) fn at_most(vector: Vector, most: f64) -> Vector {
    let length = length(vector);
    if length > most { plus([0.0; 2], vector, most / length) } else { vector }
}

/// Where the middle of a disc is, and how fast it goes.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub struct Motion {
    /// Metres from the middle of the field.
    #[grid(1/1024, -64..=64)]
    pub position: [f64; 2],
    /// Metres per second.
    #[grid(1/4096, -40..=40)]
    pub velocity: [f64; 2],
}

impl Motion {
    /// Goes on for so many seconds between walls, which are this far from the origin for its middle. It bounces off a wall
    /// with this part of its speed.
    pub(crate) fn glide(&mut self, seconds: f64, walls: Vector, bounce: f64) {
        self.position = plus(self.position, self.velocity, seconds);
        for ((place, speed), wall) in self.position.iter_mut().zip(&mut self.velocity).zip(walls) {
            let beyond = place.abs() - wall;
            if beyond > 0.0 {
                *place = (wall - bounce * beyond).copysign(*place);
                *speed = -(bounce * speed.abs()).copysign(*place);
            }
        }
    }
}

/// Two discs that meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Meeting {
    /// Seconds from now; zero if they overlap.
    pub(crate) after: f64,
    /// The direction from the one to the other then, 1 long.
    pub(crate) normal: Vector,
    /// By how much the speed along it has to change for them to part.
    pub(crate) change: f64,
}

/// How two discs meet, as the one sees it: both go on as they do, and touch when their middles are `reach` apart. They part
/// with `bounce` of the speed at which they meet, and at least with `least` if they overlap. `None` if they never touch, or
/// part already.
///
/// The other sees the same bits with opposite signs, also if both are at one place and the one is the `first`.
pub(crate) fn meet(
    (one, first): (&Motion, bool),
    other: &Motion,
    reach: f64,
    (bounce, least): (f64, f64),
) -> Option<Meeting> {
    let drift = plus(other.velocity, one.velocity, -1.0);
    let mut apart = plus(other.position, one.position, -1.0);
    if apart == [0.0; 2] {
        apart = [if first { 1e-3 } else { -1e-3 }, 0.0];
    }
    let free = dot(apart, apart) - reach * reach;
    let (along, speed_squared) = (dot(apart, drift), dot(drift, drift));
    let root = along * along - speed_squared * free;
    let after = match free > 0.0 {
        false => 0.0,
        true if along < 0.0 && root >= 0.0 => free / (libm::sqrt(root) - along),
        true => return None,
    };
    let way = plus(apart, drift, after);
    let normal = plus([0.0; 2], way, 1.0 / length(way).max(1e-6));
    let closing = -dot(drift, normal);
    let parting = (bounce * closing).max(if free > 0.0 { 0.0 } else { least });
    // Rounding must not make a second contact of the first.
    (closing + parting > 1e-6).then_some(Meeting { after, normal, change: closing + parting })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_turns_round_what_goes_through_it() {
        let mut disc = Motion { position: [3.0, -7.75], velocity: [1.0, -6.0] };
        disc.glide(0.125, [4.0, 8.0], 0.5);
        assert_eq!(disc, Motion { position: [3.125, -7.75], velocity: [1.0, 3.0] });
    }

    #[test]
    fn discs_meet_at_the_same_moment_and_speed_from_either_side() {
        let turned = |[x, y]: Vector| [-x, -y];
        let disc = |position, velocity| Motion { position, velocity };
        let from = disc([1.0, 2.0], [0.5, 0.0]);
        let other = disc([4.1, 1.3], [-1.8, 0.9]);
        let bounce = (0.5, 1.0);
        let met = meet((&from, true), &other, 1.0, bounce).unwrap();
        let apart = plus(plus(other.position, from.position, -1.0), [-2.3, 0.9], met.after);
        assert!((length(apart) - 1.0).abs() < 1e-12);
        assert!(
            (met.change + 1.5 * dot([-2.3, 0.9], met.normal)).abs() < 1e-12 && met.change > 3.0,
            "{met:?}"
        );
        let seen = Some(Meeting { normal: turned(met.normal), ..met });
        assert_eq!(meet((&other, false), &from, 1.0, bounce), seen);
        let [still, slow, fast] = [[0.0; 2], [0.25, 0.0], [1.25, 0.0]];
        let at = |place, velocity| meet((&disc([0.0; 2], still), true), &disc(place, velocity), 1.0, bounce);
        assert_eq!(at([3.0, 0.0], fast), None, "they part");
        assert_eq!(at([3.0, 0.0], [0.0, 5.0]), None, "they miss");
        assert_eq!(at([0.5, 0.0], slow).map(|met| (met.after, met.change)), Some((0.0, 0.75)));
        assert_eq!(at([0.5, 0.0], fast), None, "they part fast enough");
        let same = meet((&disc([0.0; 2], still), false), &disc([0.0; 2], still), 1.0, bounce).unwrap();
        assert_eq!(same.normal, turned(at([0.0; 2], still).unwrap().normal));
    }
}
