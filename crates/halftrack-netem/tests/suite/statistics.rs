//! What a datagram link does to a million datagrams is what its config says.

use std::time::Duration;

use halftrack::Timestamp;
use halftrack_netem::{DatagramLink, LinkConfig, LinkStats};

const COUNT: u32 = 1_000_000;
const INTERVAL_US: u64 = 10_000;

/// A datagram that came out: which it was, and how long it took.
struct Arrival {
    index: u32,
    took_us: f64,
}

fn ideal() -> LinkConfig {
    LinkConfig::default()
}

/// Sends `COUNT` numbered datagrams, one every 10 ms, and takes each out when it arrives.
fn run(config: LinkConfig, seed: u64) -> (Vec<Arrival>, LinkStats) {
    let mut link = DatagramLink::new(config, seed).unwrap();
    let mut arrivals = vec![];
    for index in 0..COUNT {
        let now = Timestamp::from_micros(u64::from(index) * INTERVAL_US);
        drain(&mut link, now, &mut arrivals);
        link.send(now, &index.to_le_bytes());
    }
    drain(&mut link, Timestamp::from_micros(u64::MAX), &mut arrivals);
    (arrivals, *link.stats())
}

fn drain(link: &mut DatagramLink, until: Timestamp, arrivals: &mut Vec<Arrival>) {
    while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
        let bytes = link.poll(at).expect("it has arrived");
        let index = u32::from_le_bytes(bytes.try_into().unwrap());
        let sent = Timestamp::from_micros(u64::from(index) * INTERVAL_US);
        arrivals.push(Arrival { index, took_us: at.saturating_since(sent).as_micros() as f64 });
    }
}

fn share(count: u64) -> f64 {
    count as f64 / f64::from(COUNT)
}

/// Within four standard errors of a share over `COUNT`.
fn assert_share(name: &str, count: u64, wanted: f64) {
    let tolerance = 4.0 * (wanted * (1.0 - wanted) / f64::from(COUNT)).sqrt();
    let got = share(count);
    assert!((got - wanted).abs() <= tolerance, "{name}: {got}, not {wanted} +- {tolerance}");
}

fn mean(arrivals: &[Arrival]) -> f64 {
    arrivals.iter().map(|arrival| arrival.took_us).sum::<f64>() / arrivals.len() as f64
}

#[test]
fn the_ideal_link_delivers_everything_at_once_and_in_order() {
    let (arrivals, stats) = run(ideal(), 1);
    assert!(arrivals.iter().map(|arrival| arrival.index).eq(0..COUNT));
    assert!(arrivals.iter().all(|arrival| arrival.took_us == 0.0));
    let count = u64::from(COUNT);
    let bytes = 4 * count;
    let wanted = LinkStats {
        sent: count,
        delivered: count,
        bytes_sent: bytes,
        bytes_delivered: bytes,
        ..LinkStats::default()
    };
    assert_eq!(stats, wanted);
}

#[test]
fn netem_02_delay_and_jitter_are_met_on_the_link() {
    let (delay, jitter) = (Duration::from_millis(50), Duration::from_millis(5));
    let (arrivals, stats) = run(LinkConfig { delay, jitter, ..ideal() }, 2);
    let mean = mean(&arrivals);
    assert!((mean - 50_000.0).abs() < 25.0, "{mean}");
    let variance = arrivals.iter().map(|arrival| (arrival.took_us - mean).powi(2)).sum::<f64>();
    let sigma = (variance / f64::from(COUNT)).sqrt();
    assert!((sigma / 5_000.0 - 0.98658).abs() < 0.003, "{sigma}");
    assert!(arrivals.iter().all(|arrival| (35_000.0..=65_000.0).contains(&arrival.took_us)));
    // Two that were sent 10 ms apart trade places when their difference, of sigma sqrt(2) * 5 ms, is beyond that:
    // 7.86 % of a normal's upper tail, a little less for one that is cut.
    assert!((0.06..0.08).contains(&share(stats.reordered)), "{stats:?}");
}

#[test]
fn the_mean_delay_told_is_the_one_that_is_met() {
    let (delay, jitter) = (Duration::from_millis(15), Duration::from_millis(12));
    let config = LinkConfig { delay, jitter, reorder: 0.1, loss: 0.05, burst: 2.0, ..ideal() };
    let told = DatagramLink::new(config, 3).unwrap().mean_delay().as_micros() as f64;
    let met = mean(&run(config, 3).0);
    assert!((told - met).abs() < 60.0, "{told} told, {met} met");
}

#[test]
fn netem_03_loss_comes_in_bursts_of_the_length_asked_for() {
    let (arrivals, stats) = run(LinkConfig { loss: 0.03, burst: 3.0, ..ideal() }, 4);
    assert!((share(stats.lost) - 0.03).abs() < 0.0018, "{stats:?}");
    let gaps: Vec<_> =
        arrivals.windows(2).map(|pair| pair[1].index - pair[0].index - 1).filter(|gap| *gap > 0).collect();
    let length = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
    assert!((length - 3.0).abs() < 0.12, "{length}");
    assert_eq!(stats.sent, stats.delivered + stats.lost);
}

#[test]
fn copies_damage_and_overtaking_are_met_and_accounted_for() {
    let delay = Duration::from_millis(35);
    let config = LinkConfig { delay, duplicate: 0.05, corrupt: 0.01, reorder: 0.02, ..ideal() };
    let (arrivals, stats) = run(config, 5);
    assert_share("corrupt", stats.corrupted, 0.01);
    assert_share("duplicate", stats.duplicated, 0.05 * 0.99);
    assert_share("reorder", stats.overtaking, 0.02 * 0.99);
    assert_eq!(stats.sent + stats.duplicated, stats.delivered + stats.corrupted);
    let at_once = arrivals.iter().filter(|arrival| arrival.took_us == 0.0).count() as u64;
    assert_eq!(at_once, stats.overtaking);
    // Each overtakes the three before it.
    assert!((share(stats.reordered) - 0.06).abs() < 0.006, "{stats:?}");
}

#[test]
fn copies_have_delays_of_their_own() {
    let (delay, jitter) = (Duration::from_millis(50), Duration::from_millis(5));
    let (arrivals, stats) = run(LinkConfig { delay, jitter, duplicate: 1.0, ..ideal() }, 6);
    assert_eq!(stats.duplicated, u64::from(COUNT));
    let mut took = vec![vec![]; COUNT as usize];
    for arrival in &arrivals {
        took[arrival.index as usize].push(arrival.took_us);
    }
    let apart: f64 = took.iter().map(|pair| (pair[0] - pair[1]).abs()).sum::<f64>() / f64::from(COUNT);
    // The mean distance of two independent normals is 2 / sqrt(pi) sigmas.
    assert!((apart / 5_000.0 / 1.128 - 0.9866).abs() < 0.01, "{apart}");
}

#[test]
fn turning_one_knob_leaves_the_other_dice_as_they_are() {
    let (delay, jitter) = (Duration::from_millis(50), Duration::from_millis(5));
    let calm = LinkConfig { delay, jitter, ..ideal() };
    let (all, _) = run(calm, 7);
    let (some, stats) = run(LinkConfig { loss: 0.1, burst: 2.0, corrupt: 0.01, ..calm }, 7);
    assert!(stats.lost > 90_000);
    let mut took = vec![0.0; COUNT as usize];
    for arrival in &all {
        took[arrival.index as usize] = arrival.took_us;
    }
    assert!(some.iter().all(|arrival| took[arrival.index as usize] == arrival.took_us));
}
