//! The fixed world: outer walls, blocks and pillars, and a coarse grid that says which of them are near.
//!
//! Knows shapes, not tanks.

use halftrack::Digest;
use serde::{Deserialize, Serialize};

use crate::collide::{Shape, TO_WALL, Vec2};

/// Something that does not move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Obstacle {
    /// A rectangle along the axes, metres.
    Block {
        /// South-western corner.
        min: [f64; 2],
        /// North-eastern corner.
        max: [f64; 2],
    },
    /// A circle.
    Pillar {
        /// Its middle.
        center: [f64; 2],
        /// Metres.
        radius: f64,
    },
}

/// An arena that cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// Too small to turn in, too large for the grid of the wire, or not a number.
    #[error("the arena is {width} m by {height} m; choose sides from 8 m to 1,024 m")]
    Size {
        /// Metres east to west.
        width: f64,
        /// Metres north to south.
        height: f64,
    },
    /// More obstacles than are searched in bounded time.
    #[error("the arena has {got} obstacles; at most {max} are allowed")]
    TooManyObstacles {
        /// How many it has.
        got: usize,
        /// How many it may have.
        max: usize,
    },
    /// An obstacle that is empty, not a number, or partly outside.
    #[error("obstacle {index} is empty, not a number, or not inside the arena")]
    Obstacle {
        /// Which, counted from zero.
        index: usize,
    },
}

/// The fixed world of a match, centred on the origin.
///
/// ```
/// use tanks::{Arena, Obstacle};
///
/// let arena = Arena::new([60.0, 40.0], vec![Obstacle::Pillar { center: [5.0, 5.0], radius: 2.0 }])?;
/// assert_eq!(arena.size(), [60.0, 40.0]);
/// assert!(Arena::new([60.0, 40.0], vec![Obstacle::Pillar { center: [29.0, 0.0], radius: 2.0 }]).is_err());
/// # Ok::<(), tanks::ArenaError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Arena {
    /// Half of its sides.
    half: Vec2,
    obstacles: Vec<Obstacle>,
    /// The same, as a hull meets them.
    shapes: Vec<Shape>,
    columns: u32,
    /// Of each cell, row by row: where its shapes lie in `near`.
    cells: Vec<core::ops::Range<usize>>,
    /// The shapes near each cell, one cell after the other: copied, so that a search reads one place.
    near: Vec<Shape>,
}

impl Arena {
    /// The most obstacles an arena may have.
    pub const MAX_OBSTACLES: usize = 256;

    const CELL: f64 = 4.0;
    /// The longest way that the cells are laid out for: the usual one is 0.4 m. All shapes are searched beyond.
    const NEAR: f64 = 1.0;
    const SIDES: core::ops::RangeInclusive<f64> = 8.0..=1024.0;

    /// An arena of `size` metres with `obstacles` in it.
    ///
    /// # Errors
    /// When it is too small or large, or an obstacle does not lie inside it.
    pub fn new(size: [f64; 2], obstacles: Vec<Obstacle>) -> Result<Self, ArenaError> {
        let [width, height] = size;
        if !Self::SIDES.contains(&width) || !Self::SIDES.contains(&height) {
            return Err(ArenaError::Size { width, height });
        }
        if obstacles.len() > Self::MAX_OBSTACLES {
            return Err(ArenaError::TooManyObstacles { got: obstacles.len(), max: Self::MAX_OBSTACLES });
        }
        let half = Vec2::new(width / 2.0, height / 2.0);
        if let Some(index) = obstacles.iter().position(|obstacle| !lies_within(obstacle, half)) {
            return Err(ArenaError::Obstacle { index });
        }
        Ok(Self::index(half, obstacles))
    }

    /// The arena that the game is shown in: 96 m by 64 m, with walls to hide behind and pillars to circle.
    pub fn proving_ground() -> Self {
        let block = |x: f64, y: f64, w: f64, h: f64| Obstacle::Block { min: [x, y], max: [x + w, y + h] };
        let pillar = |x, y, radius| Obstacle::Pillar { center: [x, y], radius };
        let quarter = [
            block(10.0, 8.0, 14.0, 3.0),
            block(21.0, 11.0, 3.0, 9.0),
            block(34.0, -4.0, 3.0, 8.0),
            pillar(10.0, 22.0, 2.5),
            pillar(40.0, 24.0, 2.0),
            pillar(30.0, 14.0, 1.5),
        ];
        // The same four times, turned by half a turn and mirrored, so that no corner is the better one.
        let flip = |at: f64, size: f64, mirrored: bool| if mirrored { -at - size } else { at };
        let mut obstacles = vec![pillar(0.0, 0.0, 4.0)];
        for (mirror_x, mirror_y) in [(false, false), (true, false), (false, true), (true, true)] {
            obstacles.extend(quarter.iter().map(|obstacle| match *obstacle {
                Obstacle::Block { min: [x, y], max: [right, top] } => {
                    let (w, h) = (right - x, top - y);
                    block(flip(x, w, mirror_x), flip(y, h, mirror_y), w, h)
                }
                Obstacle::Pillar { center: [x, y], radius } => {
                    pillar(flip(x, 0.0, mirror_x), flip(y, 0.0, mirror_y), radius)
                }
            }));
        }
        Self::index(Vec2::new(48.0, 32.0), obstacles)
    }

    /// A large ground with pillars to drive around, 500 square metres for each of so many players, 1 to 1,000.
    pub fn open_ground(players: usize) -> Self {
        let players = u32::try_from(players.clamp(1, 1_000)).unwrap_or(1_000);
        let height = (f64::from(players) * 500.0 / 1.5).sqrt();
        let half = Vec2::new(height * 1.5 / 2.0, height / 2.0);
        let along = |side: f64, apart: f64| (1..).take_while(move |count| f64::from(*count) * apart <= side);
        let count = |apart| along(2.0 * half.x, apart).count() * along(2.0 * half.y, apart).count();
        // As near to each other as so many may be.
        let mut apart = 18.0;
        while count(apart) > Self::MAX_OBSTACLES {
            apart += 1.0;
        }
        let middles = |side: f64| {
            let count = along(side, apart).last().unwrap_or(0);
            (0..count).map(move |at| (f64::from(at) + 0.5 - f64::from(count) / 2.0) * apart)
        };
        let pillar = |x, y| Obstacle::Pillar { center: [x, y], radius: 2.0 };
        let row = |y| middles(2.0 * half.x).map(move |x| pillar(x, y));
        Self::index(half, middles(2.0 * half.y).flat_map(row).collect())
    }

    /// Its sides, metres.
    pub fn size(&self) -> [f64; 2] {
        [2.0 * self.half.x, 2.0 * self.half.y]
    }

    /// What stands in it.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// Metres from `point` to the nearest wall or obstacle; negative inside one.
    pub fn clearance(&self, point: [f64; 2]) -> f64 {
        let point = Vec2::from(point);
        let walls = (self.half.x - point.x.abs()).min(self.half.y - point.y.abs());
        self.shapes.iter().map(|shape| shape.clearance(point) + TO_WALL).fold(walls, f64::min)
    }

    /// Everything about it, added to `digest`.
    pub(crate) fn digest(&self, digest: Digest) -> Digest {
        let digest = digest.float(self.half.x).float(self.half.y);
        self.obstacles.iter().fold(digest, |digest, obstacle| match *obstacle {
            Obstacle::Block { min: [left, bottom], max: [right, top] } => {
                digest.word(1).float(left).float(bottom).float(right).float(top)
            }
            Obstacle::Pillar { center: [x, y], radius } => digest.word(2).float(x).float(y).float(radius),
        })
    }

    /// How far from the origin a hull can go along each axis.
    #[inline]
    pub(crate) fn room(&self) -> Vec2 {
        self.half - Vec2::new(TO_WALL, TO_WALL)
    }

    /// Whether a hull at `point` is clear of the outer walls.
    #[inline]
    pub(crate) fn has_room(&self, point: Vec2) -> bool {
        let room = self.room();
        point.x.abs() <= room.x && point.y.abs() <= room.y
    }

    /// Every shape that a hull at `point` can meet within `length` metres, and perhaps some more.
    #[inline]
    pub(crate) fn near(&self, point: Vec2, length: f64) -> &[Shape] {
        // Casts saturate: wherever it is, some cell answers, or none and all shapes do.
        let column = ((point.x + self.half.x) / Self::CELL) as u32;
        let row = ((point.y + self.half.y) / Self::CELL) as u32;
        let cell = u64::from(row) * u64::from(self.columns) + u64::from(column);
        match self.cells.get(cell as usize) {
            Some(range) if length <= Self::NEAR && column < self.columns => {
                self.near.get(range.clone()).unwrap_or_default()
            }
            _ => &self.shapes,
        }
    }

    /// With walls `half` away from the origin, and obstacles that are known to lie inside them.
    pub(crate) fn index(half: Vec2, obstacles: Vec<Obstacle>) -> Self {
        let count = |half: f64| (2.0 * half / Self::CELL) as u32 + 1;
        let (columns, rows) = (count(half.x), count(half.y));
        let (mut cells, mut near) = (Vec::new(), Vec::new());
        let shapes: Vec<Shape> = obstacles.iter().map(Shape::from).collect();
        // From a cell's middle, its corners are this far; a hull in it moves that much further.
        let within = Self::CELL * core::f64::consts::FRAC_1_SQRT_2 + Self::NEAR;
        for cell in 0..columns * rows {
            let along = |index: u32, half: f64| (f64::from(index) + 0.5) * Self::CELL - half;
            let middle = Vec2::new(along(cell % columns, half.x), along(cell / columns, half.y));
            let start = near.len();
            near.extend(shapes.iter().filter(|shape| shape.clearance(middle) <= within));
            cells.push(start..near.len());
        }
        Self { half, obstacles, shapes, columns, cells, near }
    }
}

/// Whether it has a size and lies inside walls `half` away from the origin.
fn lies_within(obstacle: &Obstacle, half: Vec2) -> bool {
    let inside = |[x, y]: [f64; 2]| x.abs() <= half.x && y.abs() <= half.y;
    match *obstacle {
        Obstacle::Block { min, max } => {
            let ([left, bottom], [right, top]) = (min, max);
            inside(min) && inside(max) && left < right && bottom < top
        }
        Obstacle::Pillar { center: [x, y], radius } => {
            radius > 0.0 && inside([x - radius, y - radius]) && inside([x + radius, y + radius])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_ground_of_any_size_can_be_built() {
        for players in [0, 1, 16, 100, 256, 400, 1_000, usize::MAX] {
            let ground = Arena::open_ground(players);
            assert_eq!(Arena::new(ground.size(), ground.obstacles().to_vec()).as_ref(), Ok(&ground));
            assert!(!ground.obstacles().is_empty());
        }
    }

    #[test]
    fn bad_arenas_are_refused() {
        assert!(Arena::new([8.0, 1024.0], vec![]).is_ok());
        for size in [[7.9, 100.0], [100.0, 1024.1], [f64::NAN, 100.0], [100.0, f64::INFINITY]] {
            assert!(matches!(Arena::new(size, vec![]), Err(ArenaError::Size { .. })));
        }
        let pillar = |x: f64, radius: f64| Obstacle::Pillar { center: [x, 0.0], radius };
        let block = |left: f64, right: f64| Obstacle::Block { min: [left, 0.0], max: [right, 1.0] };
        for good in [pillar(48.0, 2.0), block(49.0, 50.0)] {
            assert!(Arena::new([100.0, 100.0], vec![good]).is_ok());
        }
        let bad = [
            pillar(48.1, 2.0),
            pillar(0.0, 0.0),
            pillar(f64::NAN, 1.0),
            pillar(0.0, f64::NAN),
            block(49.0, 50.1),
            block(1.0, 1.0),
            block(f64::NAN, 1.0),
        ];
        for bad in bad {
            let arena = Arena::new([100.0, 100.0], vec![block(0.0, 1.0), bad]);
            assert_eq!(arena, Err(ArenaError::Obstacle { index: 1 }), "{bad:?}");
        }
        let many = vec![pillar(0.0, 1.0); Arena::MAX_OBSTACLES + 1];
        assert!(matches!(Arena::new([100.0, 100.0], many), Err(ArenaError::TooManyObstacles { .. })));
    }

    #[test]
    fn the_search_misses_nothing_within_reach() {
        let arena = Arena::proving_ground();
        for x in -480..=480 {
            for y in -320..=320 {
                let point = Vec2::new(f64::from(x) / 10.0, f64::from(y) / 10.0);
                let near = arena.near(point, Arena::NEAR);
                for shape in &arena.shapes {
                    if shape.clearance(point) <= Arena::NEAR {
                        assert!(near.contains(shape), "{shape:?} from {point:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_search_answers_anywhere() {
        let arena = Arena::proving_ground();
        for beyond in [f64::INFINITY, 1e300] {
            assert_eq!(arena.near(Vec2::new(beyond, 0.0), 0.1), arena.shapes, "no cell there: all of them");
            assert_eq!(arena.near(Vec2::new(0.0, beyond), 0.1), arena.shapes);
        }
        let first_cell = arena.near(Vec2::new(-48.0, -32.0), 0.1);
        for before in [f64::NAN, f64::NEG_INFINITY, -1e300] {
            assert_eq!(arena.near(Vec2::new(before, before), 0.1), first_cell, "casts saturate at the first");
        }
        let point = Vec2::new(0.0, 28.0);
        assert_eq!(
            arena.near(point, Arena::NEAR + 1e-9),
            arena.shapes,
            "further than the cells are laid out for"
        );
    }

    #[test]
    fn the_proving_ground_is_a_valid_arena() {
        let arena = Arena::proving_ground();
        assert_eq!(Arena::new(arena.size(), arena.obstacles().to_vec()), Ok(arena.clone()));
        assert!(arena.clearance([0.0, 28.0]) > 3.0);
    }
}
