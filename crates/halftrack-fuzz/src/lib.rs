//! What fuzzing does with bytes. Each target is a function of bytes that must return, whatever they are; what must hold
//! besides is asserted there. `fuzz/` hands them to libFuzzer, and `tests/corpus.rs` replays every corpus.
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | frames and messages of both lanes |
//! | `crowd` | snapshots, against what a client has |
//! | `tank` | what the tank game adds to the wire |
//! | `text` | names, JSON, plans, config |
//! | `recording` | matches on disk |
//! | `flight` | flight reports of clients |
//! | `credentials` | signed tokens |
//! | `hostile_peer` | a script of packets against one live room |
//! | `bad_network` | a script of trouble between clients and a server |
//! | `hostile_server` | a script of packets against one live client |
//! | `convoy` | a world with every kind of body |
//! | `rig` | a room, clients who play by the rules, and short pipes between them |
//! | `seeds` | where a corpus begins |
//! | `script` | choices out of bytes |
//! | `budget` | memory that may be taken |
//!
//! A new target is a function here, its line in [`TARGETS`], a file in `fuzz/fuzz_targets/` with its entry in
//! `fuzz/Cargo.toml`, and a corpus.

mod bad_network;
mod budget;
mod convoy;
mod credentials;
mod crowd;
mod flight;
mod hostile_peer;
mod hostile_server;
mod recording;
mod rig;
mod script;
mod seeds;
mod tank;
mod text;
mod wire;

// Parts of programs, which are no libraries.
#[path = "../../tanks-server/src/config/mod.rs"]
#[allow(dead_code, reason = "a program uses more of it")]
mod config;
#[path = "../../tanks-web/src/json.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program uses more of it")]
mod json;
#[path = "../../tanks-server/src/out.rs"]
#[allow(dead_code, reason = "a program uses more of it")]
mod out;
#[path = "../../tanks-server/src/site.rs"]
#[allow(dead_code, reason = "a program uses more of it")]
mod site;
#[path = "../../tanks-server/src/token.rs"]
#[allow(dead_code, reason = "a program uses more of it")]
mod token;

pub use bad_network::bad_network;
pub use credentials::token;
pub use crowd::{crowd, snapshot};
pub use flight::flight;
pub use hostile_peer::hostile_peer;
pub use hostile_server::hostile_server;
pub use recording::recording;
pub use seeds::seeds;
pub use tank::{body, combat};
pub use text::{config, json, names, plan};
pub use wire::{frame, from_client, from_server, move_input};

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its file and of its corpus.
pub const TARGETS: [(&str, Target); 18] = [
    ("bad_network", bad_network),
    ("body", body),
    ("combat", combat),
    ("config", config),
    ("crowd", crowd),
    ("flight", flight),
    ("frame", frame),
    ("from_client", from_client),
    ("from_server", from_server),
    ("hostile_peer", hostile_peer),
    ("hostile_server", hostile_server),
    ("json", json),
    ("move_input", move_input),
    ("names", names),
    ("plan", plan),
    ("recording", recording),
    ("snapshot", snapshot),
    ("token", token),
];
