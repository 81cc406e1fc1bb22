//! How many bytes a tank costs in a snapshot: `cargo run --release -p tanks --example bandwidth`.
//!
//! A hundred tanks, all moving, and a hundred clients that see them all, 20 Hz; what each has acknowledged is three ticks
//! old, and 2 % of them are never acknowledged, as if lost. Counted is the whole datagram of the real server: header, the client's own body
//! with what became of its input, everybody, the check. One client reads what it is sent and compares it with the truth.
//!
//! Then eight clients among bodies that no player owns: a hundred that the world drives, each with another input four times a
//! second, and four hundred that stand.

mod room;

use std::sync::Arc;

use halftrack::server::World;
use halftrack::snapshot::{Crowd, Header, OwnBodies};
use halftrack::wire::BitReader;
use halftrack::{BodyId, Driver, Epoch, Tick};
use room::{Kind, Room, herd};
use tanks::{HULL_RADIUS, Tanks};

const TANKS: u16 = 100;
const TICKS: u32 = 2_000;
/// The first ones tell of everybody in full.
const SETTLED: u32 = 40;

fn main() {
    println!("| input changes | arena | bytes per tank and snapshot | whole datagram | tanks in contact |");
    println!("|---|---|---|---|---|");
    for (changes_per_second, side) in [(2.0, 800.0), (0.2, 800.0), (2.0, 60.0), (0.0, 800.0)] {
        let herd = herd::Kind::NONE;
        let run = play(Kind { clients: TANKS, side, changes_per_second, baseline_age: |_| 3, herd });
        let datagram = run.datagram();
        println!(
            "| {changes_per_second} a second | {side} m | {:.2} | {datagram:.0} bytes | {:.1} % |",
            datagram / f64::from(TANKS),
            100.0 * run.touching as f64 / f64::from(TICKS - SETTLED) / f64::from(TANKS),
        );
    }
    herds();
}

/// Bodies that no player owns, and eight players that go on as before: their own cost is in the first line.
fn herds() {
    println!();
    println!(
        "| roaming, 4 changes a second | standing | whole datagram | bytes per roaming body and snapshot |"
    );
    println!("|---|---|---|---|");
    let mut steady = 0.0;
    for (movers, standing, stander) in [
        (0, 0, Driver::Nothing),
        (0, 400, Driver::Nothing),
        (0, 400, Driver::World),
        (100, 0, Driver::Nothing),
        (100, 400, Driver::Nothing),
        (100, 400, Driver::World),
    ] {
        let herd = herd::Kind { movers, changes_per_second: 4.0, standing, stander };
        let kind = Kind { clients: 8, side: 800.0, changes_per_second: 0.0, baseline_age: |_| 3, herd };
        let datagram = play(kind).datagram();
        if herd.count() == 0 {
            steady = datagram;
        }
        let driver = match (standing, stander) {
            (0, _) => "",
            (_, Driver::World) => " (of the world)",
            _ => " (of nothing)",
        };
        let each = match movers {
            0 => "-".to_owned(),
            _ => format!("{:.2}", (datagram - steady) / f64::from(movers)),
        };
        println!("| {movers} | {standing}{driver} | {datagram:.1} bytes | {each} |");
    }
}

impl Run {
    /// Mean bytes of a snapshot.
    fn datagram(&self) -> f64 {
        self.bytes as f64 / f64::from(self.snapshots)
    }
}

#[derive(Default)]
struct Run {
    bytes: usize,
    snapshots: u32,
    touching: usize,
}

fn play(kind: Kind) -> Run {
    let mut room = Room::new(kind);
    let mut crowd = Crowd::new(Arc::clone(room.server.world().rules()), room.server.cadence());
    let mut own = OwnBodies::default();
    let mut run = Run::default();
    for number in 0..TICKS {
        room.prepare();
        let mut read = None;
        room.serve(|client, tick, snapshot| {
            if number >= SETTLED {
                run.bytes += snapshot.len();
                run.snapshots += 1;
            }
            if client == 0 {
                read = Some((tick, snapshot.to_vec()));
            }
        });
        room.full_states(0, |tick, bodies| {
            crowd.read(tick, &mut BitReader::new(bodies)).expect("what is told can be read");
        });
        // Everybody in full by the stream takes the place of a snapshot.
        if let Some((tick, snapshot)) = read {
            read_all(&mut crowd, &mut own, tick, &snapshot);
        }
        compare(&room, &crowd, room.server.tick());
        if number >= SETTLED {
            run.touching += touching(&room);
        }
    }
    assert_eq!(crowd.bodies().count(), usize::from(kind.clients + kind.herd.count()));
    run
}

fn read_all(crowd: &mut Crowd<Tanks>, own: &mut OwnBodies<Tanks>, tick: Tick, snapshot: &[u8]) {
    let mut bits = BitReader::new(snapshot);
    let header = Header::read((tick, Epoch::default()), &mut bits).expect("a header");
    assert_eq!(header.tick, tick);
    let known = own.ids.clone();
    own.read(&known, &mut bits).expect("a body");
    crowd.read(tick, &mut bits).expect("what is told can be read");
}

fn compare(room: &Room, crowd: &Crowd<Tanks>, tick: Tick) {
    for (id, history) in crowd.bodies() {
        let told = history.get(tick).map(|record| record.after);
        assert_eq!(told.as_ref(), room.server.body(id, tick), "body {id} at tick {tick}");
    }
}

/// How many tanks stand against another.
fn touching(room: &Room) -> usize {
    let places: Vec<(BodyId, f64, f64)> =
        room.server.bodies().map(|(id, _, tank)| (id, tank.pose().x, tank.pose().y)).collect();
    let touches = |(id, x, y): &&(BodyId, f64, f64)| {
        let near = |other: &(BodyId, f64, f64)| (other.1 - x).hypot(other.2 - y) < 2.0 * HULL_RADIUS + 0.01;
        places.iter().any(|other| other.0 != *id && near(other))
    };
    places.iter().filter(touches).count()
}
