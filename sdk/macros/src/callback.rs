//! `#[derive(CallbackData)]`, and what stands in `#[callback(…)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::ParseStream;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitStr, Path, Token, Type};

use crate::names::snake_case;

pub(crate) fn expand(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    if !input.generics.params.is_empty() {
        let message = "the data of buttons can't be generic: derive `CallbackData` for a type without parameters";
        return Err(syn::Error::new_spanned(&input.generics, message));
    }
    let prefix = named(&input.attrs, "prefix", &input.ident)?;
    let (write, read) = match &input.data {
        Data::Enum(data) if data.variants.is_empty() => {
            let message = "without a variant there is no button: add one, or remove the derive";
            return Err(syn::Error::new_spanned(&input.ident, message));
        }
        Data::Enum(data) => {
            let mut seen = HashSet::new();
            let (mut writes, mut reads) = (Vec::new(), Vec::new());
            for variant in &data.variants {
                let name = named(&variant.attrs, "name", &variant.ident)?;
                if !seen.insert(name.clone()) {
                    let message = format!("`{name}` names two variants: give one another `#[callback(name = \"…\")]`");
                    return Err(syn::Error::new_spanned(&variant.ident, message));
                }
                let ident = &variant.ident;
                let (pattern, write, read) = fields(&quote!(Self::#ident), &variant.fields);
                writes.push(quote!(#pattern => { parts.push(#name); #write }));
                reads.push(quote!(#name => ::core::option::Option::Some(#read)));
            }
            let read = quote!(match parts.part()? { #(#reads,)* _ => ::core::option::Option::None });
            (quote!(match self { #(#writes)* }), read)
        }
        Data::Struct(data) => {
            let (pattern, write, read) = fields(&quote!(Self), &data.fields);
            (quote!({ let #pattern = self; #write }), quote!(::core::option::Option::Some(#read)))
        }
        Data::Union(_) => {
            let message = "the data of buttons is an enum or a struct: derive `CallbackData` for one";
            return Err(syn::Error::new_spanned(&input.ident, message));
        }
    };
    let (ident, prefix) = (&input.ident, format!("{prefix}:"));
    Ok(quote! {
        impl ::botyard_sdk::CallbackData for #ident {
            const PREFIX: &'static str = #prefix;

            #[allow(unused_variables)]
            fn write(&self, parts: &mut ::botyard_sdk::__private::Parts) {
                #write
            }

            #[allow(unused_variables)]
            fn read(parts: &mut ::botyard_sdk::__private::Reading<'_>) -> ::core::option::Option<Self> {
                #read
            }
        }
    })
}

/// The pattern that takes a value apart, what writes its fields, and the expression that reads them.
fn fields(path: &TokenStream, fields: &Fields) -> (TokenStream, TokenStream, TokenStream) {
    let names: Vec<_> = (0..fields.len()).map(|at| format_ident!("field_{at}")).collect();
    let write = quote!(#(::botyard_sdk::CallbackField::write(#names, parts);)*);
    let one = quote!(::botyard_sdk::CallbackField::read(parts)?);
    let idents: Vec<_> = fields.iter().filter_map(|field| field.ident.as_ref()).collect();
    match fields {
        Fields::Named(_) => (quote!(#path { #(#idents: #names),* }), write, quote!(#path { #(#idents: #one),* })),
        Fields::Unnamed(_) => {
            let reads = names.iter().map(|_| &one);
            (quote!(#path(#(#names),*)), write, quote!(#path(#(#reads),*)))
        }
        Fields::Unit => (path.clone(), write, path.clone()),
    }
}

/// What `#[callback(… = "…")]` says, else the name in snake case.
fn named(attrs: &[Attribute], argument: &str, ident: &Ident) -> syn::Result<String> {
    let mut name = snake_case(&ident.to_string());
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("callback")) {
        attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident(argument) {
                return Err(meta.error(format!("unknown argument: `#[callback({argument} = \"…\")]` is possible here")));
            }
            let literal: LitStr = meta.value()?.parse()?;
            name = literal.value();
            let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            if is_name && (1..=32).contains(&name.len()) {
                return Ok(());
            }
            Err(syn::Error::new(literal.span(), "1 to 32 of a-z, 0-9 and _: it stands in the button's data"))
        })?;
    }
    Ok(name)
}

/// The type that `#[callback(Order, …)]` names before everything else, and the comma behind it.
pub(crate) fn parse_type(input: ParseStream<'_>) -> syn::Result<Option<Type>> {
    let ahead = input.fork();
    let is_type = ahead.parse::<Path>().is_ok_and(|path| !path.is_ident("observe"));
    if !is_type || !(ahead.is_empty() || ahead.peek(Token![,])) {
        return Ok(None);
    }
    let data = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_cure() {
        for (source, part) in [
            ("enum Order {}", "add one"),
            ("union Order { a: u8 }", "an enum or a struct"),
            ("enum Order<T> { Pick(T) }", "without parameters"),
            ("enum Order { #[callback(name = \"b\")] A, B }", "`b` names two variants"),
            ("enum Order { #[callback(name = \"B:\")] A }", "1 to 32 of a-z"),
            ("enum Order { #[callback(prefix = \"b\")] A }", "`#[callback(name = \"…\")]` is possible here"),
            ("#[callback(name = \"b\")] enum Order { A }", "`#[callback(prefix = \"…\")]` is possible here"),
            ("#[callback(prefix = \"\")] enum Order { A }", "1 to 32 of a-z"),
        ] {
            let error = expand(source.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{source}: {error}");
        }
    }
}
