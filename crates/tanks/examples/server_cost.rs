//! What a tick of the server costs: `cargo run --release -p tanks --example server_cost`.
//!
//! The whole server in memory: N clients and N tanks, all see all, all moving, each changing its input twice a second at
//! random moments. Every client sends its input once a tick with the acknowledgement of a snapshot that is three to seven
//! ticks old, and 2 % of the snapshots are lost. Measured is everything that the server does in a tick, on one thread that
//! waits for nothing: taking N input datagrams, simulating, and writing and handing out N snapshots.

mod room;

use std::time::{Duration, Instant};

use room::{Kind, Room};

const TICKS: usize = 600;

fn main() {
    println!("| clients | arena | median | mean | 99 % | bytes per snapshot | allocations per tick |");
    println!("|---|---|---|---|---|---|---|");
    for (clients, side) in [(100, 400.0), (100, 60.0), (250, 600.0), (250, 100.0)] {
        let baseline_age = |number| 3 + usize::from(number % 5);
        let mut room = Room::new(Kind { clients, side, changes_per_second: 2.0, baseline_age });
        let (mut bytes, mut snapshots) = (0usize, 0u32);
        let mut costs: Vec<Duration> = (0..TICKS)
            .map(|_| {
                room.prepare();
                (0..usize::from(clients)).for_each(|client| room.full_states(client, |_, _| ()));
                let start = Instant::now();
                room.serve(|_, _, snapshot| {
                    bytes += snapshot.len();
                    snapshots += 1;
                });
                start.elapsed()
            })
            .collect();
        // The first ones tell everybody of everybody in full.
        costs.drain(..TICKS / 4);
        let mut allocations = 0;
        for _ in 0..100 {
            room.prepare();
            allocations += allocation_counter::measure(|| room.serve(|_, _, _| ())).count_total;
        }
        let mean = costs.iter().sum::<Duration>() / u32::try_from(costs.len()).expect("few");
        costs.sort_unstable();
        println!(
            "| {clients} | {side} m | {:.0} us | {:.0} us | {:.0} us | {:.0} | {:.2} |",
            micros(costs[costs.len() / 2]),
            micros(mean),
            micros(costs[costs.len() * 99 / 100]),
            bytes as f64 / f64::from(snapshots),
            allocations as f64 / 100.0,
        );
    }
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
