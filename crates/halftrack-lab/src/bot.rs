//! Who plays.

use halftrack::client::Client;
use halftrack::{Game, Timestamp};
use halftrack_flight::FlightClient;

use crate::result::Combat;

/// A player without a person. It knows what a person would: what its client shows.
///
/// A closure that gives an input is one:
///
/// ```
/// use halftrack::cart::Cart;
/// use halftrack::Timestamp;
/// use halftrack_flight::FlightClient;
/// use halftrack_lab::Bot;
///
/// fn seated(bot: impl Bot<Cart> + 'static) -> Box<dyn Bot<Cart>> {
///     Box::new(bot)
/// }
/// let back_and_forth =
///     seated(|now: Timestamp, _: &mut FlightClient<Cart>| Some([8, -8][now.as_micros() as usize / 313_000 % 2]));
/// # let _ = back_and_forth;
/// ```
pub trait Bot<G: Game> {
    /// A frame is about to be drawn at `now`, by the client's own clock: what the player wants from here on, or nothing
    /// new. Orders go straight to the client.
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<G>) -> Option<G::Input>;

    /// The frame was drawn: what the client shows now is on the player's screen. By default it is not looked at.
    fn look(&mut self, now: Timestamp, client: &Client<G>) {
        let _ = (now, client);
    }

    /// The client was told of something that happened in the game.
    fn hear(&mut self, client: &Client<G>, event: &[u8]) {
        let _ = (client, event);
    }

    /// How often it has pressed the button that emits, in a game in which each press emits one body from the player's first
    /// body. `None`, the default, where the game says nothing of the kind.
    fn presses(&self) -> Option<u64> {
        None
    }

    /// How its shots went, if it shoots.
    fn combat(&self) -> Option<ShotCount> {
        None
    }
}

impl<G: Game, F: FnMut(Timestamp, &mut FlightClient<G>) -> Option<G::Input>> Bot<G> for F {
    fn drive(&mut self, now: Timestamp, client: &mut FlightClient<G>) -> Option<G::Input> {
        self(now, client)
    }
}

/// How the shots of one player went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShotCount {
    /// Shots whose outcome is known.
    pub shots: u64,
    /// Of these, shots that hit.
    pub hits: u64,
    /// Of these, shots whose outcome is what the screen showed.
    pub agreed: u64,
    /// Of these, shots that say nothing about that: the shooter died first.
    pub moot: u64,
    /// Shots that were refused.
    pub rejected: u64,
    /// Hits on the player's own tank by machines.
    pub machine_hits: u64,
}

impl ShotCount {
    /// These without those that were counted before.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            shots: self.shots.saturating_sub(before.shots),
            hits: self.hits.saturating_sub(before.hits),
            agreed: self.agreed.saturating_sub(before.agreed),
            moot: self.moot.saturating_sub(before.moot),
            rejected: self.rejected.saturating_sub(before.rejected),
            machine_hits: self.machine_hits.saturating_sub(before.machine_hits),
        }
    }

    /// All of them together.
    pub fn sum(counts: impl Iterator<Item = Self>) -> Combat {
        let all = counts.fold(Self::default(), |all, one| Self {
            shots: all.shots + one.shots,
            hits: all.hits + one.hits,
            agreed: all.agreed + one.agreed,
            moot: all.moot + one.moot,
            rejected: all.rejected + one.rejected,
            machine_hits: all.machine_hits + one.machine_hits,
        });
        let decided = all.shots - all.moot;
        Combat {
            shots: all.shots,
            hits: all.hits,
            agreed_ratio: if decided == 0 { 1.0 } else { all.agreed as f64 / decided as f64 },
            rejected: all.rejected,
            machine_hits: all.machine_hits,
        }
    }
}
