//! Snapshots: header, own bodies, and all bodies, held against the state of a client.

use std::sync::{Arc, LazyLock};

use halftrack::snapshot::{
    Bodies, BodyHistory, Crowd, Header, MAX_FATES, MAX_OWNED, OwnBodies, SnapshotError, View,
};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{Body, BodyId, Cadence, Causes, Driver, Epoch, Fate, PlayerId, Tick, TickInput};
use tanks::{Arena, Axis, Entity, MoveParams, Tank, TankInput, TankPose, Tanks};

use crate::budget::within;
use crate::script::Script;
use crate::wire::bits_left;

/// Memory of an own section at most: 9 bits of it claim all ticks, and each of these is kept for each body.
const OWN_BYTES: usize = 4
    * (MAX_OWNED * (size_of::<Entity>() + size_of::<BodyId>())
        + MAX_FATES * (size_of::<Fate>() + MAX_OWNED * size_of::<Causes>()));

/// Header and own bodies. A section that is read, written and read again stays the same. A byte says how many ids the
/// client knows.
pub fn snapshot(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let near = (Tick::new(script.u32()), Epoch::new(script.u32()));
    let known: Vec<_> = (0..script.below(MAX_OWNED + 1)).map(|number| BodyId::new(number as u64)).collect();
    let mut bits = BitReader::new(script.rest());
    let Ok(header) = Header::read(near, &mut bits) else { return };
    let Some(own) = read_own(&known, &mut bits) else { return };

    let mut buffer = [0; 6_000];
    let mut bits = BitWriter::new(&mut buffer);
    header.write(&mut bits);
    own.write(own.ids == known, &mut bits);
    let length = bits.finish().expect("a section that came in a datagram fits into one");
    let mut bits = BitReader::new(&buffer[..length]);
    let again = Header::read((header.tick, header.epoch), &mut bits).expect("it was written");
    // Margins have one value more than is ever written.
    assert_eq!((again.tick, again.epoch, again.late), (header.tick, header.epoch, header.late));
    assert_eq!(again.echo.map(|echo| (echo.seq, echo.held)), header.echo.map(|echo| (echo.seq, echo.held)));
    assert_eq!(read_own(&known, &mut bits), Some(own));
}

/// Own bodies, if the bits mean any: bounded, settled, none of them twice.
pub(crate) fn read_own(known: &[BodyId], bits: &mut BitReader<'_>) -> Option<OwnBodies<Tanks>> {
    let mut own = OwnBodies::<Tanks>::default();
    let read = within(OWN_BYTES, || own.read(known, bits));
    assert!(own.ids.len() <= MAX_OWNED && own.fates.len() <= MAX_FATES);
    read.ok()?;
    assert_eq!((own.bodies.len(), own.causes.len()), (own.ids.len(), own.ids.len() * own.fates.len()));
    own.bodies.iter().for_each(assert_settled);
    let mut ids = own.ids.clone();
    ids.sort();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    Some(own)
}

/// A body that is on the grid already.
pub(crate) fn assert_settled(body: &Entity) {
    let mut settled = *body;
    settled.settle();
    assert_eq!(settled, *body, "what is read is settled");
    let TankPose { x, y, heading } = body.pose();
    assert!([x, y, heading].iter().all(|part| part.is_finite()));
}

/// All bodies, against the state of a client. The first byte says which client, the second how far ahead; the two after
/// them are the check: no mutation would find it where it stands, as no byte begins there.
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
    // Bodies of the state that go on as before for 63 ticks take no bits. A body in full takes ten bytes, and 64 ticks of
    // history.
    let room = (5 << 16) + told.len() * (5 << 10);
    match within(room, || crowd.read(tick, &mut bits)) {
        Ok(()) => {
            assert_eq!(crowd.newest(), Some(tick));
            let after = picture(crowd);
            assert!(after.windows(2).all(|pair| pair[0].id < pair[1].id), "in order, no body twice");
            for body in &after {
                assert_settled(&body.state);
                assert!(!crowd.is_gone(body.id));
                let was = before.iter().find(|was| was.id == body.id);
                assert!(was.is_none_or(|was| was.driver == body.driver), "{} has another driver", body.id);
            }
            None
        }
        Err(error) => {
            assert_eq!(picture(crowd), before, "nothing has changed");
            (error == SnapshotError::CheckFailed).then(|| bits_left(bits))
        }
    }
}

/// A body as a client has it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    id: BodyId,
    driver: Driver,
    tick: Tick,
    state: Entity,
}

/// The bodies that a client knows.
fn picture(crowd: &Crowd<Tanks>) -> Vec<Seen> {
    let seen = |(id, history): (BodyId, &BodyHistory<Tanks>)| {
        let (driver, tick, state) = (history.driver(), history.newest(), *history.latest());
        Seen { id, driver, tick, state }
    };
    crowd.bodies().map(seen).collect()
}

/// The rules of every room here.
pub(crate) fn rules() -> Arc<Tanks> {
    static RULES: LazyLock<Arc<Tanks>> =
        LazyLock::new(|| Arc::new(Tanks::new(Arena::proving_ground().into())));
    Arc::clone(&RULES)
}

/// Of a client without any snapshot.
pub(crate) fn nobody(cadence: Cadence) -> Crowd<Tanks> {
    Crowd::new(rules(), cadence)
}

/// A room as its server has it, and one client's picture of it.
#[derive(Debug)]
struct State {
    crowd: Crowd<Tanks>,
    bodies: Bodies<Tanks>,
    view: View,
    /// Bodies of the world, in order of their spawn.
    machines: Vec<BodyId>,
    parked: Vec<BodyId>,
}

/// The bodies of a room: of players, of the world, and of nothing.
const FEW: (u16, u16, u16) = (4, 2, 1);
const SOME: (u16, u16, u16) = (9, 5, 3);
const MANY: (u16, u16, u16) = (12, 8, 6);

fn states() -> [State; 4] {
    [
        State::new(),
        State::played(FEW, 30, 1_100),
        State::played(SOME, 40, 1_100),
        State::played(MANY, 50, 100),
    ]
}

static STATES: LazyLock<[State; 4]> = LazyLock::new(states);

impl State {
    /// A room without bodies.
    fn new() -> Self {
        let cadence = Cadence::default();
        let bodies = Bodies::new(rules(), cadence, Tick::new(99));
        let crowd = nobody(cadence);
        Self { crowd, bodies, view: View::default(), machines: vec![], parked: vec![] }
    }

    /// So many have played for so many ticks, with a snapshot of so many bytes at most for each tick.
    fn played((players, machines, parked): (u16, u16, u16), ticks: u32, max_bytes: usize) -> Self {
        let mut state = Self::new();
        for player in 0..players {
            state.join(PlayerId::new(player * 3 + 1));
        }
        (0..machines).for_each(|number| state.add_machine(number));
        (0..parked).for_each(|number| state.park(number));
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
                15 => state.remove_some(),
                17 => state.join(PlayerId::new(5)),
                19 => {
                    state.add_machine(40);
                    state.park(41);
                }
                _ => {}
            }
        }
        state
    }

    /// A player comes. Its number says how many bodies it owns: from none to three.
    fn join(&mut self, player: PlayerId) {
        self.bodies.join(player);
        let owned = if player.number().is_multiple_of(10) { 0 } else { player.number() % 3 };
        for place in 0..owned {
            let (number, place) = (f64::from(player.number()), f64::from(place));
            let mut body = Tank::new(number * 1.5 - 12.0, -6.0 + number % 5.0 + 4.0 * place, number / 40.0);
            if player.number() == 7 {
                body.params = MoveParams::new(5.0, 0.5).expect("good parameters");
            }
            self.bodies.spawn(Driver::Player(player), body.into()).expect("there is room");
        }
    }

    fn add_machine(&mut self, number: u16) {
        let body = Tank::new(f64::from(number) * 2.0 - 9.0, 9.0 - f64::from(number % 4), 0.3);
        self.machines.push(self.bodies.spawn(Driver::World, body.into()).expect("there is room"));
    }

    fn park(&mut self, number: u16) {
        let body = Tank::new(f64::from(number) * 3.0 - 9.0, -12.0, 0.7);
        self.parked.push(self.bodies.spawn(Driver::Nothing, body.into()).expect("there is room"));
    }

    /// The oldest body of each kind goes.
    fn remove_some(&mut self) {
        let first = |list: &mut Vec<BodyId>| (!list.is_empty()).then(|| list.remove(0));
        let gone = [first(&mut self.machines), first(&mut self.parked)];
        let owned = self.bodies.owned(PlayerId::new(7)).first().copied();
        for id in gone.into_iter().chain([owned]).flatten() {
            self.bodies.remove(id).expect("it is there");
        }
    }

    /// A tick, and its snapshot.
    fn tick(&mut self, max_bytes: usize) -> Vec<u8> {
        let tick = self.bodies.tick().number();
        let input = |number: u32| {
            let wish = (tick + 3 * number) / 9 * (number + 5);
            let level = |wish: u32| Axis::from_level((wish % 33) as i8 - Axis::LEVELS);
            TankInput { turn: level(wish), throttle: level(wish / 3 + 20), rocket: (wish % 16) as u8 }
        };
        self.bodies.advance(|player| TickInput::steady(input(player.number().into())));
        for (number, id) in (100..).zip(&self.machines) {
            self.bodies.drive(*id, input(number)).expect("the world drives it");
        }
        if tick % 11 == 4 {
            let elsewhere = Tank::new(3.0, f64::from(tick % 16) - 8.0, 0.25);
            let altered = [self.bodies.owned(PlayerId::new(1)).first(), self.machines.last()];
            for id in altered.into_iter().flatten().copied().collect::<Vec<_>>() {
                self.bodies.alter(id, elsewhere.into(), Causes::NONE).expect("it is there");
            }
        }
        let mut buffer = vec![0; max_bytes];
        let mut bits = BitWriter::new(&mut buffer);
        self.bodies.write(&mut self.view, max_bytes * 8, &mut bits);
        let length = bits.finish().expect("a snapshot fits");
        buffer.truncate(length);
        buffer
    }
}

/// The next snapshots of the server of each state, as [`crowd`] reads them.
pub(crate) fn crowd_seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![];
    for (number, mut state) in (0u8..).zip(states()) {
        if number == 0 {
            (1..7).for_each(|player| state.join(PlayerId::new(player)));
            (0..3).for_each(|machine| state.add_machine(machine));
            state.park(0);
        }
        let from = state.crowd.newest().map_or(99, Tick::number);
        for round in 0..9 {
            if round == 4 {
                state.bodies.leave(PlayerId::new(7));
                state.join(PlayerId::new(92));
                state.remove_some();
                state.add_machine(60);
            }
            if round == 6 {
                state.view.forget();
            }
            let told = state.tick(if number == 3 { 100 } else { 1_100 });
            let ahead = state.bodies.tick().number() - from - 1;
            seeds.push([&[number, ahead as u8, 0, 0], told.as_slice()].concat());
        }
    }
    seeds
}
