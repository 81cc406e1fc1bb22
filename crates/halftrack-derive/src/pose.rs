//! `derive(Pose)`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Field, Member, Meta, Result, Type};

use crate::image::image;
use crate::item::check_item;
use crate::kind::length;

const ROLE: &str = "a pose";
const AXES: [&str; 3] = ["x", "y", "z"];

/// How a pose is turned.
enum Rotation {
    Turns(Member),
    Quaternion(Member),
}

/// The marked fields of a pose.
#[derive(Default)]
struct Marks {
    /// Each coordinate as an expression behind `self.`.
    position: [Option<TokenStream>; 3],
    rotation: Option<Rotation>,
}

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    check_item(input, ROLE)?;
    let Data::Struct(data) = &input.data else {
        let message = "a pose is a struct: where something is drawn, and how it is turned";
        return Err(Error::new(input.ident.span(), message));
    };
    let mut marks = Marks::default();
    for (member, field) in data.fields.members().zip(&data.fields) {
        mark(&mut marks, &member, field)?;
    }
    if marks.position.iter().all(Option::is_none) {
        let message = "say where the position is: mark a `[f64; 2]` or `[f64; 3]` with `#[position]`, \
                       or floats with `#[x]`, `#[y]` and `#[z]`";
        return Err(Error::new(input.ident.span(), message));
    }
    let image = image(input, "Pose")?;
    Ok(written(input, &marks, &image))
}

fn written(input: &DeriveInput, marks: &Marks, image: &TokenStream) -> TokenStream {
    let ident = &input.ident;
    let between = marks.position.iter().map(|part| match part {
        Some(part) => quote!(::halftrack::model::pose::between(self.#part, other.#part)),
        None => quote!(0.0),
    });
    let moves = marks.position.iter().zip(0usize..).filter_map(|(part, axis)| {
        let part = part.as_ref()?;
        Some(quote!(moved.#part = ::halftrack::model::pose::moved(self.#part, offset.position[#axis]);))
    });
    let (rotation, turn) = match &marks.rotation {
        Some(Rotation::Turns(member)) => (
            quote!(::halftrack::model::pose::turns_between(self.#member, other.#member)),
            quote!(moved.#member = ::halftrack::model::pose::turned(self.#member, offset.rotation);),
        ),
        Some(Rotation::Quaternion(member)) => (
            quote!(::halftrack::model::pose::rotation_between(self.#member, other.#member)),
            quote!(moved.#member = ::halftrack::model::pose::rotated(self.#member, offset.rotation);),
        ),
        None => (quote!([0.0; 3]), quote!()),
    };
    quote! {
        #[automatically_derived]
        #[allow(unused_qualifications, clippy::all, clippy::pedantic)]
        impl ::halftrack::Pose for #ident {
            fn offset_from(&self, other: &Self) -> ::halftrack::Offset {
                ::halftrack::Offset { position: [#(#between),*], rotation: #rotation }
            }

            fn displaced(&self, offset: &::halftrack::Offset) -> Self {
                let mut moved = *self;
                #(#moves)*
                #turn
                moved
            }
        }
        #image
    }
}

fn mark(marks: &mut Marks, member: &Member, field: &Field) -> Result<()> {
    for attribute in &field.attrs {
        let path = attribute.path();

        if path.is_ident("position") {
            let count = array(&field.ty).filter(|count| (2..=3).contains(count)).ok_or_else(|| {
                Error::new_spanned(&field.ty, "`#[position]` is for a `[f64; 2]` or a `[f64; 3]`")
            })?;
            for (axis, place) in marks.position.iter_mut().enumerate().take(count) {
                let index = syn::Index::from(axis);
                place_once(place, quote!(#member[#index]), attribute)?;
            }
        } else if let Some(axis) = AXES.iter().position(|axis| path.is_ident(axis)) {
            float(field, AXES[axis])?;
            place_once(&mut marks.position[axis], quote!(#member), attribute)?;
        } else if path.is_ident("turns") {
            float(field, "turns")?;
            turn_once(marks, Rotation::Turns(member.clone()), attribute)?;
        } else if path.is_ident("rotation") {
            if !matches!(attribute.meta, Meta::Path(_)) || array(&field.ty) != Some(4) {
                let message = "`#[rotation]` is for a unit quaternion x, y, z, w in a `[f64; 4]`";
                return Err(Error::new_spanned(&field.ty, message));
            }
            turn_once(marks, Rotation::Quaternion(member.clone()), attribute)?;
        }
    }
    Ok(())
}

fn place_once(place: &mut Option<TokenStream>, part: TokenStream, attribute: &Attribute) -> Result<()> {
    match place.replace(part) {
        Some(_) => {
            Err(Error::new_spanned(attribute, "this coordinate is marked twice; mark the position once"))
        }
        None => Ok(()),
    }
}

fn turn_once(marks: &mut Marks, rotation: Rotation, attribute: &Attribute) -> Result<()> {
    match marks.rotation.replace(rotation) {
        Some(_) => Err(Error::new_spanned(
            attribute,
            "a pose has one rotation; mark one field with `#[turns]` or `#[rotation]`",
        )),
        None => Ok(()),
    }
}

/// The length of an array of floats.
fn array(ty: &Type) -> Option<usize> {
    let Type::Array(array) = ty else { return None };
    is_float(&array.elem).then(|| length(&array.len)).flatten()
}

fn is_float(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident("f32") || path.path.is_ident("f64"))
}

fn float(field: &Field, attribute: &str) -> Result<()> {
    if is_float(&field.ty) {
        return Ok(());
    }
    Err(Error::new_spanned(&field.ty, format!("`#[{attribute}]` is for an `f32` or an `f64`")))
}
