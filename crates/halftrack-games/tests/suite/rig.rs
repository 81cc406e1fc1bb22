//! What the lab tests share: the links of the shipped plans, seats, and a bot that also looks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use halftrack::client::{Client, ClientConfig};
use halftrack::server::World;
use halftrack::{Cadence, Game, PlayerName, Timestamp};
use halftrack_flight::FlightClient;
use halftrack_lab::{Bot, Dice, Lab, Plan, SHIPPED, SeatConfig};
use halftrack_netem::LinkConfig;

/// The link of a shipped plan.
pub(crate) fn link(plan: &str) -> LinkConfig {
    let (_, text) = SHIPPED.iter().find(|(name, _)| *name == plan).unwrap();
    Plan::read(text).unwrap().seats[0].link
}

/// The same without jitter and loss: no input is late.
pub(crate) fn steady(plan: &str) -> LinkConfig {
    LinkConfig { delay: link(plan).delay, ..LinkConfig::default() }
}

/// A bot of two parts: one chooses the input, one looks at each frame.
pub(crate) struct Seated<D, L> {
    pub(crate) drive: D,
    pub(crate) look: L,
}

impl<G, D, L> Bot<G> for Seated<D, L>
where
    G: Game,
    D: FnMut(Timestamp, &Client<G>) -> Option<G::Input>,
    L: FnMut(Timestamp, &Client<G>),
{
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<G>) -> Option<G::Input> {
        (self.drive)(now, client)
    }

    fn look(&mut self, now: Timestamp, client: &Client<G>) {
        (self.look)(now, client);
    }
}

/// Seats a bot by this link.
pub(crate) fn seat<W: World>(
    lab: &mut Lab<W>,
    rules: &Arc<W::Game>,
    link: LinkConfig,
    bot: impl Bot<W::Game> + 'static,
) {
    let name = PlayerName::new(&format!("bot {}", lab.clients())).unwrap();
    let client = ClientConfig::new(name, Cadence::default(), Arc::clone(rules));
    lab.join(SeatConfig::new(client, link), Box::new(bot)).unwrap();
}

/// Something that bots write and the test reads.
pub(crate) fn shared<T: Default>() -> Rc<RefCell<T>> {
    Rc::default()
}

/// A number from -1 to 1 of the inputs' grid.
pub(crate) fn axis(dice: &mut Dice) -> f64 {
    dice.below(33) as f64 / 16.0 - 1.0
}
