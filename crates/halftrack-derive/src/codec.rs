//! Chooses the codec of a field by its attribute and type, and checks the numbers in the attribute.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, Result, Type};

use crate::attribute::{Range, Rule};
use crate::kind::{Kind, Wrapper, kind, peel};
use crate::number::{Fraction, division, literal};

/// The most steps on either side of zero.
const MAX_STEP: i128 = 1 << 30;

/// The codec of a field.
pub(crate) struct Codec {
    /// Its type.
    pub(crate) tokens: TokenStream,
    /// Whether it counts presses.
    pub(crate) presses: bool,
    /// Whether it is in an `Option`.
    pub(crate) optional: bool,
}

pub(crate) fn codec(rule: Option<(Rule, Span)>, ty: &Type, role: &str) -> Result<Codec> {
    let (wrappers, inner) = peel(ty)?;
    let kind = kind(inner, role)?;
    let presses = matches!(rule, Some((Rule::Presses, _)));
    let model = quote_spanned!(ty.span()=> ::halftrack::model);
    let leaf = match rule {
        Some((rule, span)) => Some(levels(rule, span, kind, inner)?),
        None => plain(kind, inner)?,
    };
    let innermost = match leaf {
        Some(leaf) => quote!(#model::Leaf<#leaf>),
        None => quote!(#model::Nested),
    };
    let codec = wrappers.iter().rev().fold(innermost, |codec, wrapper| match wrapper {
        Wrapper::Array => quote!(#model::Each<#codec>),
        Wrapper::Option => quote!(#model::Maybe<#codec>),
    });
    Ok(Codec { tokens: codec, presses, optional: wrappers.contains(&Wrapper::Option) })
}

/// Without an attribute: whole integers, flags and nested types.
fn plain(kind: Kind, ty: &Type) -> Result<Option<TokenStream>> {
    match kind {
        Kind::Float { .. } => Err(Error::new_spanned(
            ty,
            "a float needs a grid and a range, such as `#[grid(1/1024, -512..=512)]`; \
             a part of a turn needs `#[turns(1/65536)]`",
        )),
        Kind::Duration => Err(Error::new_spanned(
            ty,
            "a `Duration` needs `#[micros]`, or a range as in `#[micros(0..=5_000_000)]`",
        )),
        Kind::Int { min, max, .. } => Ok(Some(whole(&quote!(#min), &quote!(#max), ty.span()))),
        Kind::Bool => Ok(Some(quote_spanned!(ty.span()=> ::halftrack::model::Flag))),
        Kind::Other => Ok(None),
    }
}

fn levels(rule: Rule, span: Span, kind: Kind, ty: &Type) -> Result<TokenStream> {
    if let Some(advice) = misfit(&rule, kind) {
        return Err(Error::new_spanned(ty, format!("`{}` {advice}", rule.name())));
    }
    match rule {
        Rule::Grid { step, range } => grid(&step, &range, kind, ty),
        Rule::Turns { step } => turns(&step, kind, ty),
        Rule::Micros { range } => micros(range.as_ref(), ty),
        Rule::Whole { range } => {
            let (min, max) = match kind {
                Kind::Int { min, max, .. } => (min, max),
                _ => (i64::MIN.into(), u64::MAX.into()),
            };
            let (from, to) = ends(&range, min, max, &|value| match kind {
                Kind::Int { name, .. } => format!("{value} does not fit `{name}`, which has {min} to {max}"),
                _ => format!("{value} does not fit 64 bits"),
            })?;
            Ok(whole(&from, &to, ty.span()))
        }
        Rule::Presses => Ok(quote_spanned!(span=> ::halftrack::model::Presses)),
    }
}

/// Why an attribute does not fit a type, and the remedy.
fn misfit(rule: &Rule, kind: Kind) -> Option<&'static str> {
    match (rule, kind) {
        (_, Kind::Other)
        | (Rule::Grid { .. } | Rule::Turns { .. }, Kind::Float { .. })
        | (Rule::Micros { .. }, Kind::Duration | Kind::Int { name: "u32", .. })
        | (Rule::Whole { .. }, Kind::Int { .. })
        | (Rule::Presses, Kind::Int { name: "u8", .. }) => None,
        (Rule::Presses, _) => Some("is a counter of 4 bits; make the field a `u8`"),
        (Rule::Micros { .. }, _) => Some("is for a `core::time::Duration`, or a `u32` of microseconds"),
        (Rule::Whole { .. }, Kind::Float { .. }) => {
            Some("is for integers; a float needs its step too: `#[grid(1/1024, -512..=512)]`")
        }
        (Rule::Grid { .. } | Rule::Turns { .. }, Kind::Int { .. }) => {
            Some("is for floats; an integer takes `#[range(0..=100)]`")
        }
        (_, Kind::Bool) => Some("is not for a `bool`, which needs no attribute"),
        (_, Kind::Duration) => Some("is not for a `Duration`; write `#[micros]`"),
    }
}

fn whole(from: &TokenStream, to: &TokenStream, span: Span) -> TokenStream {
    quote_spanned!(span=> ::halftrack::model::Whole<{ #from }, { #to }>)
}

/// Both ends of a range of integers, checked as far as they are literals.
fn ends(
    range: &Range,
    min: i128,
    max: i128,
    misfit: &dyn Fn(i128) -> String,
) -> Result<(TokenStream, TokenStream)> {
    let mut values = vec![];
    for end in [&range.from, &range.to] {
        let Some(fraction) = literal(end) else { continue };
        match fraction.whole() {
            Some(value) if (min..=max).contains(&value) => values.push(value),
            Some(value) => return Err(Error::new_spanned(end, misfit(value))),
            None => return Err(Error::new_spanned(end, format!("{fraction} is not a whole number"))),
        }
    }
    if let [from, to] = values.as_slice()
        && from > to
    {
        return Err(backwards(range, from, to));
    }
    let tokens = |end: &Expr| match literal(end).and_then(Fraction::whole) {
        Some(value) => {
            let value = Literal::i128_suffixed(value);
            quote!(#value)
        }
        None => quote!((#end) as i128),
    };
    Ok((tokens(&range.from), tokens(&range.to)))
}

fn backwards(range: &Range, from: &dyn std::fmt::Display, to: &dyn std::fmt::Display) -> Error {
    Error::new_spanned(&range.tokens, format!("the range is empty; write `{to}..={from}`"))
}

fn micros(range: Option<&Range>, ty: &Type) -> Result<TokenStream> {
    let Some(range) = range else {
        return Ok(quote_spanned!(ty.span()=> ::halftrack::model::Micros<0, { u32::MAX }>));
    };
    let (from, to) = ends(range, 0, u32::MAX.into(), &|value| {
        format!("{value} is not within 0..=4_294_967_295 microseconds (71 minutes)")
    })?;
    Ok(quote_spanned!(ty.span()=> ::halftrack::model::Micros<{ (#from) as u32 }, { (#to) as u32 }>))
}

fn turns(step: &Expr, kind: Kind, ty: &Type) -> Result<TokenStream> {
    let steps = match (literal(step), division(step)) {
        (Some(Fraction { num: 1, den }), _) if den <= MAX_STEP => {
            if kind == (Kind::Float { single: true }) && !fits_single(Fraction { num: 1, den }, den) {
                return Err(too_fine(step));
            }
            let den = Literal::u32_suffixed(u32::try_from(den).unwrap_or(0));
            quote!(#den)
        }
        (None, Some((one, steps))) if literal(one) == Some(Fraction { num: 1, den: 1 }) => {
            quote!((#steps) as u32)
        }
        _ => {
            let message =
                "a turn is divided into equal steps; write `1/65536`, or another number from 1 to 2^30";
            return Err(Error::new_spanned(step, message));
        }
    };
    Ok(quote_spanned!(ty.span()=> ::halftrack::model::Turns<{ #steps }>))
}

fn grid(step: &Expr, range: &Range, kind: Kind, ty: &Type) -> Result<TokenStream> {
    let (num, den) = match (literal(step), division(step)) {
        (Some(fraction), _) => {
            let part = |part: i128| u32::try_from(part).ok().filter(|part| *part > 0);
            let (Some(num), Some(den)) = (part(fraction.num), part(fraction.den)) else {
                let message =
                    format!("the grid's step is {fraction}; it must be above zero, such as `1/1024`");
                return Err(Error::new_spanned(step, message));
            };
            check_grid(fraction, range, step, kind)?;
            (quote!(#num), quote!(#den))
        }
        (None, Some((_, den))) if literal(den).is_some_and(|den| den.num == 0) => {
            return Err(Error::new_spanned(
                step,
                "the grid's step divides by zero; write one such as `1/1024`",
            ));
        }
        (None, Some((num, den))) => (quote!((#num) as u32), quote!((#den) as u32)),
        (None, None) => {
            let message =
                "write the step as a literal such as `0.01`, or as a division such as `1/STEPS_PER_METRE`";
            return Err(Error::new_spanned(step, message));
        }
    };
    let end = |end: &Expr| {
        let value = literal(end).map_or_else(|| quote!((#end) as f64), Fraction::float);
        let span = Span::call_site().located_at(end.span());
        quote_spanned!(span=> ::halftrack::model::end_level(#value, #num, #den))
    };
    let (from, to) = (end(&range.from), end(&range.to));
    Ok(quote_spanned!(ty.span()=> ::halftrack::model::Grid<{ #num }, { #den }, { #from }, { #to }>))
}

fn check_grid(fraction: Fraction, range: &Range, step: &Expr, kind: Kind) -> Result<()> {
    let mut levels = vec![];
    for end in [&range.from, &range.to] {
        let Some(value) = literal(end) else { continue };
        let Some(level) = value.over(fraction) else { continue };
        let Some(level) = level.whole() else {
            let below = level.num.div_euclid(level.den);
            let end_at =
                |level: i128| Fraction::new(level * fraction.num, fraction.den).map(|end| end.to_string());
            let message = format!(
                "the grid does not divide the range: {value} is not a whole number of steps of {fraction}; \
                 end the range at {} or {}, or choose another step",
                end_at(below).unwrap_or_default(),
                end_at(below + 1).unwrap_or_default()
            );
            return Err(Error::new_spanned(end, message));
        };
        if level.abs() > MAX_STEP {
            let message = format!(
                "{value} is {} steps of {fraction} from zero; choose a coarser grid, with at most 2^30",
                level.abs()
            );
            return Err(Error::new_spanned(end, message));
        }
        if kind == (Kind::Float { single: true }) && !fits_single(fraction, level) {
            return Err(too_fine(step));
        }
        levels.push((value, level));
    }
    match levels.as_slice() {
        [(from, low), (to, high)] if low > high => Err(backwards(range, from, to)),
        _ => Ok(()),
    }
}

/// As in the library: exact if the step is a power of two, within a quarter of a step otherwise.
fn fits_single(step: Fraction, level: i128) -> bool {
    let dyadic = step.num.count_ones() == 1 && step.den.count_ones() == 1;
    level.abs() <= if dyadic { 1 << 24 } else { 1 << 22 }
}

fn too_fine(step: &Expr) -> Error {
    Error::new_spanned(step, "the grid is too fine for an `f32`; use an `f64` or a coarser grid")
}
