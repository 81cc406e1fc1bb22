//! How many bytes a tank costs in a snapshot: `cargo run --release -p tanks --example bandwidth`.
//!
//! A hundred tanks, all moving, 20 Hz; what each client has acknowledged is three ticks old, and 2 % of the snapshots
//! are lost. Counted is everything that tells of bodies; the header of the datagram and the client's own body are not.

use std::sync::Arc;

use halftrack::snapshot::{Bodies, Course, Crowd, View};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{Cadence, PlayerId, SubTick, Tick, TickInput};
use tanks::{Arena, Axis, Surroundings, Tank, TankInput, Tanks};

const TANKS: u16 = 100;
const TICKS: u32 = 2_000;
/// Snapshots until an acknowledgement is back.
const ACK_TICKS: usize = 3;

fn main() {
    println!("| input changes | arena | bytes per tank and snapshot | tanks in contact | snapshot |");
    println!("|---|---|---|---|---|");
    for (per_second, side) in [(2.0, 800.0), (0.2, 800.0), (2.0, 60.0)] {
        let run = Match::new(side).play(per_second);
        println!(
            "| {per_second} a second | {side} m | {:.2} | {:.1} % | {:.0} bytes |",
            run.bytes as f64 / f64::from(run.snapshots) / f64::from(TANKS),
            100.0 * run.touched as f64 / f64::from(TICKS) / f64::from(TANKS),
            run.bytes as f64 / f64::from(run.snapshots),
        );
    }
}

struct Run {
    bytes: usize,
    snapshots: u32,
    touched: usize,
}

/// A match without players: the dice drive.
struct Match {
    arena: Arc<Arena>,
    tanks: Vec<Tank>,
    held: Vec<TankInput>,
    dice: u64,
}

impl Match {
    fn new(side: f64) -> Self {
        let arena = Arc::new(Arena::new([side, side], vec![]).expect("a good size"));
        let place = |n: u16, of: f64| (f64::from(n) + 0.5) / 10.0 * of * 0.9 - of * 0.45;
        let tanks =
            (0..TANKS).map(|n| Tank::new(place(n % 10, side), place(n / 10, side), 0.0).to_grid().into());
        Self {
            arena,
            tanks: tanks.collect(),
            held: vec![TankInput::NEUTRAL; TANKS.into()],
            dice: 0x9e37_79b9,
        }
    }

    fn unit(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1u64 << 53) as f64
    }

    fn wish(&mut self) -> TankInput {
        let mut axis = || Axis::from_level((self.unit() * 33.0) as i8 - 16);
        let (turn, throttle) = (axis(), axis());
        // All are moving.
        TankInput { turn, throttle: if throttle == Axis::ZERO { Axis::FULL } else { throttle } }
    }

    fn input(&mut self, tank: usize, per_second: f64) -> TickInput<TankInput> {
        let mut input = TickInput::steady(self.held[tank]);
        let changes = self.unit() < per_second * Cadence::default().interval().as_secs_f64();
        if changes && let Some(at) = SubTick::new((self.unit() * 256.0) as u8) {
            let wish = self.wish();
            input.change(at, wish).expect("the first change of its tick");
        }
        self.held[tank] = input.last();
        input
    }

    fn play(mut self, per_second: f64) -> Run {
        let cadence = Cadence::default();
        let alone = Surroundings::empty(Arc::clone(&self.arena));
        let mut bodies = Bodies::<Tanks>::new(cadence, alone.clone(), Tick::new(0));
        self.held = (0..TANKS).map(|_| self.wish()).collect();
        for (number, tank) in (0..).zip(&self.tanks) {
            bodies.join(PlayerId::new(number), self.held[usize::from(number)], *tank);
        }
        let (mut view, mut crowd) = (View::default(), Crowd::<Tanks>::new(cadence, alone));
        let mut run = Run { bytes: 0, snapshots: 0, touched: 0 };
        let mut acks = std::collections::VecDeque::new();
        for number in 1..=TICKS {
            let told: Vec<_> = (0..self.held.len()).map(|tank| self.input(tank, per_second)).collect();
            bodies.advance(|player| told[usize::from(player.number())]);
            run.touched += bodies.actors().filter(|(_, record)| record.course != Course::Own).count();

            let mut buffer = [0; 4_000];
            let mut bits = BitWriter::new(&mut buffer);
            bodies.write(&mut view, buffer_bits(), &mut bits);
            let length = bits.finish().expect("it fits");
            let arrives = self.unit() >= 0.02;
            if arrives {
                let read = crowd.read(Tick::new(number), &mut BitReader::new(&buffer[..length]));
                read.expect("what is told can be read");
            }
            acks.push_back(arrives.then_some(Tick::new(number)));
            if acks.len() >= ACK_TICKS
                && let Some(Some(tick)) = acks.pop_front()
            {
                view.acknowledge(tick);
            }
            // The first ones tell of everybody in full.
            if number > 20 {
                run.bytes += length;
                run.snapshots += 1;
            }
        }
        assert_eq!(crowd.bodies().count(), usize::from(TANKS));
        run
    }
}

fn buffer_bits() -> usize {
    1_100 * 8
}
