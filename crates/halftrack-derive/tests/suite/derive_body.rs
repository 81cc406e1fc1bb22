//! `derive(Body)`: what bodies cost on the wire, and that all that is written from their fields agrees.

mod bodies;

use core::time::Duration;

use bodies::{
    Crate, Engine, Gear, Params, Tank, Turret, any_crate, any_settled_crate, any_settled_tank, any_tank,
};
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{Body, FieldError, FieldProblem};
use proptest::prelude::*;

fn written<B: Body>(body: &B, baseline: &B) -> (Vec<u8>, usize) {
    let mut buffer = [0; 512];
    let mut bits = BitWriter::new(&mut buffer);
    body.write(baseline, &mut bits);
    let count = bits.len_bits();
    let length = bits.finish().unwrap();
    (buffer[..length].to_vec(), count)
}

fn read<B: Body>(baseline: &B, bytes: &[u8]) -> Result<B, WireError> {
    B::read(baseline, &mut BitReader::new(bytes))
}

fn image<B: Body>(body: &B) -> Vec<u8> {
    postcard::to_allocvec(body).unwrap()
}

#[test]
fn a_pushed_tank_costs_31_bits_and_a_far_one_49() {
    let baseline = Tank { x: 5.0, y: 5.0, heading: 0.25, hp: 100, ..Tank::blank() };
    let cost = |tank: Tank| written(&tank, &baseline).1;
    assert_eq!(cost(baseline), 5);
    assert_eq!(cost(Tank { x: 5.5, y: 4.5, ..baseline }), 31);
    let limit = 2_047.0 / 1_024.0;
    assert_eq!(
        cost(Tank { x: 5.0 + limit, y: 3.0, ..baseline }),
        31,
        "two metres back, and not quite two ahead"
    );
    assert_eq!(cost(Tank { x: 7.0, y: 7.0, ..baseline }), 49, "two metres are not near");
    assert_eq!(cost(Tank { hp: 99, ..baseline }), 12);
    assert_eq!(cost(Tank { heading: 0.253, ..baseline }), 15);
    assert_eq!(cost(Tank { heading: 0.75, ..baseline }), 22);
    let (east, almost) = (Tank { heading: 0.001, ..baseline }, Tank { heading: 0.999, ..baseline });
    assert_eq!(written(&east, &almost).1, 15, "the shorter way around");
    assert_eq!(cost(Tank { params: Params { speed: 5, turn_speed: 0 }, ..baseline }), 5 + 9 + 1);
    assert_eq!(Tank::MAX_BITS, 2 * 24 + 18 + (1 + 15 + 18) + 8);
}

#[test]
fn the_dearest_bodies_reach_the_limit() {
    let tank = Tank {
        x: 1024.0,
        y: 1024.0,
        heading: 0.5,
        params: Params { speed: 7680, turn_speed: 32_768 },
        hp: 100,
    };
    assert_eq!(written(&tank, &Tank::blank()).1, Tank::MAX_BITS);
    let dearest = Crate {
        position: [512.0; 3],
        turret: Turret::Aimed { at: 0.5, range: 60 },
        fuse: Some(Duration::from_secs(5)),
        shots: 8,
        open: true,
        gear: Gear::Third,
        engines: [Engine { heat: 1.5, on: true }; 2],
        spare: Some(Some(200)),
        stamp: u64::MAX,
        slots: [[i16::MIN, i16::MAX]; 2],
        idle: u32::MAX,
    };
    let (_, count) = written(&dearest, &Crate::blank());
    assert!(count <= Crate::MAX_BITS && count + 3 >= Crate::MAX_BITS, "{count} of {}", Crate::MAX_BITS);
}

#[test]
fn nothing_changed_costs_a_bit_for_each_field() {
    let mut body = Crate { open: true, turret: Turret::Aimed { at: 0.25, range: 7 }, ..Crate::blank() };
    assert!(body.settle().is_clean());
    assert_eq!(written(&body, &body).1, 11);
}

#[test]
fn blank_bodies_are_settled_and_near_zero() {
    let mut blank = Crate::blank();
    assert!(blank.settle().is_clean());
    assert_eq!(blank, Crate::blank());
    assert_eq!((blank.position, blank.turret, blank.fuse), ([0.0; 3], Turret::Stowed, None));
    assert_eq!(blank.engines[0].heat, 0.5, "the range has no zero");
    assert_eq!(blank.check(), Ok(()));
}

/// As `nearest` of the tank's hand-written code does.
#[test]
fn settling_is_that_of_the_hand_written_tank_to_the_bit() {
    fn nearest(value: f64) -> i32 {
        (value + 0.5f64.copysign(value)) as i32
    }
    let mut seed = 7u64;
    let mut float = |scale: f64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * scale
    };
    let halves = (-4_000..4_000).map(|step| f64::from(step) / 2_048.0);
    let floats: Vec<f64> =
        halves.chain((0..20_000).map(|_| float(2_000.0))).chain([-0.0, 5e-324, 0.499_999_999]).collect();
    for value in floats {
        let mut tank = Tank { x: value, y: -value, heading: value, ..Tank::blank() };
        assert!(tank.settle().is_clean());
        let by_hand = [
            f64::from(nearest(value / (1.0 / 1024.0))) * (1.0 / 1024.0),
            f64::from(nearest(-value / (1.0 / 1024.0))) * (1.0 / 1024.0),
            f64::from(nearest(value / (1.0 / 65_536.0)) as u16) * (1.0 / 65_536.0),
        ];
        assert_eq!([tank.x, tank.y, tank.heading].map(f64::to_bits), by_hand.map(f64::to_bits), "{value}");
    }
}

#[test]
fn decimal_grids_give_the_literals() {
    #[derive(Clone, Copy, Debug, PartialEq, Body)]
    struct Decimal {
        #[grid(0.1, -100..=100)]
        tenths: f64,
        #[grid(0.01, 0..=300)]
        percent: f32,
    }
    for tenth in -1_000i32..=1_000 {
        let literal: f64 = format!("{tenth}e-1").parse().unwrap();
        let mut body = Decimal { tenths: literal + 0.04, percent: tenth.unsigned_abs() as f32 * 0.07 };
        assert!(body.settle().is_clean());
        assert_eq!(body.tenths, literal);
        assert_eq!(read(&Decimal::blank(), &written(&body, &Decimal::blank()).0), Ok(body));
    }
}

#[test]
fn settling_names_the_first_field_that_escaped() {
    let problem = |mut tank: Tank| tank.settle().problem().map(|error| (error.field, error.problem));
    let blank = Tank::blank();
    let half = 1024.0 + 0.5 / 1024.0;
    assert_eq!(problem(Tank { x: half, ..blank }), None, "half a step is not an escape");
    assert_eq!(problem(Tank { x: half + 1e-9, ..blank }), Some(("Tank.x", FieldProblem::OutOfRange)));
    assert_eq!(problem(Tank { y: -half - 1e-9, ..blank }), Some(("Tank.y", FieldProblem::OutOfRange)));
    assert_eq!(problem(Tank { y: 1e308, ..blank }), Some(("Tank.y", FieldProblem::OutOfRange)));
    for wild in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(problem(Tank { x: wild, y: 9e9, ..blank }), Some(("Tank.x", FieldProblem::NotFinite)));
        assert_eq!(problem(Tank { heading: wild, ..blank }), Some(("Tank.heading", FieldProblem::NotFinite)));
    }
    assert_eq!(problem(Tank { heading: -7.3, ..blank }), None, "turns wrap");
    assert_eq!(problem(Tank { heading: 1e9, ..blank }), Some(("Tank.heading", FieldProblem::OutOfRange)));
    assert_eq!(problem(Tank { hp: 101, ..blank }), Some(("Tank.hp", FieldProblem::OutOfRange)));
    let params = Params { speed: 7681, turn_speed: 0 };
    assert_eq!(problem(Tank { params, ..blank }), Some(("Params.speed", FieldProblem::OutOfRange)));
    let mut aimed = Turret::Aimed { at: f32::NAN, range: 3 };
    assert_eq!(aimed.settle().problem().unwrap().field, "Turret::Aimed.at");
}

#[test]
fn nan_becomes_the_start_of_its_range() {
    let mut tank = Tank { x: f64::NAN, y: -f64::NAN, heading: f64::NAN, ..Tank::blank() };
    tank.settle();
    assert_eq!((tank.x, tank.y, tank.heading), (-1024.0, -1024.0, 0.0));
    let mut body = Crate::blank();
    body.engines[1].heat = f32::NAN;
    body.settle();
    assert_eq!(body.engines[1].heat, 0.5);
}

#[test]
fn timers_settle_to_the_nearest_microsecond_in_range() {
    let settled = |nanos| {
        let mut body = Crate { fuse: Some(Duration::from_nanos(nanos)), ..Crate::blank() };
        let settling = body.settle();
        (body.fuse.unwrap().as_nanos(), settling.problem().map(|error| error.field))
    };
    assert_eq!([settled(2_000_499), settled(2_000_500)], [(2_000_000, None), (2_001_000, None)]);
    assert_eq!([settled(999_500), settled(5_000_000_499)], [(1_000_000, None), (5_000_000_000, None)]);
    assert_eq!(settled(999_499), (1_000_000, Some("Crate.fuse")));
    assert_eq!(settled(5_000_000_501), (5_000_000_000, Some("Crate.fuse")));
    assert_eq!(settled(u64::MAX), (5_000_000_000, Some("Crate.fuse")));
}

#[test]
fn check_passes_just_inside_and_fails_just_outside() {
    let blank = Crate::blank();
    let check = |body: Crate| body.check().map_err(|FieldError { field, problem }| (field, problem));
    let out = |field| Err((field, FieldProblem::OutOfRange));
    let lost = |field| Err((field, FieldProblem::NotFinite));
    // The range is -512..=512; twice its width on either side is 2,048 more.
    let at = |z: f64| Crate { position: [0.0, 0.0, z], ..blank };
    assert_eq!([check(at(2_560.0)), check(at(-2_560.0)), check(at(512.3))], [Ok(()); 3]);
    assert_eq!([check(at(2_560.001)), check(at(-2_560.001))], [out("Crate.position"); 2]);
    for wild in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(check(at(wild)), lost("Crate.position"));
    }
    let aimed = |at: f32, range: i8| Crate { turret: Turret::Aimed { at, range }, ..blank };
    assert_eq!([check(aimed(3.0, 60)), check(aimed(-2.0, -60))], [Ok(()); 2]);
    assert_eq!([check(aimed(3.001, 0)), check(aimed(-2.001, 0))], [out("Turret::Aimed.at"); 2]);
    assert_eq!([check(aimed(0.0, 61)), check(aimed(0.0, -61))], [out("Turret::Aimed.range"); 2]);
    let fuse = |micros| Crate { fuse: Some(Duration::from_micros(micros)), ..blank };
    assert_eq!([check(fuse(1_000)), check(fuse(5_000_000))], [Ok(()); 2]);
    assert_eq!([check(fuse(999)), check(fuse(5_000_001))], [out("Crate.fuse"); 2]);
    let shots = |shots| Crate { shots, ..blank };
    assert_eq!((check(shots(15)), check(shots(16))), (Ok(()), out("Crate.shots")));
    let spare = |spare| Crate { spare: Some(Some(spare)), ..blank };
    assert_eq!((check(spare(200)), check(spare(201))), (Ok(()), out("Crate.spare")));
    assert_eq!((check(spare(100)), check(spare(99))), (Ok(()), out("Crate.spare")));
    let heat = |heat| Crate { engines: [blank.engines[0], Engine { heat, on: false }], ..blank };
    assert_eq!([check(heat(3.5)), check(heat(-1.5))], [Ok(()); 2]);
    assert_eq!([check(heat(3.6)), check(heat(-1.6))], [out("Engine.heat"); 2]);
}

#[test]
fn every_field_counts_in_the_digest() {
    let body = Crate {
        turret: Turret::Aimed { at: 0.5, range: 2 },
        fuse: Some(Duration::from_micros(1_000)),
        spare: Some(None),
        ..Crate::blank()
    };
    let with = |change: fn(&mut Crate)| {
        let mut other = body;
        change(&mut other);
        other
    };
    let others = [
        body,
        with(|body| body.position[0] = 1.0),
        with(|body| body.position[1] = 1.0),
        with(|body| body.position[2] = 1.0),
        with(|body| body.position[2] = -0.0),
        with(|body| body.position[2] = f64::NAN),
        with(|body| body.turret = Turret::Stowed),
        with(|body| body.turret = Turret::Broken(2)),
        with(|body| body.turret = Turret::Aimed { at: 0.25, range: 2 }),
        with(|body| body.turret = Turret::Aimed { at: 0.5, range: 3 }),
        with(|body| body.fuse = None),
        with(|body| body.fuse = Some(Duration::from_micros(1_001))),
        with(|body| body.fuse = Some(Duration::from_nanos(1_000_001))),
        with(|body| body.shots = 1),
        with(|body| body.open = true),
        with(|body| body.gear = Gear::Second),
        with(|body| body.engines[0].heat = 1.0),
        with(|body| body.engines[1].heat = 1.0),
        with(|body| body.engines[1].on = true),
        with(|body| body.spare = None),
        with(|body| body.spare = Some(Some(100))),
        with(|body| body.stamp = 1 << 63),
        with(|body| body.slots[0][1] = 1),
        with(|body| body.slots[1][0] = 1),
        with(|body| body.idle = 1),
    ];
    let digests: std::collections::BTreeSet<_> = others.iter().map(Crate::digest).collect();
    assert_eq!(digests.len(), others.len());
}

#[test]
fn a_value_that_no_settled_body_has_is_refused() {
    let baseline = Tank { x: 1_023.9, ..Tank::blank() };
    let mut buffer = [0; 8];
    let mut bits = BitWriter::new(&mut buffer);
    bits.write_flag(true);
    bits.write_flag(false);
    bits.write_signed(2_000, 12);
    bits.finish().unwrap();
    let mut baseline = baseline;
    baseline.settle();
    assert_eq!(read(&baseline, &buffer), Err(WireError::Invalid { field: "Tank.x" }));
    assert_eq!(read(&baseline, &[]), Err(WireError::Truncated));
}

#[test]
fn the_schema_knows_variants_and_nested_types() {
    macro_rules! schema {
        ($($variants:tt)*) => {{
            #[derive(Clone, Copy, Debug, PartialEq, Body)]
            #[allow(dead_code)]
            enum Item { $($variants)* }
            Item::SCHEMA
        }};
    }
    let schemas = [
        schema!(A, B),
        schema!(B, A),
        schema!(A, C),
        schema!(A, B, C),
        schema!(A, B(u8)),
        schema!(A(u8), B),
        schema!(A, B { x: u8 }),
        schema!(
            A,
            B(
                #[range(0..=9)]
                u8
            )
        ),
        schema!(A, B(Gear)),
        schema!(A, B(Turret)),
        schema!(A, B(Params)),
    ];
    let different: std::collections::BTreeSet<_> = schemas.into_iter().collect();
    assert_eq!(different.len(), schemas.len());
}

#[test]
fn small_shapes_work() {
    #[derive(Clone, Copy, Debug, PartialEq, Body)]
    struct Nothing;
    #[derive(Clone, Copy, Debug, PartialEq, Body)]
    enum Only {
        One,
    }
    #[derive(Clone, Copy, Debug, PartialEq, Body)]
    struct Pair(#[range(0..=LIMIT)] u8, #[grid(1/STEPS, -HALF..=HALF)] f64);
    #[derive(Clone, Copy, Debug, PartialEq, Body)]
    struct Long {
        bits: [bool; 100],
    }
    const LIMIT: u8 = 6;
    const STEPS: u32 = 8;
    const HALF: f64 = 0.5;
    assert_eq!((Nothing::MAX_BITS, Only::MAX_BITS, Pair::MAX_BITS, Long::MAX_BITS), (0, 0, 4 + 5, 101));
    let long = Long { bits: core::array::from_fn(|at| at % 3 == 0) };
    assert_eq!(postcard::from_bytes(&image(&long)), Ok(long));
    assert_eq!(image(&long).len(), 100);
    assert!(postcard::from_bytes::<Long>(&image(&long)[..99]).is_err());
    let pair = Pair(6, -0.5);
    assert_eq!(read(&Pair::blank(), &written(&pair, &Pair::blank()).0), Ok(pair));
    assert_eq!(read(&Nothing, &[]), Ok(Nothing));
    assert_eq!(read(&Only::One, &[]), Ok(Only::One));
}

/// Settled once and for all, and the same to the bit after the wire.
fn check_settling<B: Body>(mut body: B) -> Result<(), TestCaseError> {
    body.settle();
    let mut again = body;
    prop_assert!(again.settle().is_clean());
    prop_assert_eq!(again.digest(), body.digest(), "settling is idempotent");
    prop_assert_eq!(image(&again), image(&body));
    prop_assert_eq!(body.check(), Ok(()), "a settled body passes");
    Ok(())
}

fn check_wire<B: Body>(body: &B, baseline: &B) -> Result<(), TestCaseError> {
    for baseline in [*baseline, B::blank(), *body] {
        let (bytes, count) = written(body, &baseline);
        prop_assert!(count <= B::MAX_BITS, "{} of {} bits", count, B::MAX_BITS);
        let mut bits = BitReader::new(&bytes);
        let back = B::read(&baseline, &mut bits).unwrap();
        prop_assert_eq!(bits.finish(), Ok(()));
        prop_assert_eq!(image(&back), image(body), "to the bit");
        prop_assert_eq!(back.digest(), body.digest());
    }
    Ok(())
}

fn check_total<B: Body>(baseline: &B, bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(body) = read(baseline, bytes) {
        let mut settled = body;
        prop_assert!(settled.settle().is_clean());
        prop_assert_eq!(image(&settled), image(&body), "settled");
    }
    Ok(())
}

proptest! {
    #[test]
    fn settling_is_idempotent(tank in any_tank(), body in any_crate()) {
        check_settling(tank)?;
        check_settling(body)?;
    }

    #[test]
    fn settling_is_near(x in -1024.0f64..=1024.0, heading in -3.0f64..3.0) {
        let mut tank = Tank { x, heading, ..Tank::blank() };
        prop_assert!(tank.settle().is_clean());
        prop_assert!((tank.x - x).abs() <= 0.5 / 1024.0);
        prop_assert!((0.0..1.0).contains(&tank.heading));
        let turned = tank.heading - heading;
        prop_assert!((turned - turned.round()).abs() <= 0.5 / 65_536.0 + 1e-12);
    }

    #[test]
    fn bodies_survive_the_wire(tank in any_settled_tank(), before in any_settled_tank(), body in any_settled_crate(), earlier in any_settled_crate()) {
        check_wire(&tank, &before)?;
        check_wire(&Tank { x: before.x, ..tank }, &before)?;
        check_wire(&body, &earlier)?;
        check_wire(&Crate { turret: earlier.turret, spare: earlier.spare, ..body }, &earlier)?;
    }

    #[test]
    fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..60), tank in any_tank(), body in any_crate()) {
        check_total(&tank, &bytes)?;
        check_total(&body, &bytes)?;
    }

    #[test]
    fn the_exact_image_keeps_every_bit(tank in any_tank(), body in any_crate()) {
        let back: Tank = postcard::from_bytes(&image(&tank)).unwrap();
        prop_assert_eq!(back.digest(), tank.digest());
        let back: Crate = postcard::from_bytes(&image(&body)).unwrap();
        prop_assert_eq!(back.digest(), body.digest());
    }

    #[test]
    fn loading_is_total(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        if let Ok(body) = postcard::from_bytes::<Crate>(&bytes) && body.check().is_ok() {
            check_settling(body)?;
        }
    }
}
