//! The derives of `halftrack`, which re-exports them beside the traits of the same names. Depend on that crate.
//!
//! | module | job |
//! |---|---|
//! | `item` | a type and its fields, as parsed |
//! | `attribute` | the attribute of a field |
//! | `kind` | the kind of a field's type, and types that cannot be fields |
//! | `number` | literals as exact fractions |
//! | `codec` | a field's codec, chosen and checked |
//! | `body`, `input`, `pose`, `image` | the impls |

mod attribute;
mod body;
mod codec;
mod image;
mod input;
mod item;
mod kind;
mod number;
mod pose;

use proc_macro::TokenStream;
use syn::{DeriveInput, Result, parse_macro_input};

/// Writes `halftrack::Input` from the fields and their attributes, and the serde impls. `halftrack::model` lists the
/// attributes.
#[proc_macro_derive(Input, attributes(grid, turns, micros, range, presses, exact_image))]
pub fn derive_input(tokens: TokenStream) -> TokenStream {
    expand(input::derive, &parse_macro_input!(tokens))
}

/// Writes `halftrack::Body` from the fields and their attributes, and the serde impls. `halftrack::model` lists the
/// attributes.
#[proc_macro_derive(Body, attributes(grid, turns, micros, range, presses, blank, exact_image))]
pub fn derive_body(tokens: TokenStream) -> TokenStream {
    expand(body::derive, &parse_macro_input!(tokens))
}

/// Writes `halftrack::Pose` from the fields that are marked, and the serde impls.
///
/// Mark a position as `#[position]` (an array of two or three floats) or its coordinates as `#[x]`, `#[y]`, `#[z]`; and
/// a rotation as `#[turns]` (one float) or `#[rotation]` (a unit quaternion x, y, z, w). Other fields are kept as they
/// are.
#[proc_macro_derive(Pose, attributes(position, x, y, z, turns, rotation, exact_image))]
pub fn derive_pose(tokens: TokenStream) -> TokenStream {
    expand(pose::derive, &parse_macro_input!(tokens))
}

fn expand(derive: fn(&DeriveInput) -> Result<proc_macro2::TokenStream>, input: &DeriveInput) -> TokenStream {
    derive(input).unwrap_or_else(|error| error.to_compile_error()).into()
}
