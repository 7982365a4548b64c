//! Commands as they are typed: `remind {minutes} {what...}`.

use proc_macro2::Span;
use quote::format_ident;
use syn::{Ident, LitStr};

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
}

/// What follows a command's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) is_optional: bool,
    /// All that remains, in place of a word.
    pub(crate) is_rest: bool,
}

impl Template {
    /// Takes the arguments off the first name; there may be none.
    pub(crate) fn take(names: &mut [LitStr]) -> syn::Result<Option<Self>> {
        if let Some(other) = names.iter().skip(1).find(|name| name.value().contains(['{', ' '])) {
            return Err(syn::Error::new(other.span(), "the arguments stand with the first name, and hold for all"));
        }
        let Some(first) = names.first_mut().filter(|name| name.value().contains(['{', ' '])) else { return Ok(None) };
        let template = Self::parse(first)?;
        *first = LitStr::new(&template.name, first.span());
        Ok(Some(template))
    }

    pub(crate) fn parse(literal: &LitStr) -> syn::Result<Self> {
        let text = literal.value();
        let fail = |message: String| syn::Error::new(literal.span(), message);
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let mut arguments: Vec<Argument> = Vec::new();
        for word in words {
            let argument = Argument::parse(word, literal.span())?;
            let name = &argument.name;
            match arguments.last() {
                Some(last) if last.is_rest => {
                    return Err(fail(format!("`{{{}...}}` is all that remains: nothing can follow it", last.name)));
                }
                Some(last) if last.is_optional && !argument.is_optional => {
                    return Err(fail(format!(
                        "`{{{name}}}` would take the place of `{{{}?}}`: write it before",
                        last.name
                    )));
                }
                _ => {}
            }
            if arguments.iter().any(|other| other.name == *name) {
                return Err(fail(format!("there are two arguments named `{name}`")));
            }
            arguments.push(argument);
        }
        Ok(Self { name, arguments })
    }

    /// How people are told to write it.
    pub(crate) fn usage(&self) -> String {
        let mut usage = format!("/{}", self.name);
        for Argument { name, is_optional, is_rest } in &self.arguments {
            let name = name.to_uppercase().replace('_', "-") + if *is_rest { "…" } else { "" };
            usage.push_str(&if *is_optional { format!(" [{name}]") } else { format!(" {name}") });
        }
        usage
    }
}

impl Argument {
    fn parse(word: &str, span: Span) -> syn::Result<Self> {
        const CURE: &str = "`{name}` is a word, `{name?}` one that may be left out, `{name...}` all that remains";
        let inner = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        let inner = inner.ok_or_else(|| syn::Error::new(span, format!("`{word}` is no argument: {CURE}")))?;
        let (inner, is_optional) = inner.strip_suffix('?').map_or((inner, false), |inner| (inner, true));
        let (name, is_rest) = inner.strip_suffix("...").map_or((inner, false), |name| (name, true));
        if syn::parse_str::<Ident>(name).is_err() {
            return Err(syn::Error::new(span, format!("`{word}` has no name that a parameter can have: {CURE}")));
        }
        Ok(Self { name: name.to_owned(), is_optional, is_rest })
    }

    /// The function that reads it.
    pub(crate) fn reader(&self) -> Ident {
        let kind = if self.is_rest { "rest" } else { "word" };
        if self.is_optional { format_ident!("optional_{kind}") } else { format_ident!("{kind}") }
    }
}

/// Whether Telegram would take this for a command.
pub(crate) fn check_name(literal: &LitStr) -> syn::Result<()> {
    let name = literal.value();
    let fail = |message: String| Err(syn::Error::new(literal.span(), message));
    if name.starts_with('/') {
        return fail(format!("write the command without its slash: `{}`", name.trim_start_matches('/')));
    }
    let letters = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if letters && (1..=32).contains(&name.len()) {
        return Ok(());
    }
    fail(format!("`{name}` can't be a command: 1 to 32 of a-z, 0-9 and _"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> syn::Result<Template> {
        Template::parse(&LitStr::new(text, Span::call_site()))
    }

    #[test]
    fn people_are_told_how_to_write_it() {
        for (text, usage) in [
            ("menu", "/menu"),
            ("remind {minutes} {what...}", "/remind MINUTES WHAT…"),
            ("last {how_many?}", "/last [HOW-MANY]"),
            ("note {title} {text...?}", "/note TITLE [TEXT…]"),
        ] {
            assert_eq!(parse(text).unwrap().usage(), usage);
        }
    }

    #[test]
    fn errors_name_the_cure() {
        for (text, part) in [
            ("a b", "`b` is no argument: `{name}` is a word"),
            ("a {}", "no name that a parameter can have"),
            ("a {1x}", "no name that a parameter can have"),
            ("a {x", "`{x` is no argument"),
            ("a {x...} {y}", "nothing can follow it"),
            ("a {x?} {y}", "write it before"),
            ("a {x} {x}", "two arguments named `x`"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
