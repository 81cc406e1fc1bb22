//! A two-state chain (Gilbert 1960, Elliott 1963): how much is lost, in bursts of what length.
//!
//! In the bad state everything is lost, in the good one nothing. Knows nothing of time: a burst is counted in
//! datagrams.

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
        // spec: NETEM-03
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

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: u32 = 1_000_000;

    /// Share lost and mean burst of a long run.
    fn measure(chain: &mut LossChain, seed: u64) -> (f64, f64) {
        let mut dice = Random::new(seed, 0);
        let (mut lost, mut bursts, mut was) = (0, 0, false);
        for _ in 0..STEPS {
            let is = chain.takes(&mut dice);
            lost += u32::from(is);
            bursts += u32::from(is && !was);
            was = is;
        }
        (f64::from(lost) / f64::from(STEPS), f64::from(lost) / f64::from(bursts.max(1)))
    }

    #[test]
    fn loss_and_burst_are_what_is_asked_for() {
        for (loss, burst) in [(0.001, 2.0), (0.01, 2.0), (0.03, 3.0), (0.10, 3.0), (0.5, 2.0), (0.3, 20.0)] {
            let (share, length) = measure(&mut LossChain::new(loss, burst), 5);
            let bursts = f64::from(STEPS) * loss / burst;
            // Four standard errors: lengths are geometric (at most their mean), and so is what lies between them.
            let tolerance = 4.0 / bursts.sqrt();
            assert!((length / burst - 1.0).abs() < tolerance, "{loss}, {burst}: bursts of {length}");
            assert!((share / loss - 1.0).abs() < tolerance * 1.5, "{loss}, {burst}: {share} lost");
        }
    }

    #[test]
    fn a_burst_of_one_is_independent_loss() {
        for loss in [0.01, 0.2, 0.5, 0.9] {
            let (share, length) = measure(&mut LossChain::new(loss, 1.0), 6);
            assert!((share - loss).abs() < 0.003, "{loss}: {share}");
            assert!((length * (1.0 - loss) - 1.0).abs() < 0.02, "{loss}: {length}");
            let chain = LossChain::new(loss, 1.0);
            assert!((chain.begins - loss).abs() < 1e-12, "as likely after a loss as after none");
        }
    }

    #[test]
    fn none_and_all_are_that() {
        let mut dice = Random::new(7, 0);
        for burst in [1.0, 3.0, 1_000.0] {
            let (mut none, mut all) = (LossChain::new(0.0, burst), LossChain::new(1.0, burst));
            assert!((0..10_000).all(|_| !none.takes(&mut dice) && all.takes(&mut dice)));
        }
    }

    #[test]
    fn the_first_is_lost_as_often_as_any() {
        let lost = (0..100_000).filter(|seed| {
            let mut dice = Random::new(*seed, 0);
            LossChain::new(0.2, 5.0).takes(&mut dice)
        });
        let count = lost.count();
        assert!(count.abs_diff(20_000) < 600, "{count}");
    }

    #[test]
    fn no_loss_ends_a_burst_at_once() {
        let mut dice = Random::new(8, 0);
        let mut chain = LossChain::new(1.0, 1_000.0);
        assert!(chain.takes(&mut dice));
        chain.set(0.0, 1_000.0);
        assert!(!chain.takes(&mut dice));
    }
}
