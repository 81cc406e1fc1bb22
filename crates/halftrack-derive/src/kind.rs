//! The kind of a field's type: arrays and options around a plain value, and types that cannot be fields.

use syn::{Error, Expr, GenericArgument, Lit, PathArguments, Result, Type};

/// The kind of a type, as far as its name shows it. A type alias is [`Kind::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float { single: bool },
    Int { name: &'static str, min: i128, max: i128 },
    Bool,
    Duration,
    Other,
}

/// An array or an `Option` around a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrapper {
    Array,
    Option,
}

const INTS: [Kind; 8] = [
    Kind::Int { name: "u8", min: 0, max: u8::MAX as i128 },
    Kind::Int { name: "u16", min: 0, max: u16::MAX as i128 },
    Kind::Int { name: "u32", min: 0, max: u32::MAX as i128 },
    Kind::Int { name: "u64", min: 0, max: u64::MAX as i128 },
    Kind::Int { name: "i8", min: i8::MIN as i128, max: i8::MAX as i128 },
    Kind::Int { name: "i16", min: i16::MIN as i128, max: i16::MAX as i128 },
    Kind::Int { name: "i32", min: i32::MIN as i128, max: i32::MAX as i128 },
    Kind::Int { name: "i64", min: i64::MIN as i128, max: i64::MAX as i128 },
];

const COLLECTIONS: [&str; 14] = [
    "String",
    "Vec",
    "VecDeque",
    "Box",
    "Rc",
    "Arc",
    "Cow",
    "HashMap",
    "HashSet",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "Cell",
    "RefCell",
];

/// Takes arrays and options off a type, from outside to inside.
pub(crate) fn peel(ty: &Type) -> Result<(Vec<Wrapper>, &Type)> {
    let (mut wrappers, mut inner) = (vec![], ty);
    loop {
        inner = match inner {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            Type::Array(array) => {
                if !wrappers.is_empty() && length(&array.len).is_some_and(|length| length > 32) {
                    let message = "an array inside another, or inside an `Option`, has at most 32 elements; \
                                   put it into a struct of its own";
                    return Err(Error::new_spanned(inner, message));
                }
                wrappers.push(Wrapper::Array);
                &array.elem
            }
            _ => match option(inner) {
                Some(content) => {
                    wrappers.push(Wrapper::Option);
                    content
                }
                None => return Ok((wrappers, inner)),
            },
        }
    }
}

/// The length of an array, if it is a literal.
pub(crate) fn length(length: &Expr) -> Option<usize> {
    match length {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(content)) => Some(content),
        _ => None,
    }
}

/// The kind of `ty`, which is no array and no `Option`. Refuses types that are not plain values; `role` is "a body" or "an input".
pub(crate) fn kind(ty: &Type, role: &str) -> Result<Kind> {
    let refuse = |message: String| Err(Error::new_spanned(ty, message));
    let path = match ty {
        Type::Path(path) => path,
        Type::Tuple(_) => {
            return refuse(format!("{role} cannot hold a tuple; use an array or a struct with names"));
        }
        Type::Reference(_) | Type::Ptr(_) => {
            return refuse(format!(
                "{role} is copied and sent, so it cannot hold a reference; hold the value"
            ));
        }
        Type::Slice(_) => return refuse(format!("{role} has a fixed size; use an array with a length")),
        _ => return Ok(Kind::Other),
    };
    let Some(last) = path.path.segments.last() else { return Ok(Kind::Other) };
    let name = last.ident.to_string();
    if let Some(int) = INTS.into_iter().find(|int| matches!(int, Kind::Int { name: int, .. } if *int == name))
    {
        return Ok(int);
    }
    match name.as_str() {
        "f32" => Ok(Kind::Float { single: true }),
        "f64" => Ok(Kind::Float { single: false }),
        "bool" => Ok(Kind::Bool),
        "Duration" => Ok(Kind::Duration),
        "usize" | "isize" => refuse(format!(
            "`{name}` has another size on other machines; use `{}32` or `{}64`",
            &name[..1],
            &name[..1]
        )),
        "u128" | "i128" => refuse(format!("`{name}` is too wide; use `{}64`, or two of them", &name[..1])),
        "char" => {
            refuse("a `char` has no range of its own; use a `u32` with a `#[range]`, or an enum".to_owned())
        }
        _ if COLLECTIONS.contains(&name.as_str()) => refuse(format!(
            "{role} cannot hold a `{name}`: it is copied every tick and has a fixed size; \
             use an array such as `[u8; 16]`, and an `Option` for elements that may be missing"
        )),
        _ => Ok(Kind::Other),
    }
}
