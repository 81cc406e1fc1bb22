//! Corrections through a whole client, with thresholds and budgets that are not the defaults.

use std::sync::Arc;
use std::time::Duration;

use crate::rig::carts::{config, config_at, nothing};
use crate::rig::{Rig, Way, ms};
use halftrack::cart::{Cart, CartBody, Rails};
use halftrack::client::ClientConfig;
use halftrack::server::{Events, Order, Room, ServerConfig, World};
use halftrack::session::{SessionEnd, SessionState};
use halftrack::wire::WireError;
use halftrack::wire::control::{Login, LoginRefused};
use halftrack::{Cadence, Cause, Causes, CorrectionConfig, Game, Outcome, PlayerId, Snap, Timestamp};

/// Rails that move every cart at the end of each tick, forth and back: no prediction can know that.
#[derive(Default)]
struct Shaken {
    rails: Rails,
    /// Metres, and whether they are moved at all.
    by: f64,
}

impl World for Shaken {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        self.rails.rules()
    }

    fn join(&mut self, player: PlayerId, login: &Login, room: &mut Room<'_, Cart>) {
        self.rails.join(player, login, room);
    }

    fn leave(&mut self, player: PlayerId, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.rails.leave(player, room, events);
    }

    fn order(&mut self, order: Order<'_, Cart>) -> Result<(), WireError> {
        self.rails.order(order)
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, events: &mut Events) {
        self.rails.resolve(room, events);
        let by = if room.tick().number().is_multiple_of(2) { self.by } else { -self.by };
        let carts: Vec<_> = room.bodies().map(|(id, _, cart)| (id, *cart)).collect();
        for (id, cart) in carts.into_iter().filter(|_| by != 0.0) {
            let shaken = CartBody { x: cart.x + by, ..cart };
            room.alter(id, shaken, Causes::NONE.with(Cause::Params)).unwrap();
        }
    }
}

/// Each correction of a client in a room that shakes by so much from some moment on: when, and what became of it.
fn corrections(config: ClientConfig<Cart>, by: f64, span: Duration) -> Vec<(Timestamp, Outcome)> {
    let mut rig = Rig::new(ServerConfig::default(), Shaken::default(), 5);
    let seat = rig.join(config, Way::delayed(ms(20)));
    rig.run(ms(2_000), nothing);
    let before = rig.seats[seat].client.reconciler().unwrap().stats();
    assert_eq!((before.eased, before.snapped), (0, 0), "nothing to correct yet: {before:?}");
    rig.server.world_mut().unwrap().by = by;
    let mut found: Vec<(Timestamp, Outcome)> = vec![];
    rig.run(span, |_, _, client| {
        for told in client.reconciler().into_iter().flat_map(|own| own.recent()) {
            let newer = found.last().is_none_or(|(at, _)| told.at > *at);
            if newer && told.outcome != Outcome::Unchanged {
                found.push((told.at, told.outcome));
            }
        }
    });
    found
}

fn with(change: impl FnOnce(&mut CorrectionConfig)) -> ClientConfig<Cart> {
    let mut config = config("Ada");
    let limits = Cart.limits(&CartBody::at(0.0));
    let mut correction = CorrectionConfig::for_motion(limits, Cart.max_hold(), Cadence::default());
    change(&mut correction);
    config.correction = Some(correction);
    config
}

/// The time from the first correction to the first that escalates.
fn escalates_after(config: ClientConfig<Cart>) -> Option<Duration> {
    let found = corrections(config, 0.3, Duration::from_secs(4));
    let (begun, _) = found[0];
    let snapped = found.iter().find(|(_, outcome)| *outcome == Outcome::Snapped(Snap::Standstill));
    snapped.map(|(at, _)| at.saturating_since(begun))
}

#[test]
fn corr_06_residuals_that_alternate_escalate_after_the_budgets_of_the_config() {
    let cases = [
        (with(|_| {}), 800),
        (with(|correction| correction.escalate_after = 3.5), 1_400),
        (with(|correction| correction.budget = ms(200)), 400),
        (with(|correction| (correction.budget, correction.escalate_after) = (ms(250), 6.0)), 1_500),
    ];
    for (config, millis) in cases {
        let correction = config.correction;
        let after = escalates_after(config).unwrap();
        // With the first state after that; they are 50 ms apart.
        let expected = ms(millis)..=ms(millis + 51);
        assert!(expected.contains(&after), "{after:?}: {correction:?}");
    }
}

#[test]
fn corr_06_the_snap_threshold_of_the_config_decides_what_is_eased() {
    let outcomes = |snap_distance: f64| {
        let config = with(|correction| correction.snap_distance = snap_distance);
        let found = corrections(config, 0.3, ms(700));
        assert!(found.len() > 8, "{found:?}");
        found.into_iter().map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    assert!(outcomes(0.29).iter().all(|outcome| *outcome == Outcome::Snapped(Snap::Size)));
    assert!(outcomes(0.31).first() == Some(&Outcome::Eased));
    // By default the cart may be off by what full reverse does for as long as input is held.
    assert!(outcomes(4.8).iter().all(|outcome| *outcome == Outcome::Eased));
}

#[test]
fn a_client_of_another_cadence_is_refused_at_login() {
    let server = ServerConfig { cadence: Cadence::new(ms(40)).unwrap(), ..ServerConfig::default() };
    let mut rig = Rig::new(server, Rails::default(), 5);
    let other = rig.join(config("Ada"), Way::delayed(ms(20)));
    let same = rig.join(config_at("Bob", server.cadence), Way::delayed(ms(20)));
    rig.run(ms(1_000), nothing);
    let refused = SessionState::Failed(SessionEnd::Refused(LoginRefused::Rules));
    assert_eq!(rig.seats[other].client.state(), refused);
    assert!(refused.to_string().contains("cadence"), "{refused}");
    assert_eq!(rig.seats[same].client.state(), SessionState::LoggedIn);
}
