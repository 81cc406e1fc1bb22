//! The exact image: serde impls through a copy of the type's declaration that only serde sees.
//!
//! Serde's own derive does the work, with the copy as a *remote* description. So the impls are those that
//! `#[derive(Serialize, Deserialize)]` would give, and your crate needs no serde.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Result};

use crate::attribute::rule;
use crate::kind::{Kind, Wrapper, kind, peel};

/// The impls of `Serialize` and `Deserialize`, unless `#[exact_image(..)]` leaves them to something other than `derive`.
pub(crate) fn image(input: &DeriveInput, derive: &str) -> Result<TokenStream> {
    if let Some(writer) = writer(&input.attrs)?
        && writer != derive
    {
        return Ok(TokenStream::new());
    }
    let ident = &input.ident;
    let name = ident.to_string();
    let body = match &input.data {
        Data::Struct(data) => {
            let fields = fields(&data.fields, derive);
            match data.fields {
                Fields::Named(_) => quote!(struct __Image { #(#fields),* }),
                Fields::Unnamed(_) => quote!(struct __Image(#(#fields),*);),
                Fields::Unit => quote!(
                    struct __Image;
                ),
            }
        }
        Data::Enum(data) => {
            let variants = data.variants.iter().map(|variant| {
                let (ident, fields) = (&variant.ident, fields(&variant.fields, derive));
                match variant.fields {
                    Fields::Named(_) => quote!(#ident { #(#fields),* }),
                    Fields::Unnamed(_) => quote!(#ident(#(#fields),*)),
                    Fields::Unit => quote!(#ident),
                }
            });
            quote!(enum __Image { #(#variants),* })
        }
        Data::Union(_) => TokenStream::new(),
    };
    Ok(quote! {
        #[allow(dead_code, unused_qualifications, clippy::all, clippy::pedantic)]
        const _: () = {
            #[derive(::halftrack::serde::Serialize, ::halftrack::serde::Deserialize)]
            #[serde(crate = "::halftrack::serde", remote = #name, rename = #name)]
            #body

            #[automatically_derived]
            impl ::halftrack::serde::Serialize for #ident {
                fn serialize<S: ::halftrack::serde::Serializer>(
                    &self,
                    serializer: S,
                ) -> ::core::result::Result<S::Ok, S::Error> {
                    __Image::serialize(self, serializer)
                }
            }

            #[automatically_derived]
            impl<'de> ::halftrack::serde::Deserialize<'de> for #ident {
                fn deserialize<D: ::halftrack::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    __Image::deserialize(deserializer)
                }
            }
        };
    })
}

/// The derive that `#[exact_image(..)]` names; `own` for none.
fn writer(attributes: &[Attribute]) -> Result<Option<String>> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("exact_image")) else {
        return Ok(None);
    };
    let ident: Ident = attribute.parse_args()?;
    let writer = ident.to_string();
    if ["Input", "Body", "Pose", "own"].contains(&writer.as_str()) {
        return Ok(Some(writer));
    }
    let message =
        "name the derive that writes the serde impls: `Input`, `Body` or `Pose`; or `own` if you write them";
    Err(Error::new(ident.span(), message))
}

fn fields(fields: &Fields, derive: &str) -> Vec<TokenStream> {
    let fields = fields.iter().map(|field| {
        let (ident, ty) = (field.ident.iter(), &field.ty);
        let with = image_module(field, derive).map(|module| {
            // At the field's type, where mistakes are then shown.
            let module = LitStr::new(module, Span::call_site().located_at(ty.span()));
            quote!(#[serde(with = #module)])
        });
        quote!(#with #(#ident:)* #ty)
    });
    fields.collect()
}

/// The functions that serde calls for a field, where its own would not do.
fn image_module(field: &Field, derive: &str) -> Option<&'static str> {
    let (wrappers, inner) = peel(&field.ty).ok()?;
    let is_nested = wrappers.is_empty()
        && kind(inner, "").is_ok_and(|kind| kind == Kind::Other)
        && rule(&field.attrs).is_ok_and(|rule| rule.is_none());
    match derive {
        // Serde has arrays of up to 32 elements.
        _ if wrappers.first() == Some(&Wrapper::Array) => Some("::halftrack::model::exact"),
        // A type that derives nothing is then reported as no body, and not as one that lacks serde's traits.
        "Body" if is_nested => Some("::halftrack::model::exact::body"),
        "Input" if is_nested => Some("::halftrack::model::exact::input"),
        _ => None,
    }
}
