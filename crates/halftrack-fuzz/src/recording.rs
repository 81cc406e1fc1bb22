//! Recordings: any bytes as a file; and files with good checks, whatever is in them, played back, damaged and read again.

use std::collections::BTreeSet;

use halftrack::record::{Entry, Header, Recorder, Recording};
use halftrack::{Cadence, PlayerId, PlayerName, TickInput, Token, shared_hash};
use tanks::{About, Axis, ShootInput, TankInput, TankWorldConfig, Tanks, open_recording};

use crate::budget::within;
use crate::crowd::rules;
use crate::script::Script;

const MAX_ENTRIES: usize = 120;

/// A recorded match, or what is taken for one.
pub fn recording(bytes: &[u8]) {
    within((8 << 20) + 64 * bytes.len(), || {
        let mut script = Script::new(bytes);
        if script.byte() & 1 == 0 {
            play(script.rest());
        } else {
            written(&mut script);
        }
    });
}

/// A file as the recorder writes it, of things that no match would have.
fn written(script: &mut Script<'_>) {
    let how = script.byte();
    let world = TankWorldConfig {
        machines: how >> 1 & 3,
        crates: how >> 4 & 3,
        platforms: how >> 6 & 1,
        ..TankWorldConfig::default()
    };
    let header = Header {
        shared: shared_hash(&*rules(), Cadence::default()),
        cadence_micros: 50_000,
        first_tick: if how & 1 == 1 { script.u32() } else { 0 },
        run: [7; 16],
        body_key: [how; 16],
        // As many bodies as a room may have, or fewer than want to come.
        limits: if how & 8 == 8 { (3, 1) } else { (1_024, 16) },
        about: About::new("fuzz", 1, &world).encode(),
    };
    let mut recorder = Recorder::<Tanks>::new(&header);
    let (mut file, mut entries, mut there) = (vec![], vec![], BTreeSet::new());
    let mut checked = false;
    while !script.is_over() && entries.len() < MAX_ENTRIES {
        let act = script.byte();
        match act % 5 {
            0 => drop(recorder.take(&mut file)),
            1 | 2 if there.is_empty() => {
                checked = false;
                recorder.tick_of_nobody();
            }
            1 | 2 => {
                checked = false;
                let told = there.iter().map(|player| (*player, input(script), u64::from(act)));
                recorder.tick(told, u64::from(act >> 4));
                entries.push(Entry::Tick);
            }
            _ => {
                let entry = entry(script, &mut there);
                // A tick has one check at most; a second one is damage.
                let is_check = matches!(entry, Entry::Check { .. });
                if is_check && core::mem::replace(&mut checked, true) {
                    continue;
                }
                recorder.write(&entry);
                entries.push(entry);
            }
        }
    }
    recorder.take(&mut file);
    let whole = read(&file);
    let in_time = u64::from(header.first_tick) + (MAX_ENTRIES as u64) < 1 << 31;
    if in_time {
        let not_passed = whole.iter().filter(|entry| !matches!(entry, Entry::Passed { .. }));
        assert!(not_passed.map(canonical).eq(entries.iter().map(canonical)), "{whole:?} of {entries:?}");
    }
    play(&file);
    // What is before a cut is as it was. (Two bytes of check let one damaged frame in 65,536 pass.)
    let cut = usize::from(script.u16()) % (file.len() + 1);
    let before = read(&file[..cut]);
    assert_eq!(whole.get(..before.len()), Some(before.as_slice()));
    script.mutate(&mut file);
    read(&file);
}

fn input(script: &mut Script<'_>) -> TickInput<TankInput> {
    let levels = script.byte();
    let axis = |level: u8| Axis::from_level((level * 2).cast_signed() - Axis::LEVELS);
    TickInput::steady(TankInput { turn: axis(levels & 15), throttle: axis(levels >> 4), rocket: levels >> 4 })
}

fn entry(script: &mut Script<'_>, there: &mut BTreeSet<PlayerId>) -> Entry {
    let player = PlayerId::new(u16::from(script.byte()));
    match script.byte() % 9 {
        0 | 1 if there.len() < 24 => {
            there.insert(player);
            let name = PlayerName::new("Ghost").expect("a good name");
            let secret = script.byte();
            // No byte of its own, so that scripts that were found before mean the same.
            let claims = (secret > 127).then(|| "red".to_owned());
            Entry::Joined { player, name, token: Token::new([secret; 16]), claims }
        }
        2 => {
            there.remove(&player);
            Entry::Left { player }
        }
        3 => Entry::OrderedUnseen { player, bytes: script.counted().to_vec() },
        4 => Entry::Restarted { player },
        5 => Entry::Delivered { player, received: script.u64() },
        6 => Entry::Reported {
            player,
            corrections: vec![(script.byte(), script.u16())],
            snapped: script.u16(),
        },
        7 => Entry::Check { digest: script.u64() },
        8 if player.number() >= 192 => Entry::Commanded { bytes: script.counted().to_vec() },
        _ => Entry::Ordered { player, bytes: script.counted().to_vec() },
    }
}

/// There is more than one way to write a number of a shot, and a recording keeps the number.
fn canonical(entry: &Entry) -> Entry {
    match entry {
        Entry::Ordered { player, bytes } => {
            let bytes = ShootInput::decode(bytes).map_or_else(|_| bytes.clone(), |shot| shot.encode());
            Entry::Ordered { player: *player, bytes }
        }
        entry => entry.clone(),
    }
}

fn read(file: &[u8]) -> Vec<Entry> {
    let Ok(mut recording) = Recording::<Tanks>::open(file) else { return vec![] };
    let entries = core::iter::from_fn(|| recording.next()).collect();
    assert!(recording.whole() <= file.len());
    assert_eq!(recording.damage().is_none(), recording.whole() == file.len());
    entries
}

/// Makes it happen again.
fn play(file: &[u8]) {
    let Ok((_, mut playback)) = open_recording(file) else { return };
    let mut passed = 0;
    // A week in which nobody is there takes a second: too long for this.
    while passed < 4_000 {
        match playback.next() {
            Some(Entry::Passed { ticks }) => passed += ticks,
            Some(_) => passed += 1,
            None => break,
        }
    }
    for (.., body) in playback.stage().bodies() {
        crate::crowd::assert_settled(body);
    }
}
