//! Bodies for the tests: the tank, and a crate with every kind of field.

use core::time::Duration;

use halftrack::Body;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) struct Tank {
    #[grid(1/1024, -1024..=1024)]
    pub(crate) x: f64,
    #[grid(1/1024, -1024..=1024)]
    pub(crate) y: f64,
    #[turns(1/65536)]
    pub(crate) heading: f64,
    pub(crate) params: Params,
    #[range(0..=100)]
    pub(crate) hp: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) struct Params {
    #[range(0..=7680)]
    pub(crate) speed: u16,
    #[range(0..=32768)]
    pub(crate) turn_speed: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) struct Crate {
    #[grid(1/1024, -512..=512)]
    pub(crate) position: [f64; 3],
    pub(crate) turret: Turret,
    #[micros(1_000..=5_000_000)]
    pub(crate) fuse: Option<Duration>,
    #[presses]
    pub(crate) shots: u8,
    pub(crate) open: bool,
    pub(crate) gear: Gear,
    pub(crate) engines: [Engine; 2],
    #[range(100..=200)]
    pub(crate) spare: Option<Option<u8>>,
    pub(crate) stamp: u64,
    pub(crate) slots: [[i16; 2]; 2],
    #[micros]
    pub(crate) idle: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) enum Turret {
    Stowed,
    Aimed {
        #[turns(1/4096)]
        at: f32,
        #[range(-60..=60)]
        range: i8,
    },
    Broken(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) enum Gear {
    First,
    Second,
    Third,
}

#[derive(Clone, Copy, Debug, PartialEq, Body)]
pub(crate) struct Engine {
    /// The range has no zero.
    #[grid(1/64, 0.5..=1.5)]
    pub(crate) heat: f32,
    pub(crate) on: bool,
}

/// Mostly around the range, and sometimes anything.
fn any_float(reach: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -reach..reach,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![-0.0, reach, -reach, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300]),
    ]
}

pub(crate) fn any_tank() -> impl Strategy<Value = Tank> {
    (any_float(1_100.0), any_float(1_100.0), any_float(2.0), any::<(u16, u16)>(), any::<u8>()).prop_map(
        |(x, y, heading, (speed, turn_speed), hp)| Tank {
            x,
            y,
            heading,
            params: Params { speed, turn_speed },
            hp,
        },
    )
}

pub(crate) fn any_settled_tank() -> impl Strategy<Value = Tank> {
    any_tank().prop_map(settled)
}

pub(crate) fn any_settled_crate() -> impl Strategy<Value = Crate> {
    any_crate().prop_map(settled)
}

fn settled<B: Body>(mut body: B) -> B {
    body.settle();
    body
}

fn any_turret() -> impl Strategy<Value = Turret> {
    prop_oneof![
        Just(Turret::Stowed),
        (any_float(2.0), any::<i8>()).prop_map(|(at, range)| Turret::Aimed { at: at as f32, range }),
        any::<u16>().prop_map(Turret::Broken),
    ]
}

fn any_engine() -> impl Strategy<Value = Engine> {
    (any_float(2.0), any::<bool>()).prop_map(|(heat, on)| Engine { heat: heat as f32, on })
}

pub(crate) fn any_crate() -> impl Strategy<Value = Crate> {
    let gear = prop_oneof![Just(Gear::First), Just(Gear::Second), Just(Gear::Third)];
    let fuse = prop::option::of((0u64..10_000_000_000).prop_map(Duration::from_nanos));
    let parts = (
        prop::array::uniform3(any_float(600.0)),
        any_turret(),
        fuse,
        any::<(u8, bool)>(),
        gear,
        prop::array::uniform2(any_engine()),
        any::<(Option<Option<u8>>, u64, [[i16; 2]; 2], u32)>(),
    );
    parts.prop_map(|(position, turret, fuse, (shots, open), gear, engines, (spare, stamp, slots, idle))| {
        Crate { position, turret, fuse, shots, open, gear, engines, spare, stamp, slots, idle }
    })
}
