//! Every body of a room, as a client is told of them. The reading side of `bodies`.

use std::collections::{BTreeMap, VecDeque};

use crate::cadence::Cadence;
use crate::cause::Causes;
use crate::id::PlayerId;
use crate::input::TickInput;
use crate::snapshot::bodies::AGO_BITS;
use crate::snapshot::body::{BodyCode, DecodedBody, Told, decode_body};
use crate::snapshot::gaps::read_gaps;
use crate::snapshot::history::{BodyHistory, Course, HISTORY_TICKS, TickRecord};
use crate::tick::Tick;
use crate::wire::{BitReader, Coded, WireError};

/// Why a snapshot could not be used. Nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bits mean nothing.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It builds on what this client does not have: full state is to be asked for.
    #[error("the snapshot builds on one of tick {baseline}, which is not here")]
    MissingBaseline {
        /// Which.
        baseline: Tick,
    },
    /// The bodies that came out are not those that went in: the two ends play by different rules.
    #[error("the bodies do not add up to what the server says")]
    CheckFailed,
    /// Not newer than what has been read.
    #[error("the snapshot is not newer than the one of tick {newest}")]
    Stale {
        /// The newest.
        newest: Tick,
    },
}

/// What a client knows of the bodies of a room.
#[derive(Clone, Debug)]
pub struct Crowd<G: BodyCode> {
    cadence: Cadence,
    alone: G::Surroundings,
    bodies: BTreeMap<PlayerId, BodyHistory<G>>,
    /// Who was in the snapshots that were read, oldest first.
    rosters: VecDeque<(Tick, Vec<PlayerId>)>,
}

impl<G: BodyCode> Crowd<G> {
    /// Nobody is known. `alone` is the world without bodies.
    pub fn new(cadence: Cadence, alone: G::Surroundings) -> Self {
        Self { cadence, alone, bodies: BTreeMap::new(), rosters: VecDeque::new() }
    }

    /// The newest snapshot that was read: what is acknowledged.
    pub fn newest(&self) -> Option<Tick> {
        self.rosters.back().map(|(tick, _)| *tick)
    }

    /// The bodies of the newest snapshot.
    pub fn bodies(&self) -> impl Iterator<Item = (PlayerId, &BodyHistory<G>)> {
        let players = self.rosters.back().map(|(_, players)| players.as_slice()).unwrap_or_default();
        players.iter().filter_map(|player| self.bodies.get(player).map(|history| (*player, history)))
    }

    /// Reads a snapshot of `tick`.
    ///
    /// # Errors
    /// When it cannot be used; nothing has changed then.
    pub fn read(&mut self, tick: Tick, bits: &mut BitReader<'_>) -> Result<(), SnapshotError> {
        if let Some(newest) = self.newest().filter(|newest| tick <= *newest) {
            return Err(SnapshotError::Stale { newest });
        }
        let mut read: Vec<(PlayerId, DecodedBody<G>)> = Vec::new();
        if bits.read_flag()? {
            let baseline = earlier(tick, bits.read(AGO_BITS)?)?;
            self.read_base(tick, baseline, &mut read, bits)?;
        }
        let others = bits.read(16)?;
        for _ in 0..others {
            let body = self.read_other(tick, bits)?;
            read.push(body);
        }
        read.sort_by_key(|(player, _)| *player);
        if read.windows(2).any(|pair| matches!(pair, [left, right] if left.0 == right.0)) {
            return Err(WireError::Invalid { field: "player" }.into());
        }
        let ends = read.iter().filter_map(|(_, body)| body.records.last());
        let check = ends.fold(0u64, |sum, record| sum.wrapping_add(G::digest(&record.after)));
        if u64::from(bits.read(16)?) != check & 0xffff {
            return Err(SnapshotError::CheckFailed);
        }
        self.take(tick, read);
        Ok(())
    }

    fn read_base(
        &self,
        tick: Tick,
        baseline: Tick,
        read: &mut Vec<(PlayerId, DecodedBody<G>)>,
        bits: &mut BitReader<'_>,
    ) -> Result<(), SnapshotError> {
        let missing = SnapshotError::MissingBaseline { baseline };
        let roster = self.rosters.iter().find(|(read, _)| *read == baseline).map(|(_, players)| players);
        let roster = roster.ok_or(missing)?;
        let mut places = Vec::new();
        read_gaps(roster.len(), &mut places, bits)?;
        let mut changed = places.iter().copied().peekable();
        for (place, player) in (0u16..).zip(roster) {
            let told = if changed.next_if_eq(&place).is_some() { Told::Changed } else { Told::Still };
            let body = self.decode(tick, baseline, *player, told, bits)?;
            read.push((*player, body));
        }
        read_gaps(roster.len(), &mut places, bits)?;
        let mut place = 0u16..;
        read.retain(|_| place.next().is_none_or(|place| places.binary_search(&place).is_err()));
        Ok(())
    }

    fn read_other(
        &self,
        tick: Tick,
        bits: &mut BitReader<'_>,
    ) -> Result<(PlayerId, DecodedBody<G>), SnapshotError> {
        let player = u16::try_from(bits.read(16)?).map_err(|_| WireError::Invalid { field: "player" })?;
        let player = PlayerId::new(player);
        if bits.read_flag()? {
            let baseline = earlier(tick, bits.read(AGO_BITS)?)?;
            let told = if bits.read_flag()? { Told::Changed } else { Told::Still };
            return Ok((player, self.decode(tick, baseline, player, told, bits)?));
        }
        let after = G::read_body(&G::blank(), bits)?;
        let input = TickInput::steady(G::Input::read(bits)?);
        Ok((
            player,
            DecodedBody {
                first: tick,
                records: vec![TickRecord { input, after, course: Course::Altered, causes: Causes::NONE }],
            },
        ))
    }

    fn decode(
        &self,
        tick: Tick,
        baseline: Tick,
        player: PlayerId,
        told: Told,
        bits: &mut BitReader<'_>,
    ) -> Result<DecodedBody<G>, SnapshotError> {
        let missing = SnapshotError::MissingBaseline { baseline };
        let known = self.bodies.get(&player).and_then(|history| history.get(baseline)).ok_or(missing)?;
        let ticks = tick.since(baseline);
        Ok(decode_body(self.cadence, &self.alone, baseline, known, ticks, told, bits)?)
    }

    fn take(&mut self, tick: Tick, read: Vec<(PlayerId, DecodedBody<G>)>) {
        let players = read.iter().map(|(player, _)| *player).collect();
        for (player, body) in read {
            for (at, record) in body.first.onwards().zip(body.records) {
                let history = self.bodies.entry(player);
                history
                    .or_insert_with(|| BodyHistory::new(at, record.input, record.after))
                    .insert(at, record);
            }
        }
        if self.rosters.len() >= HISTORY_TICKS as usize {
            self.rosters.pop_front();
        }
        self.rosters.push_back((tick, players));
        // Whoever has not been told of for so long cannot be built on any more.
        self.bodies.retain(|_, history| tick.since(history.newest()) < HISTORY_TICKS);
    }

    /// Every body that is kept, in the newest snapshot or not, in order of player.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (PlayerId, &BodyHistory<G>)> {
        self.bodies.iter().map(|(player, history)| (*player, history))
    }
}

/// The tick that is `ago + 1` before `tick`.
fn earlier(tick: Tick, ago: u32) -> Result<Tick, WireError> {
    let number = tick.number().checked_sub(ago + 1);
    number.map(Tick::new).ok_or(WireError::Invalid { field: "ago" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::{Cart, CartBody, Rail};
    use crate::game::Game;
    use crate::snapshot::{Bodies, View};
    use crate::wire::BitWriter;
    use crate::wire::move_input_tests::any_tick;
    use proptest::prelude::*;

    const OPEN: Rail = Rail { blocked_at: None };

    fn player(number: u16) -> PlayerId {
        PlayerId::new(number)
    }

    fn bodies(count: u16) -> Bodies<Cart> {
        let mut bodies = Bodies::new(Cadence::default(), OPEN, Tick::new(1_000));
        for number in 0..count {
            bodies.join(player(number), 0, CartBody::at(f64::from(number)));
        }
        bodies
    }

    fn crowd() -> Crowd<Cart> {
        Crowd::new(Cadence::default(), OPEN)
    }

    /// Every body goes on by the rules, told `input`, and pushed where `push` says so.
    fn tick(bodies: &mut Bodies<Cart>, mut told: impl FnMut(u16, i8) -> (TickInput<i8>, f64)) -> Tick {
        let held: BTreeMap<PlayerId, i8> =
            bodies.actors().map(|(player, record)| (player, record.input.last())).collect();
        let told: BTreeMap<_, _> =
            held.iter().map(|(player, held)| (*player, told(player.number(), *held))).collect();
        bodies.advance(|player| told[&player].0);
        for (player, (_, push)) in told {
            let mut after = bodies.history(player).unwrap().get(bodies.tick()).unwrap().after;
            after.x += push;
            Cart::settle(&mut after);
            bodies.alter(player, after, Causes::NONE);
        }
        bodies.tick()
    }

    fn write(bodies: &mut Bodies<Cart>, view: &mut View, max_bytes: usize) -> Vec<u8> {
        let mut buffer = [0; 2_000];
        let mut bits = BitWriter::new(&mut buffer);
        bodies.write(view, max_bytes * 8, &mut bits);
        let length = bits.finish().unwrap();
        assert!(length <= max_bytes, "{length} bytes of {max_bytes}");
        buffer[..length].to_vec()
    }

    fn assert_true(bodies: &Bodies<Cart>, crowd: &Crowd<Cart>, at: Tick) {
        for (player, history) in crowd.bodies() {
            let truth = bodies.history(player).unwrap().get(at).unwrap();
            let shown = history.get(at).unwrap();
            assert_eq!(Cart::digest(&shown.after), Cart::digest(&truth.after), "player {player} at {at}");
            assert_eq!(shown.input.last(), truth.input.last());
        }
    }

    #[test]
    fn a_crowd_that_goes_on_costs_a_few_bytes() {
        let (mut bodies, mut view, mut crowd) = (bodies(100), View::default(), crowd());
        for _ in 0..3 {
            let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
            let bytes = write(&mut bodies, &mut view, 2_000);
            crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
            assert!(view.acknowledge(at));
        }
        assert_eq!(crowd.bodies().count(), 100);
        let at = tick(&mut bodies, |_, held| (TickInput::steady(held), 0.0));
        let bytes = write(&mut bodies, &mut view, 2_000);
        assert_eq!(bytes.len(), 9, "a hundred carts that keep doing what they did");
        crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
        assert_true(&bodies, &crowd, at);
    }

    #[test]
    fn what_cannot_be_built_on_is_told_and_changes_nothing() {
        let (mut bodies, mut view, mut one, mut other) = (bodies(2), View::default(), crowd(), crowd());
        let at = tick(&mut bodies, |_, _| (TickInput::steady(3), 0.0));
        let first = write(&mut bodies, &mut view, 500);
        one.read(at, &mut BitReader::new(&first)).unwrap();
        view.acknowledge(at);
        let later = tick(&mut bodies, |_, _| (TickInput::steady(3), 0.0));
        let second = write(&mut bodies, &mut view, 500);
        let missing = Err(SnapshotError::MissingBaseline { baseline: at });
        assert_eq!(other.read(later, &mut BitReader::new(&second)), missing);
        assert_eq!(other.newest(), None);
        one.read(later, &mut BitReader::new(&second)).unwrap();
        let stale = Err(SnapshotError::Stale { newest: later });
        assert_eq!(one.read(later, &mut BitReader::new(&second)), stale);
    }

    #[test]
    fn other_rules_on_one_side_are_seen() {
        let (mut bodies, mut view) = (bodies(2), View::default());
        let mut crowd = Crowd::<Cart>::new(Cadence::default(), Rail { blocked_at: Some(0.5) });
        let at = tick(&mut bodies, |_, _| (TickInput::steady(8), 0.0));
        crowd.read(at, &mut BitReader::new(&write(&mut bodies, &mut view, 500))).unwrap();
        view.acknowledge(at);
        let later = tick(&mut bodies, |_, _| (TickInput::steady(8), 0.0));
        let bytes = write(&mut bodies, &mut view, 500);
        assert_eq!(crowd.read(later, &mut BitReader::new(&bytes)), Err(SnapshotError::CheckFailed));
    }

    #[test]
    fn what_does_not_fit_waits_its_turn() {
        let (mut bodies, mut view, mut crowd) = (bodies(40), View::default(), crowd());
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..12 {
            let at = tick(&mut bodies, |number, _| (TickInput::steady((number % 8) as i8), 0.0));
            let bytes = write(&mut bodies, &mut view, 200);
            crowd.read(at, &mut BitReader::new(&bytes)).unwrap();
            view.acknowledge(at);
            assert_true(&bodies, &crowd, at);
            seen.extend(crowd.bodies().map(|(player, _)| player));
            assert!(round > 0 || seen.len() < 40, "they do not all fit at once");
        }
        assert_eq!(seen.len(), 40, "but each has had its turn");
    }

    /// What happens in a tick of a random match.
    #[derive(Clone, Debug)]
    struct Happening {
        told: Vec<(u16, TickInput<i8>)>,
        pushed: Vec<(u16, i16)>,
        joins: Option<u16>,
        leaves: Option<u16>,
        lost: bool,
        ack_lost: bool,
    }

    fn happening() -> impl Strategy<Value = Happening> {
        (
            prop::collection::vec((0u16..30, any_tick()), 0..6),
            prop::collection::vec((0u16..30, -800i16..800), 0..3),
            prop::option::weighted(0.1, 0u16..30),
            prop::option::weighted(0.1, 0u16..30),
            prop::bool::weighted(0.2),
            prop::bool::weighted(0.3),
        )
            .prop_map(|(told, pushed, joins, leaves, lost, ack_lost)| Happening {
                told,
                pushed,
                joins,
                leaves,
                lost,
                ack_lost,
            })
    }

    proptest! {
        /// Joins, leaves, changes, pushes, lost snapshots, lost acknowledgements, and a datagram that is too small: every
        /// body that is told of is as it is, to the bit.
        #[test]
        fn what_is_told_is_true(match_ in prop::collection::vec(happening(), 1..100), max_bytes in 100usize..1_100) {
            let mut bodies = bodies(8);
            let mut players: Vec<u16> = (0..8).collect();
            let (mut view, mut crowd) = (View::default(), crowd());
            let mut lowest_free = 30;
            for happening in match_ {
                if let Some(leaves) = happening.leaves.filter(|leaves| players.contains(leaves)) {
                    players.retain(|player| *player != leaves);
                    bodies.leave(player(leaves));
                }
                if happening.joins.is_some() {
                    // Numbers are not used again.
                    players.push(lowest_free);
                    bodies.join(player(lowest_free), 2, CartBody::at(f64::from(lowest_free)));
                    lowest_free += 1;
                }
                let at = tick(&mut bodies, |number, held| {
                    let told = happening.told.iter().find(|told| told.0 == number % 30);
                    let pushed = happening.pushed.iter().find(|pushed| pushed.0 == number % 30);
                    let push = pushed.map_or(0.0, |(_, push)| f64::from(*push) / 1024.0);
                    (told.map_or(TickInput::steady(held), |told| told.1), push)
                });
                if players.is_empty() {
                    break;
                }
                let bytes = write(&mut bodies, &mut view, max_bytes);
                if happening.lost {
                    continue;
                }
                let mut bits = BitReader::new(&bytes);
                prop_assert_eq!(crowd.read(at, &mut bits), Ok(()));
                prop_assert_eq!(bits.finish(), Ok(()));
                assert_true(&bodies, &crowd, at);
                if !happening.ack_lost {
                    prop_assert!(view.acknowledge(at));
                }
            }
        }

        #[test]
        fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..300), flip in any::<prop::sample::Index>()) {
            let (mut bodies, mut view, mut crowd) = (bodies(5), View::default(), crowd());
            let at = tick(&mut bodies, |_, _| (TickInput::steady(3), 0.0));
            crowd.read(at, &mut BitReader::new(&write(&mut bodies, &mut view, 500))).unwrap();
            let _ = crowd.clone().read(at.next(), &mut BitReader::new(&bytes));
            view.acknowledge(at);
            let later = tick(&mut bodies, |_, _| (TickInput::steady(5), 0.1));
            let mut mutated = write(&mut bodies, &mut view, 500);
            let at = flip.index(mutated.len());
            mutated[at] ^= 1 << (at % 8);
            let _ = crowd.read(later, &mut BitReader::new(&mutated));
        }
    }
}
