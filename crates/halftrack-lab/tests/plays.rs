//! A run in which nobody plays is no run without faults.

use std::time::Duration;

use halftrack::cart::{Cart, CartBody, CartPose, Rail};
use halftrack::client::{Client, ClientConfig};
use halftrack::server::{Events, Order, Room, ServerConfig, World};
use halftrack::snapshot::BodyCode;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Cadence, Contact, Game, MotionLimits, PlayerId, PlayerName, Timestamp};
use halftrack_lab::{Lab, LabConfig, Measured, Rule, SeatConfig};
use halftrack_netem::LinkConfig;

/// Carts that no client can read, if `UNREADABLE`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sealed<const UNREADABLE: bool>;

impl<const UNREADABLE: bool> Game for Sealed<UNREADABLE> {
    type Input = i8;
    type Body = CartBody;
    type Surroundings = Rail;
    type Pose = CartPose;

    fn neutral() -> i8 {
        0
    }

    fn advance(body: &mut CartBody, input: i8, span: Duration, rail: &Rail) -> Contact {
        Cart::advance(body, input, span, rail)
    }

    fn settle(body: &mut CartBody) {
        Cart::settle(body);
    }

    fn pose(body: &CartBody) -> CartPose {
        Cart::pose(body)
    }

    fn digest(body: &CartBody) -> u64 {
        Cart::digest(body)
    }
}

impl<const UNREADABLE: bool> BodyCode for Sealed<UNREADABLE> {
    const MAX_BODY_BYTES: usize = Cart::MAX_BODY_BYTES;

    fn surround(_: &mut Rail, _: &[CartBody], _: usize, _: Duration) {}

    fn shared(rail: &Rail) -> u64 {
        Cart::shared(rail)
    }

    fn blank() -> CartBody {
        Cart::blank()
    }

    fn write_body(body: &CartBody, baseline: &CartBody, bits: &mut BitWriter<'_>) {
        Cart::write_body(body, baseline, bits);
    }

    fn read_body(baseline: &CartBody, bits: &mut BitReader<'_>) -> Result<CartBody, WireError> {
        let body = Cart::read_body(baseline, bits)?;
        if UNREADABLE { Err(WireError::Invalid { field: "cart" }) } else { Ok(body) }
    }
}

#[derive(Debug)]
struct Yard<const UNREADABLE: bool> {
    rail: Rail,
    open: bool,
}

impl<const UNREADABLE: bool> World for Yard<UNREADABLE> {
    type Game = Sealed<UNREADABLE>;

    fn alone(&self) -> &Rail {
        &self.rail
    }

    fn admit(&mut self, _: &Login, _: Option<PlayerId>) -> Result<(), LoginRefused> {
        if self.open { Ok(()) } else { Err(LoginRefused::Banned) }
    }

    fn join(&mut self, _: PlayerId, _: &Login, _: &mut Room<'_, Self::Game>) -> CartBody {
        Cart::blank()
    }

    fn leave(&mut self, _: PlayerId, _: &mut Room<'_, Self::Game>, _: &mut Events) {}

    fn order(&mut self, _: Order<'_>) -> Result<(), WireError> {
        Ok(())
    }

    fn resolve(&mut self, _: &mut Room<'_, Self::Game>, _: &mut Events) {}
}

fn run<const UNREADABLE: bool>(open: bool) -> Measured {
    let world = Yard::<UNREADABLE> { rail: Rail::default(), open };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), 5), world).unwrap();
    let limits = MotionLimits {
        top_speed: 8.0,
        top_turn: 20.0,
        grid_distance: 1.0 / 1024.0,
        grid_angle: 1e-4,
        max_hold: Cart::MAX_HOLD,
    };
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    for name in ["Ada", "Bob"] {
        let name = PlayerName::new(name).unwrap();
        let client = ClientConfig::new(name, Cadence::default(), Rail::default(), limits);
        let bot = |_: Timestamp, _: &mut Client<Sealed<UNREADABLE>>| Some(4);
        lab.join(SeatConfig::new(client, link), Box::new(bot)).unwrap();
    }
    lab.run(Duration::from_secs(14));
    lab.drain();
    lab.measured()
}

fn idle(measured: &Measured) -> Vec<(Option<usize>, &str)> {
    let found = measured.invariants.list.iter().filter(|found| found.rule == Rule::Plays);
    found.map(|found| (found.client, found.what.as_str())).collect()
}

#[test]
fn clients_that_are_logged_in_and_never_play_fail_the_run() {
    let measured = run::<true>(true);
    let idle = idle(&measured);
    assert_eq!(
        idle.iter().map(|(client, _)| *client).collect::<Vec<_>>(),
        [Some(0), Some(1), None],
        "{idle:?}"
    );
    assert!(idle[0].1.contains("malformed: "), "it says what the client counted: {idle:?}");
    assert_eq!(idle[2].1, "no client has played; they are logged in, logged in");
}

#[test]
fn a_room_that_lets_nobody_in_fails_the_run() {
    let measured = run::<false>(false);
    let refused = "failed: the server does not let you in: ask its operator why";
    let what = format!("no client has played; they are {refused}, {refused}");
    assert_eq!(idle(&measured), [(None, what.as_str())]);
}

#[test]
fn clients_that_play_pass() {
    let measured = run::<false>(true);
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
}
