//! Messages of combat: the shot that a player orders, and the events of the server.
//!
//! Both are in postcard's format: integers as varints, lowest seven bits first; `at` and `hp` as one byte; an enum as
//! the number of its variant and then its fields.
//!
//! ```text
//! ShootInput            tick, at, aim, snapshot, before (us)
//! CombatEvent  0 Fired          shooter, tick, at, aim, reach (1/32 m)
//!              1 Hit            shooter, target, tick, at
//!              2 DamageApplied  target, amount, hp, tick
//!              3 Death          fighter, by, tick
//!              4 Respawn        fighter, tick
//!              5 ShootRejected  tick, at, why: 0 dead, 1 too late, 2 too early, 3 not newer, 4 cooling down,
//!                                              5 claim invalid, 6 round over
//!              6 Score          fighter, kills, deaths
//!              7 Round          number, phase: 0 playing, 1 over and then the winner (0, or 1 and the fighter),
//!                               since, until
//! ```
//!
//! Fighters are numbers: see [`Fighter`]. A shot claims what was seen and never what was hit: that is for the server to
//! find.

use core::fmt;

use halftrack::wire::WireError;
use halftrack::{Cadence, ServerTime, SubTick, Tick};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fighter::Fighter;

/// A shot that a player orders.
///
/// ```
/// use halftrack::{Cadence, ServerTime, Tick};
/// use tanks::{Seen, ShootInput};
///
/// let cadence = Cadence::default();
/// let (tick, at) = ShootInput::grid(cadence, ServerTime::from_micros(2_120_000));
/// let seen = Seen::new(cadence, Tick::new(38), ServerTime::from_micros(1_900_000));
/// let shot = ShootInput { tick, at, aim: 16_384, seen };
/// assert_eq!(seen.before_micros, 50_000);
/// assert_eq!(ShootInput::decode(&shot.encode()), Ok(shot));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShootInput {
    /// The tick it is fired in.
    pub tick: Tick,
    /// The moment of that tick's grid, in 1/256 of it; 0 is its start.
    pub at: u8,
    /// Where to: 1/65536 turn to the left of east, whichever way the hull points.
    pub aim: u16,
    /// What the player was looking at.
    pub seen: Seen,
}

/// What a player was looking at when it fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The newest snapshot it had.
    pub snapshot: Tick,
    /// How long before the end of that snapshot's tick the moment lies at which it drew the others, microseconds.
    pub before_micros: u32,
}

impl Seen {
    /// Others drawn as they were at `drawn`, with the snapshot of tick `snapshot` the newest one there is. What is
    /// drawn beyond the snapshot is a guess of the client's, and claims no more than its end.
    pub fn new(cadence: Cadence, snapshot: Tick, drawn: ServerTime) -> Self {
        let before = cadence.end_of(snapshot).saturating_since(drawn);
        Self { snapshot, before_micros: u32::try_from(before.as_micros()).unwrap_or(u32::MAX) }
    }
}

impl ShootInput {
    /// Bytes at most.
    pub const MAX_BYTES: usize = 5 + 1 + 3 + 5 + 5;

    /// The first moment of the grid at or after `time`: its tick, and where in it. As input changes are, rounded up.
    pub fn grid(cadence: Cadence, time: ServerTime) -> (Tick, u8) {
        let tick = cadence.tick_at(time);
        let into = time.saturating_since(cadence.start_of(tick)).as_micros();
        let cells = (into * u128::from(SubTick::PER_TICK)).div_ceil(cadence.interval().as_micros());
        u8::try_from(cells).map_or((tick.next(), 0), |at| (tick, at))
    }

    /// When it is fired.
    pub fn moment(&self, cadence: Cadence) -> ServerTime {
        moment(cadence, self.tick, self.at)
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut buffer = [0; Self::MAX_BYTES];
        self.encode_into(&mut buffer).to_vec()
    }

    /// Its bytes, in a buffer of the caller's.
    pub fn encode_into<'b>(&self, buffer: &'b mut [u8; Self::MAX_BYTES]) -> &'b [u8] {
        write(self, buffer)
    }

    /// Reads one, and nothing else.
    ///
    /// # Errors
    /// When the bytes end too early, go on, or mean nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        read(bytes, "shoot_input")
    }
}

/// When that is.
pub(crate) fn moment(cadence: Cadence, tick: Tick, at: u8) -> ServerTime {
    let start = cadence.start_of(tick);
    SubTick::new(at).map_or(start, |at| start + cadence.offset_of(at))
}

/// How far a shot went, in steps of 1/32 m: 3 cm are no more than the width of a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reach(u16);

impl Reach {
    /// The longest: more than any arena is wide.
    pub const MAX_METRES: f64 = 2_047.0;
    const UNIT: f64 = 1.0 / 32.0;

    /// The nearest step to `metres`, from zero to the longest.
    pub fn from_metres(metres: f64) -> Self {
        Self(libm::round(metres.clamp(0.0, Self::MAX_METRES) / Self::UNIT) as u16)
    }

    /// Metres.
    pub fn metres(self) -> f64 {
        f64::from(self.0) * Self::UNIT
    }
}

/// What the server tells of combat. Reliable, in order, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CombatEvent {
    /// A valid shot, whether it met anything or not: for the muzzle flash and the tracer. It decides nothing.
    Fired {
        /// Whose.
        shooter: Fighter,
        /// The shot's tick.
        tick: Tick,
        /// The moment of its grid.
        at: u8,
        /// 1/65536 turn to the left of east.
        aim: u16,
        /// How far it went.
        reach: Reach,
    },
    /// The shot met a tank.
    Hit {
        /// Whose shot.
        shooter: Fighter,
        /// Whom it met.
        target: Fighter,
        /// The shot's tick.
        tick: Tick,
        /// The moment of its grid.
        at: u8,
    },
    /// A tank has fewer hit points from the end of `tick` on.
    DamageApplied {
        /// Whose tank.
        target: Fighter,
        /// Hit points it lost.
        amount: u8,
        /// Hit points it has left.
        hp: u8,
        /// At whose end.
        tick: Tick,
    },
    /// A tank is a wreck from the end of `tick` on, or its player has left in combat.
    Death {
        /// Whose tank.
        fighter: Fighter,
        /// Whose shot it was. The fighter itself, when it left in combat and no attacker is to be credited.
        by: Fighter,
        /// At whose end.
        tick: Tick,
    },
    /// A tank is back, somewhere else, from the end of `tick` on.
    Respawn {
        /// Whose tank.
        fighter: Fighter,
        /// At whose end.
        tick: Tick,
    },
    /// The receiver's shot was not fired.
    ShootRejected {
        /// The shot's tick, as ordered.
        tick: Tick,
        /// The moment, as ordered.
        at: u8,
        /// Why not.
        why: Rejection,
    },
    /// A player's totals since it came into the room. A newcomer gets one for each player that has any; everyone gets one
    /// when a death changes them. Totals, not differences: a client that missed events is right again with the next.
    Score {
        /// Whose.
        fighter: Fighter,
        /// Others whom it destroyed.
        kills: u32,
        /// Times that it was destroyed.
        deaths: u32,
    },
    /// The round that is on. Sent to all players when its phase changes, and to a newcomer before the scores. A round that
    /// is being played sets all scores to zero: the scores that count follow.
    Round {
        /// The first round of a room is 1.
        number: u32,
        /// Whether it is played.
        phase: Phase,
        /// The phase began at the end of this tick.
        since: Tick,
        /// It ends at the end of this tick.
        until: Tick,
    },
}

/// What goes on in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Shots count.
    Playing,
    /// A break: guns are silent until the next round.
    Over {
        /// The player with the most kills, or with the fewest deaths among these. `None` for a draw.
        winner: Option<Fighter>,
    },
}

/// Why a shot was not fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rejection {
    /// The shooter was a wreck at that moment, or has become one before the shot was looked at.
    Dead,
    /// The moment is longer ago than is kept, or before the shooter came.
    TooLate,
    /// The moment is more than a second ahead.
    TooEarly,
    /// The player has fired, or is about to fire, at that moment or a later one.
    NotNewer,
    /// The gun is not ready at that moment, or too many shots wait already.
    CoolingDown,
    /// The player was never sent that snapshot, or cannot have been looking that far back.
    ClaimInvalid,
    /// The moment is in a break between two rounds, or in the round before this one.
    RoundOver,
}

impl Rejection {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Dead,
        Self::TooLate,
        Self::TooEarly,
        Self::NotNewer,
        Self::CoolingDown,
        Self::ClaimInvalid,
        Self::RoundOver,
    ];

    /// Its name in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::TooLate => "too_late",
            Self::TooEarly => "too_early",
            Self::NotNewer => "not_newer",
            Self::CoolingDown => "cooling_down",
            Self::ClaimInvalid => "claim_invalid",
            Self::RoundOver => "round_over",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CombatEvent {
    /// Bytes at most: those of [`CombatEvent::Round`].
    pub const MAX_BYTES: usize = 1 + 5 + (1 + 1 + Fighter::MAX_BYTES) + 5 + 5;

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut buffer = [0; Self::MAX_BYTES];
        self.encode_into(&mut buffer).to_vec()
    }

    /// Its bytes, in a buffer of the caller's.
    pub fn encode_into<'b>(&self, buffer: &'b mut [u8; Self::MAX_BYTES]) -> &'b [u8] {
        write(self, buffer)
    }

    /// Reads one, and nothing else.
    ///
    /// # Errors
    /// When the bytes end too early, go on, or mean nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let event = read(bytes, "combat_event")?;
        match event {
            Self::DamageApplied { amount, hp, .. } if amount.max(hp) > crate::body::Tank::MAX_HP => {
                Err(WireError::Invalid { field: "hp" })
            }
            event => Ok(event),
        }
    }
}

/// The buffer holds the longest message there is, so nothing is ever cut off.
fn write<'b>(message: &impl Serialize, buffer: &'b mut [u8]) -> &'b [u8] {
    let written = postcard::to_slice(message, buffer);
    debug_assert!(written.is_ok(), "MAX_BYTES is too small");
    written.map_or(&[], |bytes| bytes)
}

fn read<T: DeserializeOwned>(bytes: &[u8], field: &'static str) -> Result<T, WireError> {
    let (message, rest) = postcard::take_from_bytes(bytes).map_err(|error| match error {
        postcard::Error::DeserializeUnexpectedEnd => WireError::Truncated,
        _ => WireError::Invalid { field },
    })?;
    if rest.is_empty() { Ok(message) } else { Err(WireError::Trailing) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halftrack::{BodyId, PlayerId};
    use proptest::prelude::*;
    use std::time::Duration;

    fn any_fighter() -> impl Strategy<Value = Fighter> {
        prop_oneof![
            any::<u16>().prop_map(|number| Fighter::Player(PlayerId::new(number))),
            any::<u64>().prop_map(|number| Fighter::Machine(BodyId::new(number))),
        ]
    }

    fn any_shot() -> impl Strategy<Value = ShootInput> {
        (any::<[u32; 3]>(), any::<u8>(), any::<u16>()).prop_map(
            |([tick, snapshot, before_micros], at, aim)| {
                let seen = Seen { snapshot: Tick::new(snapshot), before_micros };
                ShootInput { tick: Tick::new(tick), at, aim, seen }
            },
        )
    }

    fn any_event() -> impl Strategy<Value = CombatEvent> {
        let why = prop::sample::select(Rejection::ALL.to_vec());
        let fighters = (any_fighter(), any_fighter());
        let numbers = (any::<[u16; 2]>(), any::<[u32; 2]>(), any::<u8>());
        (0..9, fighters, numbers, (0u8..=100, 0u8..=100), why).prop_map(
            |(kind, (one, other), ([aim, reach], [number, deaths], at), (amount, hp), why)| {
                let tick = Tick::new(number);
                match kind {
                    0 => CombatEvent::Fired { shooter: one, tick, at, aim, reach: Reach(reach) },
                    1 => CombatEvent::Hit { shooter: one, target: other, tick, at },
                    2 => CombatEvent::DamageApplied { target: one, amount, hp, tick },
                    3 => CombatEvent::Death { fighter: one, by: other, tick },
                    4 => CombatEvent::Respawn { fighter: one, tick },
                    5 => CombatEvent::ShootRejected { tick, at, why },
                    6 => CombatEvent::Score { fighter: one, kills: number, deaths },
                    7 => CombatEvent::Round {
                        number,
                        phase: Phase::Playing,
                        since: tick,
                        until: Tick::new(deaths),
                    },
                    _ => {
                        let phase = Phase::Over { winner: (at % 2 == 0).then_some(other) };
                        CombatEvent::Round { number: deaths, phase, since: tick, until: tick }
                    }
                }
            },
        )
    }

    #[test]
    fn the_bytes_are_these() {
        let tick = Tick::new(300);
        let (one, other) = (Fighter::Player(PlayerId::new(7)), Fighter::Machine(BodyId::new(200)));
        let seen = Seen { snapshot: Tick::new(297), before_micros: 70_000 };
        let shot = ShootInput { tick, at: 200, aim: 0x4000, seen };
        assert_eq!(shot.encode(), [0xac, 2, 200, 0x80, 0x80, 1, 0xa9, 2, 0xf0, 0xa2, 4]);
        let events = [
            (
                CombatEvent::Fired { shooter: one, tick, at: 9, aim: 3, reach: Reach::from_metres(60.0) },
                vec![0, 14, 0xac, 2, 9, 3, 0x80, 15],
            ),
            (
                CombatEvent::Hit { shooter: one, target: other, tick, at: 255 },
                vec![1, 14, 0x91, 3, 0xac, 2, 255],
            ),
            (
                CombatEvent::DamageApplied { target: other, amount: 25, hp: 75, tick },
                vec![2, 0x91, 3, 25, 75, 0xac, 2],
            ),
            (CombatEvent::Death { fighter: other, by: one, tick }, vec![3, 0x91, 3, 14, 0xac, 2]),
            (CombatEvent::Respawn { fighter: other, tick }, vec![4, 0x91, 3, 0xac, 2]),
            (CombatEvent::Score { fighter: one, kills: 300, deaths: 5 }, vec![6, 14, 0xac, 2, 5]),
            (
                CombatEvent::Round { number: 3, phase: Phase::Playing, since: tick, until: Tick::new(5) },
                vec![7, 3, 0, 0xac, 2, 5],
            ),
            (
                CombatEvent::Round {
                    number: 3,
                    phase: Phase::Over { winner: Some(one) },
                    since: tick,
                    until: tick,
                },
                vec![7, 3, 1, 1, 14, 0xac, 2, 0xac, 2],
            ),
        ];
        for (event, bytes) in events {
            assert_eq!(event.encode(), bytes, "{event:?}");
        }
        for (number, why) in (0..).zip(Rejection::ALL) {
            let event = CombatEvent::ShootRejected { tick, at: 0, why };
            assert_eq!(event.encode(), [5, 0xac, 2, 0, number]);
        }
    }

    #[test]
    fn the_longest_messages_fit() {
        let (most, fighter) = (Tick::MAX, Fighter::Machine(BodyId::new(u64::MAX)));
        let seen = Seen { snapshot: most, before_micros: u32::MAX };
        let shot = ShootInput { tick: most, at: 255, aim: u16::MAX, seen };
        assert_eq!(shot.encode().len(), ShootInput::MAX_BYTES);
        let event = CombatEvent::Fired {
            shooter: fighter,
            tick: most,
            at: 255,
            aim: u16::MAX,
            reach: Reach(u16::MAX),
        };
        assert!(event.encode().len() <= CombatEvent::MAX_BYTES);
        let phase = Phase::Over { winner: Some(fighter) };
        let round = CombatEvent::Round { number: u32::MAX, phase, since: most, until: most };
        assert_eq!(round.encode().len(), CombatEvent::MAX_BYTES);
        let score = CombatEvent::Score { fighter, kills: u32::MAX, deaths: u32::MAX };
        assert!(score.encode().len() <= CombatEvent::MAX_BYTES);
    }

    #[test]
    fn what_is_no_message_is_refused_by_name() {
        assert_eq!(ShootInput::decode(&[]), Err(WireError::Truncated));
        assert_eq!(
            CombatEvent::decode(&[8, 0, 0]),
            Err(WireError::Invalid { field: "combat_event" }),
            "no such event"
        );
        assert_eq!(
            CombatEvent::decode(&[5, 1, 0, 7]),
            Err(WireError::Invalid { field: "combat_event" }),
            "no such reason"
        );
        assert_eq!(
            ShootInput::decode(&[0xff; 20]),
            Err(WireError::Invalid { field: "shoot_input" }),
            "a number without end"
        );
        for (amount, hp) in [(101, 0), (0, 101)] {
            assert_eq!(CombatEvent::decode(&[2, 1, amount, hp, 9]), Err(WireError::Invalid { field: "hp" }));
        }
        assert!(CombatEvent::decode(&[2, 1, 100, 100, 9]).is_ok());
    }

    #[test]
    fn moments_round_up_to_the_grid_and_into_the_next_tick() {
        for micros in [5_000, 16_667, 50_000, 200_000] {
            let cadence = Cadence::new(Duration::from_micros(micros)).unwrap();
            for at in 0..=255 {
                let shot = ShootInput {
                    tick: Tick::new(7),
                    at,
                    aim: 0,
                    seen: Seen { snapshot: Tick::new(0), before_micros: 0 },
                };
                let moment = shot.moment(cadence);
                assert_eq!(ShootInput::grid(cadence, moment), (Tick::new(7), at));
                let next = if at == 255 { (Tick::new(8), 0) } else { (Tick::new(7), at + 1) };
                assert_eq!(ShootInput::grid(cadence, moment + Duration::from_micros(1)), next);
            }
        }
    }

    #[test]
    fn what_is_seen_is_told_against_the_end_of_the_snapshot() {
        let cadence = Cadence::default();
        let end = cadence.end_of(Tick::new(9));
        let before = |drawn| Seen::new(cadence, Tick::new(9), drawn).before_micros;
        assert_eq!(before(end - Duration::from_micros(1_234)), 1_234);
        assert_eq!(before(end + Duration::from_millis(9)), 0, "nothing is seen of what has not happened");
    }

    #[test]
    fn reach_is_within_half_a_step() {
        for metres in [0.0, 0.01, 1.5, 59.99, 2_047.0] {
            assert!((Reach::from_metres(metres).metres() - metres).abs() <= 1.0 / 64.0);
        }
        assert_eq!(Reach::from_metres(-1.0).metres(), 0.0);
        assert_eq!(Reach::from_metres(f64::INFINITY).metres(), Reach::MAX_METRES);
    }

    proptest! {
        #[test]
        fn shots_survive_the_wire(shot in any_shot(), more in any::<u8>()) {
            let mut bytes = shot.encode();
            prop_assert_eq!(ShootInput::decode(&bytes), Ok(shot));
            for cut in 0..bytes.len() {
                prop_assert_eq!(ShootInput::decode(&bytes[..cut]), Err(WireError::Truncated));
            }
            bytes.push(more);
            prop_assert_eq!(ShootInput::decode(&bytes), Err(WireError::Trailing));
        }

        #[test]
        fn events_survive_the_wire(event in any_event(), more in any::<u8>()) {
            let mut bytes = event.encode();
            prop_assert_eq!(CombatEvent::decode(&bytes), Ok(event));
            for cut in 0..bytes.len() {
                prop_assert_eq!(CombatEvent::decode(&bytes[..cut]), Err(WireError::Truncated));
            }
            bytes.push(more);
            prop_assert_eq!(CombatEvent::decode(&bytes), Err(WireError::Trailing));
        }

        #[test]
        fn the_decoders_are_total(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let shot = ShootInput::decode(&bytes).map(|shot| shot.encode());
            let event = CombatEvent::decode(&bytes).map(|event| event.encode());
            for again in [shot, event].into_iter().flatten() {
                prop_assert!(again.len() <= bytes.len(), "what is written is the shortest");
            }
        }

        #[test]
        fn mutated_messages_are_read_or_refused(shot in any_shot(), event in any_event(), at in any::<prop::sample::Index>(), flip in 1u8..) {
            for mut bytes in [shot.encode(), event.encode()] {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
                let _ = ShootInput::decode(&bytes);
                let _ = CombatEvent::decode(&bytes);
            }
        }
    }
}
