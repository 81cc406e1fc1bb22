//! [`Pose`] and [`Offset`]: where a body is drawn, and how far two poses are apart.

use core::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A position and a rotation that can be told apart and displaced, in whatever types the game draws with.
///
/// The netcode needs no more than this of the game's mathematics: two dimensions or three, headings or
/// quaternions (for those, the offset's rotation is the scaled axis of `self * other.inverse()`).
pub trait Pose: Copy + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What must be added to `other` to arrive here; rotation by the shorter way.
    fn offset_from(&self, other: &Self) -> Offset;

    /// This pose, moved and turned by `offset`. With [`Offset::ZERO`] it is the same pose, bit for bit.
    #[must_use]
    fn displaced(&self, offset: &Offset) -> Self;
}

/// The difference between two poses: a vector in metres and a rotation vector in radians.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offset {
    /// Metres.
    pub position: [f64; 3],
    /// Radians about each axis: direction is the axis, length the angle.
    pub rotation: [f64; 3],
}

impl Offset {
    /// No difference.
    pub const ZERO: Self = Self { position: [0.0; 3], rotation: [0.0; 3] };

    /// Length of the position's part, in metres.
    pub fn distance(&self) -> f64 {
        length(self.position)
    }

    /// Size of the rotation's part, in radians, never negative.
    pub fn angle(&self) -> f64 {
        length(self.rotation)
    }

    /// Whether every number in it is one.
    pub fn is_finite(&self) -> bool {
        self.position.iter().chain(&self.rotation).all(|part| part.is_finite())
    }

    /// Position and rotation scaled, each by its own factor.
    pub(crate) fn scaled(&self, position: f64, rotation: f64) -> Self {
        Self {
            position: self.position.map(|part| part * position),
            rotation: self.rotation.map(|part| part * rotation),
        }
    }
}

fn length([x, y, z]: [f64; 3]) -> f64 {
    libm::sqrt(x * x + y * y + z * z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_measure_both_parts() {
        let offset = Offset { position: [3.0, 0.0, -4.0], rotation: [0.0, -0.5, 0.0] };
        assert_eq!((offset.distance(), offset.angle()), (5.0, 0.5));
        let half = offset.scaled(0.5, 0.0);
        assert_eq!((half.distance(), half.angle()), (2.5, 0.0));
        assert!(offset.is_finite());
        for broken in [f64::NAN, f64::INFINITY] {
            assert!(!Offset { position: [broken, 0.0, 0.0], ..offset }.is_finite());
            assert!(!Offset { rotation: [0.0, 0.0, broken], ..offset }.is_finite());
        }
    }
}
