//! A checker for a game's own rules: plays them, and names the first mistake with tick, body, field and both values.
//!
//! Put it into one test of the crate of your rules. It finds the mistakes that break prediction in practice: hidden
//! state, a field that is not on the wire, a reach that is too small.

mod emissions;
mod fields;
mod lister;
mod live;
mod mistake;
mod motion;
mod neighbours;
mod plan;
mod play;
mod values;

pub use fields::{Difference, FieldPath, FieldValue};
pub use mistake::{CodecBaseline, GameMistake, Place};
pub use plan::{CheckPlan, CheckReport};

use crate::game::Game;
use play::Play;

/// Plays the game of `plan` and checks the rules in every tick of every body. `build` is called twice, for two values of
/// the rules that know nothing of each other, as server and client do.
///
/// | checked | finds, for example |
/// |---|---|
/// | `advance`, `pose`, `limits` and `reach` give the same bits when called again, in another order of bodies | a counter, a cache, a clock |
/// | both builds give the same bits and the same `fingerprint` | `HashMap` order, addresses |
/// | live prediction equals replay from every state of the last second | a rule that depends on how a step is cut |
/// | `settle` is idempotent and never has to clamp | a range that is too narrow |
/// | bodies and inputs survive their codec within `MAX_BITS`, bodies against several baselines | a forgotten field |
/// | `==`, `digest` and serde tell bodies apart by the same fields | a digest that leaves a field out |
/// | bodies out of `reach` make no difference, and those in contact are marked by [`Step::touch`](crate::Step::touch) | an extent without the hull |
/// | emissions end, are made in time, and are the same in an open tick and in the whole one; touched ids exist | a gun without a magazine, a muzzle that moved first |
/// | `predicts` names what fits into a group, and no bodies carry each other in a circle | a rule that names every body |
/// | a body by itself moves within `limits`, and its pose is finite and stays at rest | a boost that is not in `limits` |
///
/// ```
/// use halftrack::cart::{Cart, CartBody};
/// use halftrack::{CheckPlan, check_game};
///
/// let bodies = vec![CartBody::at(0.0), CartBody::at(1.5), CartBody { speed: 3.0, ..CartBody::at(4.0) }];
/// let report = check_game(|| Cart, &CheckPlan::new(bodies, vec![-8, -1, 0, 5, 8]))?;
/// assert_eq!((report.ticks, report.moves), (600, 1_800));
/// assert!(report.contacts > 10, "the carts met");
/// assert_eq!(report.constant_fields, []);
/// # Ok::<(), halftrack::GameMistake>(())
/// ```
///
/// A mistake says what to do about it:
///
/// ```
/// # use halftrack::cart::{Cart, CartBody};
/// # use halftrack::{CheckPlan, check_game};
/// let far = CartBody::at(2_000_000.0);
/// let mistake = check_game(|| Cart, &CheckPlan::new(vec![far], vec![8])).unwrap_err();
/// assert_eq!(
///     mistake.to_string(),
///     "tick 0, body 0: CartBody.x is outside its range (2000000 became 1000000). settle had to replace it: clamp the \
///      field in advance, or declare a wider range"
/// );
/// ```
///
/// # Errors
/// The first [`GameMistake`] found.
pub fn check_game<G: Game>(build: impl Fn() -> G, plan: &CheckPlan<G>) -> Result<CheckReport, GameMistake> {
    Play::start(build(), build(), plan)?.run()
}
