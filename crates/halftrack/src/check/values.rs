//! Checks of single values: settling, codec, digest, equality and the image that serde writes.

use std::collections::BTreeMap;

use super::fields::{Difference, FieldPath, FieldValue, Image, PathPart};
use super::mistake::{CodecBaseline, GameMistake, Place};
use crate::game::Game;
use crate::model::{Body, Input, Settling};
use crate::wire::{BitReader, BitWriter, WireError};

/// Room for a value that takes more than it says; it is measured before it is read.
const SPARE_BYTES: usize = 4_096;

/// The first difference between two bodies in any respect: image, or digest where the images are equal.
pub(super) fn body_difference<B: Body>(first: &B, second: &B) -> Option<Difference> {
    let digests = (first.digest(), second.digest());
    let (image, other) = (Image::of(first), Image::of(second));
    let seen = image.difference(&other);
    let named = |digest: u64| FieldValue::Text(format!("{digest:#x}").into());
    let unseen = || Difference {
        field: FieldPath(vec![PathPart::Name("digest()")]),
        first: named(digests.0),
        second: named(digests.1),
    };
    seen.or_else(|| (digests.0 != digests.1).then(unseen))
}

/// Settles `value`, and checks that this is the end of it.
fn settled<T: serde::Serialize + Copy>(
    place: Place,
    value: &T,
    settle: impl Fn(&mut T) -> Settling,
) -> Result<T, GameMistake> {
    let mut once = *value;
    let problem = settle(&mut once).problem();
    let (before, image) = (Image::of(value), Image::of(&once));
    if let Some(problem) = problem {
        let name = problem.field.rsplit('.').next().unwrap_or_default();
        let difference = before.difference_in(&image, name);
        return Err(GameMistake::Escaped { place, problem, difference });
    }
    let mut twice = once;
    settle(&mut twice);
    if let Some(difference) = image.difference(&Image::of(&twice)) {
        return Err(GameMistake::SettleNotIdempotent { place, difference });
    }
    let unsettled = |value: &FieldValue| value.is_not_finite() || value.is_negative_zero();
    match image.leaves.into_iter().find(|leaf| unsettled(&leaf.value)) {
        Some(leaf) => Err(GameMistake::NotSettled { place, field: leaf.path, value: leaf.value }),
        None => Ok(once),
    }
}

/// Settles a body, and checks settling itself.
pub(super) fn settled_body<B: Body>(place: Place, body: &B) -> Result<B, GameMistake> {
    let body = settled(place, body, B::settle)?;
    match body.check() {
        Ok(()) => Ok(body),
        Err(problem) => Err(GameMistake::CheckRefused { place, problem }),
    }
}

/// Settles an input, and checks settling and its codec.
pub(super) fn settled_input<I: Input>(place: Place, input: &I) -> Result<I, GameMistake> {
    let input = settled(place, input, I::settle)?;
    let coded = Coded { place, baseline: CodecBaseline::Nothing, max: I::MAX_BITS };
    let (read, _) = coded.round_trip(|bits| input.write(bits), I::read)?;
    coded.same(Image::of(&input).difference(&Image::of(&read)))?;
    Ok(input)
}

/// Writes a settled body against `against` and reads it back. Gives the bits it took.
pub(super) fn body_codec<B: Body>(
    place: Place,
    body: &B,
    baseline: CodecBaseline,
    against: &B,
) -> Result<usize, GameMistake> {
    let coded = Coded { place, baseline, max: B::MAX_BITS };
    let (read, bits) = coded.round_trip(|bits| body.write(against, bits), |bits| B::read(against, bits))?;
    coded.same(body_difference(body, &read))?;
    Ok(bits)
}

/// One trip of a value through its codec.
struct Coded {
    place: Place,
    baseline: CodecBaseline,
    max: usize,
}

impl Coded {
    fn round_trip<T>(
        &self,
        write: impl FnOnce(&mut BitWriter<'_>),
        read: impl FnOnce(&mut BitReader<'_>) -> Result<T, WireError>,
    ) -> Result<(T, usize), GameMistake> {
        let Self { place, baseline, max } = *self;
        let mut buffer = vec![0; max.div_ceil(8) + SPARE_BYTES];
        let mut writer = BitWriter::new(&mut buffer);
        write(&mut writer);
        let bits = writer.len_bits();
        if bits > max {
            return Err(GameMistake::TooManyBits { place, baseline, bits, max });
        }
        let length = writer.finish().unwrap_or_default();
        let mut reader = BitReader::new(buffer.get(..length).unwrap_or_default());
        let unreadable = |problem| GameMistake::CodecUnreadable { place, baseline, problem };
        let value = read(&mut reader).map_err(unreadable)?;
        reader.finish().map_err(unreadable)?;
        Ok((value, bits))
    }

    fn same(&self, difference: Option<Difference>) -> Result<(), GameMistake> {
        let Self { place, baseline, .. } = *self;
        let loses = |difference| GameMistake::CodecLoses { place, baseline, difference };
        difference.map_or(Ok(()), |difference| Err(loses(difference)))
    }
}

/// Whether `==`, digest and image tell bodies apart by the same fields; and which fields differed at all.
#[derive(Debug, Default)]
pub(super) struct Equality {
    /// How often each field was the only difference between two bodies.
    proofs: BTreeMap<FieldPath, u32>,
}

impl Equality {
    /// After so many proofs for a field, its mixes are not built any more.
    const ENOUGH: u32 = 16;

    /// Compares two settled bodies, and then the first with mixes of both that differ from it in one field.
    pub(super) fn check<G: Game>(
        &mut self,
        place: Place,
        first: &G::Body,
        second: &G::Body,
    ) -> Result<(), GameMistake> {
        let (image, other) = (Image::of(first), Image::of(second));
        for leaf in &image.leaves {
            if !self.proofs.contains_key(&leaf.path) {
                self.proofs.insert(leaf.path.clone(), 0);
            }
        }
        Self::agree(place, (first, &image), (second, &other))?;
        let read = |bytes: &[u8]| postcard::from_bytes::<G::Body>(bytes);
        let bytes: Vec<u8> = image.bytes().collect();
        let again = read(&bytes).map_err(|_| GameMistake::ImageUnreadable { place })?;
        if image.difference(&Image::of(&again)).is_some() {
            return Err(GameMistake::ImageUnreadable { place });
        }
        Self::agree(place, (first, &image), (&again, &image))?;
        for (field, bytes) in image.mixes(&other) {
            let proofs = self.proofs.entry(field).or_default();
            *proofs = proofs.saturating_add(1);
            if *proofs > Self::ENOUGH {
                continue;
            }
            // A body that `Deserialize` refuses or mends is none that rules can meet.
            let Ok(mixed) = read(&bytes) else { continue };
            let mix = Image::of(&mixed);
            if mix.bytes().eq(bytes) {
                Self::agree(place, (first, &image), (&mixed, &mix))?;
            }
        }
        Ok(())
    }

    fn agree<B: Body>(place: Place, first: (&B, &Image), second: (&B, &Image)) -> Result<(), GameMistake> {
        let ((first, image), (second, other)) = (first, second);
        let (digest, other_digest) = (first.digest(), second.digest());
        match image.difference(other) {
            Some(difference) if digest == other_digest => {
                Err(GameMistake::DigestMisses { place, difference, digest })
            }
            Some(difference) if first == second => Err(GameMistake::EqualityMisses { place, difference }),
            None if first != second => Err(GameMistake::ImageMisses { place }),
            None if digest != other_digest => {
                Err(GameMistake::DigestVaries { place, first: digest, second: other_digest })
            }
            _ => Ok(()),
        }
    }

    /// Fields that never differed, nor a field around or inside them.
    pub(super) fn constant_fields(&self) -> Vec<FieldPath> {
        let related = |a: &FieldPath, b: &FieldPath| a.0.starts_with(&b.0) || b.0.starts_with(&a.0);
        let varied = |field: &FieldPath| {
            self.proofs.iter().any(|(other, proofs)| *proofs > 0 && related(field, other))
        };
        self.proofs.keys().filter(|field| !varied(field)).cloned().collect()
    }
}
