//! `derive(Input)`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DeriveInput, Error, Result};

use crate::body::{enum_schema, schema};
use crate::image::image;
use crate::item::{self, Field, Item, Shape, Variant, build};

/// The parts that differ between structs and enums.
struct Parts {
    /// Constants and functions of the trait.
    functions: TokenStream,
    /// Statements that write the fields one by one, for inputs that are too large for one number.
    write: TokenStream,
    /// An expression that reads them.
    read: TokenStream,
}

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let item = Item::parse(input, "an input")?;
    check_presses(&item.shape)?;
    let image = image(input, "Input")?;
    let ident = item.ident;
    let Parts { functions, write, read } = match &item.shape {
        Shape::Struct(fields) => of_struct(fields),
        Shape::Enum(variants) => of_enum(variants, &ident.to_string()),
    };
    let implementation = item.scope(&quote! {
        impl ::halftrack::Input for #ident {
            #functions

            #[inline]
            fn settle(&mut self) -> ::halftrack::Settling {
                ::halftrack::Input::settle_to(self, &<Self as ::core::default::Default>::default())
            }

            #[inline]
            fn released(self) -> Self {
                let mut neutral = <Self as ::core::default::Default>::default();
                ::halftrack::Input::settle(&mut neutral);
                ::halftrack::Input::released_to(self, neutral)
            }

            #[inline]
            fn write(&self, bits: &mut ::halftrack::wire::BitWriter<'_>) {
                match <Self as ::halftrack::Input>::LAST {
                    ::core::option::Option::Some(last) => {
                        ::halftrack::model::write_number(::halftrack::Input::number(self), last, bits);
                    }
                    ::core::option::Option::None => { #write }
                }
            }

            #[inline]
            fn read(
                bits: &mut ::halftrack::wire::BitReader<'_>,
            ) -> ::core::result::Result<Self, ::halftrack::wire::WireError> {
                match <Self as ::halftrack::Input>::LAST {
                    ::core::option::Option::Some(last) => {
                        let number = ::halftrack::model::read_number(last, bits)?;
                        ::core::result::Result::Ok(<Self as ::halftrack::Input>::from_number(number))
                    }
                    ::core::option::Option::None => #read,
                }
            }
        }
    });
    Ok(quote!(#implementation #image))
}

/// A count that can vanish loses presses.
fn check_presses(shape: &Shape<'_>) -> Result<()> {
    let (misplaced, place) = match shape {
        Shape::Struct(fields) => (fields.iter().find(|field| field.presses && field.optional), "an `Option`"),
        Shape::Enum(variants) => {
            let mut fields = variants.iter().flat_map(|variant| &variant.fields);
            (fields.find(|field| field.presses), "an enum")
        }
    };
    let Some(field) = misplaced else { return Ok(()) };
    let message = format!(
        "`#[presses]` cannot be inside {place}: a count that vanishes loses presses; put it into the struct as a `u8`"
    );
    Err(Error::new_spanned(field.ty, message))
}

fn paths(fields: &[Field<'_>], item: &str) -> Vec<TokenStream> {
    item::paths(fields, "InputField", item)
}

/// The highest number of a struct or variant: `LAST`, or `LEVELS` without counters of presses.
fn last(fields: &[Field<'_>], item: &str) -> TokenStream {
    let digits = paths(fields, item);
    digits.iter().fold(
        quote!(::core::option::Option::Some(0)),
        |last, digit| quote!(::halftrack::model::with_digit(#last, #digit)),
    )
}

/// Whether the first digit is rotated so that both ends of its field are short. A struct of one field leaves that to the
/// struct it is nested in, which sees through it.
fn has_ends(fields: &[Field<'_>]) -> TokenStream {
    match fields {
        [first, _, ..] => first.path("InputField", "HAS_ENDS"),
        _ => quote!(false),
    }
}

/// Fields as the digits of one number, by `items`: the function and the highest number of each. `values` are references to
/// them.
fn number(fields: &[Field<'_>], values: &[TokenStream], items: [&str; 2]) -> TokenStream {
    let mut digits = quote!(::halftrack::model::Digits::default());
    for (at, (field, value)) in fields.iter().zip(values).enumerate() {
        let path = |item: &str| field.path("InputField", item);
        let [number, last] = items.map(path);
        let has_ends = has_ends(fields);
        digits = match at {
            0 => quote!(::halftrack::model::Digits::first(#number(#value), #last, #has_ends)),
            _ => quote!(#digits.with(#number(#value), #last)),
        };
    }
    quote!(#digits.number())
}

/// Statements that take every field out of `digits`, the last one first, into `values`.
fn take(fields: &[Field<'_>], values: &[Ident]) -> TokenStream {
    let takes = fields.iter().zip(values).enumerate().rev().map(|(at, (field, value))| {
        let path = |item: &str| field.path("InputField", item);
        let (from_number, last, has_ends) = (path("from_number"), path("LAST"), has_ends(fields));
        let digit = match at {
            0 => quote!(digits.take_first(#last, #has_ends)),
            _ => quote!(digits.take(#last)),
        };
        quote!(let #value = #from_number(#digit);)
    });
    quote!(#(#takes)*)
}

/// The same of levels alone; counters are those of `counters`.
fn take_levels(fields: &[Field<'_>], values: &[Ident]) -> TokenStream {
    let takes = fields.iter().zip(values).enumerate().rev().map(|(at, (field, value))| {
        let path = |item: &str| field.path("InputField", item);
        let (from_levels, last, has_ends) = (path("from_levels"), path("LEVELS"), has_ends(fields));
        let digit = match at {
            0 => quote!(digits.take_first(#last, #has_ends)),
            _ => quote!(digits.take(#last)),
        };
        let member = &field.member;
        quote!(let #value = #from_levels(#digit, &counters.#member);)
    });
    quote!(#(#takes)*)
}

fn of_struct(fields: &[Field<'_>]) -> Parts {
    let paths = |item: &str| paths(fields, item);
    let members: Vec<_> = fields.iter().map(|field| &field.member).collect();
    let names = fields.iter().map(|field| &field.name);
    let (schema, levels_last) = (schema(fields, "InputField"), last(fields, "LEVELS"));
    let last = last(fields, "LAST");
    let this = quote!(Self);
    let releases = paths("released");
    let releases = releases.iter().zip(&members);
    let released = build(
        &this,
        fields,
        releases.map(|(released, member)| quote!(#released(self.#member, neutral.#member))),
    );
    let references: Vec<_> = members.iter().map(|member| quote!(&self.#member)).collect();
    let levels = number(fields, &references, ["levels", "LEVELS"]);
    let number = number(fields, &references, ["number", "LAST"]);
    let values: Vec<_> = (0..fields.len()).map(|at| quote::format_ident!("value{at}")).collect();
    let take_levels = take_levels(fields, &values);
    let take = take(fields, &values);
    let taken = build(&this, fields, values.iter().map(|value| quote!(#value)));
    let read = build(&this, fields, paths("read").iter().map(|read| quote!(#read(bits)?)));
    let (settles, writes) = (paths("settle"), paths("write"));
    let (widths, presses) = (paths("MAX_BITS"), paths("PRESSES"));
    let inner_ends = match fields {
        [only] => only.path("InputField", "HAS_ENDS"),
        _ => quote!(false),
    };
    let functions = quote! {
        const SCHEMA: u64 = ::halftrack::model::Schema::new("struct")#schema.finish();
        const LAST: ::core::option::Option<u32> = #last;
        const LEVELS: ::core::option::Option<u32> = #levels_last;
        const MAX_BITS: usize = ::halftrack::model::number_bits(
            <Self as ::halftrack::Input>::LAST,
            0 #(+ #widths)*
        );
        const PRESSES: bool = false #(|| #presses)*;
        const HAS_ENDS: bool = #inner_ends;

        #[inline]
        fn settle_to(&mut self, neutral: &Self) -> ::halftrack::Settling {
            let mut settling = ::halftrack::Settling::CLEAN;
            #(#settles(&mut self.#members, &neutral.#members, #names, &mut settling);)*
            settling
        }

        #[inline]
        fn released_to(self, neutral: Self) -> Self {
            #released
        }

        #[inline]
        fn number(&self) -> u64 {
            #number
        }

        #[inline]
        fn from_number(number: u64) -> Self {
            let mut digits = ::halftrack::model::Digits::of(number);
            #take
            #taken
        }

        #[inline]
        fn levels(&self) -> u64 {
            #levels
        }

        #[inline]
        fn from_levels(number: u64, counters: &Self) -> Self {
            let mut digits = ::halftrack::model::Digits::of(number);
            #take_levels
            #taken
        }
    };
    let write = quote!(#(#writes(&self.#members, bits);)*);
    Parts { functions, write, read: quote!(::core::result::Result::Ok(#read)) }
}

/// Numbers of variants follow each other in order of declaration.
fn of_enum(variants: &[Variant<'_>], name: &str) -> Parts {
    let count = u32::try_from(variants.len()).unwrap_or(u32::MAX);
    let schema = enum_schema(variants, "InputField");
    let lasts: Vec<_> = variants.iter().map(|variant| last(&variant.fields, "LAST")).collect();
    let choice =
        |first: &TokenStream, second: &TokenStream| quote!(::halftrack::model::with_choice(#first, #second));
    let last =
        lasts.iter().skip(1).fold(lasts.first().cloned().unwrap_or_default(), |all, last| choice(&all, last));
    let widths = variants.iter().map(|variant| {
        let widths = paths(&variant.fields, "MAX_BITS");
        quote!(0 #(+ #widths)*)
    });
    let presses: Vec<_> = variants.iter().flat_map(|variant| paths(&variant.fields, "PRESSES")).collect();
    let settles = variants.iter().map(settle_arm);
    let numbers = variants.iter().enumerate().map(|(at, variant)| {
        let before = lasts.iter().take(at);
        let pattern = variant.pattern("value");
        let values: Vec<_> = variant.bindings("value").iter().map(|value| quote!(#value)).collect();
        let number = number(&variant.fields, &values, ["number", "LAST"]);
        quote!(#pattern => #number #(+ ::halftrack::model::count(#before))*,)
    });
    let takes = variants.iter().zip(&lasts).map(|(variant, last)| {
        let values = variant.bindings("value");
        let take = take(&variant.fields, &values);
        let taken = variant.build(values.iter().map(|value| quote!(#value)));
        quote! {
            if digits.is_within(#last) {
                #take
                return #taken;
            }
        }
    });
    let functions = quote! {
        const SCHEMA: u64 = #schema;
        const LAST: ::core::option::Option<u32> = #last;
        const MAX_BITS: usize = ::halftrack::model::number_bits(
            <Self as ::halftrack::Input>::LAST,
            ::halftrack::model::variant_bits(#count) + ::halftrack::model::most(&[#(#widths),*])
        );
        const PRESSES: bool = {
            ::core::assert!(
                !(false #(|| #presses)*),
                "`#[presses]` cannot be inside an enum: a count that vanishes loses presses"
            );
            false
        };

        #[inline]
        fn settle_to(&mut self, neutral: &Self) -> ::halftrack::Settling {
            let mut settling = ::halftrack::Settling::CLEAN;
            match self { #(#settles)* }
            settling
        }

        #[inline]
        fn released_to(self, neutral: Self) -> Self {
            // Evaluated for its assertion.
            const { ::core::assert!(!<Self as ::halftrack::Input>::PRESSES) };
            neutral
        }

        #[inline]
        fn number(&self) -> u64 {
            match self { #(#numbers)* }
        }

        #[inline]
        fn from_number(number: u64) -> Self {
            let mut digits = ::halftrack::model::Digits::of(number);
            #(#takes)*
            <Self as ::core::default::Default>::default()
        }
    };
    let writes = variants.iter().map(|variant| write_arm(variant, count));
    let read = read(variants, count, name);
    Parts { functions, write: quote!(match self { #(#writes)* }), read }
}

/// NaN becomes the neutral value's, if that is of the same variant.
fn settle_arm(variant: &Variant<'_>) -> TokenStream {
    let (starts, settles) = (paths(&variant.fields, "start"), paths(&variant.fields, "settle"));
    let (pattern, values) = (variant.pattern("value"), variant.bindings("value"));
    let (neutral_pattern, neutrals) = (variant.pattern("neutral"), variant.bindings("neutral"));
    let names = variant.fields.iter().map(|field| &field.name);
    quote! {
        #pattern => {
            let (#(#neutrals,)*) = match neutral {
                #neutral_pattern => (#(*#neutrals,)*),
                _ => (#(#starts(),)*),
            };
            #(#settles(#values, &#neutrals, #names, &mut settling);)*
        }
    }
}

fn write_arm(variant: &Variant<'_>, count: u32) -> TokenStream {
    let writes = paths(&variant.fields, "write");
    let (pattern, values, index) = (variant.pattern("value"), variant.bindings("value"), variant.index);
    quote! {
        #pattern => {
            ::halftrack::model::write_variant(#index, #count, bits);
            #(#writes(#values, bits);)*
        }
    }
}

fn read(variants: &[Variant<'_>], count: u32, name: &str) -> TokenStream {
    let arms = variants.iter().map(|variant| {
        let reads = paths(&variant.fields, "read");
        let (index, value) = (variant.index, variant.build(reads.iter().map(|read| quote!(#read(bits)?))));
        quote!(#index => ::core::result::Result::Ok(#value),)
    });
    quote! {
        match ::halftrack::model::read_variant(#count, bits)? {
            #(#arms)*
            _ => ::core::result::Result::Err(::halftrack::wire::WireError::Invalid { field: #name }),
        }
    }
}
