//! A brawl, told to clients far and near: what they make of it is what happened, to the bit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use halftrack::snapshot::{Bodies, Course, Crowd, View};
use halftrack::wire::{BitReader, BitWriter};
use halftrack::{Body, Cadence, Causes, Driver, PlayerId, SubTick, Tick, TickInput};
use tanks::{Arena, Axis, Tank, TankInput, Tanks};

const TANKS: u16 = 40;

struct Dice(u64);

impl Dice {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % count
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

struct Client {
    view: View,
    crowd: Crowd<Tanks>,
    /// Acknowledgements on their way.
    acks: VecDeque<Option<Tick>>,
    late: usize,
}

impl Client {
    fn new(rules: &Arc<Tanks>, late: usize) -> Self {
        let crowd = Crowd::new(Arc::clone(rules), Cadence::default());
        Self { view: View::default(), crowd, acks: VecDeque::new(), late }
    }

    /// Gives the bytes of the snapshot.
    fn tell(&mut self, bodies: &mut Bodies<Tanks>, arrives: bool) -> usize {
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(&mut self.view, 1_100 * 8, &mut bits);
        let length = bits.finish().expect("it fits");
        if arrives {
            let read = self.crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length]));
            read.expect("what is told can be read");
            self.compare(bodies);
        }
        self.acks.push_back(arrives.then(|| bodies.tick()));
        if self.acks.len() > self.late
            && let Some(Some(tick)) = self.acks.pop_front()
        {
            assert!(self.view.acknowledge(tick));
        }
        length
    }

    fn compare(&self, bodies: &Bodies<Tanks>) {
        assert_eq!(self.crowd.bodies().count(), bodies.count());
        for (id, shown) in self.crowd.bodies() {
            let truth = bodies.history(id).expect("only those who are there are shown");
            for (tick, shown) in shown.after(Tick::new(0)) {
                let Some(truth) = truth.get(tick) else { continue };
                assert_eq!(shown.after.digest(), truth.after.digest(), "{id} at {tick}");
            }
        }
    }
}

fn told(dice: &mut Dice, held: TankInput) -> TickInput<TankInput> {
    let mut input = TickInput::steady(held);
    if dice.happens(20)
        && let Some(at) = SubTick::new(dice.below(256) as u8)
    {
        let mut axis = || Axis::from_level(dice.below(33) as i8 - 16);
        let wish = TankInput { turn: axis(), throttle: axis(), rocket: 0 };
        input.change(at, wish).expect("the first change of its tick");
    }
    input
}

/// A player comes, with a tank.
fn join(bodies: &mut Bodies<Tanks>, player: u16, tank: Tank) {
    let player = PlayerId::new(player);
    bodies.join(player);
    bodies.spawn(Driver::Player(player), tank.into()).expect("there is room");
}

/// A tick, in which some players change their input. The dice are thrown in order of player.
fn advance(bodies: &mut Bodies<Tanks>, dice: &mut Dice) {
    let held = |player| {
        let id = bodies.owned(player).first().expect("each has a tank");
        bodies.history(*id).and_then(|history| history.get(bodies.tick())).expect("is here").held
    };
    let inputs: BTreeMap<_, _> = bodies.players().map(|player| (player, told(dice, held(player)))).collect();
    bodies.advance(|player| inputs[&player]);
}

/// Forty tanks in a small arena: some are shot at, some leave, some come.
#[test]
fn what_is_told_of_a_brawl_is_what_happened() {
    let rules = Arc::new(Tanks::new(Arena::new([40.0, 40.0], vec![]).expect("a good size").into()));
    let mut bodies = Bodies::new(Arc::clone(&rules), Cadence::default(), Tick::new(10));
    let place = |n: u16| Tank::new(f64::from(n % 7) * 5.0 - 15.0, f64::from(n / 7 % 7) * 5.0 - 15.0, 0.0);
    (0..TANKS).for_each(|n| join(&mut bodies, n, place(n)));
    let mut clients = [0, 3, 3, 9].map(|late| Client::new(&rules, late));
    let mut dice = Dice(0x9e37_79b9);
    let mut met = 0;
    for round in 0..400u16 {
        if round % 50 == 25 {
            bodies.leave(PlayerId::new(round / 50));
            join(&mut bodies, TANKS + round, place(round));
        }
        advance(&mut bodies, &mut dice);
        met += bodies.records().filter(|(.., record)| record.course == Course::Met).count();
        if dice.happens(30) {
            let (shot, _, record) = bodies.records().nth(dice.below(40) as usize).expect("forty are there");
            let after = Tank {
                hp: record.after.tank().unwrap().hp.saturating_sub(30),
                ..record.after.tank().copied().unwrap()
            };
            bodies.alter(shot, after.into(), Causes::NONE).expect("is here");
        }
        for client in &mut clients {
            let arrives = dice.happens(90);
            client.tell(&mut bodies, arrives);
        }
    }
    assert!(met > 400 * 4, "they do meet: {met}");
}

/// Contact follows from the rules: a crowd that pushes costs no more than one that has room.
#[test]
fn contact_costs_nothing() {
    let bytes = [30.0, 600.0].map(|side| {
        let rules = Arc::new(Tanks::new(Arena::new([side, side], vec![]).expect("a good size").into()));
        let mut bodies = Bodies::new(Arc::clone(&rules), Cadence::default(), Tick::new(10));
        let at = |n: u16| (f64::from(n) + 0.5) / 7.0 * side * 0.9 - side * 0.45;
        for n in 0..TANKS {
            join(&mut bodies, n, Tank::new(at(n % 7), at(n / 7), 0.0));
        }
        let (mut client, mut dice) = (Client::new(&rules, 3), Dice(0x9e37_79b9));
        let lengths = (0..200).map(|_| {
            advance(&mut bodies, &mut dice);
            client.tell(&mut bodies, true)
        });
        let lengths: Vec<_> = lengths.collect();
        lengths[10..].iter().sum::<usize>()
    });
    assert_eq!(bytes[0], bytes[1]);
}

/// A room of a hundred tanks that stand anywhere.
fn hundred() -> (Arc<Tanks>, Bodies<Tanks>) {
    let rules = Arc::new(Tanks::new(Arena::new([400.0, 400.0], vec![]).expect("a good size").into()));
    let mut bodies = Bodies::new(Arc::clone(&rules), Cadence::default(), Tick::new(10));
    let mut dice = Dice(0x9e37_79b9);
    for n in 0..100 {
        let mut at = || dice.below(380) as f64 - 190.0;
        let mut tank = Tank::new(at(), at(), at() / 400.0);
        tank.settle();
        join(&mut bodies, n, tank);
    }
    bodies.advance(|_| TickInput::steady(TankInput::NEUTRAL));
    (rules, bodies)
}

/// A full state goes by the stream: each tank has its id and its player once.
#[test]
fn a_hundred_tanks_in_full_take_less_than_nineteen_bytes_each() {
    let (rules, mut bodies) = hundred();
    let mut client = Client::new(&rules, 3);
    let mut buffer = [0; 1_900];
    let mut bits = BitWriter::new(&mut buffer);
    assert!(bodies.write_full(&mut client.view, 1_900 * 8, &mut bits));
    let length = bits.finish().expect("it fits");
    client.crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length])).expect("can be read");
    client.compare(&bodies);
    // The next snapshot builds on it before it is acknowledged: two bytes and the check tell that nothing changed.
    bodies.advance(|_| TickInput::steady(TankInput::NEUTRAL));
    assert!(client.tell(&mut bodies, true) <= 5);
}

/// Without it, most of them are in the first datagram, and all as soon as that one is acknowledged.
#[test]
fn a_hundred_tanks_are_told_in_full_in_two_datagrams() {
    let (rules, mut bodies) = hundred();
    let (mut view, mut crowd) = (View::default(), Crowd::new(rules, Cadence::default()));
    for least in [58, 100] {
        let mut buffer = [0; 1_100];
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(&mut view, 1_100 * 8, &mut bits);
        let length = bits.finish().expect("it fits");
        crowd.read(bodies.tick(), &mut BitReader::new(&buffer[..length])).expect("can be read");
        assert!(crowd.bodies().count() >= least, "{} of {least}", crowd.bodies().count());
        assert!(view.acknowledge(bodies.tick()));
        bodies.advance(|_| TickInput::steady(TankInput::NEUTRAL));
    }
}
