//! A stream link: every byte once and in order, however late.

use std::time::Duration;

use halftrack::Timestamp;
use halftrack_netem::{LinkConfig, NetemError, Passage, StreamLink};
use proptest::prelude::*;

fn at_ms(millis: u64) -> Timestamp {
    Timestamp::from_micros(millis * 1_000)
}

fn delayed(millis: u64) -> LinkConfig {
    LinkConfig { delay: Duration::from_millis(millis), ..LinkConfig::default() }
}

fn link(config: LinkConfig) -> StreamLink {
    StreamLink::new(config, 1).unwrap()
}

/// Everything that comes out, with its arrival in milliseconds.
fn rest(link: &mut StreamLink) -> Vec<(u64, Vec<u8>)> {
    let mut out = vec![];
    while let Some(arrival) = link.poll_timeout() {
        out.push((arrival.as_micros() / 1_000, link.poll(arrival).unwrap()));
    }
    out
}

fn arrivals(link: &mut StreamLink) -> Vec<u64> {
    rest(link).into_iter().map(|(arrival, _)| arrival).collect()
}

#[test]
fn a_loss_delays_it_by_timeouts_that_double() {
    let mut link = link(LinkConfig { loss: 1.0, ..delayed(50) });
    link.send(at_ms(0), b"x").unwrap();
    // Six retransmissions after 300, 600, .. ms, and the way.
    assert_eq!(arrivals(&mut link), [300 * 63 + 50]);
    assert_eq!((link.stats().lost, link.stats().retransmitted), (6, 6));
}

#[test]
fn damage_is_a_loss_to_a_stream() {
    let mut link = link(LinkConfig { corrupt: 1.0, ..delayed(50) });
    link.send(at_ms(0), b"x").unwrap();
    assert_eq!(arrivals(&mut link), [300 * 63 + 50]);
    assert_eq!((link.stats().corrupted, link.stats().lost), (6, 0));
}

#[test]
fn netem_07_all_that_is_behind_a_loss_waits_for_it() {
    let mut link = link(delayed(50));
    link.send(at_ms(0), b"0").unwrap();
    link.set_config(LinkConfig { loss: 1.0, ..delayed(50) }).unwrap();
    link.send(at_ms(10), b"1").unwrap();
    link.set_config(delayed(50)).unwrap();
    link.send(at_ms(20), b"2").unwrap();
    link.send(at_ms(19_000), b"3").unwrap();
    let late = 10 + 300 * 63 + 50;
    let wanted = [(50, b"0"), (late, b"1"), (late, b"2"), (19_050, b"3")];
    assert_eq!(rest(&mut link), wanted.map(|(arrival, bytes)| (arrival, bytes.to_vec())));
}

#[test]
fn losses_are_seen_as_often_as_they_happen() {
    let mut link = link(LinkConfig { loss: 0.02, burst: 2.0, ..delayed(50) });
    let mut late = 0;
    for step in 0..100_000u64 {
        // Two seconds apart: nothing waits for another.
        link.send(at_ms(step * 2_000), &[0; 100]).unwrap();
        late += arrivals(&mut link).iter().filter(|arrival| **arrival > step * 2_000 + 50).count();
    }
    assert!(late.abs_diff(2_000) < 250, "{late}");
    // A retransmission is lost by chance, not by the burst that lost the first.
    let again = link.stats().retransmitted - late as u64;
    assert!(again.abs_diff(40) < 26, "{again}");
}

#[test]
fn a_partition_holds_back_and_then_sends_again() {
    let mut link = link(delayed(50));
    link.send(at_ms(0), b"before").unwrap();
    link.set_blocked(at_ms(10), Passage::Blocked);
    link.send(at_ms(20), b"within").unwrap();
    assert_eq!(link.poll(at_ms(50)), Some(b"before".to_vec()));
    assert_eq!((link.poll_timeout(), link.under_way()), (None, 1));
    link.set_blocked(at_ms(3_000), Passage::Open);
    link.send(at_ms(3_001), b"after").unwrap();
    let back = 3_000 + 300 + 50;
    assert_eq!(rest(&mut link), [(back, b"within".to_vec()), (back, b"after".to_vec())]);
    assert_eq!((link.stats().retransmitted, link.stats().blocked), (1, 0));
}

#[test]
fn a_partition_holds_back_what_waits_for_another_try() {
    let mut link = link(LinkConfig { loss: 1.0, ..delayed(50) });
    link.send(at_ms(0), b"lost").unwrap();
    link.set_config(delayed(50)).unwrap();
    link.send(at_ms(1), b"behind").unwrap();
    link.set_blocked(at_ms(10_000), Passage::Blocked);
    link.set_blocked(at_ms(20_000), Passage::Blocked);
    link.send(at_ms(25_000), b"within").unwrap();
    assert_eq!(link.poll_timeout(), None, "it would have come at 18,950 ms");
    link.set_blocked(at_ms(30_000), Passage::Open);
    let back = 30_000 + 300 + 50;
    let wanted: [&[u8]; 3] = [b"lost", b"behind", b"within"];
    assert_eq!(rest(&mut link), wanted.map(|bytes| (back, bytes.to_vec())));
}

#[test]
fn a_partition_holds_back_what_waits_for_the_rate() {
    let mut link = link(LinkConfig { rate_bits_per_second: Some(96_000), ..delayed(50) });
    link.send(at_ms(0), &[7; 3_600]).unwrap();
    link.set_blocked(at_ms(150), Passage::Blocked);
    link.set_blocked(at_ms(200), Passage::Open);
    // One was gone; the other two leave one after the other, and what they held of the rate is free.
    assert_eq!(arrivals(&mut link), [150, 200 + 100 + 300 + 50, 200 + 200 + 300 + 50]);
}

#[test]
fn long_pieces_travel_in_segments_at_the_rate() {
    let mut link = link(LinkConfig { rate_bits_per_second: Some(96_000), ..delayed(5) });
    link.send(at_ms(0), &[7; 3_000]).unwrap();
    let sizes: Vec<_> = rest(&mut link).iter().map(|(arrival, bytes)| (*arrival, bytes.len())).collect();
    assert_eq!(sizes, [(105, 1_200), (205, 1_200), (255, 600)]);
}

#[test]
fn a_full_stream_refuses_all_or_nothing() {
    let config = LinkConfig { max_queue_bytes: 2_000, ..delayed(50) };
    let mut link = link(config);
    link.send(at_ms(0), &[0; 1_500]).unwrap();
    assert_eq!(link.send(at_ms(0), &[0; 501]), Err(NetemError::Full { got: 501, free: 500 }));
    link.set_blocked(at_ms(0), Passage::Blocked);
    link.send(at_ms(0), &[0; 500]).unwrap();
    assert_eq!(link.send(at_ms(0), &[0; 1]), Err(NetemError::Full { got: 1, free: 0 }));
    assert_eq!(link.stats().queue_dropped, 2);
    assert_eq!(link.stats().bytes_sent, 2_000);
    assert!(link.poll(at_ms(50)).is_some());
    link.send(at_ms(50), &[0; 1_200]).unwrap();
}

#[test]
fn single_bytes_are_bounded_too() {
    let mut link = link(delayed(50));
    for _ in 0..65_536 {
        link.send(at_ms(0), &[0]).unwrap();
    }
    assert_eq!(link.send(at_ms(0), &[0]), Err(NetemError::Full { got: 1, free: 0 }));
}

#[test]
fn a_cleared_stream_begins_anew() {
    let mut link = link(LinkConfig { loss: 1.0, ..delayed(50) });
    link.send(at_ms(0), b"old").unwrap();
    link.set_blocked(at_ms(0), Passage::Blocked);
    link.send(at_ms(0), b"held").unwrap();
    link.clear();
    link.set_blocked(at_ms(0), Passage::Open);
    assert_eq!((link.poll_timeout(), link.stats().cleared), (None, 2));
    link.set_config(delayed(50)).unwrap();
    link.send(at_ms(1), b"new").unwrap();
    assert_eq!(rest(&mut link), [(51, b"new".to_vec())]);
}

#[test]
fn the_same_seed_gives_the_same_arrivals() {
    let run = |seed| {
        let config = LinkConfig { jitter: Duration::from_millis(10), loss: 0.05, ..delayed(50) };
        let mut link = StreamLink::new(config, seed).unwrap();
        for step in 0..1_000 {
            link.send(at_ms(step * 20), &[step as u8; 100]).unwrap();
        }
        rest(&mut link)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// One thing done to a link.
#[derive(Clone, Debug)]
enum Act {
    Send(usize),
    Read,
    Block(bool),
    Change(LinkConfig),
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let times = prop_oneof![(0..60_000_000u64, 0..20_000_000u64), (0..200_000u64, 0..100_000u64)];
    let shares = (0.0..=1.0, 1.0..1_000.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0);
    let rate = proptest::option::of(1_000..10_000_000u64);
    (times, shares, rate, any::<bool>(), 1_500..20_000usize).prop_map(
        |((delay, jitter), (loss, burst, reorder, duplicate, corrupt), rate, keep_order, max_queue_bytes)| {
            LinkConfig {
                delay: Duration::from_micros(delay),
                jitter: Duration::from_micros(jitter),
                keep_order,
                loss,
                burst,
                reorder,
                duplicate,
                corrupt,
                rate_bits_per_second: rate,
                max_queue_bytes,
            }
        },
    )
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..4_000usize).prop_map(Act::Send),
        4 => Just(Act::Read),
        1 => any::<bool>().prop_map(Act::Block),
        1 => any_config().prop_map(Act::Change),
    ]
}

/// What was written and what was read, byte by byte.
#[derive(Default)]
struct Ends {
    written: Vec<u8>,
    read: Vec<u8>,
}

impl Ends {
    fn act(&mut self, link: &mut StreamLink, now: Timestamp, act: &Act) {
        match act {
            Act::Send(size) => {
                let start = self.written.len();
                let bytes: Vec<_> = (start..start + size).map(|index| (index % 251) as u8).collect();
                if link.send(now, &bytes).is_ok() {
                    self.written.extend(bytes);
                }
            }
            Act::Read => self.read.extend(core::iter::from_fn(|| link.poll(now)).flatten()),
            Act::Block(true) => link.set_blocked(now, Passage::Blocked),
            Act::Block(false) => link.set_blocked(now, Passage::Open),
            Act::Change(config) => link.set_config(*config).unwrap(),
        }
    }
}

proptest! {
    #[test]
    fn netem_06_every_byte_arrives_once_and_in_order(
        config in any_config(),
        seed in any::<u64>(),
        acts in proptest::collection::vec((0..500_000u64, any_act()), 1..100),
    ) {
        let mut link = StreamLink::new(config, seed).unwrap();
        let mut ends = Ends::default();
        let mut now = Timestamp::ZERO;
        for (pause, act) in &acts {
            now = now + Duration::from_micros(*pause);
            ends.act(&mut link, now, act);
            prop_assert!(ends.written.starts_with(&ends.read));
        }
        link.set_blocked(now, Passage::Open);
        ends.read.extend(rest(&mut link).into_iter().flat_map(|(_, bytes)| bytes));
        prop_assert!(ends.read == ends.written, "{} of {}", ends.read.len(), ends.written.len());
        prop_assert_eq!(link.stats().delivered, link.stats().sent);
        prop_assert_eq!(link.stats().bytes_delivered, ends.written.len() as u64);
    }
}
