//! A laboratory for netcode: the real server, real clients and a seeded network between them in virtual time, bots that
//! play, a record of the truth, and numbers for what the player sees.
//!
//! For a game of one's own: [`Lab`] takes any [`halftrack::server::World`]. For the tank game there are plans: files
//! that say who plays on which network, and what must come out.
//!
//! | module | what it is |
//! |---|---|
//! | `lab` | server, clients, links and happenings in virtual time |
//! | `seat`, `pace` | one client's place: links, connection, clock, frames |
//! | `bot` | who plays |
//! | `truth` | what really happened: every tick of every body, every event |
//! | `watch` | what is looked at in one client: own body, input, others |
//! | `witness` | what can be looked at in a client without knowing the truth |
//! | `check` | what must always hold |
//! | `tally`, `samples`, `result` | what is added up, and what is told of it |
//! | [`tank`] | the tank game: arenas and bots |
//! | `plan` | plans as files |
//! | `runs` | plans run by their seeds, and held against what they expect |
//! | [`model`] | sessions in small, every order of loss, cut and timeout tried |
//! | `soak` | plans by the thousand, findings shrunk; a room for days |
//! | `trace` | what one client went through, for pictures |
//! | `table`, `html` | results for people |
//! | `dice` | the same seed, the same run |

/// The example of the manual is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/LAB.md")]
struct Manual;

mod bot;
mod check;
mod dice;
mod html;
mod lab;
pub mod model;
mod pace;
mod plan;
mod result;
mod runs;
mod samples;
mod seat;
mod soak;
mod table;
mod tally;
pub mod tank;
mod trace;
mod truth;
pub mod volley;
mod watch;
mod witness;

pub use bot::{Bot, ShotCount};
pub use check::{Rule, Violation};
pub use dice::Dice;
pub use html::report;
pub use lab::{Cut, Happening, Lab, LabConfig, LabError};
pub use pace::{FrameClock, Frames, Wake};
pub use plan::{Bound, Plan, PlanError, SHIPPED, SeatPlan};
pub use result::{ByCause, Combat, Emit, Events, Group, Input, Invariants, Measured, Net, Own, Remote};
pub use runs::{Failure, PlanResult, Run, run_once, run_plans, tank_lab, trace_once};
pub use samples::{Distribution, Samples};
pub use seat::SeatConfig;
pub use soak::{
    Broken, Day, Endured, Fault, Finding, SoakConfig, SoakSummary, endure, judge, keep_panics,
    resident_bytes, shrink, soak,
};
pub use table::{compare, table};
pub use trace::{Trace, TraceFrame};
pub use truth::Recorded;
pub use witness::{Findings, Witness};
