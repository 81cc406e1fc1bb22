//! The fields of any value that serde knows, as a list of paths and values: where two bodies differ, by name.
//!
//! Each field also keeps its bytes as postcard writes them. Postcard joins the bytes of fields without a gap, so the
//! checker can build a body that differs from another one in a single field.

use core::fmt::{self, Display};

use serde::Serialize;

use super::lister::Lister;

/// The way to a field inside a value: `turret.angle`, `position[2]`.
///
/// Fields of an enum's variant follow the variant's name: `state.Flying.height`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(pub(super) Vec<PathPart>);

/// One part of a [`FieldPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathPart {
    Name(&'static str),
    Index(usize),
}

impl Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("value");
        }
        for (number, part) in self.0.iter().enumerate() {
            match part {
                PathPart::Name(name) if number == 0 => f.write_str(name)?,
                PathPart::Name(name) => write!(f, ".{name}")?,
                PathPart::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The value of one field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldValue {
    /// A `bool`.
    Flag(bool),
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// An `f32`.
    Single(f32),
    /// An `f64`.
    Double(f64),
    /// The variant of an enum, or `Some` or `None`.
    Variant(&'static str),
    /// Text, and everything that is rarer than these.
    Text(Box<str>),
    /// The value has no such field.
    Absent,
}

impl FieldValue {
    /// Whether it is a float that is NaN or infinite.
    pub(super) fn is_not_finite(&self) -> bool {
        match self {
            Self::Single(value) => !value.is_finite(),
            Self::Double(value) => !value.is_finite(),
            _ => false,
        }
    }

    /// Whether it is -0.0, which equals 0.0 but has other bits.
    pub(super) fn is_negative_zero(&self) -> bool {
        match self {
            Self::Single(value) => *value == 0.0 && value.is_sign_negative(),
            Self::Double(value) => *value == 0.0 && value.is_sign_negative(),
            _ => false,
        }
    }
}

impl Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Single(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
            Self::Variant(name) => f.write_str(name),
            Self::Text(text) => f.write_str(text),
            Self::Absent => f.write_str("absent"),
        }
    }
}

/// The first field in which two values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The field.
    pub field: FieldPath,
    /// Its value in the first.
    pub first: FieldValue,
    /// Its value in the second.
    pub second: FieldValue,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} and {}", self.field, self.first, self.second)
    }
}

/// One number, flag or tag of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) path: FieldPath,
    pub(super) value: FieldValue,
    /// As postcard writes it.
    pub(super) bytes: Vec<u8>,
}

/// All fields of a value, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    pub(super) leaves: Vec<Leaf>,
}

impl Image {
    /// The fields of `value`. A value that serde cannot write has none.
    pub(super) fn of(value: &impl Serialize) -> Self {
        let mut lister = Lister::default();
        match value.serialize(&mut lister) {
            Ok(()) => Self { leaves: lister.leaves },
            Err(_) => Self::default(),
        }
    }

    /// All bytes, as postcard writes them.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.leaves.iter().flat_map(|leaf| leaf.bytes.iter().copied())
    }

    /// The first field with other bits.
    pub(super) fn difference(&self, other: &Self) -> Option<Difference> {
        let (first, second) = (&self.leaves, &other.leaves);
        let same = first
            .iter()
            .zip(second)
            .take_while(|(first, second)| first.path == second.path && first.bytes == second.bytes);
        let at = same.count();
        let (first, second) = (first.get(at), second.get(at));
        let field = first.or(second)?.path.clone();
        let value = |leaf: Option<&Leaf>| {
            leaf.filter(|leaf| leaf.path == field).map_or(FieldValue::Absent, |leaf| leaf.value.clone())
        };
        Some(Difference { first: value(first), second: value(second), field })
    }

    /// The first field of this name with other bits.
    pub(super) fn difference_in(&self, other: &Self, name: &str) -> Option<Difference> {
        let mut both = self.leaves.iter().zip(&other.leaves);
        let index = name.parse().ok();
        let is_part = |part: &PathPart| match part {
            PathPart::Name(own) => *own == name,
            PathPart::Index(own) => Some(*own) == index,
        };
        let is_named = |path: &FieldPath| path.0.iter().any(is_part);
        both.find(|(own, other)| is_named(&own.path) && own.path == other.path && own.bytes != other.bytes)
            .map(|(own, other)| Difference {
                field: own.path.clone(),
                first: own.value.clone(),
                second: other.value.clone(),
            })
    }

    /// Bytes of values that differ from this one in a single field, which is as in `other`.
    ///
    /// A field with another variant in `other` is taken whole.
    pub(super) fn mixes(&self, other: &Self) -> Vec<(FieldPath, Vec<u8>)> {
        let aligned = (1..=MAX_DEPTH).rev().find_map(|depth| {
            let (own, other) = (self.groups(depth), other.groups(depth));
            let same_names = own.len() == other.len() && own.iter().zip(&other).all(|(a, b)| a.0 == b.0);
            same_names.then_some((own, other))
        });
        let Some((own, other)) = aligned else { return vec![] };
        let changed = own.iter().zip(&other).enumerate().filter(|(_, (a, b))| a.1 != b.1);
        let mixes = changed.map(|(at, ((name, _), (_, instead)))| {
            let part = |(number, (_, bytes)): (usize, &(FieldPath, Vec<u8>))| {
                if number == at { instead.clone() } else { bytes.clone() }
            };
            (name.clone(), own.iter().enumerate().flat_map(part).collect())
        });
        mixes.collect()
    }

    /// Paths cut to `depth` parts, each with the bytes of all fields below it.
    fn groups(&self, depth: usize) -> Vec<(FieldPath, Vec<u8>)> {
        let mut groups: Vec<(FieldPath, Vec<u8>)> = vec![];
        for leaf in &self.leaves {
            let name = leaf.path.0.iter().take(depth);
            match groups.last_mut() {
                Some((last, bytes)) if last.0.iter().eq(name.clone()) => bytes.extend(&leaf.bytes),
                _ => groups.push((FieldPath(name.copied().collect()), leaf.bytes.clone())),
            }
        }
        groups
    }
}

/// Fields nested deeper than this are mixed with all their siblings.
const MAX_DEPTH: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cart::CartBody;
    use serde::Deserialize;

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    struct Ship {
        at: [f32; 2],
        fuel: Option<u16>,
        state: State,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    enum State {
        Docked,
        Flying { height: f64, engines: (bool, bool) },
    }

    const DOCKED: Ship = Ship { at: [1.5, -2.0], fuel: None, state: State::Docked };
    const FLYING: Ship =
        Ship { fuel: Some(300), state: State::Flying { height: 9.25, engines: (true, false) }, ..DOCKED };

    #[test]
    fn fields_are_listed_with_their_paths_and_the_bytes_of_postcard() {
        let image = Image::of(&FLYING);
        let said: Vec<_> = image.leaves.iter().map(|leaf| format!("{} {}", leaf.path, leaf.value)).collect();
        assert_eq!(
            said,
            [
                "at[0] 1.5",
                "at[1] -2",
                "fuel Some",
                "fuel 300",
                "state Flying",
                "state.Flying.height 9.25",
                "state.Flying.engines[0] true",
                "state.Flying.engines[1] false",
            ]
        );
        for ship in [FLYING, DOCKED] {
            assert!(Image::of(&ship).bytes().eq(postcard::to_allocvec(&ship).unwrap()));
        }
        let cart = CartBody::at(3.0);
        assert!(Image::of(&cart).bytes().eq(postcard::to_allocvec(&cart).unwrap()));
    }

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let said = |other: Ship| Image::of(&FLYING).difference(&Image::of(&other)).map(|d| d.to_string());
        assert_eq!(said(FLYING), None);
        assert_eq!(said(DOCKED), Some("fuel: Some and None".to_owned()));
        assert_eq!(said(Ship { at: [1.5, 2.0], ..FLYING }), Some("at[1]: -2 and 2".to_owned()));
        let docked = Ship { state: State::Docked, ..FLYING };
        assert_eq!(said(docked), Some("state: Flying and Docked".to_owned()));
        let zero = |at| Image::of(&Ship { at, ..FLYING });
        let signs = zero([0.0, 0.0]).difference(&zero([0.0, -0.0])).map(|d| d.to_string());
        assert_eq!(signs, Some("at[1]: 0 and -0".to_owned()));
    }

    #[test]
    fn mixes_differ_in_one_field_each() {
        let other = Ship { at: [7.0, -2.0], ..DOCKED };
        let mixes = Image::of(&FLYING).mixes(&Image::of(&other));
        let read = |bytes: &[u8]| postcard::from_bytes::<Ship>(bytes).unwrap();
        let mixes: Vec<_> = mixes.iter().map(|(path, bytes)| (path.to_string(), read(bytes))).collect();
        assert_eq!(
            mixes,
            [
                ("at".to_owned(), Ship { at: [7.0, -2.0], ..FLYING }),
                ("fuel".to_owned(), Ship { fuel: None, ..FLYING }),
                ("state".to_owned(), Ship { state: State::Docked, ..FLYING }),
            ]
        );
        let higher = Ship { state: State::Flying { height: 1.0, engines: (true, true) }, ..FLYING };
        let mixes = Image::of(&FLYING).mixes(&Image::of(&higher));
        let paths: Vec<_> = mixes.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(paths, ["state.Flying.height", "state.Flying.engines[1]"]);
    }
}
