//! Tests of the derives, and of the checker that plays derived bodies. One program: the core's generic code is compiled
//! once, not once per file.

mod ball_line;
mod check_emissions;
mod check_game;
mod check_game_more;
mod derive_body;
mod derive_errors;
mod derive_input;
mod derive_pose;
