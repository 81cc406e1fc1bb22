//! `derive(Body)`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, DeriveInput, Expr, Result};

use crate::image::image;
use crate::item::{self, Field, Item, Shape, Variant, build};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let item = Item::parse(input, "a body")?;
    let image = image(input, "Body")?;
    let ident = item.ident;
    let functions = match &item.shape {
        Shape::Struct(fields) => of_struct(fields),
        Shape::Enum(variants) => of_enum(variants, &ident.to_string()),
    };
    let blank = match chosen_blank(&input.attrs)? {
        Some(chosen) => quote! {{
            let mut blank: Self = #chosen;
            ::halftrack::Body::settle(&mut blank);
            blank
        }},
        None => blank(&item.shape),
    };
    let implementation = item.scope(&quote! {
        impl ::halftrack::Body for #ident {
            fn blank() -> Self {
                #blank
            }

            #functions
        }
    });
    Ok(quote!(#implementation #image))
}

fn paths(fields: &[Field<'_>], item: &str) -> Vec<TokenStream> {
    item::paths(fields, "BodyField", item)
}

/// The value of `#[blank(..)]`.
fn chosen_blank(attributes: &[Attribute]) -> Result<Option<Expr>> {
    let chosen = attributes.iter().find(|attribute| attribute.path().is_ident("blank"));
    chosen.map(Attribute::parse_args).transpose()
}

/// Without it: the first variant, and the blank of each field.
fn blank(shape: &Shape<'_>) -> TokenStream {
    let blanks = |fields: &[Field<'_>]| paths(fields, "blank");
    match shape {
        Shape::Struct(fields) => {
            build(&quote!(Self), fields, blanks(fields).iter().map(|blank| quote!(#blank())))
        }
        Shape::Enum(variants) => {
            let first = variants.first();
            let first =
                first.map(|first| first.build(blanks(&first.fields).iter().map(|blank| quote!(#blank()))));
            quote!(#first)
        }
    }
}

/// The end of a chain of [`Schema`] calls for these fields.
pub(crate) fn schema(fields: &[Field<'_>], codec_trait: &str) -> TokenStream {
    let shorts = fields.iter().map(|field| &field.short);
    let schemas = item::paths(fields, codec_trait, "SCHEMA");
    quote!(#(.text(#shorts).nested(#schemas))*)
}

/// The whole chain for an enum.
pub(crate) fn enum_schema(variants: &[Variant<'_>], codec_trait: &str) -> TokenStream {
    let parts = variants.iter().map(|variant| {
        let (name, count) = (variant.ident.to_string(), variant.fields.len() as i128);
        let fields = schema(&variant.fields, codec_trait);
        quote!(.text(#name).number(#count)#fields)
    });
    quote!(::halftrack::model::Schema::new("enum")#(#parts)*.finish())
}

fn of_struct(fields: &[Field<'_>]) -> TokenStream {
    let paths = |item: &str| paths(fields, item);
    let members: Vec<_> = fields.iter().map(|field| &field.member).collect();
    let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
    let schema = schema(fields, "BodyField");
    let this = quote!(Self);
    let reads = paths("read");
    let reads = reads
        .iter()
        .zip(&members)
        .zip(&names)
        .map(|((read, member), name)| quote!(#read(&baseline.#member, #name, bits)?));
    let read = build(&this, fields, reads);
    let (settles, checks, writes) = (paths("settle"), paths("check"), paths("write"));
    let (digests, widths) = (paths("digest"), paths("MAX_BITS"));
    quote! {
        const SCHEMA: u64 = ::halftrack::model::Schema::new("struct")#schema.finish();
        const MAX_BITS: usize = 0 #(+ #widths)*;

        #[inline]
        fn settle(&mut self) -> ::halftrack::Settling {
            let mut settling = ::halftrack::Settling::CLEAN;
            #(#settles(&mut self.#members, #names, &mut settling);)*
            settling
        }

        fn check(&self) -> ::core::result::Result<(), ::halftrack::FieldError> {
            #(#checks(&self.#members, #names)?;)*
            ::core::result::Result::Ok(())
        }

        fn write(&self, baseline: &Self, bits: &mut ::halftrack::wire::BitWriter<'_>) {
            #(#writes(&self.#members, &baseline.#members, bits);)*
        }

        fn read(
            baseline: &Self,
            bits: &mut ::halftrack::wire::BitReader<'_>,
        ) -> ::core::result::Result<Self, ::halftrack::wire::WireError> {
            ::core::result::Result::Ok(#read)
        }

        #[inline]
        fn digest(&self) -> u64 {
            let digest = ::halftrack::Digest::new();
            #(let digest = #digests(&self.#members, digest);)*
            digest.finish()
        }
    }
}

/// One bit for another variant, then its number. An enum without fields is its number alone.
fn of_enum(variants: &[Variant<'_>], name: &str) -> TokenStream {
    let count = u32::try_from(variants.len()).unwrap_or(u32::MAX);
    let plain = variants.iter().all(|variant| variant.fields.is_empty());
    let schema = enum_schema(variants, "BodyField");
    let widths = variants.iter().map(|variant| {
        let widths = paths(&variant.fields, "MAX_BITS");
        quote!(0 #(+ #widths)*)
    });
    let flag = usize::from(!plain);
    let (settle, check, digest) =
        (arms(variants, settle_arm), arms(variants, check_arm), arms(variants, digest_arm));
    let (write, read) = if plain {
        (arms(variants, |variant| write_number(variant, count)), read_number(variants, count, name))
    } else {
        let writes = variants.iter().map(|variant| write_arms(variant, count));
        let (same, other) = (arms(variants, read_same_arm), read_number(variants, count, name));
        let read = quote! {
            if bits.read_flag()? {
                #other
            } else {
                ::core::result::Result::Ok(match baseline { #same })
            }
        };
        (quote!(#(#writes)*), read)
    };
    let scrutinee = if plain { quote!(self) } else { quote!((self, baseline)) };
    quote! {
        const SCHEMA: u64 = #schema;
        const MAX_BITS: usize =
            #flag + ::halftrack::model::variant_bits(#count) + ::halftrack::model::most(&[#(#widths),*]);

        #[inline]
        fn settle(&mut self) -> ::halftrack::Settling {
            let mut settling = ::halftrack::Settling::CLEAN;
            match self { #settle }
            settling
        }

        fn check(&self) -> ::core::result::Result<(), ::halftrack::FieldError> {
            match self { #check }
            ::core::result::Result::Ok(())
        }

        fn write(&self, baseline: &Self, bits: &mut ::halftrack::wire::BitWriter<'_>) {
            match #scrutinee { #write }
        }

        fn read(
            baseline: &Self,
            bits: &mut ::halftrack::wire::BitReader<'_>,
        ) -> ::core::result::Result<Self, ::halftrack::wire::WireError> {
            #read
        }

        #[inline]
        fn digest(&self) -> u64 {
            let digest = ::halftrack::Digest::new();
            let digest = match self { #digest };
            digest.finish()
        }
    }
}

fn arms(variants: &[Variant<'_>], arm: impl Fn(&Variant<'_>) -> TokenStream) -> TokenStream {
    let arms = variants.iter().map(|variant| {
        let (pattern, arm) = (variant.pattern("value"), arm(variant));
        quote!(#pattern => { #arm })
    });
    quote!(#(#arms)*)
}

fn settle_arm(variant: &Variant<'_>) -> TokenStream {
    let (paths, values) = (paths(&variant.fields, "settle"), variant.bindings("value"));
    let names = variant.fields.iter().map(|field| &field.name);
    quote!(#(#paths(#values, #names, &mut settling);)*)
}

fn check_arm(variant: &Variant<'_>) -> TokenStream {
    let (paths, values) = (paths(&variant.fields, "check"), variant.bindings("value"));
    let names = variant.fields.iter().map(|field| &field.name);
    quote!(#(#paths(#values, #names)?;)*)
}

fn digest_arm(variant: &Variant<'_>) -> TokenStream {
    let (paths, values) = (paths(&variant.fields, "digest"), variant.bindings("value"));
    let index = u64::from(variant.index);
    quote! {
        let digest = digest.word(#index);
        #(let digest = #paths(#values, digest);)*
        digest
    }
}

fn write_number(variant: &Variant<'_>, count: u32) -> TokenStream {
    let index = variant.index;
    quote!(::halftrack::model::write_variant(#index, #count, bits);)
}

fn write_arms(variant: &Variant<'_>, count: u32) -> TokenStream {
    let (writes, blanks) = (paths(&variant.fields, "write"), paths(&variant.fields, "blank"));
    let (pattern, values) = (variant.pattern("value"), variant.bindings("value"));
    let (base_pattern, bases) = (variant.pattern("base"), variant.bindings("base"));
    let number = write_number(variant, count);
    quote! {
        (#pattern, #base_pattern) => {
            bits.write_flag(false);
            #(#writes(#values, #bases, bits);)*
        }
        (#pattern, _) => {
            bits.write_flag(true);
            #number
            #(#writes(#values, &#blanks(), bits);)*
        }
    }
}

fn read_same_arm(variant: &Variant<'_>) -> TokenStream {
    let reads = paths(&variant.fields, "read");
    let values = variant.bindings("value");
    let reads = variant
        .fields
        .iter()
        .zip(&reads)
        .zip(&values)
        .map(|((Field { name, .. }, read), value)| quote!(#read(#value, #name, bits)?));
    variant.build(reads)
}

fn read_number(variants: &[Variant<'_>], count: u32, name: &str) -> TokenStream {
    let arms = variants.iter().map(|variant| {
        let reads = paths(&variant.fields, "read");
        let blanks = paths(&variant.fields, "blank");
        let reads = variant
            .fields
            .iter()
            .zip(&reads)
            .zip(&blanks)
            .map(|((Field { name, .. }, read), blank)| quote!(#read(&#blank(), #name, bits)?));
        let (index, value) = (variant.index, variant.build(reads));
        quote!(#index => ::core::result::Result::Ok(#value),)
    });
    quote! {
        match ::halftrack::model::read_variant(#count, bits)? {
            #(#arms)*
            _ => ::core::result::Result::Err(::halftrack::wire::WireError::Invalid { field: #name }),
        }
    }
}
