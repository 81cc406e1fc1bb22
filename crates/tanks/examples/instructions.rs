//! What `cargo xtask instructions` counts: `instructions PLACE PENDING TIMES` reconciles that often.

#[path = "../benches/scene/mod.rs"]
mod scene;

use scene::{Place, Scene};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, pending, times] = arguments.as_slice() else {
        eprintln!("usage: instructions open|walls|pillar|group PENDING TIMES");
        std::process::exit(2);
    };
    let place = match place.as_str() {
        "walls" => Place::Walls,
        "pillar" => Place::Pillar,
        "group" => Place::Group,
        _ => Place::Open,
    };
    let (pending, times) = (pending.parse().expect("a number"), times.parse::<u32>().expect("a number"));
    let scene = Scene::new(place, pending);
    let replayed: u32 = (0..times).map(|_| scene.clone().reconcile()).sum();
    println!("{replayed} ticks replayed");
}
