//! `Pose2`, `Pose3` and `derive(Pose)`: differences by the shorter way, and displacement that undoes them.

use core::f64::consts::{PI, TAU};

use halftrack::{Offset, Pose, Pose2, Pose3};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Plane {
    #[position]
    at: [f64; 2],
    #[turns]
    heading: f64,
    /// Not marked: kept as it is.
    gear: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Space {
    #[x]
    east: f32,
    #[z]
    up: f32,
    #[y]
    north: f32,
    #[rotation]
    turned: [f32; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Pose)]
struct Marker(#[x] f64);

/// A unit quaternion that turns by `angle` about `axis`.
fn about([x, y, z]: [f64; 3], angle: f64) -> [f64; 4] {
    let scale = (angle / 2.0).sin() / (x * x + y * y + z * z).sqrt();
    [x * scale, y * scale, z * scale, (angle / 2.0).cos()]
}

fn any_axis() -> impl Strategy<Value = [f64; 3]> {
    prop::array::uniform3(-1.0f64..1.0)
        .prop_filter("long enough", |axis| axis.iter().any(|part| part.abs() > 0.1))
}

fn any_rotation() -> impl Strategy<Value = [f64; 4]> {
    (any_axis(), -PI..PI).prop_map(|(axis, angle)| about(axis, angle))
}

fn any_pose() -> impl Strategy<Value = Pose3> {
    (prop::array::uniform3(-100.0f64..100.0), any_rotation())
        .prop_map(|(position, rotation)| Pose3 { position, rotation })
}

fn is_near(a: &[f64], b: &[f64], within: f64) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= within)
}

/// A quaternion and its negative are the same rotation.
fn is_same_rotation(a: [f64; 4], b: [f64; 4]) -> bool {
    is_near(&a, &b, 1e-9) || is_near(&a, &b.map(|part| -part), 1e-9)
}

proptest! {
    #[test]
    fn displacing_by_the_difference_arrives(to in any_pose(), from in any_pose()) {
        let arrived = from.displaced(&to.offset_from(&from));
        prop_assert!(is_near(&arrived.position, &to.position, 1e-9));
        prop_assert!(is_same_rotation(arrived.rotation, to.rotation), "{arrived:?} {to:?}");
        prop_assert!(to.offset_from(&from).angle() <= PI + 1e-9, "the shorter way");
    }

    #[test]
    fn the_rotation_is_the_scaled_axis(axis in any_axis(), angle in -3.1f64..3.1, from in any_rotation()) {
        let from = Pose3 { rotation: from, ..Pose3::default() };
        let size = axis.iter().map(|part| part * part).sum::<f64>().sqrt();
        let offset = Offset { rotation: axis.map(|part| part / size * angle), ..Offset::ZERO };
        let turned = from.displaced(&offset);
        prop_assert!(is_near(&turned.offset_from(&from).rotation, &offset.rotation, 1e-9));
        let negated = Pose3 { rotation: turned.rotation.map(|part| -part), ..turned };
        prop_assert!(is_near(&negated.offset_from(&from).rotation, &offset.rotation, 1e-9));
    }

    #[test]
    fn headings_take_the_shorter_way(x in -9.0f64..9.0, to in -3.0f64..3.0, from in -3.0f64..3.0) {
        let (to, from) = (Pose2 { x, y: 1.0, heading: to }, Pose2 { x: 1.0, y: x, heading: from });
        let offset = to.offset_from(&from);
        prop_assert!(offset.angle() <= PI + 1e-9);
        let arrived = from.displaced(&offset);
        prop_assert!(is_near(&[arrived.x, arrived.y], &[to.x, to.y], 1e-12));
        let turns = arrived.heading - to.heading;
        prop_assert!((turns - turns.round()).abs() < 1e-12);
    }

    /// Whatever bits it has: -0.0, NaN, and quaternions that are none.
    #[test]
    fn nothing_is_displaced_by_zero(numbers in prop::array::uniform7(any::<f64>()), zero in prop::sample::select(vec![0.0, -0.0])) {
        let [x, y, z, a, b, c, d] = numbers;
        let nothing = Offset { position: [zero; 3], rotation: [zero; 3] };
        let bits = |pose: Pose3| (pose.position.map(f64::to_bits), pose.rotation.map(f64::to_bits));
        let pose = Pose3 { position: [x, y, z], rotation: [a, b, c, d] };
        prop_assert_eq!(bits(pose.displaced(&nothing)), bits(pose));
        let flat = Pose2 { x, y, heading: z };
        let moved = flat.displaced(&nothing);
        prop_assert_eq!([moved.x, moved.y, moved.heading].map(f64::to_bits), [x, y, z].map(f64::to_bits));
        let space = Space { east: x as f32, up: y as f32, north: z as f32, turned: [a, b, c, d].map(|part| part as f32) };
        let moved = space.displaced(&nothing);
        prop_assert_eq!(moved.turned.map(f32::to_bits), space.turned.map(f32::to_bits));
        prop_assert_eq!([moved.east, moved.up, moved.north].map(f32::to_bits), [space.east, space.up, space.north].map(f32::to_bits));
    }
}

#[test]
fn a_quarter_turn_about_each_axis() {
    let still = Pose3::default();
    for axis in 0..3 {
        let mut vector = [0.0; 3];
        vector[axis] = TAU / 4.0;
        let turned = still.displaced(&Offset { rotation: vector, ..Offset::ZERO });
        let half = 0.5f64.sqrt();
        let mut expected = [0.0, 0.0, 0.0, half];
        expected[axis] = half;
        assert!(is_near(&turned.rotation, &expected, 1e-15), "{turned:?}");
    }
}

/// Two quarter turns, in the order that `self * other.inverse()` undoes.
#[test]
fn offsets_are_in_the_frame_of_the_world() {
    let about_z = Offset { rotation: [0.0, 0.0, TAU / 4.0], ..Offset::ZERO };
    let about_x = Offset { rotation: [TAU / 4.0, 0.0, 0.0], ..Offset::ZERO };
    let first = Pose3::default().displaced(&about_z);
    let second = first.displaced(&about_x);
    assert!(is_near(&second.offset_from(&first).rotation, &about_x.rotation, 1e-12));
    // x to y by the first turn, y to z by the second.
    let [x, y, z, w] = second.rotation;
    let image_of_x = [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)];
    assert!(is_near(&image_of_x, &[0.0, 0.0, 1.0], 1e-12), "{image_of_x:?}");
}

#[test]
fn quaternions_from_a_grid_are_as_good() {
    let exact = Pose3 { rotation: about([0.3, -0.5, 0.8], 1.0), ..Pose3::default() };
    let rough = Pose3 { rotation: exact.rotation.map(|part| (part * 512.0).round() / 500.0), ..exact };
    assert!(rough.offset_from(&exact).angle() < 0.01);
    let nothing = Pose3 { rotation: [0.0; 4], ..exact };
    assert_eq!(exact.offset_from(&nothing).rotation, [0.0; 3]);
    let broken = Pose3 { rotation: [f64::NAN; 4], ..exact };
    assert!(!exact.offset_from(&broken).is_finite());
}

#[test]
fn own_poses_use_their_marked_fields() {
    let from = Plane { at: [1.0, 2.0], heading: 0.9, gear: 3 };
    let to = Plane { at: [1.5, 1.0], heading: 0.15, gear: 4 };
    let offset = to.offset_from(&from);
    assert_eq!(offset.position, [0.5, -1.0, 0.0]);
    assert!(is_near(&offset.rotation, &[0.0, 0.0, TAU / 4.0], 1e-12));
    let arrived = from.displaced(&offset);
    assert_eq!((arrived.at, arrived.gear), (to.at, 3));

    let from = Space { east: 1.0, up: 2.0, north: 3.0, turned: [0.0, 0.0, 0.0, 1.0] };
    let moved = from.displaced(&Offset { position: [1.0, 10.0, 100.0], rotation: [0.0, 0.0, PI] });
    assert_eq!((moved.east, moved.north, moved.up), (2.0, 13.0, 102.0));
    assert_eq!(moved.offset_from(&from).position, [1.0, 10.0, 100.0]);
    assert!((moved.offset_from(&from).angle() - PI).abs() < 1e-6);

    assert_eq!(Marker(3.0).offset_from(&Marker(1.0)), Offset { position: [2.0, 0.0, 0.0], ..Offset::ZERO });
}

#[test]
fn poses_have_an_exact_image() {
    let pose = Pose3 { position: [0.1, -0.0, f64::MAX], rotation: about([1.0, 2.0, 3.0], 0.1) };
    let bytes = postcard::to_allocvec(&pose).unwrap();
    let back: Pose3 = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(bytes.len(), 7 * 8);
    assert_eq!(back.position.map(f64::to_bits), pose.position.map(f64::to_bits));
    let plane = Plane { at: [0.1, 0.2], heading: 0.3, gear: 4 };
    assert_eq!(postcard::from_bytes(&postcard::to_allocvec(&plane).unwrap()), Ok(plane));
}
