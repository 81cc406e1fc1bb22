//! [`Pose2`] and [`Pose3`], and the parts that `derive(Pose)` puts together.

use core::f64::consts::TAU;

use halftrack_derive::Pose;

/// A place and a heading in the plane.
///
/// ```
/// use halftrack::{Pose, Pose2};
///
/// let drawn = Pose2 { x: 1.0, y: 2.0, heading: 0.95 };
/// let predicted = Pose2 { x: 1.5, y: 2.0, heading: 0.05 };
/// let offset = predicted.offset_from(&drawn);
/// assert_eq!(offset.distance(), 0.5);
/// assert!((offset.angle() - 36f64.to_radians()).abs() < 1e-12, "the shorter way round");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Pose)]
pub struct Pose2 {
    /// Metres along the first axis.
    #[x]
    pub x: f64,
    /// Metres along the second axis.
    #[y]
    pub y: f64,
    /// Turns from the first axis towards the second.
    #[turns]
    pub heading: f64,
}

/// A place and a rotation in space.
///
/// ```
/// use halftrack::{Offset, Pose, Pose3};
///
/// let pose = Pose3 { position: [0.0, 1.0, 0.0], ..Pose3::default() };
/// let quarter = Offset { rotation: [0.0, 0.0, core::f64::consts::FRAC_PI_2], ..Offset::ZERO };
/// let turned = pose.displaced(&quarter);
/// assert!((turned.offset_from(&pose).angle() - quarter.angle()).abs() < 1e-12);
/// assert_eq!(pose.displaced(&Offset::ZERO), pose);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pose)]
pub struct Pose3 {
    /// Metres along each axis.
    #[position]
    pub position: [f64; 3],
    /// A unit quaternion: x, y, z, w.
    #[rotation]
    pub rotation: [f64; 4],
}

impl Default for Pose3 {
    /// At the origin, not turned.
    fn default() -> Self {
        Self { position: [0.0; 3], rotation: [0.0, 0.0, 0.0, 1.0] }
    }
}

/// A float that a pose may be made of. Offsets are `f64`.
pub trait Coordinate: Copy {
    #[allow(missing_docs)]
    fn wide(self) -> f64;
    #[allow(missing_docs)]
    fn narrow(wide: f64) -> Self;
}

impl Coordinate for f64 {
    #[inline]
    fn wide(self) -> f64 {
        self
    }

    #[inline]
    fn narrow(wide: f64) -> Self {
        wide
    }
}

impl Coordinate for f32 {
    #[inline]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a pose of single floats is drawn with them")]
    fn narrow(wide: f64) -> Self {
        wide as f32
    }
}

/// From `from` to `to`.
#[inline]
pub fn between<T: Coordinate>(to: T, from: T) -> f64 {
    to.wide() - from.wide()
}

/// `from`, moved. By nothing it stays as it is: -0.0 + 0.0 would be another zero.
#[inline]
pub fn moved<T: Coordinate>(from: T, by: f64) -> T {
    if by == 0.0 { from } else { T::narrow(from.wide() + by) }
}

/// The rotation vector from one heading to another, by the shorter way. About the third axis.
#[inline]
pub fn turns_between<T: Coordinate>(to: T, from: T) -> [f64; 3] {
    let turns = to.wide() - from.wide();
    [0.0, 0.0, (turns - libm::rint(turns)) * TAU]
}

/// A heading, turned.
#[inline]
pub fn turned<T: Coordinate>(from: T, [_, _, by]: [f64; 3]) -> T {
    moved(from, by / TAU)
}

/// The Hamilton product of two quaternions x, y, z, w.
fn product([ax, ay, az, aw]: [f64; 4], [bx, by, bz, bw]: [f64; 4]) -> [f64; 4] {
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

fn length([x, y, z]: [f64; 3]) -> f64 {
    libm::sqrt(x * x + y * y + z * z)
}

/// The scaled axis of `to * from.inverse()`, by the shorter way.
///
/// Only the ratio of the product's parts is used, so quaternions that a grid left a little longer than one are fine.
pub fn rotation_between<T: Coordinate>(to: [T; 4], from: [T; 4]) -> [f64; 3] {
    let [x, y, z, w] = from.map(T::wide);
    let [x, y, z, w] = product(to.map(T::wide), [-x, -y, -z, w]);
    // A quaternion and its negative are the same rotation; the one with w above zero turns by less than half a turn.
    let sign = if w < 0.0 { -1.0 } else { 1.0 };
    let sine = length([x, y, z]);
    // NaN goes on, to be seen by `Offset::is_finite`.
    let scale = if sine == 0.0 { 0.0 } else { sign * 2.0 * libm::atan2(sine, sign * w) / sine };
    [x * scale, y * scale, z * scale]
}

/// A quaternion, turned by a rotation vector. By nothing it stays as it is, bit for bit.
pub fn rotated<T: Coordinate>(from: [T; 4], by: [f64; 3]) -> [T; 4] {
    let angle = length(by);
    // A vector of the smallest floats has a length of zero too.
    if angle == 0.0 {
        return from;
    }
    let scale = libm::sin(angle / 2.0) / angle;
    let [x, y, z] = by.map(|part| part * scale);
    product([x, y, z, libm::cos(angle / 2.0)], from.map(T::wide)).map(T::narrow)
}
