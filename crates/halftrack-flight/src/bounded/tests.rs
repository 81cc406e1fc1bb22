//! Each bound in a pair: just inside passes, just outside fails.

use std::collections::BTreeMap;

use serde::Serialize;

use super::*;

fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, ReadError> {
    let mut from = Bounded::new(bytes);
    let value = from.value()?;
    from.finish().map(|()| value)
}

fn written<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Box { width: u16, height: i32 },
    Segment(i8, i16),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    flag: bool,
    text: String,
    letter: char,
    small: (u8, i8, u16, i16, u32, i32, f32),
    large: (u64, i64, usize),
    shapes: Vec<Shape>,
    names: BTreeMap<u16, String>,
    span: Option<Duration>,
    unit: (),
}

#[test]
fn values_of_every_kind_are_read_as_postcard_wrote_them() {
    let everything = Everything {
        flag: true,
        text: "Ada".to_owned(),
        letter: 'é',
        small: (1, -2, 300, -400, 70_000, -80_000, 0.5),
        large: (1 << 40, -(1 << 50), 7),
        shapes: vec![
            Shape::Point,
            Shape::Circle(0.1),
            Shape::Box { width: 9, height: -9 },
            Shape::Segment(-1, 300),
        ],
        names: BTreeMap::from([(3, "Bob".to_owned()), (9, String::new())]),
        span: Some(Duration::new(3, 7)),
        unit: (),
    };
    let bytes = written(&everything);
    assert_eq!(read(&bytes), Ok(everything));
    for cut in 0..bytes.len() {
        assert!(read::<Everything>(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    assert_eq!(read::<Everything>(&[bytes.as_slice(), &[0]].concat()), Err(ReadError::Trailing));
}

#[test]
fn numbers_lie_below_two_to_the_sixty() {
    const LIMIT: u64 = 1 << 60;
    assert_eq!(read(&written(&(LIMIT - 1))), Ok(LIMIT - 1));
    assert_eq!(read::<u64>(&written(&LIMIT)), Err(ReadError::Number));
    assert_eq!(read::<u64>(&written(&u64::MAX)), Err(ReadError::Number));
    let limit = LIMIT.cast_signed();
    for sign in [1, -1] {
        assert_eq!(read(&written(&(sign * (limit - 1)))), Ok(sign * (limit - 1)));
        assert_eq!(read::<i64>(&written(&(sign * limit))), Err(ReadError::Number));
    }
    assert_eq!(read::<i64>(&written(&i64::MIN)), Err(ReadError::Number));
    assert_eq!(read::<usize>(&written(&LIMIT)), Err(ReadError::Number), "a usize is a u64");
    assert_eq!(read::<u128>(&written(&1u128)), Err(ReadError::Malformed));
}

#[test]
fn spans_are_at_most_a_hundred_days() {
    let (longest, nano) = (Duration::from_secs(8_640_000), Duration::from_nanos(1));
    for span in [Duration::ZERO, longest - nano, longest] {
        assert_eq!(read(&written(&span)), Ok(span));
    }
    for span in [longest + nano, longest + Duration::from_secs(1), Duration::MAX] {
        assert_eq!(read::<Duration>(&written(&span)), Err(ReadError::Span));
    }
    // Nanoseconds that carry into the seconds, as no `Duration` writes them.
    assert_eq!(read(&written(&(8_639_999u64, 1_000_000_000u32))), Ok(longest));
    assert_eq!(read::<Duration>(&written(&(8_639_999u64, 1_000_000_001u32))), Err(ReadError::Span));
    assert_eq!(read::<Duration>(&written(&(u64::MAX, u32::MAX))), Err(ReadError::Span));
    assert_eq!(read::<Option<Duration>>(&written(&Some(longest + nano))), Err(ReadError::Span));
}

#[test]
fn lists_have_at_most_1_048_576_elements() {
    let most = 1_048_576;
    assert_eq!(read(&written(&vec![7u8; most])), Ok(vec![7u8; most]));
    let refused = ReadError::Length { got: 1_048_577, max: most };
    assert_eq!(read::<Vec<u8>>(&written(&vec![7u8; most + 1])), Err(refused.clone()));
    let map = |count: u32| (0..count).map(|key| (key, ())).collect::<BTreeMap<u32, ()>>();
    assert_eq!(read(&written(&map(1_048_576))), Ok(map(1_048_576)));
    assert_eq!(read::<BTreeMap<u32, ()>>(&written(&map(1_048_577))), Err(refused));
}

#[test]
fn lists_have_no_more_elements_than_bytes_are_left() {
    assert_eq!(read::<Vec<u8>>(&[3, 1, 2, 3]), Ok(vec![1, 2, 3]));
    assert_eq!(read::<Vec<u8>>(&[4, 1, 2, 3]), Err(ReadError::Length { got: 4, max: 3 }));
    // Elements that take no bytes must not be counted out without end.
    assert_eq!(read::<Vec<()>>(&[1]), Err(ReadError::Length { got: 1, max: 0 }));
    let huge = written(&u64::MAX);
    assert_eq!(read::<Vec<u64>>(&huge), Err(ReadError::Length { got: u64::MAX, max: 0 }));
    assert_eq!(read::<&[u8]>(&[2, 1, 2]), Ok([1, 2].as_slice()));
    assert_eq!(read::<&[u8]>(&[3, 1, 2]), Err(ReadError::Length { got: 3, max: 2 }));
    assert_eq!(read::<String>(&[2, b'h', b'i']), Ok("hi".to_owned()));
    assert_eq!(read::<String>(&[3, b'h', b'i']), Err(ReadError::Length { got: 3, max: 2 }));
    assert_eq!(read::<&str>(&[1, 0xff]), Err(ReadError::Malformed));
}

#[test]
fn byte_strings_may_be_longer_than_lists() {
    let long = vec![7u8; 1_048_577];
    assert_eq!(read::<&[u8]>(&written(&long)), Ok(long.as_slice()));
}

#[test]
fn a_refusal_by_a_type_keeps_its_reason() {
    let refused = read::<halftrack::PlayerName>(&written(&"")).unwrap_err();
    assert_eq!(refused, ReadError::Refused("the name is empty".into()));
    assert!(read::<Shape>(&[4]).unwrap_err().to_string().contains("variant"));
}
