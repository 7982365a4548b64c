//! `#[derive(State)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, LitInt, LitStr};

use crate::names::{KEYS, snake_case};

pub(crate) fn expand(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new(input.ident.span(), "states are the variants of an enum: derive `State` for one"));
    };
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&input.generics, "a state enum can't be generic: it is stored as JSON"));
    }
    if !data.variants.iter().any(|variant| variant.attrs.iter().any(|attr| attr.path().is_ident("default"))) {
        let message = "mark the variant that means \"no conversation\" with #[default], and derive `Default`";
        return Err(syn::Error::new(input.ident.span(), message));
    }
    let Settings { version, key, ttl } = Settings::parse(&input)?;
    let ttl = ttl.map_or_else(
        || quote!(::core::option::Option::None),
        |seconds| quote!(::core::option::Option::Some(::core::time::Duration::from_secs(#seconds))),
    );
    let ident = &input.ident;
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let names: Vec<_> = variants.iter().map(|variant| snake_case(&variant.to_string())).collect();
    Ok(quote! {
        impl ::botyard_sdk::State for #ident {
            const VERSION: u32 = #version;
            const KEY: &'static str = #key;
            const TTL: ::core::option::Option<::core::time::Duration> = #ttl;
            const NAMES: &'static [&'static str] = &[#(#names),*];

            fn name(&self) -> &'static str {
                match self {
                    #(Self::#variants { .. } => #names,)*
                }
            }
        }
    })
}

struct Settings {
    version: u32,
    key: String,
    ttl: Option<u64>,
}

impl Settings {
    fn parse(input: &DeriveInput) -> syn::Result<Self> {
        let mut settings = Self { version: 1, key: "user_in_chat".to_owned(), ttl: None };
        for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("state")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("version") {
                    settings.version = meta.value()?.parse::<LitInt>()?.base10_parse()?;
                } else if meta.path.is_ident("key") {
                    settings.key = parse_key(&meta.value()?.parse()?)?;
                } else if meta.path.is_ident("ttl") {
                    settings.ttl = Some(parse_time(&meta.value()?.parse()?)?);
                } else {
                    return Err(meta.error("unknown argument: one of `version`, `key`, `ttl`"));
                }
                Ok(())
            })?;
        }
        if settings.version == 0 {
            return Err(syn::Error::new(Span::call_site(), "state versions begin at 1"));
        }
        Ok(settings)
    }
}

pub(crate) fn parse_key(literal: &LitStr) -> syn::Result<String> {
    let key = literal.value();
    if KEYS.contains(&key.as_str()) {
        return Ok(key);
    }
    Err(syn::Error::new(literal.span(), format!("unknown key strategy `{key}`: one of {}", KEYS.join(", "))))
}

pub(crate) fn parse_time(literal: &LitStr) -> syn::Result<u64> {
    let text = literal.value();
    let (number, unit) = text.split_at(text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len());
    let unit = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86400),
        _ => None,
    };
    let seconds = number.trim().parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    seconds.filter(|&seconds| seconds > 0).ok_or_else(|| {
        syn::Error::new(
            literal.span(),
            format!("`{text}` is no time: a whole number with s, m, h or d, `2h` for example"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(source: &str) -> String {
        expand(source.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_cure() {
        for (source, part) in [
            ("struct Form;", "variants of an enum"),
            ("enum Form { Name }", "#[default]"),
            ("enum Form<T> { #[default] Idle, Name(T) }", "can't be generic"),
            ("#[state(key = \"planet\")] enum Form { #[default] Idle }", "one of chat, user, user_in_chat, topic"),
            ("#[state(ttl = \"2 weeks\")] enum Form { #[default] Idle }", "`2h` for example"),
            ("#[state(ttl = \"0s\")] enum Form { #[default] Idle }", "is no time"),
            ("#[state(version = 0)] enum Form { #[default] Idle }", "begin at 1"),
            ("#[state(colour = 1)] enum Form { #[default] Idle }", "one of `version`, `key`, `ttl`"),
        ] {
            assert!(error(source).contains(part), "{source}: {}", error(source));
        }
    }

    #[test]
    fn times_have_units() {
        let seconds = |text: &str| parse_time(&LitStr::new(text, Span::call_site())).ok();
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("15m"), Some(900));
        assert_eq!(seconds("2h"), Some(7200));
        assert_eq!(seconds("7d"), Some(604_800));
        for wrong in ["", "h", "2", "-2h", "1.5h", "2hh", "99999999999999999999s"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
