//! A two-state chain (Gilbert 1960, Elliott 1963): how much is lost, in bursts of what length.
//!
//! In the bad state everything is lost, in the good one nothing. Knows nothing of time: a burst is counted in datagrams.

use crate::random::Random;

/// Which of the two states the link is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Bad,
}

/// The chain. The first datagram is lost as often as any other.
#[derive(Clone, Debug)]
pub(crate) struct LossChain {
    loss: f64,
    begins: f64,
    ends: f64,
    state: Option<State>,
}

impl LossChain {
    pub(crate) fn new(loss: f64, burst: f64) -> Self {
        let mut chain = Self { loss, begins: 0.0, ends: 1.0, state: None };
        chain.set(loss, burst);
        chain
    }

    /// Changes the shares. A burst that has begun goes on, unless nothing is to be lost any more.
    pub(crate) fn set(&mut self, loss: f64, burst: f64) {
        self.loss = loss;
        // Independent losses end a burst with `1 - loss`. Ending them sooner would be less random than chance, and
        // impossible from one half up.
        let kept = 1.0 - loss;
        self.ends = if loss > 0.0 { kept.min(1.0 / burst) } else { 1.0 };
        // In the long run as many bursts begin as end: `begins * kept == ends * loss`.
        self.begins = if kept > 0.0 { self.ends * loss / kept } else { 1.0 };
    }

    /// Whether the next datagram is lost; always draws once.
    pub(crate) fn takes(&mut self, dice: &mut Random) -> bool {
        let bad = match self.state {
            None => dice.happens(self.loss),
            Some(State::Good) => dice.happens(self.begins),
            Some(State::Bad) => !dice.happens(self.ends),
        };
        self.state = Some(if bad { State::Bad } else { State::Good });
        bad
    }
}
