//! Recordings that no server wrote: whatever is in one, playing it back is bounded work, and ends with an answer.

use std::time::Duration;

use crate::forge::Forge;
use halftrack::record::{Entry, Recording, RecordingRefused};
use halftrack::server::{RecoverRefused, Recovery, Server, ServerConfig};
use halftrack::{Tick, Timestamp};
use tanks::{Arena, TankPlayback, TankWorld, TankWorldConfig, Tanks, open_recording};

/// Work that a recording may ask for, as the format says.
fn allowed(bytes: usize) -> u64 {
    (1 << 26) + 2_048 * bytes as u64
}

fn play(bytes: &[u8]) -> TankPlayback {
    let begun = std::time::Instant::now();
    let (_, mut playback) = open_recording(bytes.to_vec()).unwrap();
    while playback.next().is_some() {}
    println!("{} bytes, {} work, {:?}", bytes.len(), playback.stage().work(), begun.elapsed());
    playback
}

/// What a server makes of it that is to go on from it.
fn recover(bytes: &[u8], config: TankWorldConfig) -> Option<RecoverRefused> {
    let recording = Recording::open(bytes.to_vec()).unwrap();
    let recovery = Recovery { run: [0; 16], rewound: false };
    let world = TankWorld::new(config).unwrap();
    Server::recover(ServerConfig::default(), world, Timestamp::ZERO, recording, recovery).err()
}

/// The smallest arena: everybody is in everybody's way.
fn heap() -> TankWorldConfig {
    let arena = std::sync::Arc::new(Arena::new([8.0, 8.0], vec![]).unwrap());
    TankWorldConfig { arena, cooldown: Duration::from_millis(20), ..TankWorldConfig::default() }
}

#[test]
fn record_08_years_without_players_pass_at_once() {
    let mut forge = Forge::new(&TankWorldConfig::default());
    for _ in 0..250 {
        forge.passed(Entry::MAX_PASSED);
        forge.frame();
    }
    let bytes = forge.finish();
    assert!(bytes.len() < 5_000, "{} bytes", bytes.len());
    let playback = play(&bytes);
    assert_eq!((playback.refused(), playback.recording().damage()), (None, None));
    assert_eq!(playback.stage().tick(), Tick::new(250 << 24));
    assert_eq!(playback.stage().work(), 0);
    assert_eq!(recover(&bytes, TankWorldConfig::default()), None);
}

#[test]
fn record_08_more_players_than_a_room_holds_are_damage() {
    for (players, read) in [(4_096, 4_096), (4_097, 4_096), (20_000, 4_096)] {
        let mut forge = Forge::new(&TankWorldConfig::default());
        for player in 1..=players {
            forge.join(player);
            forge.frame();
        }
        forge.ticks(20);
        let mut recording = Recording::<Tanks>::open(forge.finish()).unwrap();
        let entries = std::iter::from_fn(|| recording.next());
        let joined = entries.filter(|entry| matches!(entry, Entry::Joined { .. })).count();
        assert_eq!((joined, recording.damage().is_none()), (read, players == 4_096), "{players} players");
    }
}

#[test]
fn record_08_a_tick_has_one_check() {
    let mut forge = Forge::new(&TankWorldConfig::default());
    forge.join(1);
    for _ in 0..2 {
        forge.ticks(1);
        forge.check();
    }
    forge.frame();
    forge.check();
    let mut recording = Recording::<Tanks>::open(forge.finish()).unwrap();
    let checks = std::iter::from_fn(|| recording.next()).filter(|entry| matches!(entry, Entry::Check { .. }));
    assert_eq!(checks.count(), 2);
    assert!(recording.damage().is_some());
}

/// A heap of tanks, and one in which all shoot: each is refused where it passes the bound, by a playback and by a server
/// that is to go on from it.
#[test]
fn record_08_work_is_bounded_by_the_size_of_the_recording() {
    let mut crowd = Forge::new(&heap());
    (1..=1_500).for_each(|player| crowd.join(player));
    crowd.ticks(3);
    let mut volley = Forge::new(&heap());
    (1..=300).for_each(|player| volley.join(player));
    for _ in 0..40 {
        volley.ticks(1);
        (0..200).for_each(|place| volley.shoot(place));
    }
    for (what, forge) in [("crowd", crowd), ("volley", volley)] {
        let bytes = forge.finish();
        let playback = play(&bytes);
        let work = playback.stage().work();
        assert!(matches!(playback.refused(), Some(RecordingRefused::Work { .. })), "{what}: {work}");
        // By one body among all others at most.
        assert!(work < allowed(bytes.len()) + 80 * 4_096, "{what}: {work}");
        assert!(recover(&bytes, heap()).is_some(), "{what}");
    }
}

/// The same heap, played on because the caller wants it.
#[test]
fn record_08_a_caller_may_lift_the_bound() {
    let mut forge = Forge::new(&heap());
    (1..=1_000).for_each(|player| forge.join(player));
    forge.ticks(3);
    let bytes = forge.finish();
    assert!(play(&bytes).refused().is_some());
    let (_, playback) = open_recording(bytes).unwrap();
    let mut playback = playback.unbounded();
    while playback.next().is_some() {}
    assert_eq!((playback.refused(), playback.stage().tick()), (None, Tick::new(3)));
}
