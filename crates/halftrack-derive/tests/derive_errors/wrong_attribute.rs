use core::time::Duration;

use halftrack::Body;

type Metres = f64;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
struct Tank {
    #[range(0..=9)]
    x: f64,
    #[grid(1/8, 0..=9)]
    hp: u8,
    #[turns(1/8)]
    alive: bool,
    #[micros]
    ticks: u16,
    #[range(0..=9)]
    reload: Duration,
    idle: Duration,
    #[grid(1/8, 0..=9)]
    #[turns(1/8)]
    both: f64,
    #[grid(1/8)]
    endless: f64,
    #[grid(1/8, 0..9)]
    open: f64,
    #[range(..=9)]
    half: u8,
    #[range]
    empty: u8,
    #[turns = 8]
    equal: f64,
    #[presses(5)]
    wide: u8,
    #[micros(0..=5_000_000_000)]
    long: u32,
}

fn main() {}
