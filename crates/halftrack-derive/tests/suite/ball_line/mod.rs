//! Balls on a line that stop each other: good rules, and the same rules with one mistake each.
#![allow(dead_code, reason = "each test uses the part that it needs")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use halftrack::serde::{Deserialize, Deserializer, Serialize, Serializer};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{
    Body, CheckPlan, CheckReport, FieldError, Game, GameMistake, MotionLimits, Pose2, Reach, Settling, Step,
    Tick, check_game,
};

/// A body that derives everything: the good parts of every mistake below.
#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) struct Ball {
    #[grid(1/1024, -100..=100)]
    pub(crate) x: f64,
    #[range(0..=100)]
    pub(crate) hp: u8,
}

/// Rules of a ball on a line that other balls stop. Each mistake replaces one function.
pub(crate) trait Line: Sized + Send + Sync + 'static {
    type Body: Body + AsRef<Ball> + AsMut<Ball> + From<Ball>;

    fn advance(&self, _: &mut Ball, _: &Step<'_, Rules<Self>>) {}
    fn pose(&self, ball: &Ball) -> Pose2 {
        Pose2 { x: ball.x, ..Pose2::default() }
    }
    fn top_speed(&self) -> f64 {
        8.0
    }
    fn fingerprint(&self) -> u64 {
        1
    }
    fn extent(&self) -> f64 {
        0.5
    }
    fn touches(&self) -> bool {
        true
    }
}

pub(crate) struct Rules<L>(pub(crate) L);

impl<L: Line> Game for Rules<L> {
    type Input = i8;
    type Body = L::Body;
    type Pose = Pose2;

    fn advance(&self, body: &mut L::Body, input: i8, step: &mut Step<'_, Self>) {
        let ball = body.as_mut();
        let target = (ball.x + f64::from(input) * step.seconds()).clamp(-20.0, 20.0);
        let start = step.own_at_start().as_ref().x;
        let meets = |other: &L::Body| {
            let other = other.as_ref().x;
            (other - start).abs() >= 1.0 && (other - target).abs() < 1.0
        };
        if let Some(other) = step.neighbours().iter().find(|other| meets(other)) {
            ball.hp = ball.hp.saturating_sub(u8::from(step.into_tick().is_zero()));
            if self.0.touches() {
                step.touch(other.id);
            }
        } else {
            ball.x = target;
        }
        self.0.advance(ball, step);
    }

    fn pose(&self, body: &L::Body) -> Option<Pose2> {
        Some(self.0.pose(body.as_ref()))
    }

    fn limits(&self, _: &L::Body) -> MotionLimits {
        MotionLimits {
            top_speed: self.0.top_speed(),
            top_turn: 1.0,
            grid_distance: 1.0 / 1024.0,
            grid_angle: 1e-3,
        }
    }

    fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }

    fn reach(&self, body: &L::Body, span: Duration) -> Option<Reach> {
        Some(Reach::plane(body.as_ref().x, 0.0, self.0.extent(), 8.0 * span.as_secs_f64()))
    }
}

pub(crate) fn plan<L: Line>() -> CheckPlan<Rules<L>> {
    let ball = |(x, hp)| L::Body::from(Ball { x, hp });
    CheckPlan::new([(-3.0, 100), (0.0, 90), (2.5, 100)].map(ball).to_vec(), vec![-8, -3, 0, 5, 8])
}

pub(crate) fn check<L: Line>(build: impl Fn() -> L) -> Result<CheckReport, GameMistake> {
    check_game(|| Rules(build()), &plan::<L>())
}

/// The message of the mistake that is found.
pub(crate) fn message<L: Line>(name: &str, build: impl Fn() -> L) -> String {
    let message = check(build).expect_err(name).to_string();
    println!("{name}:\n    {message}\n");
    message
}

pub(crate) fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

impl AsRef<Ball> for Ball {
    fn as_ref(&self) -> &Ball {
        self
    }
}

impl AsMut<Ball> for Ball {
    fn as_mut(&mut self) -> &mut Ball {
        self
    }
}

/// A ball with a body of its own making, in which `SPOILT` is one mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoilt<const SPOILT: char>(pub(crate) Ball);

pub(crate) const FORGETS_HP: char = 'f';
pub(crate) const TOO_FEW_BITS: char = 'b';
pub(crate) const SHRINKS: char = 's';
pub(crate) const DIGEST_WITHOUT_HP: char = 'd';
pub(crate) const SHORT: char = 'm';
pub(crate) const EQUAL_WITHOUT_HP: char = 'e';
pub(crate) const KEEPS_NAN: char = 'n';
pub(crate) const READS_MORE: char = 'r';
pub(crate) const WRITES_MORE: char = 'w';
pub(crate) const REFUSES: char = 'c';
pub(crate) const IMAGE_WITHOUT_HP: char = 'i';
pub(crate) const IMAGE_READS_OTHER: char = 'o';
pub(crate) const DIGEST_VARIES: char = 'v';

impl<const SPOILT: char> Serialize for Spoilt<SPOILT> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hp = if SPOILT == IMAGE_WITHOUT_HP { 0 } else { self.0.hp };
        Ball { hp, ..self.0 }.serialize(serializer)
    }
}

impl<'de, const SPOILT: char> Deserialize<'de> for Spoilt<SPOILT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut ball = Ball::deserialize(deserializer)?;
        ball.hp += u8::from(SPOILT == IMAGE_READS_OTHER);
        Ok(Self(ball))
    }
}

impl<const SPOILT: char> PartialEq for Spoilt<SPOILT> {
    fn eq(&self, other: &Self) -> bool {
        if SPOILT == EQUAL_WITHOUT_HP { self.0.x == other.0.x } else { self.0 == other.0 }
    }
}

impl<const SPOILT: char> From<Ball> for Spoilt<SPOILT> {
    fn from(ball: Ball) -> Self {
        Self(ball)
    }
}

impl<const SPOILT: char> AsRef<Ball> for Spoilt<SPOILT> {
    fn as_ref(&self) -> &Ball {
        &self.0
    }
}

impl<const SPOILT: char> AsMut<Ball> for Spoilt<SPOILT> {
    fn as_mut(&mut self) -> &mut Ball {
        &mut self.0
    }
}

impl<const SPOILT: char> Body for Spoilt<SPOILT> {
    const SCHEMA: u64 = Ball::SCHEMA;
    const MAX_BITS: usize = if SPOILT == SHORT { 20 } else { Ball::MAX_BITS };

    fn blank() -> Self {
        Self(Ball::blank())
    }

    fn settle(&mut self) -> Settling {
        if SPOILT == KEEPS_NAN {
            return Settling::CLEAN;
        }
        let settling = self.0.settle();
        if SPOILT == SHRINKS {
            self.0.x *= 0.875;
        }
        settling
    }

    fn check(&self) -> Result<(), FieldError> {
        if SPOILT == REFUSES { Ball { x: 1e9, ..self.0 }.check() } else { self.0.check() }
    }

    fn write(&self, baseline: &Self, bits: &mut BitWriter<'_>) {
        match SPOILT {
            FORGETS_HP => Ball { hp: baseline.0.hp, ..self.0 }.write(&baseline.0, bits),
            // Eleven bits with a sign reach one metre.
            TOO_FEW_BITS => {
                bits.write((self.0.x * 1024.0) as i32 as u32 & 0x7ff, 11);
                bits.write(self.0.hp.into(), 7);
            }
            WRITES_MORE => {
                self.0.write(&baseline.0, bits);
                bits.write(0xff, 8);
            }
            _ => self.0.write(&baseline.0, bits),
        }
    }

    fn read(baseline: &Self, bits: &mut BitReader<'_>) -> Result<Self, WireError> {
        if SPOILT == TOO_FEW_BITS {
            let x = f64::from(bits.read_signed(11)?) / 1024.0;
            return Ok(Self(Ball { x, hp: bits.read(7)? as u8 }));
        }
        let ball = Ball::read(&baseline.0, bits)?;
        if SPOILT == READS_MORE {
            bits.read(8)?;
        }
        Ok(Self(ball))
    }

    fn digest(&self) -> u64 {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        match SPOILT {
            DIGEST_WITHOUT_HP => Ball { hp: 0, ..self.0 }.digest(),
            DIGEST_VARIES => CALLS.fetch_add(1, Ordering::Relaxed).into(),
            _ => self.0.digest(),
        }
    }
}

/// Good rules with a spoilt body.
pub(crate) struct SpoiltBody<const SPOILT: char>;

impl<const SPOILT: char> Line for SpoiltBody<SPOILT> {
    type Body = Spoilt<SPOILT>;
}

/// Rules with one mistake each, and no state.
pub(crate) struct Wrong<const WRONG: char>;

impl<const WRONG: char> Line for Wrong<WRONG> {
    type Body = Ball;

    fn advance(&self, ball: &mut Ball, step: &Step<'_, Rules<Self>>) {
        match WRONG {
            'r' if step.tick() > Tick::new(40) => ball.x = 101.0,
            'n' if step.tick() > Tick::new(40) => ball.x = f64::NAN,
            _ => {}
        }
    }

    fn pose(&self, ball: &Ball) -> Pose2 {
        Pose2 { x: ball.x, y: if WRONG == 'p' { f64::INFINITY } else { 0.0 }, heading: 0.0 }
    }

    fn top_speed(&self) -> f64 {
        match WRONG {
            'v' => 5.0,
            'l' => f64::NAN,
            _ => 8.0,
        }
    }

    fn extent(&self) -> f64 {
        if WRONG == 'e' { 0.0 } else { 0.5 }
    }

    fn touches(&self) -> bool {
        WRONG != 't'
    }
}
