//! A datagram link: its order, its memory, its changes, and that a seed is all it depends on.

use std::time::Duration;

use halftrack::{Digest, Timestamp};
use halftrack_netem::{DatagramLink, LinkConfig, Passage};
use proptest::prelude::*;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn ideal() -> LinkConfig {
    LinkConfig::default()
}

fn delayed(millis: u64) -> LinkConfig {
    LinkConfig { delay: Duration::from_millis(millis), ..ideal() }
}

fn link(config: LinkConfig) -> DatagramLink {
    DatagramLink::new(config, 1).unwrap()
}

/// Everything that comes out, with its arrival.
fn rest(link: &mut DatagramLink) -> Vec<(u64, Vec<u8>)> {
    let mut out = vec![];
    while let Some(arrival) = link.poll_timeout() {
        out.push((arrival.as_micros(), link.poll(arrival).unwrap()));
    }
    out
}

/// Bad in every way there is.
fn awful() -> LinkConfig {
    LinkConfig {
        delay: Duration::from_millis(125),
        jitter: Duration::from_millis(40),
        loss: 0.1,
        burst: 3.0,
        reorder: 0.05,
        duplicate: 0.05,
        corrupt: 0.01,
        rate_bits_per_second: Some(300_000),
        max_queue_bytes: 3_000,
        ..ideal()
    }
}

/// One number for all that a link made of `count` datagrams, and how many came out.
fn digest(config: LinkConfig, seed: u64, count: u32) -> (u64, u64) {
    let mut link = DatagramLink::new(config, seed).unwrap();
    let mut hash = Digest::new();
    for index in 0..count {
        let now = at(u64::from(index) * 9_000);
        let size = 100 + (index as usize * 37) % 700;
        link.send(now, &vec![index as u8; size]);
        while let Some(arrival) = link.poll_timeout().filter(|arrival| *arrival <= now) {
            hash = link
                .poll(now)
                .unwrap()
                .iter()
                .fold(hash.word(arrival.as_micros()), |hash, byte| hash.word((*byte).into()));
        }
    }
    (hash.finish(), link.stats().delivered)
}

#[test]
fn netem_01_the_same_seed_gives_the_same_bytes_on_every_platform() {
    assert_eq!(digest(awful(), 1, 10_000), digest(awful(), 1, 10_000));
    assert_ne!(digest(awful(), 1, 10_000), digest(awful(), 2, 10_000));
    assert_eq!(digest(awful(), 1, 10_000), (0x5d7cb34ba0a754a4, 7_790));
}

#[test]
fn a_rate_spaces_datagrams_out() {
    let mut link = link(LinkConfig { rate_bits_per_second: Some(1_000_000), ..delayed(5) });
    link.send(at(0), &[1; 1_250]);
    link.send(at(0), &[2; 125]);
    link.send(at(40_000), &[3; 125]);
    let arrivals: Vec<_> = rest(&mut link).iter().map(|(arrival, _)| *arrival).collect();
    assert_eq!(arrivals, [15_000, 16_000, 46_000]);
}

#[test]
fn a_full_queue_drops_what_comes_and_counts_it() {
    let config = LinkConfig { rate_bits_per_second: Some(800_000), max_queue_bytes: 2_000, ..delayed(500) };
    let mut link = link(config);
    for _ in 0..3 {
        link.send(at(0), &[0; 1_000]);
    }
    assert_eq!(link.stats().queue_dropped, 1);
    link.send(at(9_999), &[0; 1_000]);
    assert_eq!(link.stats().queue_dropped, 2, "the first is not gone yet");
    link.send(at(10_000), &[0; 1_000]);
    assert_eq!(link.stats().queue_dropped, 2, "what is beyond the queue takes no room in it");
    assert_eq!(rest(&mut link).len(), 3);
}

#[test]
fn a_busy_link_passes_just_its_rate_whatever_the_delay() {
    let config =
        LinkConfig { rate_bits_per_second: Some(1_000_000), max_queue_bytes: 10_000, ..delayed(2_000) };
    let mut link = link(LinkConfig { jitter: Duration::from_millis(100), duplicate: 1.0, ..config });
    let mut passed = 0;
    for step in 0..20_000 {
        let now = at(step * 1_000);
        // Twice the rate.
        link.send(now, &[0; 250]);
        passed += core::iter::from_fn(|| link.poll(now)).count();
    }
    // 125 kB/s for the 18 s in which anything arrives, each twice.
    assert!((17_500..18_500).contains(&passed), "{passed}");
    assert_eq!(link.stats().sent, 20_000);
    assert_eq!(link.stats().duplicated * 2, link.stats().delivered + link.under_way() as u64);
}

#[test]
fn netem_08_a_link_that_nobody_reads_stays_small() {
    let mut unread = link(LinkConfig { max_queue_bytes: 1_500, duplicate: 1.0, ..ideal() });
    for _ in 0..100 {
        unread.send(at(0), &[0; 100]);
    }
    assert_eq!(unread.under_way(), 15);
    assert_eq!((unread.stats().duplicated, unread.stats().queue_dropped), (7, 92));

    let mut empty = link(ideal());
    for _ in 0..70_000 {
        empty.send(at(0), &[]);
    }
    assert_eq!(empty.under_way(), 65_536);
    assert_eq!(empty.stats().queue_dropped, 70_000 - 65_536);

    let mut limited =
        link(LinkConfig { max_queue_bytes: 1_500, rate_bits_per_second: Some(80_000), ..delayed(100) });
    for step in 0..1_000 {
        limited.send(at(step * 100_000), &[0; 1_000]);
    }
    // Twice the queue and the 1000 bytes that a tenth of a second lets through.
    assert_eq!(limited.under_way(), 5);
}

#[test]
fn a_partition_loses_what_is_sent_in_it_and_nothing_else() {
    let mut link = link(delayed(50));
    link.send(at(0), b"before");
    link.set_blocked(at(10_000), Passage::Blocked);
    link.send(at(20_000), b"within");
    assert_eq!(link.poll(at(50_000)), Some(b"before".to_vec()));
    link.set_blocked(at(60_000), Passage::Open);
    link.send(at(60_000), b"after");
    assert_eq!(rest(&mut link), [(110_000, b"after".to_vec())]);
    assert_eq!((link.stats().blocked, link.stats().lost), (1, 0));
}

#[test]
fn a_new_config_is_for_what_comes() {
    let mut link = link(delayed(100));
    link.send(at(0), b"slow");
    link.set_config(delayed(10)).unwrap();
    link.send(at(0), b"fast");
    assert!(link.set_config(LinkConfig { loss: f64::NAN, ..ideal() }).is_err());
    link.send(at(1), b"as before");
    let wanted = [(10_000, b"fast".to_vec()), (10_001, b"as before".to_vec()), (100_000, b"slow".to_vec())];
    assert_eq!(rest(&mut link), wanted);
    assert_eq!(link.mean_delay(), Duration::from_millis(10));
}

#[test]
fn a_new_rate_is_for_what_comes() {
    let mut link = link(ideal());
    link.set_config(LinkConfig { rate_bits_per_second: Some(8_000), ..ideal() }).unwrap();
    link.send(at(0), &[0; 10]);
    assert_eq!(link.poll_timeout(), Some(at(10_000)));
}

#[test]
fn what_is_lost_is_not_damaged_too() {
    let mut link = link(LinkConfig { loss: 1.0, corrupt: 1.0, ..ideal() });
    link.send(at(0), b"gone");
    assert_eq!((link.stats().lost, link.stats().corrupted), (1, 0));
}

#[test]
fn order_is_kept_from_the_moment_it_is_asked_for() {
    let mut link = link(delayed(100));
    link.send(at(0), b"slow");
    link.set_config(LinkConfig { keep_order: true, ..delayed(10) }).unwrap();
    link.send(at(0), b"fast");
    assert_eq!(rest(&mut link), [(100_000, b"slow".to_vec()), (100_000, b"fast".to_vec())]);
}

#[test]
fn a_cleared_link_is_empty_and_holds_nothing_up() {
    let config = LinkConfig { rate_bits_per_second: Some(8_000), keep_order: true, ..delayed(100) };
    let mut link = link(config);
    link.send(at(0), &[0; 1_000]);
    link.clear();
    assert_eq!((link.poll_timeout(), link.under_way(), link.stats().cleared), (None, 0, 1));
    link.send(at(0), &[1]);
    assert_eq!(rest(&mut link), [(101_000, vec![1])]);
}

#[test]
fn time_never_runs_backwards() {
    let mut link = link(delayed(10));
    link.send(at(100_000), b"first");
    link.send(at(0), b"second");
    assert_eq!(link.poll(at(50_000)), None);
    assert_eq!(rest(&mut link), [(110_000, b"first".to_vec()), (110_000, b"second".to_vec())]);
    assert_eq!(link.stats().backwards, 2);
}

#[test]
fn the_end_of_time_is_no_trap() {
    let mut link = link(awful());
    for _ in 0..100 {
        link.send(at(u64::MAX), b"late");
    }
    assert!(core::iter::from_fn(|| link.poll(at(u64::MAX))).count() > 50);
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let times = (0..300_000u64, 0..100_000u64)
        .prop_map(|(d, j)| (Duration::from_micros(d), Duration::from_micros(j)));
    let shares = (0.0..=1.0, 1.0..20.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0);
    let rate = proptest::option::of(10_000..10_000_000u64);
    (times, any::<bool>(), shares, rate, 1_500..20_000usize).prop_map(
        |((delay, jitter), keep_order, (loss, burst, reorder, duplicate, corrupt), rate, max_queue_bytes)| {
            let rate_bits_per_second = rate;
            LinkConfig {
                delay,
                jitter,
                keep_order,
                loss,
                burst,
                reorder,
                duplicate,
                corrupt,
                rate_bits_per_second,
                max_queue_bytes,
            }
        },
    )
}

proptest! {
    #[test]
    fn netem_04_every_datagram_is_accounted_for_and_none_is_early(
        config in any_config(),
        seed in any::<u64>(),
        sends in proptest::collection::vec((0..20_000u64, 4..1_400usize), 1..200),
    ) {
        let mut link = DatagramLink::new(config, seed).unwrap();
        let mut now = 0;
        for (index, (pause, size)) in sends.iter().enumerate() {
            now += pause;
            let mut bytes = vec![0; *size];
            bytes[..4].copy_from_slice(&(index as u32).to_le_bytes());
            link.send(at(now), &bytes);
        }
        let stats = *link.stats();
        let gone = stats.lost + stats.corrupted + stats.queue_dropped;
        prop_assert_eq!(stats.sent + stats.duplicated, gone + link.under_way() as u64);
        let sent_at: Vec<u64> = sends.iter().scan(0, |at, (pause, _)| { *at += pause; Some(*at) }).collect();
        for (arrival, bytes) in rest(&mut link) {
            let index = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            prop_assert_eq!(bytes.len(), sends[index].1);
            // `rest` reads at the arrival or at the last `send`, whichever is later; the arrival itself is exact.
            prop_assert!(arrival >= sent_at[index]);
        }
        prop_assert_eq!(link.stats().delivered + gone, stats.sent + stats.duplicated);
    }

    #[test]
    fn netem_05_kept_order_is_kept(
        mut config in any_config(),
        seed in any::<u64>(),
        pauses in proptest::collection::vec(0..20_000u64, 1..200),
    ) {
        config.keep_order = true;
        let mut link = DatagramLink::new(config, seed).unwrap();
        let mut now = 0;
        for (index, pause) in pauses.iter().enumerate() {
            now += pause;
            link.send(at(now), &(index as u32).to_be_bytes());
        }
        let out = rest(&mut link);
        prop_assert!(out.is_sorted_by(|left, right| left.1 <= right.1), "{:?}", out);
        prop_assert_eq!(link.stats().reordered, 0);
    }
}
