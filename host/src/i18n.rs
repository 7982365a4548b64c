//! Translations: a plugin's own catalogs and the operator's overrides, chosen by what Telegram says of a user.
//!
//! [`Catalogs::load`] is strict: a catalog with a mistake is refused, with its place, before anybody sees it.
//! [`Catalogs::translate`] is total: whatever the language code, the key and the variables, it answers with a
//! text or with none, and never fails. A variable that the caller left out stands in the text as `{$name}`.
//! Nothing here changes after loading, so translating takes no lock of ours.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use fluent_bundle::{FluentArgs, FluentValue};
use unic_langid::LanguageIdentifier;

mod catalog;
mod locale;

use catalog::Bundle;
pub use catalog::Error;

/// What stands in a message for a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text, shown as it is.
    Text(String),
    /// A whole number; picks the plural form.
    Integer(i64),
    /// A number; picks the plural form.
    Number(f64),
}

/// Whole numbers up to here survive the way through Fluent, which counts in `f64`.
const EXACT: u64 = 1 << 53;

impl From<Value> for FluentValue<'static> {
    fn from(value: Value) -> Self {
        match value {
            Value::Text(text) => text.into(),
            Value::Integer(number) if number.unsigned_abs() > EXACT => number.to_string().into(),
            Value::Integer(number) => number.into(),
            Value::Number(number) => number.into(),
        }
    }
}

/// The catalogs of one plugin, ready to translate.
#[derive(Default)]
pub struct Catalogs {
    locales: Vec<LanguageIdentifier>,
    /// One for each locale, in the same order.
    bundles: Vec<Bundle>,
    default: Option<LanguageIdentifier>,
    /// Where to look, for the tags that most users have: those of the catalogs themselves.
    chains: HashMap<String, Vec<usize>>,
}

impl Catalogs {
    /// Reads the plugin's catalogs (locale and FTL source) and lays the operator's over them: the files
    /// `<locale>.ftl` in the folder `overrides`, which need not exist.
    ///
    /// # Errors
    /// When a catalog is not FTL, says a message twice or is named after no locale, or can't be read.
    pub fn load(sources: &[(String, String)], overrides: Option<&Path>, default_locale: &str) -> Result<Self, Error> {
        let mut loaded = Vec::new();
        for (locale, source) in sources {
            catalog::add(&mut loaded, locale, source)?;
        }
        if let Some(folder) = overrides {
            catalog::add_overrides(&mut loaded, folder)?;
        }
        let (locales, bundles): (Vec<_>, Vec<_>) = loaded.into_iter().unzip();
        let default = locale::parse(default_locale);
        let chains = locales
            .iter()
            .map(|wanted| (wanted.to_string(), locale::chain(Some(wanted), &locales, default.as_ref())))
            .collect();
        Ok(Self { locales, bundles, default, chains })
    }

    /// The message `key` (or `message.attribute`) in `locale`, else in the nearest locale that has it, else in
    /// the default locale, else none.
    #[must_use]
    pub fn translate(&self, locale: &str, key: &str, args: Vec<(String, Value)>) -> Option<String> {
        if self.bundles.is_empty() {
            return None;
        }
        let args: FluentArgs<'static> = args.into_iter().collect();
        let compute = || locale::chain(locale::parse(locale).as_ref(), &self.locales, self.default.as_ref());
        let chain = self.chains.get(locale).map_or_else(|| Cow::Owned(compute()), Cow::Borrowed);
        chain.iter().find_map(|&index| catalog::format(&self.bundles[index], key, &args))
    }

    /// The locales that there are catalogs for.
    pub fn locales(&self) -> impl Iterator<Item = String> + '_ {
        self.locales.iter().map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogs(sources: &[(&str, &str)]) -> Catalogs {
        let sources: Vec<_> = sources.iter().map(|(locale, text)| ((*locale).into(), (*text).into())).collect();
        Catalogs::load(&sources, None, "en").unwrap()
    }

    fn plain(catalogs: &Catalogs, locale: &str, key: &str) -> Option<String> {
        catalogs.translate(locale, key, Vec::new())
    }

    #[test]
    fn any_language_code_finds_the_nearest_catalog() {
        let all = catalogs(&[
            ("en", "hi = en"),
            ("pt-BR", "hi = pt-BR"),
            ("zh-Hans", "hi = zh-Hans"),
            ("zh-Hant", "hi = zh-Hant"),
            ("it", "hi = it"),
            ("uz", "hi = uz"),
            ("ru", "hi = ru"),
        ]);
        for (code, expect) in [
            ("en", "en"),
            ("en_US", "en"),
            ("pt-br", "pt-BR"),
            ("pt", "pt-BR"),
            ("pt_PT", "pt-BR"),
            ("zh-hans", "zh-Hans"),
            ("zh-CN", "zh-Hans"),
            ("zh-hant", "zh-Hant"),
            ("zh-TW", "zh-Hant"),
            ("zh", "zh-Hans"),
            ("it-IT", "it"),
            ("it-IT-!!garbage", "it"),
            ("uz", "uz"),
            ("uz-Latn-UZ", "uz"),
            ("ru_RU.UTF-8", "ru"),
            ("", "en"),
            ("-", "en"),
            ("fr", "en"),
            ("no such language", "en"),
            ("🦀", "en"),
            ("und", "en"),
            (&"x-".repeat(10_000), "en"),
        ] {
            assert_eq!(plain(&all, code, "hi").as_deref(), Some(expect), "{code:.40}");
        }
    }

    #[test]
    fn a_message_that_one_catalog_lacks_is_looked_up_further_on() {
        let all = catalogs(&[("en", "a = A\nb = B\nc = C"), ("pt", "a = á\nb = bê"), ("pt-BR", "a = á!")]);
        let texts = ["a", "b", "c", "d"].map(|key| plain(&all, "pt-BR", key));
        assert_eq!(texts, [Some("á!".into()), Some("bê".into()), Some("C".into()), None]);
    }

    #[test]
    fn without_the_default_locale_there_is_none() {
        assert_eq!(plain(&catalogs(&[("ru", "a = А")]), "fr", "a"), None);
        assert_eq!(plain(&Catalogs::default(), "en", "a"), None);
    }

    #[test]
    fn numbers_pick_the_plural_form_of_the_language() {
        let source = "n = { $n ->\n    [one] { $n } день\n    [few] { $n } дня\n   *[many] { $n } дней\n }";
        let all = catalogs(&[("ru", source)]);
        for (n, expect) in [(1, "1 день"), (3, "3 дня"), (11, "11 дней"), (21, "21 день"), (25, "25 дней")]
        {
            let text = all.translate("ru", "n", vec![("n".into(), Value::Integer(n))]);
            assert_eq!(text.as_deref(), Some(expect));
        }
    }

    #[test]
    fn values_are_neither_wrapped_nor_rounded() {
        let all = catalogs(&[("en", "m = <{ $x }>")]);
        for (value, expect) in [
            (Value::Text("Ann".into()), "<Ann>"),
            (Value::Integer(4_503_599_627_370_495), "<4503599627370495>"),
            (Value::Integer(i64::MAX), "<9223372036854775807>"),
            (Value::Number(0.5), "<0.5>"),
        ] {
            assert_eq!(all.translate("en", "m", vec![("x".into(), value)]).as_deref(), Some(expect));
        }
    }

    #[test]
    fn a_missing_variable_does_not_fail() {
        let all = catalogs(&[("en", "m = Hi { $name }!\nloop = { loop }")]);
        assert_eq!(plain(&all, "en", "m").as_deref(), Some("Hi {$name}!"));
        assert!(plain(&all, "en", "loop").is_some());
    }

    #[test]
    fn attributes_are_found_behind_a_dot() {
        let all = catalogs(&[("en", "button = Yes\n    .hint = Says yes")]);
        assert_eq!(plain(&all, "en", "button.hint").as_deref(), Some("Says yes"));
        assert_eq!(plain(&all, "en", "button.none"), None);
    }

    #[test]
    fn a_broken_catalog_is_refused_with_its_place() {
        let broken = |text: &str| Catalogs::load(&[("ru".into(), text.into())], None, "en").err().unwrap().to_string();
        let text = broken("a = A\n\nwelcome = Hi { $name\nb = B\n");
        assert!(text.contains("catalog `ru`") && text.contains("line 3") && text.contains("`welcome`"), "{text}");
        let text = broken("a = A\nb = B\na = again\n");
        assert!(text.contains("`a`") && text.contains("twice"), "{text}");
        let text = Catalogs::load(&[("!?".into(), String::new())], None, "en").err().unwrap().to_string();
        assert!(text.contains("`!?`"), "{text}");
    }

    #[test]
    fn no_catalog_can_exhaust_the_stack() {
        // Host functions have 256 KiB at least, whatever the guest has used. Without optimisation frames are far larger.
        let stack = if cfg!(debug_assertions) { 1 << 20 } else { 200 << 10 };
        let small = |work: fn()| std::thread::Builder::new().stack_size(stack).spawn(work).unwrap().join();
        let chain = || {
            let messages: String = (0..1_000).map(|n| format!("m{n} = <{{ m{} }}>\n", n + 1)).collect();
            let choices: String =
                (0..1_000).map(|n| format!("c{n} = {{ $x ->\n *[a] {{ c{} }}\n }}\n", n + 1)).collect();
            let all = catalogs(&[("en", &(messages + &choices))]);
            assert!(plain(&all, "en", "m0").is_some() && plain(&all, "en", "c0").is_some());
        };
        small(chain).unwrap();
        let nested = || {
            let source = format!("deep = {}1{}", "{".repeat(100_000), "}".repeat(100_000));
            let text = Catalogs::load(&[("en".into(), source)], None, "en").err().unwrap().to_string();
            assert!(text.contains("`deep`"), "{text}");
        };
        small(nested).unwrap();
        let spread = || {
            for one in ["{\n", "{ A(\n", "A(\n", "A("] {
                let source = format!("fine = yes\ndeep = {{ {}", one.repeat(100_000));
                let text = Catalogs::load(&[("en".into(), source)], None, "en").err().unwrap().to_string();
                assert!(text.contains("`deep`"), "{text}");
            }
        };
        small(spread).unwrap();
    }

    #[test]
    fn many_braces_and_brackets_in_one_catalog_are_no_depth() {
        let source = "literal = {\"{\"} (:( {\"}\"}\npair = { $a } { $b }\n-term = :(\nc = { NUMBER($n) } :(\n";
        let source: String = (0..100).map(|n| source.replace(" = ", &format!("{n} = "))).collect();
        assert!(plain(&catalogs(&[("en", &source)]), "en", "pair99").is_some());
    }

    #[test]
    fn no_message_grows_without_end() {
        let long = format!("long = {}\n", "x".repeat(60_000));
        let source = long
            + "digits = { NUMBER($n, minimumFractionDigits: 300000000) }\n"
            + &format!("many = {}\n", "{ $a }".repeat(90))
            + &format!("more = {}\n", "{ long }".repeat(90));
        let all = catalogs(&[("en", &source)]);
        let args = || vec![("n".to_owned(), Value::Integer(1)), ("a".to_owned(), Value::Text("y".repeat(60_000)))];
        for key in ["digits", "many", "more"] {
            let text = all.translate("en", key, args()).unwrap();
            assert!(text.len() <= 64 << 10, "{key}: {} bytes", text.len());
        }
        assert!(all.translate("en", "digits", args()).unwrap().starts_with("1.000"));
    }

    #[test]
    fn the_operator_overrides_single_messages_and_adds_locales() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("en.ftl"), "a = theirs").unwrap();
        std::fs::write(folder.path().join("uz.ftl"), "a = o'zbekcha").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "not FTL {").unwrap();
        let sources = [("en".to_owned(), "a = ours\nb = ours".to_owned())];
        let all = Catalogs::load(&sources, Some(folder.path()), "en").unwrap();
        assert_eq!(plain(&all, "en", "a").as_deref(), Some("theirs"));
        assert_eq!(plain(&all, "en", "b").as_deref(), Some("ours"));
        assert_eq!(plain(&all, "uz", "a").as_deref(), Some("o'zbekcha"));

        std::fs::write(folder.path().join("en.ftl"), "a = {").unwrap();
        let text = Catalogs::load(&sources, Some(folder.path()), "en").err().unwrap().to_string();
        assert!(text.contains("en.ftl"), "{text}");
        assert!(Catalogs::load(&sources, Some(&folder.path().join("none")), "en").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn no_catalog_makes_it_panic(pieces in proptest::collection::vec(
            "\na = |\n-t = |\n    \\.x = |\\{ ?|\\}|\\$x|-t|a\\.x| -> |\n \\*?\\[(one|1)\\] |NUMBER\\(|\\)|\"\\\\u\\{?[0-9a-fD]{0,6}\"|[0-9.]{1,9}|\n#|(?s:.)|é", 0..24)) {
            let source = format!("a = A{}", pieces.concat());
            match Catalogs::load(&[("en".into(), source)], None, "en") {
                Ok(all) => for key in ["a", "a.x", "t", ""] {
                    for value in [Value::Integer(1), Value::Text("\u{2068}x".into()), Value::Number(f64::NAN)] {
                        let text = all.translate("en", key, vec![("x".into(), value)]);
                        proptest::prop_assert!(text.is_none_or(|text| text.len() <= 64 << 10));
                    }
                },
                Err(error) => proptest::prop_assert!(error.to_string().contains("`en`"), "{}", error),
            }
        }
    }
}
