//! The outcome of settling a value, and the error of a field that a loaded value cannot have.

/// A field with a value that rules must not meet.
///
/// `field` is the type and the field that declares it: `Tank.x`, or `Order::Go.x` in an enum's variant.
///
/// ```
/// use halftrack::{Body, FieldError, FieldProblem};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Body)]
/// struct Ball {
///     #[grid(1/256, 0..=10)]
///     height: f64,
/// }
///
/// let error = Ball { height: 1e300 }.check().unwrap_err();
/// assert_eq!(error, FieldError { field: "Ball.height", problem: FieldProblem::OutOfRange });
/// assert_eq!(error.to_string(), "Ball.height is outside its range");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct FieldError {
    /// Type and field, as declared.
    pub field: &'static str,
    /// The problem with its value.
    pub problem: FieldProblem,
}

/// The problem with a field's value.
///
/// ```
/// use halftrack::FieldProblem;
///
/// assert_eq!(FieldProblem::NotFinite.to_string(), "is NaN or infinite");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// A float that is NaN or infinite.
    #[error("is NaN or infinite")]
    NotFinite,
    /// A number outside the range that you declared.
    #[error("is outside its range")]
    OutOfRange,
}

/// The outcome of settling a value.
///
/// Settling moves every field to its nearest grid step. That is normal and not reported. A [`FieldError`] is kept when
/// a field had to move by more than half a step, because it was outside its range, or when it was NaN or infinite.
/// Count these: your rules let a value escape.
///
/// ```
/// use halftrack::{Body, FieldProblem};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Body)]
/// struct Ball {
///     #[grid(1/256, 0..=10)]
///     height: f64,
/// }
///
/// let mut ball = Ball { height: 3.001 };
/// assert!(ball.settle().is_clean());
/// assert_eq!(ball.height, 3.0);
///
/// let mut escaped = Ball { height: 11.0 };
/// let problem = escaped.settle().problem().unwrap();
/// assert_eq!((problem.field, problem.problem), ("Ball.height", FieldProblem::OutOfRange));
/// assert_eq!(escaped.height, 10.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settling {
    first: Option<FieldError>,
}

impl Settling {
    /// Every field was within half a step of its grid.
    pub const CLEAN: Self = Self { first: None };

    /// Whether every field was within half a step of its grid.
    #[inline]
    pub const fn is_clean(&self) -> bool {
        self.first.is_none()
    }

    /// The first field that was not, in order of declaration.
    pub const fn problem(&self) -> Option<FieldError> {
        self.first
    }

    /// Remembers a problem, unless there was one before.
    #[cold]
    pub fn report(&mut self, field: &'static str, problem: FieldProblem) {
        self.first.get_or_insert(FieldError { field, problem });
    }

    /// Adds the outcome of a later field.
    #[inline]
    pub fn add(&mut self, later: Self) {
        if let Some(FieldError { field, problem }) = later.first {
            self.report(field, problem);
        }
    }
}
