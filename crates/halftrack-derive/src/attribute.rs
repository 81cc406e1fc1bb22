//! The attribute of a field: `#[grid(..)]`, `#[turns(..)]`, `#[micros]`, `#[range(..)]`, `#[presses]`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Meta, Result};

/// A field's attribute.
pub(crate) enum Rule {
    Grid { step: Expr, range: Range },
    Turns { step: Expr },
    Micros { range: Option<Range> },
    Whole { range: Range },
    Presses,
}

pub(crate) struct Range {
    /// As written.
    pub(crate) tokens: TokenStream,
    pub(crate) from: Expr,
    pub(crate) to: Expr,
}

impl Rule {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Grid { .. } => "#[grid]",
            Self::Turns { .. } => "#[turns]",
            Self::Micros { .. } => "#[micros]",
            Self::Whole { .. } => "#[range]",
            Self::Presses => "#[presses]",
        }
    }
}

const NAMES: [&str; 5] = ["grid", "turns", "micros", "range", "presses"];

/// The rule among a field's attributes, and where it stands. More than one is a mistake.
pub(crate) fn rule(attributes: &[Attribute]) -> Result<Option<(Rule, Span)>> {
    let mut found = None;
    for attribute in attributes {
        let Some(name) = NAMES.into_iter().find(|name| attribute.path().is_ident(name)) else { continue };
        if found.is_some() {
            let message = format!("a field has one of {}; remove the others", list());
            return Err(Error::new_spanned(attribute, message));
        }
        found = Some((parse(name, attribute)?, attribute.span()));
    }
    Ok(found)
}

fn list() -> String {
    NAMES.map(|name| format!("`#[{name}]`")).join(", ")
}

fn parse(name: &str, attribute: &Attribute) -> Result<Rule> {
    let arguments = match &attribute.meta {
        Meta::Path(_) => vec![],
        Meta::List(list) => split(&list.tokens, ','),
        Meta::NameValue(_) => return Err(usage(name, attribute)),
    };
    match (name, arguments.as_slice()) {
        ("grid", [step, reach]) => {
            Ok(Rule::Grid { step: expression(step, name)?, range: range(reach, name)? })
        }
        ("turns", [step]) => Ok(Rule::Turns { step: expression(step, name)? }),
        ("micros", []) => Ok(Rule::Micros { range: None }),
        ("micros", [reach]) => Ok(Rule::Micros { range: Some(range(reach, name)?) }),
        ("range", [reach]) => Ok(Rule::Whole { range: range(reach, name)? }),
        ("presses", []) => Ok(Rule::Presses),
        _ => Err(usage(name, attribute)),
    }
}

fn usage(name: &str, place: impl ToTokens) -> Error {
    let example = match name {
        "grid" => "#[grid(1/1024, -512..=512)]",
        "turns" => "#[turns(1/65536)]",
        "micros" => "#[micros] or #[micros(0..=5_000_000)]",
        "range" => "#[range(0..=100)]",
        _ => "#[presses]",
    };
    Error::new_spanned(place, format!("write it like this: `{example}`"))
}

fn expression(tokens: &TokenStream, name: &str) -> Result<Expr> {
    syn::parse2(tokens.clone()).map_err(|_| usage(name, tokens))
}

/// Split by hand, not as an expression of `syn`: that reads ranges only with its feature `full`.
fn range(tokens: &TokenStream, name: &str) -> Result<Range> {
    let trees: Vec<_> = tokens.clone().into_iter().collect();
    let is = |at: usize, sign: char| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    let Some(at) = (0..trees.len()).find(|at| is(*at, '.') && is(at + 1, '.')) else {
        return Err(usage(name, tokens));
    };
    if !is(at + 2, '=') {
        return Err(Error::new_spanned(tokens, "a range includes its end: write `..=`"));
    }
    let part = |trees: &[TokenTree]| expression(&trees.iter().cloned().collect(), name);
    if at == 0 || trees.len() == at + 3 {
        return Err(Error::new_spanned(tokens, "a range has two ends: write both, as in `0..=100`"));
    }
    Ok(Range { tokens: tokens.clone(), from: part(&trees[..at])?, to: part(&trees[at + 3..])? })
}

fn split(tokens: &TokenStream, sign: char) -> Vec<TokenStream> {
    let trees: Vec<_> = tokens.clone().into_iter().collect();
    let mut parts: Vec<TokenStream> = trees
        .split(|tree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == sign))
        .map(|part| part.iter().cloned().collect())
        .collect();
    // A comma at the end, or nothing in the brackets.
    if parts.last().is_some_and(TokenStream::is_empty) {
        parts.pop();
    }
    parts
}
