//! Everything that can happen to a session, tried: the real state machines of both ends between them a network that does
//! its worst, explored state by state, breadth first, so that what is found is found by the shortest way.
//!
//! Knows nothing of sessions: [`Model`] is what is explored. `session` is the one that there is.

mod client;
mod fingerprint;
mod link;
mod server;
mod session;

use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::time::{Duration, Instant};

pub use session::{Bounds, Planted, SessionModel};

/// Something that can be in one of many states, and be acted on in each.
pub trait Model: Clone {
    /// What can happen.
    type Action: Copy + Debug;

    /// What can happen next.
    fn actions(&self, into: &mut Vec<Self::Action>);

    /// Lets it happen.
    ///
    /// # Errors
    /// What must never be, and is.
    fn act(&mut self, action: Self::Action) -> Result<(), String>;

    /// What a kind network and patient people do next; none when everything is as it should be at last.
    fn kindly(&self) -> Option<Self::Action>;

    /// Whether, when nothing is left to do kindly, all is well.
    ///
    /// # Errors
    /// What is not.
    fn settled(&self) -> Result<(), String>;

    /// The same for two states that nothing could tell apart.
    fn fingerprint(&self) -> u128;
}

/// How far an exploration went, and what it found.
#[derive(Clone, Debug)]
pub struct Explored {
    /// States that differ.
    pub states: usize,
    /// Ways from one to another.
    pub transitions: usize,
    /// Actions from the start to the furthest of them.
    pub depth: usize,
    /// States that a kind network was tried from, those on the way included.
    pub settled: usize,
    /// Whether there was nothing left to explore within the bounds.
    pub complete: bool,
    /// Real time.
    pub elapsed: Duration,
    /// What must never be.
    pub broken: Option<Broken>,
}

/// What must never be, and how to get there.
#[derive(Clone, Debug)]
pub struct Broken {
    /// What is wrong.
    pub what: String,
    /// The actions that lead there, one after the other.
    pub trace: Vec<String>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.complete { "all of them" } else { "more are left" };
        write!(
            f,
            "{} states ({all}), {} transitions, {} deep, {} settled, {:.1} s",
            self.states,
            self.transitions,
            self.depth,
            self.settled,
            self.elapsed.as_secs_f64()
        )?;
        if let Some(broken) = &self.broken {
            write!(f, "\n{}, after", broken.what)?;
            broken.trace.iter().try_for_each(|action| write!(f, "\n  {action}"))?;
        }
        Ok(())
    }
}

/// Where a state was reached from.
struct Reached<A> {
    from: u32,
    by: Option<A>,
}

/// Tries everything from `start` on, `depth` actions deep, until there are so many states.
pub fn explore<M: Model>(start: &M, depth: usize, max_states: usize) -> Explored {
    let began = Instant::now();
    let mut known: HashSet<u128> = HashSet::from([start.fingerprint()]);
    let mut reached: Vec<Reached<M::Action>> = vec![Reached { from: 0, by: None }];
    let mut well = HashSet::new();
    let mut frontier = vec![(0u32, start.clone())];
    let (mut transitions, mut deep, mut actions) = (0, 0, Vec::new());
    let mut broken =
        settle(start, start.fingerprint(), &mut well).err().map(|(what, kindly)| (what, 0u32, kindly));
    while broken.is_none() && !frontier.is_empty() && deep < depth && known.len() < max_states {
        deep += 1;
        let mut next = Vec::new();
        'states: for (at, state) in frontier.drain(..) {
            actions.clear();
            state.actions(&mut actions);
            for action in &actions {
                transitions += 1;
                let mut after = state.clone();
                let acted = after.act(*action);
                let fingerprint = after.fingerprint();
                if acted.is_ok() && !known.insert(fingerprint) {
                    continue;
                }
                let number = u32::try_from(reached.len()).unwrap_or(u32::MAX);
                reached.push(Reached { from: at, by: Some(*action) });
                let wrong = match acted {
                    Ok(()) => settle(&after, fingerprint, &mut well).err(),
                    Err(what) => Some((what, Vec::new())),
                };
                if let Some((what, kindly)) = wrong {
                    broken = Some((what, number, kindly));
                    break 'states;
                }
                next.push((number, after));
            }
        }
        frontier = next;
    }
    let broken = broken.map(|(what, at, kindly)| {
        let mut trace = way_to(&reached, at);
        trace.extend(kindly.into_iter().map(|action| format!("{action:?} (kindly)")));
        Broken { what, trace }
    });
    let complete = frontier.is_empty() && broken.is_none();
    let (states, settled, elapsed) = (known.len(), well.len(), began.elapsed());
    Explored { states, transitions, depth: deep, settled, complete, elapsed, broken }
}

/// More than a kind network ever needs.
const PATIENCE: usize = 400;

/// From here on the network is kind: all must become well. What led to a state that is known to become well does too.
fn settle<M: Model>(
    state: &M,
    mut fingerprint: u128,
    well: &mut HashSet<u128>,
) -> Result<(), (String, Vec<M::Action>)> {
    let (mut state, mut done) = (state.clone(), Vec::new());
    // Taken for well at once: if it is not, nothing is explored any more.
    while well.insert(fingerprint) {
        let Some(action) = state.kindly() else {
            state.settled().map_err(|what| (what, done.clone()))?;
            break;
        };
        done.push(action);
        state.act(action).map_err(|what| (what, done.clone()))?;
        if done.len() > PATIENCE {
            return Err(("it never becomes well, however kind the network is".to_owned(), done));
        }
        fingerprint = state.fingerprint();
    }
    Ok(())
}

fn way_to<A: Debug>(reached: &[Reached<A>], mut at: u32) -> Vec<String> {
    let mut way = Vec::new();
    while let Some(Reached { from, by: Some(action) }) = reached.get(at as usize) {
        way.push(format!("{action:?}"));
        at = *from;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explored(bounds: Bounds, planted: Planted, depth: usize) -> Explored {
        explore(&SessionModel::new(bounds, planted), depth, 100_000)
    }

    #[test]
    fn whatever_happens_to_a_session_nothing_is_lost_doubled_or_owned_twice() {
        let small = Bounds::default();
        for (depth, bounds) in [
            (8, small),
            (6, Bounds { wishes: 2, ..small }),
            (6, Bounds { kills: 1, ..small }),
            (5, Bounds { clients: 2, links: 4, ..small }),
            // A thief logs in by the name of a guest, before or after it.
            (9, Bounds { links: 4, events: 1, orders: 0, seconds: 0, thefts: 2, ..small }),
            (7, Bounds { events: 1, kills: 1, thefts: 2, ..small }),
            // A log that overflows, and the answer that tells of it lost.
            (14, Bounds { links: 2, events: 3, orders: 0, seconds: 0, ..small }),
            // A login that arrives after the server has given up waiting for it.
            (11, Bounds { links: 2, events: 0, orders: 0, seconds: 5, ..small }),
        ] {
            let explored = explored(bounds, Planted::Nothing, depth);
            println!("{bounds:?}: {explored}");
            assert!(explored.broken.is_none(), "{bounds:?}: {explored}");
            assert!(explored.states > 300, "{bounds:?}: {explored}");
        }
    }

    #[test]
    fn a_mistake_is_found_by_the_shortest_way() {
        for (planted, what, steps) in [
            (Planted::LostOnResume, "client 0 never hears event 1", 7),
            (Planted::DoubledOnResume, "client 0 hears event 1 after event 1", 7),
            (Planted::TwoOwners, "is connection 0's, and", 9),
            (Planted::TokenHandedOn, "a login by name is given a token of before: Some(0)", 6),
        ] {
            let broken = explored(Bounds::default(), planted, 20).broken.expect("it is there to be found");
            println!("{planted:?}: {broken:?}");
            assert!(broken.what.contains(what), "{broken:?}");
            let acted = broken.trace.iter().filter(|action| !action.contains("kindly")).count();
            assert!(acted <= steps, "{broken:?}");
        }
    }
}
