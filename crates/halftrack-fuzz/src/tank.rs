//! What the tank game adds to the wire: a tank, its input, and what is said about combat.

use halftrack::wire::{BitReader, BitWriter};
use halftrack::{Body, Cadence, Input, ServerTime};
use tanks::{CombatEvent, Entity, Seen, ShootInput, TankInput, Vitals};

use crate::budget::within;
use crate::crowd::assert_settled;

/// A tank against the blank one, another against that, and an input: as a snapshot has them.
pub fn body(bytes: &[u8]) {
    let mut bits = BitReader::new(bytes);
    let Ok(baseline) = Entity::read(&Entity::blank(), &mut bits) else { return };
    assert_settled(&baseline);
    let Ok(body) = Entity::read(&baseline, &mut bits) else { return };
    assert_settled(&body);
    let mut buffer = [0; 64];
    let mut written = BitWriter::new(&mut buffer);
    baseline.write(&Entity::blank(), &mut written);
    body.write(&baseline, &mut written);
    let input = TankInput::read(&mut bits);
    if let Ok(input) = &input {
        input.write(&mut written);
    }
    let length = written.finish().expect("two tanks are short");
    let mut bits = BitReader::new(&buffer[..length]);
    let again = Entity::read(&Entity::blank(), &mut bits).expect("it was written");
    assert_eq!((again, Entity::read(&again, &mut bits)), (baseline, Ok(body)));
    if let Ok(input) = input {
        assert_eq!(TankInput::read(&mut bits), Ok(input));
    }
}

/// A shot that is ordered, or what is told of one: the first byte says which.
pub fn combat(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else { return };
    // Both are a few numbers, and are kept where they are read.
    if kind & 1 == 0 {
        let Ok(shot) = within(0, || ShootInput::decode(message)) else { return };
        assert_eq!(ShootInput::decode(&shot.encode()), Ok(shot));
        let cadence = Cadence::default();
        let moment = shot.moment(cadence);
        assert_eq!(ShootInput::grid(cadence, moment), (shot.tick, shot.at));
        let _ = Seen::new(cadence, shot.seen.snapshot, ServerTime::from_micros(moment.as_micros()));
    } else {
        let Ok(event) = within(0, || CombatEvent::decode(message)) else { return };
        assert_eq!(CombatEvent::decode(&event.encode()), Ok(event));
        let mut vitals = Vitals::default();
        vitals.event(&event);
        vitals.event(&event);
    }
}
