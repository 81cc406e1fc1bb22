//! `derive(Input)`: the bits of the tank's input, settling, release, and inputs that do not fit one number.

use core::time::Duration;

use halftrack::model::Presses;
use halftrack::wire::{BitReader, BitWriter, WireError};
use halftrack::{FieldProblem, Input};
use proptest::prelude::*;

fn written<I: Input>(input: &I) -> (Vec<u8>, usize) {
    let mut buffer = [0; 64];
    let mut bits = BitWriter::new(&mut buffer);
    input.write(&mut bits);
    let count = bits.len_bits();
    let length = bits.finish().unwrap();
    (buffer[..length].to_vec(), count)
}

fn read<I: Input>(bytes: &[u8]) -> Result<I, WireError> {
    I::read(&mut BitReader::new(bytes))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Levels {
    #[range(-16..=16)]
    turn: i8,
    #[range(-16..=16)]
    throttle: i8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Units {
    #[grid(1/16, -1..=1)]
    turn: f64,
    #[grid(1/16, -1..=1)]
    throttle: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Stick {
    #[grid(1/16, -1..=1)]
    axes: [f32; 2],
}

/// The hand-written code of the tank's input, in levels from -16 to 16.
fn by_hand(turn: i8, throttle: i8) -> (Vec<u8>, usize) {
    let level = |axis: i8| u32::from(axis.abs_diff(-16));
    let both = (level(turn) + 1) % 33 * 33 + level(throttle);
    let mut buffer = [0; 2];
    let mut bits = BitWriter::new(&mut buffer);
    if both < 959 {
        bits.write(both, 10);
    } else {
        bits.write((both + 959) >> 1, 10);
        bits.write((both + 959) & 1, 1);
    }
    let count = bits.len_bits();
    let length = bits.finish().unwrap();
    (buffer[..length].to_vec(), count)
}

#[test]
fn two_axes_have_the_bits_of_the_hand_written_code() {
    for turn in -16..=16 {
        for throttle in -16..=16 {
            let expected = by_hand(turn, throttle);
            let levels = Levels { turn, throttle };
            let units = Units { turn: f64::from(turn) / 16.0, throttle: f64::from(throttle) / 16.0 };
            assert_eq!(written(&levels), expected, "{levels:?}");
            assert_eq!(written(&units), expected, "{units:?}");
            let stick = Stick { axes: [turn, throttle].map(|level| f32::from(level) / 16.0) };
            assert_eq!(written(&stick), expected, "{stick:?}");
            assert_eq!(read(&expected.0), Ok(stick));
            assert_eq!(read(&expected.0), Ok(levels));
            assert_eq!(read(&expected.0), Ok(units));
        }
    }
    assert_eq!((Levels::MAX_BITS, Units::MAX_BITS), (11, 11));
}

/// Levels of every kind, which together fit one number.
#[derive(Clone, Copy, Debug, PartialEq, Input)]
struct Pad {
    #[grid(1/8, -1..=1)]
    stick: [f32; 2],
    #[presses]
    fire: u8,
    crouch: bool,
    weapon: Weapon,
    target: Option<Target>,
}

impl Default for Pad {
    fn default() -> Self {
        Self { stick: [0.0, 0.5], fire: 0, crouch: false, weapon: Weapon::Mine { fuse: 3 }, target: None }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
enum Weapon {
    #[default]
    Cannon,
    Mine {
        #[range(1..=5)]
        fuse: u8,
    },
    Beam(#[grid(1/4, 0..=2)] f32, bool),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Target {
    #[range(0..=63)]
    slot: u8,
}

/// More than 2^32 values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Wide {
    #[turns(1/65536)]
    aim: [f64; 2],
    at: Option<u64>,
    order: Order,
    #[presses]
    fire: u8,
    #[micros(0..=1_000_000)]
    held: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
enum Order {
    #[default]
    None,
    Go {
        x: i32,
        y: i32,
    },
    Wait(#[micros] u32),
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -3.0f64..3.0,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![-0.0, 0.5, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ]
}

fn any_pad() -> impl Strategy<Value = Pad> {
    let weapon = prop_oneof![
        Just(Weapon::Cannon),
        any::<u8>().prop_map(|fuse| Weapon::Mine { fuse }),
        (any_float(), any::<bool>()).prop_map(|(power, on)| Weapon::Beam(power as f32, on)),
    ];
    let target = prop::option::of(any::<u8>().prop_map(|slot| Target { slot }));
    (any_float(), any_float(), any::<u8>(), any::<bool>(), weapon, target).prop_map(
        |(x, y, fire, crouch, weapon, target)| Pad {
            stick: [x as f32, y as f32],
            fire,
            crouch,
            weapon,
            target,
        },
    )
}

fn any_wide() -> impl Strategy<Value = Wide> {
    let order = prop_oneof![
        Just(Order::None),
        any::<(i32, i32)>().prop_map(|(x, y)| Order::Go { x, y }),
        any::<u32>().prop_map(Order::Wait),
    ];
    (any_float(), any_float(), any::<Option<u64>>(), order, any::<u8>(), 0u64..2_000_000_000).prop_map(
        |(a, b, at, order, fire, held)| Wide {
            aim: [a, b],
            at,
            order,
            fire,
            held: Duration::from_nanos(held),
        },
    )
}

/// Settled once and for all, through the wire and back, within the promised width.
fn check<I: Input>(mut input: I) -> Result<(), TestCaseError> {
    input.settle();
    let mut again = input;
    prop_assert!(again.settle().is_clean());
    prop_assert_eq!(image(&again), image(&input), "settling is idempotent");
    let (bytes, count) = written(&input);
    prop_assert!(count <= I::MAX_BITS, "{} of {} bits", count, I::MAX_BITS);
    let back: I = read(&bytes).unwrap();
    prop_assert_eq!(image(&back), image(&input), "to the bit");
    let mut released = input.released();
    prop_assert!(released.settle().is_clean());
    prop_assert_eq!(released.released(), released);
    Ok(())
}

fn image<I: Input>(input: &I) -> Vec<u8> {
    postcard::to_allocvec(input).unwrap()
}

fn total<I: Input>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(input) = read::<I>(bytes) {
        let mut settled = input;
        prop_assert!(settled.settle().is_clean());
        prop_assert_eq!(image(&settled), image(&input), "settled");
    }
    Ok(())
}

proptest! {
    #[test]
    fn inputs_of_one_number_survive_the_wire(pad in any_pad()) {
        check(pad)?;
    }

    #[test]
    fn inputs_of_many_bits_survive_the_wire(wide in any_wide()) {
        check(wide)?;
    }

    #[test]
    fn settling_moves_by_half_a_step_at_most(turn in -1.0f64..=1.0, throttle in -1.0f64..=1.0) {
        let mut units = Units { turn, throttle };
        prop_assert!(units.settle().is_clean());
        prop_assert!((units.turn - turn).abs() <= 1.0 / 32.0 && (units.throttle - throttle).abs() <= 1.0 / 32.0);
    }

    #[test]
    fn the_decoder_is_total(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        total::<Levels>(&bytes)?;
        total::<Units>(&bytes)?;
        total::<Pad>(&bytes)?;
        total::<Wide>(&bytes)?;
    }

    #[test]
    fn the_exact_image_keeps_unsettled_floats(pad in any_pad(), wide in any_wide()) {
        let back: Pad = postcard::from_bytes(&image(&pad)).unwrap();
        prop_assert_eq!(image(&back), image(&pad));
        prop_assert_eq!(back.stick.map(f32::to_bits), pad.stick.map(f32::to_bits));
        let back: Wide = postcard::from_bytes(&image(&wide)).unwrap();
        prop_assert_eq!(image(&back), image(&wide));
    }
}

#[test]
fn every_number_is_one_input() {
    // 17 * 17 * 16 * 2 * (1 + 5 + 9 * 2) * (1 + 64)
    assert_eq!(Pad::LAST, Some(14_426_880 - 1));
    assert_eq!(Pad::MAX_BITS, 24);
    let mut images = std::collections::BTreeSet::new();
    for number in 0..=u64::from(Weapon::LAST.unwrap()) {
        let weapon = Weapon::from_number(number);
        assert_eq!(weapon.number(), number);
        images.insert(image(&weapon));
    }
    assert_eq!(images.len(), 1 + 5 + 18);
}

#[test]
fn wide_inputs_reach_their_limit() {
    // 32 bits of aim, 65 of `at`, 2 + 64 of an order, 4 presses, 20 of a timer.
    assert_eq!((Wide::LAST, Wide::MAX_BITS), (None, 32 + 65 + 66 + 4 + 20));
    let mut widest = Wide {
        aim: [0.999, 0.999],
        at: Some(u64::MAX),
        order: Order::Go { x: i32::MAX, y: i32::MAX },
        fire: 15,
        held: Duration::from_secs(1),
    };
    widest.settle();
    assert_eq!(written(&widest).1, Wide::MAX_BITS);
}

#[test]
fn presses_survive_release_and_levels_do_not() {
    let pad = Pad {
        stick: [1.0, 1.0],
        fire: 7,
        crouch: true,
        weapon: Weapon::Cannon,
        target: Some(Target { slot: 9 }),
    };
    assert_eq!(pad.released(), Pad { fire: 7, ..Pad::default() });
    assert_eq!(Pad::default().released(), Pad::default());
}

#[test]
fn presses_in_nested_structs_and_arrays_survive_release() {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
    struct Buttons {
        #[presses]
        counts: [u8; 3],
        held: bool,
    }
    #[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
    struct Outer {
        buttons: Buttons,
        #[range(-4..=4)]
        level: i8,
    }
    let outer = Outer { buttons: Buttons { counts: [1, 2, 3], held: true }, level: 4 };
    let expected = Outer { buttons: Buttons { counts: [1, 2, 3], held: false }, level: 0 };
    assert_eq!(outer.released(), expected);
}

#[test]
fn a_default_off_its_grid_is_released_settled() {
    #[derive(Clone, Copy, Debug, PartialEq, Input)]
    struct Lopsided {
        #[grid(1/4, -1..=1)]
        lean: f64,
    }
    impl Default for Lopsided {
        fn default() -> Self {
            Self { lean: 0.3 }
        }
    }
    assert_eq!(Lopsided { lean: 1.0 }.released().lean, 0.25);
}

#[test]
fn nan_becomes_the_default_of_the_outermost_type() {
    let mut pad = Pad { stick: [f32::NAN, f32::NAN], ..Pad::default() };
    let problem = pad.settle().problem().unwrap();
    assert_eq!((problem.field, problem.problem), ("Pad.stick", FieldProblem::NotFinite));
    assert_eq!(pad.stick, [0.0, 0.5]);

    #[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
    struct Inner {
        #[grid(1/4, -1..=1)]
        lean: f64,
    }
    #[derive(Clone, Copy, Debug, PartialEq, Input)]
    struct Outer {
        inner: Inner,
    }
    impl Default for Outer {
        fn default() -> Self {
            Self { inner: Inner { lean: 0.5 } }
        }
    }
    let mut outer = Outer { inner: Inner { lean: f64::NAN } };
    assert_eq!(outer.settle().problem().unwrap().field, "Inner.lean");
    assert_eq!(outer, Outer::default());
    let mut infinite = Outer { inner: Inner { lean: f64::INFINITY } };
    assert_eq!(infinite.settle().problem().unwrap().problem, FieldProblem::NotFinite);
    assert_eq!(infinite.inner.lean, 1.0);
}

#[test]
fn the_first_field_out_of_range_is_named() {
    let mut units = Units { turn: 1.03, throttle: -1.04 };
    let problem = units.settle().problem().unwrap();
    assert_eq!((problem.field, problem.problem), ("Units.throttle", FieldProblem::OutOfRange));
    assert_eq!(units, Units { turn: 1.0, throttle: -1.0 });
    let mut levels = Levels { turn: 17, throttle: -17 };
    assert_eq!(levels.settle().problem().unwrap().field, "Levels.turn");
    assert_eq!(levels, Levels { turn: 16, throttle: -16 });
}

#[test]
fn presses_count_on_past_their_end() {
    let mut pad = Pad { fire: 17, ..Pad::default() };
    assert!(pad.settle().is_clean());
    assert_eq!(pad.fire, 1);
    assert_eq!([(15, 0), (3, 3), (0, 15)].map(|(seen, now)| Presses::since(seen, now)), [1, 0, 15]);
}

#[test]
fn the_schema_knows_names_kinds_ranges_and_order() {
    macro_rules! schema {
        ($($fields:tt)*) => {{
            #[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
            struct Item { $($fields)* }
            Item::SCHEMA
        }};
    }
    let schemas = [
        schema!(#[range(0..=9)] a: u8, b: bool),
        schema!(#[range(0..=8)] a: u8, b: bool),
        schema!(#[range(1..=9)] a: u8, b: bool),
        schema!(#[range(0..=9)] a: u16, b: bool),
        schema!(#[range(0..=9)] c: u8, b: bool),
        schema!(b: bool, #[range(0..=9)] a: u8),
        schema!(#[range(0..=9)] a: u8),
        schema!(#[presses] a: u8, b: bool),
        schema!(#[grid(1/4, 0..=9)] a: f32, b: bool),
        schema!(#[grid(1/2, 0..=9)] a: f32, b: bool),
        schema!(#[grid(1/4, 0..=9)] a: f64, b: bool),
        schema!(#[turns(1/4)] a: f64, b: bool),
        schema!(#[turns(1/8)] a: f64, b: bool),
        schema!(#[micros] a: u32, b: bool),
        schema!(#[range(0..=9)] a: [u8; 1], b: bool),
        schema!(#[range(0..=9)] a: [u8; 2], b: bool),
        schema!(#[range(0..=9)] a: Option<u8>, b: bool),
        schema!(a: Weapon, b: bool),
        schema!(a: Target, b: bool),
    ];
    let different: std::collections::BTreeSet<_> = schemas.into_iter().collect();
    assert_eq!(different.len(), schemas.len());
    assert_eq!(schemas[0], schema!(#[range(0..=9)] a: u8, b: bool), "the type's own name does not matter");
}

/// Levels and a counter: without a press the counter takes no bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Tapper {
    #[range(-16..=16)]
    turn: i8,
    #[presses]
    fire: u8,
    #[range(-16..=16)]
    throttle: i8,
    sides: Sides,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Input)]
struct Sides {
    #[presses]
    left: [u8; 2],
    lights: bool,
}

#[test]
fn an_input_after_another_takes_bits_for_counters_only_when_they_differ() {
    let pad = |turn, fire, left| Tapper { turn, fire, throttle: 3, sides: Sides { left, lights: turn > 0 } };
    let after = |input: Tapper, previous: Tapper| {
        let mut buffer = [0; 16];
        let mut bits = BitWriter::new(&mut buffer);
        input.write_after(&previous, &mut bits);
        let length = bits.len_bits();
        bits.finish().unwrap();
        assert_eq!(Tapper::read_after(&previous, &mut BitReader::new(&buffer)), Ok(input), "{input:?}");
        length
    };
    // 33 * 33 * 2 levels, and one number for the rest: 12 bits at most.
    for turn in -16..=16 {
        assert!(after(pad(turn, 5, [9, 0]), pad(2, 5, [9, 0])) <= 12, "{turn}");
        for (fire, left) in [(6, [9, 0]), (5, [9, 1]), (4, [0, 15])] {
            assert!((20..=12 + Tapper::MAX_BITS).contains(&after(pad(turn, fire, left), pad(2, 5, [9, 0]))));
        }
    }
    // Equal counters that are written all the same are malformed: there is one way to write an input.
    let (same, mut buffer) = (pad(1, 5, [9, 0]), [0; 16]);
    let mut bits = BitWriter::new(&mut buffer);
    pad(1, 6, [9, 0]).write_after(&same, &mut bits);
    bits.finish().unwrap();
    let sixth = pad(0, 6, [9, 0]);
    assert!(Tapper::read_after(&sixth, &mut BitReader::new(&buffer)).is_err());
}
