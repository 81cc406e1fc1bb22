//! A run in which nobody plays is no run without faults.

use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody, CartPose};
use halftrack::client::ClientConfig;
use halftrack::serde::{Deserialize, Serialize};
use halftrack::server::{Events, Order, Room, ServerConfig, World};
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{
    Body, Cadence, FieldError, Game, MotionLimits, PlayerId, PlayerName, Settling, Step, Timestamp,
};
use halftrack_flight::FlightClient;
use halftrack_lab::{Lab, LabConfig, Measured, Rule, SeatConfig};
use halftrack_netem::LinkConfig;

/// Carts that pass through each other, and that no client can read if `UNREADABLE`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sealed<const UNREADABLE: bool>;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "halftrack::serde")]
struct SealedCart<const UNREADABLE: bool>(CartBody);

impl<const UNREADABLE: bool> Game for Sealed<UNREADABLE> {
    type Input = i8;
    type Body = SealedCart<UNREADABLE>;
    type Pose = CartPose;

    fn advance(&self, cart: &mut Self::Body, input: i8, step: &mut Step<'_, Self>) {
        cart.0.x += f64::from(input) * step.seconds();
    }

    fn pose(&self, cart: &Self::Body) -> CartPose {
        Cart.pose(&cart.0)
    }

    fn limits(&self, cart: &Self::Body) -> MotionLimits {
        Cart.limits(&cart.0)
    }

    fn fingerprint(&self) -> u64 {
        Cart.fingerprint()
    }
}

impl<const UNREADABLE: bool> Body for SealedCart<UNREADABLE> {
    const SCHEMA: u64 = CartBody::SCHEMA;
    const MAX_BITS: usize = CartBody::MAX_BITS;

    fn blank() -> Self {
        Self(CartBody::blank())
    }

    fn settle(&mut self) -> Settling {
        self.0.settle()
    }

    fn check(&self) -> Result<(), FieldError> {
        self.0.check()
    }

    fn write(&self, baseline: &Self, bits: &mut BitWriter<'_>) {
        self.0.write(&baseline.0, bits);
    }

    fn read(baseline: &Self, bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        let body = CartBody::read(&baseline.0, bits)?;
        if UNREADABLE { Err(WireError::Invalid { field: "cart" }) } else { Ok(Self(body)) }
    }

    fn digest(&self) -> u64 {
        self.0.digest()
    }
}

#[derive(Debug)]
struct Yard<const UNREADABLE: bool> {
    rules: Arc<Sealed<UNREADABLE>>,
    open: bool,
}

impl<const UNREADABLE: bool> World for Yard<UNREADABLE> {
    type Game = Sealed<UNREADABLE>;

    fn rules(&self) -> &Arc<Self::Game> {
        &self.rules
    }

    fn admit(&mut self, _: &Login, _: Option<PlayerId>) -> Result<(), LoginRefused> {
        if self.open { Ok(()) } else { Err(LoginRefused::Banned) }
    }

    fn join(&mut self, _: PlayerId, _: &Login, _: &mut Room<'_, Self::Game>) -> SealedCart<UNREADABLE> {
        SealedCart(CartBody::at(0.0))
    }

    fn leave(&mut self, _: PlayerId, _: &mut Room<'_, Self::Game>, _: &mut Events) {}

    fn order(&mut self, _: Order<'_>) -> Result<(), WireError> {
        Ok(())
    }

    fn resolve(&mut self, _: &mut Room<'_, Self::Game>, _: &mut Events) {}
}

fn run<const UNREADABLE: bool>(open: bool) -> Measured {
    let world = Yard::<UNREADABLE> { rules: Arc::default(), open };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), 5), world).unwrap();
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    for name in ["Ada", "Bob"] {
        let name = PlayerName::new(name).unwrap();
        let client = ClientConfig::new(name, Cadence::default(), Arc::default());
        let bot = |_: Timestamp, _: &mut FlightClient<Sealed<UNREADABLE>>| Some(4);
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
