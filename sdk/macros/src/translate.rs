//! `t!(ctx, "key", name = value; "fallback")`: checked against the catalogs of the crate, then a plain call.

use std::sync::atomic::{AtomicBool, Ordering};

use botyard_catalogs::Lint;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Token};

use crate::catalogs::Found;

/// Whether the compiler was told to look at the catalogs of this crate again when they change.
static WATCHED: AtomicBool = AtomicBool::new(false);

pub(crate) fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let call: Call = syn::parse2(input)?;
    let found = Found::of_crate();
    let lint = found.as_ref().and_then(|found| found.lint().ok());
    call.check(lint.as_ref())?;
    let watched = found.filter(|_| !WATCHED.swap(true, Ordering::Relaxed)).map(|found| found.watched());
    Ok(call.tokens(watched))
}

/// The parts of a call.
struct Call {
    ctx: Expr,
    key: Expr,
    args: Vec<(Ident, Expr)>,
    fallback: Option<Expr>,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ctx = input.parse()?;
        input.parse::<Token![,]>()?;
        let mut call = Self { ctx, key: input.parse()?, args: Vec::new(), fallback: None };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() && !input.peek(Token![;]) {
            let name: Ident = input.parse()?;
            input.parse::<Token![=]>().map_err(|_| {
                let cure = format!("an argument has a name: `{name} = …`; a fallback comes behind a semicolon");
                syn::Error::new(name.span(), cure)
            })?;
            if call.args.iter().any(|(known, _)| *known == name) {
                return Err(syn::Error::new(name.span(), format!("`{name}` is given twice")));
            }
            call.args.push((name, input.parse()?));
        }
        if input.parse::<Option<Token![;]>>()?.is_some() {
            call.fallback = Some(input.parse()?);
            input.parse::<Option<Token![,]>>()?;
        }
        if input.is_empty() {
            Ok(call)
        } else {
            Err(input.error("arguments come before the semicolon, with commas between"))
        }
    }
}

impl Call {
    fn check(&self, lint: Option<&Lint>) -> syn::Result<()> {
        let given: Vec<String> = self.args.iter().map(|(name, _)| name.to_string()).collect();
        if let Some(fallback) = self.fallback.as_ref().and_then(literal) {
            let text = fallback.value();
            if let Some(unknown) = placeholders(&text).find(|name| !given.iter().any(|given| given == name)) {
                let message = format!("the fallback wants `${unknown}`, which is not given: `{unknown} = …`");
                return Err(syn::Error::new(fallback.span(), message));
            }
        }
        let Some(key) = literal(&self.key) else { return Ok(()) };
        match lint {
            Some(lint) => lint.call(&key.value(), &given).map_err(|why| syn::Error::new(key.span(), why)),
            None if self.fallback.is_none() => {
                let key_text = key.value();
                let message = format!(
                    "this plugin has no catalogs: make `locales/en.ftl` with a line `{key_text} = …`, or say the text here, \
                     `t!(ctx, \"{key_text}\"; \"…\")`"
                );
                Err(syn::Error::new(key.span(), message))
            }
            None => Ok(()),
        }
    }

    fn tokens(&self, watched: Option<TokenStream>) -> TokenStream {
        let Self { ctx, key, args, fallback } = self;
        let text = |expr: &Expr| match literal(expr) {
            Some(literal) => literal.to_token_stream(),
            None => quote!(::core::convert::AsRef::<str>::as_ref(&#expr)),
        };
        let (key, fallback) = (text(key), text(fallback.as_ref().unwrap_or(key)));
        let args = args.iter().map(|(name, value)| {
            let name = name.to_string();
            let name = name.trim_start_matches("r#");
            quote!((#name, ::botyard_sdk::i18n::Argument::from(#value)))
        });
        quote!({ #watched (#ctx).translate(#key, &[#(#args),*], #fallback) })
    }
}

fn literal(expr: &Expr) -> Option<&LitStr> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

/// The names that stand as `{$name}` or `{ $name }` in a fallback.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split('{').skip(1).filter_map(|piece| piece.split_once('}'));
    pieces.filter_map(|(inner, _)| inner.trim().strip_prefix('$'))
}

#[cfg(test)]
mod tests {
    use botyard_catalogs::Source;

    use super::*;

    fn lint() -> Lint {
        let source = |locale: &str, text: &str| Source {
            file: format!("locales/{locale}.ftl"),
            locale: locale.to_owned(),
            text: text.to_owned(),
        };
        let en = "hello = Hello, { $name }!\ncups = { $n ->\n [one] One { $kind }\n *[other] { $n }\n }";
        Lint::read(vec![source("en", en), source("uz", "hello = Salom, { $name }!")]).unwrap()
    }

    fn check(call: &str, lint: Option<&Lint>) -> String {
        let checked = call.parse().map_err(|error| format!("{error}"));
        let call = syn::parse2::<Call>(checked.unwrap());
        call.and_then(|call| call.check(lint)).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_fits_the_catalogs_compiles() {
        let lint = lint();
        for call in [
            r#"ctx, "hello", name = user.name"#,
            r#"ctx, "hello", name = &name; "Hi, {$name}!","#,
            r#"ctx.html(), "cups", n = 3, kind = kind,"#,
            "ctx, key, anything = 1",
            r#"ctx, format!("dish-{dish}"); dish"#,
        ] {
            assert_eq!(check(call, Some(&lint)), "", "{call}");
        }
        assert_eq!(check(r#"ctx, "hello", name = name; "Hello, { $name }!""#, None), "");
    }

    #[test]
    fn errors_name_the_cure() {
        let lint = lint();
        for (call, says) in [
            (r#"ctx, "helo", name = 1"#, "locales/en.ftl has no `helo`: did you mean `hello`?"),
            (r#"ctx, "hello""#, "`hello` wants `$name` (locales/en.ftl:1): give it here, `name = …`"),
            (r#"ctx, "hello", nmae = 1"#, "is given `nmae`: one of them is misspelt"),
            (r#"ctx, "hello", name = 1, age = 2"#, "no catalog uses `$age` in `hello`"),
            (r#"ctx, "cups", n = 1"#, "`cups` wants `$kind` (locales/en.ftl:2)"),
            (r#"ctx, "hello", name = 1; "Hello, {$nme}!""#, "the fallback wants `$nme`, which is not given"),
            (r#"ctx, "hello", name"#, "an argument has a name: `name = …`"),
            (r#"ctx, "hello", name = 1, name = 2"#, "`name` is given twice"),
            (r#"ctx, "hello"; "Hi", name = 1"#, "arguments come before the semicolon"),
        ] {
            assert!(check(call, Some(&lint)).contains(says), "{call}: {}", check(call, Some(&lint)));
        }
        let text = check(r#"ctx, "hello""#, None);
        assert!(
            text.contains("no catalogs: make `locales/en.ftl` with a line `hello = …`, or say the text here"),
            "{text}"
        );
    }
}
