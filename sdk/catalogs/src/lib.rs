//! Translations: a plugin's own catalogs and the operator's overrides, chosen by what is known of a user.
//!
//! [`Catalogs::load`] is strict: a catalog with a mistake is refused, with its place, before anybody sees it.
//! [`Catalogs::translate`] is total: whatever the language code, the key and the variables, it answers with a
//! text or with none, and never fails. A variable that the caller left out stands in the text as `{$name}`.
//! Nothing here changes after loading, so translating takes no lock of ours. [`Lint`] is for the build: it holds catalogs
//! against each other and against the calls that use them.

use std::borrow::Cow;
use std::path::Path;

use rustc_hash::FxHashMap;
use unic_langid::LanguageIdentifier;

mod catalog;
mod lint;
mod locale;
mod markup;
mod message;
mod number;
mod plural;
mod resolve;

pub use catalog::Error;
use catalog::Loaded;
pub use lint::{Lint, Source, base_first};
pub use locale::normal as normal_locale;
pub use markup::Markup;

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

/// The catalogs of one plugin, ready to translate.
#[derive(Default)]
pub struct Catalogs {
    loaded: Vec<Loaded>,
    /// Their locales, in the same order.
    locales: Vec<LanguageIdentifier>,
    default: Option<LanguageIdentifier>,
    /// The plugin's first: what the operator alone adds is for its own language.
    last: Option<usize>,
    /// Where to look, for the tags that most users have: those of the catalogs themselves.
    chains: FxHashMap<String, Vec<usize>>,
}

impl std::fmt::Debug for Catalogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogs").field("locales", &self.locales).finish_non_exhaustive()
    }
}

impl Catalogs {
    /// Reads the plugin's catalogs (locale and FTL source) and lays the operator's over them: the files
    /// `<locale>.ftl` in the folder `overrides`, which need not exist. The first of the plugin's is the one that has every
    /// message.
    ///
    /// # Errors
    /// When a catalog is not FTL, says a message twice or is named after no locale, or can't be read.
    pub fn load(sources: &[(String, String)], overrides: Option<&Path>, default_locale: &str) -> Result<Self, Error> {
        let mut loaded = Vec::new();
        for (locale, source) in sources {
            catalog::add(&mut loaded, locale, locale, source)?;
        }
        if let Some(folder) = overrides {
            catalog::add_overrides(&mut loaded, folder)?;
        }
        let locales: Vec<_> = loaded.iter().map(|loaded| loaded.locale.clone()).collect();
        let (default, last) = (locale::parse(default_locale), (!sources.is_empty()).then_some(0));
        let chains = locales
            .iter()
            .map(|wanted| (wanted.to_string(), locale::chain(Some(wanted), &locales, default.as_ref(), last)))
            .collect();
        Ok(Self { loaded, locales, default, last, chains })
    }

    /// The message `key` (or `message.attribute`) in `locale`, else in the nearest locale that has it, else in
    /// the default locale, else in the plugin's first catalog, else none. Arguments are escaped for `markup`.
    #[must_use]
    pub fn translate(&self, locale: &str, key: &str, args: &[(String, Value)], markup: Markup) -> Option<String> {
        if self.loaded.is_empty() {
            return None;
        }
        let compute = || locale::chain(locale::parse(locale).as_ref(), &self.locales, self.default.as_ref(), self.last);
        let chain = self.chains.get(locale).map_or_else(|| Cow::Owned(compute()), Cow::Borrowed);
        chain.iter().find_map(|&index| self.loaded[index].write(key, args, markup))
    }

    /// What `key` says in each of the languages, without arguments: the texts of a button.
    pub fn texts<'a>(&'a self, key: &'a str) -> impl Iterator<Item = String> + 'a {
        self.loaded.iter().filter_map(|loaded| loaded.write(key, &[], Markup::Plain))
    }

    /// The variables of a message, in whichever language: a button's text can't have any.
    #[must_use]
    pub fn variables(&self, key: &str) -> Vec<String> {
        self.loaded.iter().flat_map(|loaded| loaded.messages.wanted(key).into_keys()).map(str::to_owned).collect()
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
        catalogs.translate(locale, key, &[], Markup::Plain)
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
    fn the_first_catalog_is_the_last_resort() {
        let all = catalogs(&[("ru", "a = А"), ("uz", "a = B\nb = C")]);
        assert_eq!(plain(&all, "fr", "a").as_deref(), Some("А"));
        assert_eq!(plain(&all, "fr", "b"), None);
        assert_eq!(plain(&Catalogs::default(), "en", "a"), None);
    }

    #[test]
    fn numbers_pick_the_plural_form_of_the_language() {
        let source = "n = { $n ->\n [zero] zero\n [one] one\n [two] two\n [few] few\n [many] many\n *[other] other\n }\n\
                      o = { NUMBER($n, type: \"ordinal\") ->\n [one] one\n [two] two\n [few] few\n *[other] other\n }";
        for (locale, forms) in [
            ("en", "0 other, 1 one, 2 other, 11 other"),
            ("en-GB", "1 one, 2 other"),
            ("uz", "0 other, 1 one, 2 other, 11 other, 21 other"),
            ("uz-Latn-UZ", "1 one, 5 other"),
            ("ru", "0 many, 1 one, 3 few, 5 many, 11 many, 12 many, 21 one, 22 few, 25 many, 101 one, 111 many"),
            ("ru-RU", "1 one, 2 few, 5 many"),
            ("uk", "1 one, 2 few, 5 many, 21 one"),
            ("be", "1 one, 2 few, 5 many"),
            ("ar", "0 zero, 1 one, 2 two, 3 few, 10 few, 11 many, 99 many, 100 other, 102 other, 103 few"),
            ("pl", "0 many, 1 one, 2 few, 5 many, 12 many, 21 many, 22 few, 25 many"),
            ("cs", "0 other, 1 one, 2 few, 4 few, 5 other"),
            ("sr", "1 one, 2 few, 5 other, 21 one"),
            ("lt", "1 one, 2 few, 10 other, 11 other, 21 one"),
            ("lv", "0 zero, 1 one, 2 other, 10 zero, 21 one"),
            ("sl", "1 one, 2 two, 3 few, 5 other, 101 one"),
            ("cy", "0 zero, 1 one, 2 two, 3 few, 6 many, 4 other"),
            ("fr", "0 one, 1 one, 2 other"),
            ("pt-BR", "0 one, 1 one, 2 other"),
            ("pt-PT", "0 other, 1 one, 2 other"),
            ("de", "0 other, 1 one, 2 other"),
            ("tr", "1 one, 2 other"),
            ("kk", "1 one, 2 other"),
            ("ky", "1 one, 2 other"),
            ("tg", "1 other, 2 other"),
            ("be", "21 one, 22 few, 111 many"),
            ("mt", "1 one, 0 few, 103 few, 111 many, 20 other"),
            ("br", "21 one, 22 two, 29 few, 1000000 many"),
            ("fa", "0 one, 1 one, 2 other"),
            ("hi", "0 one, 1 one, 2 other"),
            ("ja", "0 other, 1 other, 2 other"),
            ("zh-Hans", "1 other, 2 other"),
            ("id", "1 other, 2 other"),
            ("he", "1 one, 2 two, 3 other"),
            ("ro", "1 one, 0 few, 2 few, 19 few, 20 other, 101 few"),
            ("ga", "1 one, 2 two, 3 few, 7 many, 11 other"),
        ] {
            let all = catalogs(&[(locale, source)]);
            for (number, form) in forms.split(", ").map(|pair| pair.split_once(' ').unwrap()) {
                let args = |value| vec![("n".to_owned(), value)];
                let whole = Value::Integer(number.parse().unwrap());
                assert_eq!(
                    all.translate(locale, "n", &args(whole), Markup::Plain).as_deref(),
                    Some(form),
                    "{locale} {number}"
                );
            }
        }
        let english = catalogs(&[("en", source)]);
        for (number, form) in [(1, "one"), (2, "two"), (3, "few"), (4, "other"), (11, "other"), (21, "one")] {
            let args = vec![("n".to_owned(), Value::Integer(number))];
            assert_eq!(english.translate("en", "o", &args, Markup::Plain).as_deref(), Some(form), "{number}");
        }
        // Whatever a number is, counting it does not fail.
        for number in [f64::NAN, f64::INFINITY, -1e300, 1e-300, 0.1 + 0.2, f64::MIN_POSITIVE] {
            for (source, key) in
                [(source, "n"), ("n = { NUMBER($n, minimumFractionDigits: 99) ->\n [one] x\n *[other] y\n }", "n")]
            {
                let args = vec![("n".to_owned(), Value::Number(number))];
                assert!(catalogs(&[("ru", source)]).translate("ru", key, &args, Markup::Plain).is_some(), "{number}");
            }
        }
        let digits = "n = { 1.00000000000000000000 ->\n [one] x\n *[other] y\n }";
        let text = Catalogs::load(&[("en".into(), digits.into())], None, "en").err().unwrap().to_string();
        assert!(text.contains("line 1, message `n`: a number can have 15 digits"), "{text}");
    }

    #[test]
    fn numbers_are_written_as_the_language_does_where_the_catalog_says_so() {
        let source = "bare = { $n }\nform = { NUMBER($n) }\nprice = { NUMBER($n, minimumFractionDigits: 2) }";
        let all = catalogs(&[("en", source), ("ru", source)]);
        let text = |locale: &str, key: &str| {
            all.translate(locale, key, &[("n".into(), Value::Number(12_345.5))], Markup::Plain).unwrap()
        };
        assert_eq!(["bare", "form", "price"].map(|key| text("en", key)), ["12345.5", "12,345.5", "12,345.50"]);
        assert_eq!(
            ["bare", "form", "price"].map(|key| text("ru", key)),
            ["12345.5", "12\u{a0}345,5", "12\u{a0}345,50"]
        );
    }

    #[test]
    fn arguments_are_no_markup_whatever_people_are_called() {
        let source = "html = <b>{ $name }</b>, { $n }\nmark = *{ $name }*\\. { $n } { NUMBER($n) }\n\
                      pick = { $name ->\n [black_tea] black\n *[other] other\n } { \"_\" }\nvia = { html }!";
        let all = catalogs(&[("en", source)]);
        let args =
            |name: &str| vec![("name".to_owned(), Value::Text(name.into())), ("n".to_owned(), Value::Number(-1.5))];
        for (key, name, markup, text) in [
            ("html", "<b>&\"", Markup::Html, "<b>&lt;b&gt;&amp;&quot;</b>, -1.5"),
            ("via", "</b>", Markup::Html, "<b>&lt;/b&gt;</b>, -1.5!"),
            ("html", "<b>", Markup::Plain, "<b><b></b>, -1.5"),
            ("mark", "_x_ [a](b)\\", Markup::MarkdownV2, r"*\_x\_ \[a\]\(b\)\\*\. \-1\.5 \-1\.5"),
            // What chooses is compared as it was given, and what the catalog itself writes is markup.
            ("pick", "black_tea", Markup::MarkdownV2, "black _"),
        ] {
            assert_eq!(all.translate("en", key, &args(name), markup).as_deref(), Some(text), "{key} {name}");
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
            assert_eq!(all.translate("en", "m", &[("x".into(), value)], Markup::Plain).as_deref(), Some(expect));
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
            let text = all.translate("en", key, &args(), Markup::Plain).unwrap();
            assert!(text.len() <= 64 << 10, "{key}: {} bytes", text.len());
        }
        assert!(all.translate("en", "digits", &args(), Markup::Plain).unwrap().starts_with("1.000"));
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
        fn no_catalog_makes_it_panic(
            pieces in proptest::collection::vec(
                "\na = |\n-t = |\n    \\.x = |\\{ ?|\\}|\\$x|-t|a\\.x| -> |\n \\*?\\[(one|1)\\] |NUMBER\\(|\\)|\"\\\\u\\{?[0-9a-fD]{0,6}\"|\
                 [0-9.]{1,9}|\n#|(?s:.)|é", 0..24),
            locale in "en|ru|ar|[a-zA-Z_@-]{0,12}",
        ) {
            let source = format!("a = A{}", pieces.concat());
            let all = match Catalogs::load(&[("en".into(), source)], None, "en") {
                Ok(all) => all,
                Err(error) => {
                    proptest::prop_assert!(error.to_string().contains("`en`"), "{error}");
                    return Ok(());
                }
            };
            for key in ["a", "a.x", "t", "-t", ""] {
                std::hint::black_box((all.variables(key), all.texts(key).count()));
                for value in [Value::Integer(1), Value::Text("\u{2068}x".into()), Value::Number(f64::NAN)] {
                    for markup in [Markup::Plain, Markup::Html, Markup::MarkdownV2] {
                        let text = all.translate(&locale, key, &[("x".into(), value.clone())], markup);
                        proptest::prop_assert!(text.is_none_or(|text| text.len() <= 64 << 10 && !key.starts_with('-')));
                    }
                }
            }
        }

        /// A catalog as they are, with damage done to it anywhere.
        #[test]
        fn no_damage_makes_it_panic(
            at in proptest::prelude::any::<proptest::sample::Index>(), gone in 0..40_usize, new in "[{}\\[\\]*$.=>\"\n -]{0,4}",
        ) {
            let mut source = "-firm = Tea\n    .gender = it\nhi = Hi { $x }, of { -firm }\n    .hint = { NUMBER($x, \
                 minimumFractionDigits: 2) }\ncups = { $x ->\n    [0] none\n    [one] { $x } cup\n   *[other] { hi.hint } \
                 { \"\\u00e9\" }\n }\n# the end\nlast = { -firm.gender ->\n   *[it] it\n }\n".to_owned();
            proptest::prop_assert!(Catalogs::load(&[("en".into(), source.clone())], None, "en").is_ok());
            let from = at.index(source.len());
            source.replace_range(from..(from + gone).min(source.len()), &new);
            match Catalogs::load(&[("en".into(), source)], None, "en") {
                Ok(all) => for key in ["hi", "hi.hint", "cups", "last"] {
                    let text = all.translate("en", key, &[("x".into(), Value::Number(1.5))], Markup::Plain);
                    proptest::prop_assert!(text.is_none_or(|text| text.len() < 1_000));
                },
                Err(error) => {
                    let error = error.to_string();
                    proptest::prop_assert!(error.contains("`en`") && error.len() < 2_000, "{error}");
                }
            }
        }
    }
}
