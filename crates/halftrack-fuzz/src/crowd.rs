//! Snapshots: header, own body, and everybody, held against what a client has already.

use std::sync::{Arc, LazyLock};

use halftrack::snapshot::{Bodies, Crowd, Header, MAX_FATES, SnapshotError, View, read_own, write_own};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Body, Cadence, Causes, Epoch, PlayerId, Tick, TickInput};
use tanks::{Arena, Axis, MoveParams, Tank, TankInput, Tanks};

use crate::budget::within;
use crate::script::Script;
use crate::wire::bits_left;

/// Header and own body. What is read, written and read again stays what it is.
pub fn snapshot(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let near = (Tick::new(script.u32()), Epoch::new(script.u32()));
    let mut bits = BitReader::new(script.rest());
    let Ok(header) = Header::read(near, &mut bits) else { return };
    let mut fates = vec![];
    let read = within(MAX_FATES * 64, || read_own::<Tanks>(&mut fates, &mut bits));
    assert!(fates.len() <= MAX_FATES);
    let Ok(body) = read else { return };
    assert_settled(&body);

    let mut buffer = [0; 2_048];
    let mut bits = BitWriter::new(&mut buffer);
    header.write(&mut bits);
    write_own::<Tanks>(&body, fates.iter().copied(), &mut bits);
    let length = bits.finish().expect("what came in a datagram fits into one");
    let mut bits = BitReader::new(&buffer[..length]);
    let again = Header::read((header.tick, header.epoch), &mut bits).expect("it was written");
    // Margins have one value more than is ever written.
    assert_eq!((again.tick, again.epoch, again.late), (header.tick, header.epoch, header.late));
    assert_eq!(again.echo.map(|echo| (echo.seq, echo.held)), header.echo.map(|echo| (echo.seq, echo.held)));
    let mut fates_again = vec![];
    assert_eq!(read_own::<Tanks>(&mut fates_again, &mut bits), Ok(body));
    assert_eq!(fates_again, fates);
}

/// A body that is on the grid already.
pub(crate) fn assert_settled(body: &Tank) {
    let mut settled = *body;
    settled.settle();
    assert_eq!(settled, *body, "what is read is settled");
    assert!([body.x, body.y, body.heading].iter().all(|part| part.is_finite()));
}

/// A body against the blank one.
pub(crate) fn read_body(bytes: &[u8]) -> Result<Tank, WireError> {
    let body = Tank::read(&Tank::blank(), &mut BitReader::new(bytes))?;
    assert_settled(&body);
    Ok(body)
}

/// Everybody, against what a client has. The first byte says which client, the second how far ahead; the two after them
/// are the check: no mutation would find it where it stands, as no byte begins there.
pub fn crowd(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let state = &STATES[script.below(STATES.len())];
    let ahead = u32::from(script.byte());
    let check = script.u16();
    let newest = state.crowd.newest().map_or(99, Tick::number);
    let tick = Tick::new(newest + 1 + ahead % 80);
    let told = script.rest();
    let mut reader = state.crowd.clone();
    if let Some(left) = read(&mut reader, tick, told) {
        let end = told.len() * 8 - left;
        let mut checked = told.to_vec();
        for bit in 0..16 {
            let at = end - 16 + bit;
            let is_set = check >> bit & 1 == 1;
            checked[at / 8] = checked[at / 8] & !(1 << (at % 8)) | u8::from(is_set) << (at % 8);
        }
        read(&mut reader, tick, &checked);
    }
}

/// Reads a snapshot. Gives the bits that are left if all but its check was good.
pub(crate) fn read(crowd: &mut Crowd<Tanks>, tick: Tick, told: &[u8]) -> Option<usize> {
    let before = picture(crowd);
    let mut bits = BitReader::new(told);
    // Twelve who go on as before for 63 ticks take no bits; whoever is told of in full five bytes, and 64 ticks of history.
    let room = (1 << 17) + told.len() * (1 << 12);
    match within(room, || crowd.read(tick, &mut bits)) {
        Ok(()) => {
            assert_eq!(crowd.newest(), Some(tick));
            let after = picture(crowd);
            assert!(after.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order, nobody twice");
            after.iter().for_each(|(_, _, body)| assert_settled(body));
            None
        }
        Err(error) => {
            assert_eq!(picture(crowd), before, "nothing has changed");
            (error == SnapshotError::CheckFailed).then(|| bits_left(bits))
        }
    }
}

/// Who is there, and how.
fn picture(crowd: &Crowd<Tanks>) -> Vec<(PlayerId, Tick, Tank)> {
    crowd.bodies().map(|(player, history)| (player, history.newest(), *history.latest())).collect()
}

/// The rules of every room here.
pub(crate) fn rules() -> Arc<Tanks> {
    static RULES: LazyLock<Arc<Tanks>> =
        LazyLock::new(|| Arc::new(Tanks::new(Arena::proving_ground().into())));
    Arc::clone(&RULES)
}

/// Of a client that has been told nothing.
pub(crate) fn nobody(cadence: Cadence) -> Crowd<Tanks> {
    Crowd::new(rules(), cadence)
}

/// A room as its server has it, and one client's picture of it.
#[derive(Debug)]
struct State {
    crowd: Crowd<Tanks>,
    bodies: Bodies<Tanks>,
    view: View,
}

static STATES: LazyLock<[State; 4]> = LazyLock::new(|| {
    [State::new(), State::played(4, 30, 1_100), State::played(9, 40, 1_100), State::played(12, 50, 60)]
});

impl State {
    /// Nobody is there.
    fn new() -> Self {
        let cadence = Cadence::default();
        let bodies = Bodies::new(rules(), cadence, Tick::new(99));
        Self { crowd: nobody(cadence), bodies, view: View::default() }
    }

    /// So many have played for so many ticks, and every tick was told in so many bytes at most.
    fn played(players: u16, ticks: u32, max_bytes: usize) -> Self {
        let mut state = Self::new();
        for player in 0..players {
            state.join(PlayerId::new(player * 3 + 1));
        }
        for tick in 0..ticks {
            let told = state.tick(max_bytes);
            // Some are lost, and some acknowledgements.
            if tick % 5 != 3 {
                let now = state.bodies.tick();
                let read = state.crowd.read(now, &mut BitReader::new(&told));
                if read.is_ok() && tick % 7 != 2 {
                    state.view.acknowledge(now);
                }
            }
            match tick {
                12 => state.bodies.leave(PlayerId::new(4)),
                17 => state.join(PlayerId::new(5)),
                _ => {}
            }
        }
        state
    }

    fn join(&mut self, player: PlayerId) {
        let number = f64::from(player.number());
        let mut body = Tank::new(number * 1.5 - 12.0, -6.0 + number % 5.0, number / 40.0);
        if player.number() == 7 {
            body.params = MoveParams::new(5.0, 0.5).expect("good parameters");
        }
        body.settle();
        self.bodies.join(player, TankInput::NEUTRAL, body);
    }

    /// A tick, and what is told of it.
    fn tick(&mut self, max_bytes: usize) -> Vec<u8> {
        let tick = self.bodies.tick().number();
        self.bodies.advance(|player| {
            let number = u32::from(player.number());
            let wish = (tick + 3 * number) / 9 * (number + 5);
            let level = |wish: u32| Axis::from_level((wish % 33) as i8 - Axis::LEVELS);
            TickInput::steady(TankInput { turn: level(wish), throttle: level(wish / 3 + 20) })
        });
        if tick % 11 == 4 {
            let mut elsewhere = Tank::new(3.0, f64::from(tick % 16) - 8.0, 0.25);
            elsewhere.settle();
            self.bodies.alter(PlayerId::new(1), elsewhere, Causes::NONE);
        }
        let mut buffer = vec![0; max_bytes];
        let mut bits = BitWriter::new(&mut buffer);
        self.bodies.write(&mut self.view, max_bytes * 8, &mut bits);
        let length = bits.finish().expect("what is written fits");
        buffer.truncate(length);
        buffer
    }
}

/// What the server of each state tells next, as [`crowd`] reads it.
pub(crate) fn crowd_seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![];
    let mut states: Vec<_> = vec![State::new(), State::played(4, 30, 1_100)];
    states.extend([State::played(9, 40, 1_100), State::played(12, 50, 60)]);
    for (number, mut state) in (0u8..).zip(states) {
        if number == 0 {
            (1..7).for_each(|player| state.join(PlayerId::new(player)));
        }
        let from = state.crowd.newest().map_or(99, Tick::number);
        for round in 0..9 {
            if round == 4 {
                state.bodies.leave(PlayerId::new(7));
                state.join(PlayerId::new(90));
            }
            if round == 6 {
                state.view.forget();
            }
            let told = state.tick(if number == 3 { 60 } else { 1_100 });
            let ahead = state.bodies.tick().number() - from - 1;
            seeds.push([&[number, ahead as u8, 0, 0], told.as_slice()].concat());
        }
    }
    seeds
}
