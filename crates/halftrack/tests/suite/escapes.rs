//! Fields of bodies that leave their range are put back, counted and named: by the rules and by the world.

use std::sync::Arc;

use halftrack::cart::{Cart, CartBody};
use halftrack::server::{Events, Room, Stage, World};
use halftrack::snapshot::{BodyKey, BodyLimits};
use halftrack::wire::control::{Login, PROTOCOL};
use halftrack::{Cadence, Causes, Driver, FieldProblem, PlayerId, PlayerName, Tick, TickInput};

const EDGE: f64 = 1_000_000.0;

/// Carts come in at `x`, and the world puts them at `alter` at the end of every tick.
struct Yard {
    rules: Arc<Cart>,
    x: f64,
    alter: Option<f64>,
}

impl World for Yard {
    type Game = Cart;

    fn rules(&self) -> &Arc<Cart> {
        &self.rules
    }

    fn join(&mut self, player: PlayerId, _: &Login, room: &mut Room<'_, Cart>) {
        room.spawn(Driver::Player(player), CartBody::at(self.x)).unwrap();
    }

    fn resolve(&mut self, room: &mut Room<'_, Cart>, _: &mut Events) {
        let ids: Vec<_> = room.bodies().map(|(id, ..)| id).collect();
        for id in ids {
            if let Some(x) = self.alter {
                room.alter(id, CartBody::at(x), Causes::NONE).unwrap();
            }
        }
    }
}

/// Plays one tick at full input; gives the stage.
fn play(x: f64, alter: Option<f64>) -> Stage<Yard> {
    let yard = Yard { rules: Arc::default(), x, alter };
    let mut stage =
        Stage::new(Cadence::default(), yard, Tick::new(9), BodyKey::new([1; 16]), BodyLimits::default());
    let name = PlayerName::new("Ada").unwrap();
    let login = Login { protocol: PROTOCOL, shared: 0, name, resume: None, credentials: None };
    stage.join(PlayerId::new(3), &login);
    stage.advance(|_| TickInput::steady(8));
    stage
}

fn last(stage: &Stage<Yard>) -> Option<(u32, &'static str, FieldProblem)> {
    stage.escapes().last.map(|(id, tick, error)| {
        assert_eq!(stage.owned(PlayerId::new(3)), [id]);
        (tick.number(), error.field, error.problem)
    })
}

#[test]
fn a_cart_within_its_range_is_not_reported() {
    let stage = play(EDGE - 1.0, Some(EDGE));
    assert_eq!((stage.escapes().count, last(&stage)), (0, None));
}

#[test]
fn a_cart_that_drives_over_the_edge_is_put_back_and_named() {
    let stage = play(EDGE, None);
    assert_eq!(last(&stage), Some((10, "CartBody.x", FieldProblem::OutOfRange)));
    assert_eq!(stage.bodies().next().unwrap().2.x, EDGE);
}

#[test]
fn a_cart_that_joins_or_is_altered_out_of_its_range_is_put_back_and_named() {
    let joined = play(-2.0 * EDGE, None);
    assert_eq!(
        (joined.escapes().count, last(&joined)),
        (1, Some((9, "CartBody.x", FieldProblem::OutOfRange)))
    );
    let altered = play(0.0, Some(f64::NAN));
    assert_eq!(
        (altered.escapes().count, last(&altered)),
        (1, Some((10, "CartBody.x", FieldProblem::NotFinite)))
    );
    assert_eq!(altered.bodies().next().unwrap().2.x, -EDGE, "NaN becomes the start of the range");
}
