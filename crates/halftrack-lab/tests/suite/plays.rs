//! A run in which nobody plays is no run without faults.

use std::sync::Arc;
use std::time::Duration;

use halftrack::cart::{Cart, CartBody, CartPose};
use halftrack::client::ClientConfig;
use halftrack::serde::{Deserialize, Serialize};
use halftrack::server::{Events, Room, ServerConfig, World};
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{
    Body, Cadence, Cause, Causes, Driver, FieldError, Game, MotionLimits, PlayerId, PlayerName, Settling,
    Step, Timestamp,
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

    fn pose(&self, cart: &Self::Body) -> Option<CartPose> {
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

/// A room, and the players in it.
#[derive(Clone, Debug)]
struct Case {
    /// Whether players are let in.
    open: bool,
    /// Whether a player has a cart.
    spawns: bool,
    /// Whether the world puts every cart somewhere else in every tick.
    teleports: bool,
    /// The input of every player.
    input: i8,
    clients: usize,
    span: Duration,
}

impl Default for Case {
    fn default() -> Self {
        let span = Duration::from_secs(14);
        Self { open: true, spawns: true, teleports: false, input: 4, clients: 2, span }
    }
}

#[derive(Debug)]
struct Yard<const UNREADABLE: bool> {
    rules: Arc<Sealed<UNREADABLE>>,
    case: Case,
}

impl<const UNREADABLE: bool> World for Yard<UNREADABLE> {
    type Game = Sealed<UNREADABLE>;

    fn rules(&self) -> &Arc<Self::Game> {
        &self.rules
    }

    fn admit(&mut self, _: &Login, _: Option<PlayerId>) -> Result<(), LoginRefused> {
        if self.case.open { Ok(()) } else { Err(LoginRefused::Banned) }
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Self::Game>) {
        if self.case.spawns {
            room.spawn(Driver::Player(player), SealedCart(CartBody::at(0.0))).unwrap();
        }
    }

    fn resolve(&mut self, room: &mut Room<'_, Self::Game>, _: &mut Events) {
        let carts: Vec<_> = room.bodies().map(|(id, _, cart)| (id, *cart)).collect();
        for (id, SealedCart(cart)) in carts.into_iter().filter(|_| self.case.teleports) {
            let elsewhere = SealedCart(CartBody { x: cart.x + 1.0, ..cart });
            room.alter(id, elsewhere, Causes::NONE.with(Cause::Teleport)).unwrap();
        }
    }
}

fn run<const UNREADABLE: bool>(case: Case) -> Measured {
    let Case { input, clients, span, .. } = case;
    let world = Yard::<UNREADABLE> { rules: Arc::default(), case };
    let mut lab = Lab::new(LabConfig::new(ServerConfig::default(), 5), world).unwrap();
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    for name in ["Ada", "Bob"].into_iter().take(clients) {
        let name = PlayerName::new(name).unwrap();
        let client = ClientConfig::new(name, Cadence::default(), Arc::default());
        let bot = move |_: Timestamp, _: &mut FlightClient<Sealed<UNREADABLE>>| Some(input);
        lab.join(SeatConfig::new(client, link), Box::new(bot)).unwrap();
    }
    lab.run(span);
    lab.drain();
    lab.measured()
}

fn idle(measured: &Measured) -> Vec<(Option<usize>, &str)> {
    let found = measured.invariants.list.iter().filter(|found| found.rule == Rule::Plays);
    found.map(|found| (found.client, found.what.as_str())).collect()
}

/// The one thing that is wrong with the whole run.
fn nobody(measured: &Measured) -> String {
    let idle = idle(measured);
    let [(None, what)] = idle[..] else { panic!("{idle:?}") };
    what.strip_prefix("nobody played: ").unwrap_or_else(|| panic!("{what}")).to_owned()
}

#[test]
fn clients_that_are_logged_in_and_never_play_fail_the_run() {
    let measured = run::<true>(Case::default());
    let idle = idle(&measured);
    assert_eq!(
        idle.iter().map(|(client, _)| *client).collect::<Vec<_>>(),
        [Some(0), Some(1), None],
        "{idle:?}"
    );
    assert!(idle[0].1.contains("malformed: "), "it says what the client counted: {idle:?}");
    assert_eq!(idle[2].1, "nobody played: no snapshot came; the clients are logged in, logged in");
}

#[test]
fn a_room_that_lets_nobody_in_fails_the_run() {
    let measured = run::<false>(Case { open: false, ..Case::default() });
    let refused = "failed: the server does not let you in: ask its operator why";
    assert_eq!(nobody(&measured), format!("no snapshot came; the clients are {refused}, {refused}"));
}

#[test]
fn a_run_that_ends_before_the_first_snapshot_fails() {
    let measured = run::<false>(Case { span: Duration::from_millis(50), ..Case::default() });
    assert!(nobody(&measured).starts_with("no snapshot came; the clients are "), "{measured:?}");
    let measured = run::<false>(Case { span: Duration::from_secs(1), ..Case::default() });
    assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
}

#[test]
fn a_run_without_clients_fails() {
    let measured = run::<false>(Case { clients: 0, ..Case::default() });
    assert_eq!(nobody(&measured), "there is no client");
}

#[test]
fn players_that_only_watch_fail_the_run() {
    let measured = run::<false>(Case { spawns: false, ..Case::default() });
    assert_eq!(nobody(&measured), "no client predicts its body; they are logged in, logged in");
}

#[test]
fn players_that_never_move_fail_the_run() {
    for teleports in [false, true] {
        let measured = run::<false>(Case { input: 0, teleports, ..Case::default() });
        assert_eq!(nobody(&measured), "no player ever moved", "teleports: {teleports}");
    }
}

#[test]
fn clients_that_play_pass() {
    for teleports in [false, true] {
        let measured = run::<false>(Case { teleports, ..Case::default() });
        assert_eq!(measured.invariants.violated, 0, "{:?}", measured.invariants.list);
    }
}
