//! Rockets: presses of the button, and what the page is told of births and ends.

use halftrack::client::{Certainty, Client, Life, LifeEvent};
use halftrack::model::Presses;
use halftrack::{BodyId, Cause};
use serde::Serialize;
use tanks::{Fighter, TankInput, Tanks};

use crate::bodies::owner;
use crate::told::Told;
use crate::view::flag;

/// The own rockets that were drawn before the server knew of them, and what became of them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    predicted: u64,
    confirmed: u64,
    revoked: u64,
}

/// What is known of rockets.
#[derive(Debug, Default)]
pub(crate) struct Rockets {
    counts: Counts,
    /// Own rockets that the server has not confirmed.
    waiting: Vec<BodyId>,
    /// The own tank, from whose count of presses the page's goes on.
    tank: Option<BodyId>,
}

impl Rockets {
    /// More wait only for a server that does not answer at all.
    const MAX_WAITING: usize = 64;

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The session begins anew.
    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
        self.tank = None;
    }

    /// A wish with one more press. There is none before the own tank is known.
    pub(crate) fn press(&self, wish: TankInput) -> Option<TankInput> {
        self.tank.map(|_| wish.pressing(Presses::next(wish.rocket)))
    }

    /// The wish whose count goes on from the own tank's: it may have answered presses of an earlier page. `None` when nothing
    /// is to be changed.
    pub(crate) fn join(&mut self, client: &Client<Tanks>, wish: TankInput) -> Option<TankInput> {
        let own = client.own().next();
        let known = own.map(|(id, ..)| id);
        if self.tank == known {
            return None;
        }
        self.tank = known;
        let tank = own.and_then(|(_, body, _)| body.tank())?;
        (tank.presses != wish.rocket).then(|| wish.pressing(tank.presses))
    }

    /// A birth or an end, as the page is told of it.
    pub(crate) fn hear(&mut self, client: &Client<Tanks>, event: &LifeEvent<Tanks>) -> Told {
        let (fighter, flags) = owner(client, event.parent);
        let own = flags & flag::OWN != 0;
        if own {
            self.count(event);
        }
        let pose = event.body.pose();
        Told::Rocket {
            id: event.id.number(),
            life: match event.life {
                Life::Born => "born",
                Life::Ended => "ended",
            },
            certainty: match event.certainty {
                Certainty::Predicted => "predicted",
                Certainty::Confirmed => "confirmed",
                Certainty::Revoked => "revoked",
            },
            shooter: fighter.map(Fighter::key),
            own,
            at: [pose.x, pose.y],
            heading: pose.heading * core::f64::consts::TAU,
            cause: event.cause.map(Cause::name),
        }
    }

    fn count(&mut self, event: &LifeEvent<Tanks>) {
        let counts = &mut self.counts;
        match (event.life, event.certainty) {
            (Life::Born, Certainty::Predicted) => {
                counts.predicted += 1;
                if self.waiting.len() < Self::MAX_WAITING {
                    self.waiting.push(event.id);
                }
            }
            (Life::Born, Certainty::Confirmed) => {
                if let Some(at) = self.waiting.iter().position(|id| *id == event.id) {
                    self.waiting.remove(at);
                    counts.confirmed += 1;
                }
            }
            (Life::Born, Certainty::Revoked) => {
                self.waiting.retain(|id| *id != event.id);
                counts.revoked += 1;
            }
            (Life::Ended, _) => {}
        }
    }
}
