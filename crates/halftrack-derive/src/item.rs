//! A type and its fields, as the derives of inputs and bodies need them.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, Member, Result, Type};

use crate::attribute::rule;
use crate::codec::{Codec, codec};

/// The most variants of an enum. A menu of more is a number with a range.
const MAX_VARIANTS: usize = 256;

pub(crate) struct Item<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) shape: Shape<'a>,
}

pub(crate) enum Shape<'a> {
    Struct(Vec<Field<'a>>),
    Enum(Vec<Variant<'a>>),
}

pub(crate) struct Variant<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) index: u32,
    pub(crate) fields: Vec<Field<'a>>,
}

pub(crate) struct Field<'a> {
    pub(crate) member: Member,
    pub(crate) ty: &'a Type,
    /// A name for the codec's type, so that its constants are evaluated once.
    pub(crate) codec: Ident,
    pub(crate) codec_type: TokenStream,
    /// The field's own name, or its number.
    pub(crate) short: String,
    /// Type and field, as errors name it.
    pub(crate) name: String,
    /// Whether it counts presses, and whether it does so in an `Option`.
    pub(crate) presses: bool,
    pub(crate) optional: bool,
}

impl Field<'_> {
    /// `<Codec as Trait<Type>>::item`, at the field's type, where mistakes are then shown.
    pub(crate) fn path(&self, codec_trait: &str, item: &str) -> TokenStream {
        let (codec, ty, span) = (&self.codec, self.ty, self.span());
        let (codec_trait, item) = (Ident::new(codec_trait, span), Ident::new(item, span));
        quote_spanned!(span=> <#codec as ::halftrack::model::#codec_trait<#ty>>::#item)
    }

    /// The place of the field's type, with the names of the derive.
    pub(crate) fn span(&self) -> Span {
        Span::call_site().located_at(self.ty.span())
    }
}

impl Variant<'_> {
    /// A pattern that binds every field as `prefix` and its number.
    pub(crate) fn pattern(&self, prefix: &str) -> TokenStream {
        let ident = self.ident;
        let members = self.fields.iter().map(|field| &field.member);
        let bindings = self.bindings(prefix);
        quote!(Self::#ident { #(#members: #bindings),* })
    }

    pub(crate) fn bindings(&self, prefix: &str) -> Vec<Ident> {
        (0..self.fields.len()).map(|number| format_ident!("{prefix}{number}")).collect()
    }

    /// The variant with these values.
    pub(crate) fn build(&self, values: impl IntoIterator<Item = TokenStream>) -> TokenStream {
        let ident = self.ident;
        build(&quote!(Self::#ident), &self.fields, values)
    }
}

/// `<Codec as Trait<Type>>::item` of each field.
pub(crate) fn paths(fields: &[Field<'_>], codec_trait: &str, item: &str) -> Vec<TokenStream> {
    fields.iter().map(|field| field.path(codec_trait, item)).collect()
}

/// A struct or variant with these values. Numbers as names fit tuples too.
pub(crate) fn build(
    path: &TokenStream,
    fields: &[Field<'_>],
    values: impl IntoIterator<Item = TokenStream>,
) -> TokenStream {
    let members = fields.iter().map(|field| &field.member);
    let values = values.into_iter();
    quote!(#path { #(#members: #values),* })
}

/// Refuses unions and generic types, for every derive.
pub(crate) fn check_item(input: &DeriveInput, role: &str) -> Result<()> {
    if let Data::Union(union) = &input.data {
        let message = format!("a union cannot be {role}: nothing says which field is meant; use an enum");
        return Err(Error::new_spanned(union.union_token, message));
    }
    if !input.generics.params.is_empty() {
        let message =
            format!("{role} cannot be generic: its size on the wire must be known; write the type out");
        return Err(Error::new_spanned(&input.generics, message));
    }
    Ok(())
}

impl<'a> Item<'a> {
    /// An impl in a scope of its own, where every codec has a name.
    pub(crate) fn scope(&self, implementation: &TokenStream) -> TokenStream {
        let fields: Vec<_> = match &self.shape {
            Shape::Struct(fields) => fields.iter().collect(),
            Shape::Enum(variants) => variants.iter().flat_map(|variant| &variant.fields).collect(),
        };
        let (names, types): (Vec<_>, Vec<_>) =
            fields.into_iter().map(|field| (&field.codec, &field.codec_type)).unzip();
        quote! {
            #[allow(
                non_camel_case_types,
                unreachable_patterns,
                unused_mut,
                unused_qualifications,
                unused_variables,
                clippy::all,
                clippy::pedantic
            )]
            const _: () = {
                #(type #names = #types;)*

                #[automatically_derived]
                #implementation
            };
        }
    }

    /// `role` is "a body" or "an input".
    pub(crate) fn parse(input: &'a DeriveInput, role: &str) -> Result<Self> {
        check_item(input, role)?;
        let ident = &input.ident;
        let shape = match &input.data {
            Data::Enum(data) => {
                if data.variants.is_empty() {
                    let message = format!("an enum without variants cannot be {role}: it has no values");
                    return Err(Error::new(ident.span(), message));
                }
                if data.variants.len() > MAX_VARIANTS {
                    let message = format!(
                        "an enum has at most {MAX_VARIANTS} variants here, and this has {}; use an integer with a `#[range]`",
                        data.variants.len()
                    );
                    return Err(Error::new(ident.span(), message));
                }
                let variants = (0..).zip(&data.variants).map(|(index, variant)| {
                    let place = format!("{ident}::{}", variant.ident);
                    Ok(Variant {
                        ident: &variant.ident,
                        index,
                        fields: fields(&variant.fields, &place, role)?,
                    })
                });
                Shape::Enum(all(variants)?)
            }
            Data::Struct(data) => Shape::Struct(fields(&data.fields, &ident.to_string(), role)?),
            Data::Union(_) => Shape::Struct(vec![]),
        };
        Ok(Self { ident, shape })
    }
}

fn fields<'a>(fields: &'a Fields, place: &str, role: &str) -> Result<Vec<Field<'a>>> {
    all(fields.members().zip(fields).map(|(member, field)| {
        let Codec { tokens, presses, optional } = codec(rule(&field.attrs)?, &field.ty, role)?;
        let short = match &member {
            Member::Named(ident) => ident.to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let name = format!("{place}.{short}");
        let codec = Ident::new(&format!("__{}_{short}", place.replace("::", "_")), field.ty.span());
        Ok(Field { member, ty: &field.ty, codec, codec_type: tokens, short, name, presses, optional })
    }))
}

/// All of them, or every mistake at once.
fn all<T>(results: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut errors) = (vec![], None::<Error>);
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), Some(errors)) => errors.combine(error),
            (Err(error), None) => errors = Some(error),
        }
    }
    errors.map_or(Ok(values), Err)
}
