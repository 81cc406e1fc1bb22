//! Two small games to read and to copy. Each is one file: rules as a [`halftrack::Game`], and the world around them.
//!
//! | module | what it shows |
//! |---|---|
//! | [`hover`] | bodies that push each other and conserve momentum; a group of bodies with players of their own |
//! | [`ball`] | a body that nothing drives, predicted by the players near it; presses; a score as a body without a pose |
//! | [`plane`] | discs of both games: how they move between walls, and when they meet |

pub mod ball;
pub mod hover;
pub mod plane;
