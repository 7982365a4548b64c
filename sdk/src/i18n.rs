//! Translations.
//!
//! Catalogs are [Fluent](https://projectfluent.org) files, one for each language, in a folder of the plugin's crate:
//! `locales/en.ftl`, `locales/uz.ftl`. `#[plugin(catalogs = "locales")]` puts them into the plugin, and the operator
//! can override them. The host looks in the user's locale, then in its parents, then in its default locale; where no
//! catalog has the text, the one given in the call is used. So a plugin works before it has a catalog.

use crate::bindings::botyard::i18n::catalogs::Value as Wire;
use crate::{Run, host};

/// A translated text, in the user's language.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// fn greet(ctx: &mut Ctx) {
///     let name = ctx.user().first_name;
///     ctx.reply(t!(ctx, "hello", name = name; "Hello, {$name}!"));
///     ctx.reply(t!(ctx, "items", count = 3; "You have {$count} items."));
///     ctx.reply(t!(ctx, "bye"; "Bye!"));
/// }
/// ```
///
/// After the key come the arguments, then, behind a semicolon, the fallback, in which `{$name}` stands for an argument.
/// Without a fallback it is the key.
#[macro_export]
macro_rules! t {
    ($ctx:expr, $key:expr $(, $name:ident = $value:expr)* ; $fallback:expr $(,)?) => {
        $ctx.translate(
            ::std::convert::AsRef::<str>::as_ref(&$key),
            &[$((::std::string::String::from(::std::stringify!($name)), $crate::i18n::Argument::from($value))),*],
            ::std::convert::AsRef::<str>::as_ref(&$fallback),
        )
    };
    ($ctx:expr, $key:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::t!($ctx, $key $(, $name = $value)* ; $key)
    };
}

/// The value of an argument: a text or a number (of which catalogs can take the plural).
#[derive(Debug, Clone)]
pub struct Argument(Wire);

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self(Wire::Text(text.to_owned()))
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Self(Wire::Text(text))
    }
}

impl From<&String> for Argument {
    fn from(text: &String) -> Self {
        Self(Wire::Text(text.clone()))
    }
}

impl From<f64> for Argument {
    fn from(number: f64) -> Self {
        Self(Wire::Number(number))
    }
}

macro_rules! integers {
    ($($lossless:ty),* ; $($wide:ty),*) => {
        $(impl From<$lossless> for Argument {
            fn from(number: $lossless) -> Self {
                Self(Wire::Integer(i64::from(number)))
            }
        })*
        $(impl From<$wide> for Argument {
            fn from(number: $wide) -> Self {
                // Beyond 63 bits a catalog can't count any more, but the digits are still right.
                Self(i64::try_from(number).map_or_else(|_| Wire::Text(number.to_string()), Wire::Integer))
            }
        })*
    };
}

integers!(i8, i16, i32, i64, u8, u16, u32; u64, usize, isize);

impl Run {
    /// What [`t!`](crate::t!) calls: for keys and arguments that are known at run time only.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// # use botyard_sdk::i18n::Argument;
    /// fn name_of(ctx: &Run, dish: &str) -> String {
    ///     ctx.translate(&format!("dish-{dish}"), &[("count".to_owned(), Argument::from(1))], dish)
    /// }
    /// ```
    #[must_use]
    pub fn translate(&self, key: &str, args: &[(String, Argument)], fallback: &str) -> String {
        let wire: Vec<(String, Wire)> =
            args.iter().map(|(name, Argument(value))| (name.clone(), value.clone())).collect();
        host::translate(self.locale(), key, &wire).unwrap_or_else(|| fill_in(fallback, &wire))
    }
}

/// Puts the arguments in place of `{$name}` and `{ $name }`; what names no argument stays as it is.
fn fill_in(text: &str, args: &[(String, Wire)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| {
            let name = name.trim().strip_prefix('$')?;
            args.iter().find(|(known, _)| known == name).map(|(_, value)| (value, behind))
        });
        if let Some((value, behind)) = known {
            push_value(&mut out, value);
            rest = behind;
        } else {
            out.push('{');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn push_value(out: &mut String, value: &Wire) {
    match value {
        Wire::Text(text) => out.push_str(text),
        Wire::Integer(number) => out.push_str(&number.to_string()),
        Wire::Number(number) => out.push_str(&number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_take_their_arguments() {
        let args = [("name".to_owned(), Wire::Text("{$n} 👩".into())), ("n".to_owned(), Wire::Integer(-3))];
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("Hi {$name}!", "Hi {$n} 👩!"),
            ("{ $n }{$n}", "-3-3"),
            ("{$other} {n} {$n", "{$other} {n} {$n"),
            ("{{$n}}", "{-3}"),
        ] {
            assert_eq!(fill_in(text, &args), expected, "{text}");
        }
    }
}
