//! Catalogs against each other, and against the calls that use them: what an author wants to hear at build, and an
//! operator before anybody is answered wrongly. Says file, key and cure; never changes anything.

use std::collections::BTreeSet;

use unic_langid::LanguageIdentifier;

use crate::catalog::{self, Loaded};
use crate::message::{Choice, Message};
use crate::plural::{FORMS, Forms};
use crate::{Catalogs, Error};

/// A catalog as its author has it.
#[derive(Debug, Clone)]
pub struct Source {
    /// What messages call it: its path.
    pub file: String,
    /// Its locale.
    pub locale: String,
    /// FTL.
    pub text: String,
}

/// The catalogs of one plugin. The first is the one that has every message: where another lacks one, its text is used.
pub struct Lint {
    loaded: Vec<Loaded>,
}

/// Puts the catalog first that has every message: English where there is one, else the first by name.
pub fn base_first<T>(catalogs: &mut [T], locale: impl Fn(&T) -> &str) {
    let rank = |locale: &str| match locale {
        "en" => 0,
        locale if locale.starts_with("en-") || locale.starts_with("en_") => 1,
        _ => 2,
    };
    catalogs.sort_by(|a, b| (rank(locale(a)), locale(a)).cmp(&(rank(locale(b)), locale(b))));
}

impl Lint {
    /// Reads catalogs.
    ///
    /// # Errors
    /// When one of them is not FTL, or says a message twice.
    pub fn read(mut sources: Vec<Source>) -> Result<Self, Error> {
        base_first(&mut sources, |source| &source.locale);
        let mut loaded = Vec::new();
        for Source { file, locale, text } in &sources {
            catalog::add(&mut loaded, file, locale, text)?;
        }
        Ok(Self { loaded })
    }

    /// Checks a call: its key, and that it gives what any of the catalogs wants, and nothing else.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    pub fn call(&self, key: &str, given: &[String]) -> Result<(), String> {
        let base = self.known(key)?;
        let wanted = self.loaded.iter().flat_map(|loaded| loaded.messages.wanted(key));
        let wanted: Vec<(&str, &Message)> = wanted.collect();
        let wants = |name: &str| wanted.iter().any(|(wanted, _)| *wanted == name);
        let unused: Vec<&str> = given.iter().map(String::as_str).filter(|name| !wants(name)).collect();
        if let Some((name, at)) = wanted.iter().find(|(name, _)| !given.iter().any(|given| given == name)) {
            let place = format!("{}:{}", at.catalog, at.line);
            let in_base = self.loaded[0].messages.wanted(key);
            if let Some(meant) = nearest(name, unused.iter().copied()) {
                return Err(format!(
                    "`{key}` wants `${name}` ({place}), and is given `{meant}`: one of them is misspelt"
                ));
            }
            if !in_base.contains_key(name)
                && let Some(meant) = nearest(name, in_base.keys().copied())
            {
                let base = &base.catalog;
                return Err(format!(
                    "`{key}` wants `${name}` in {place} alone: did it mean `${meant}`, as {base} does?"
                ));
            }
            return Err(format!("`{key}` wants `${name}` ({place}): give it here, `{name} = …`"));
        }
        if let Some(name) = unused.first() {
            let place = format!("{}:{}", base.catalog, base.line);
            let meant = match nearest(name, wanted.iter().map(|(wanted, _)| *wanted)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "take it out, or use it there".to_owned(),
            };
            return Err(format!("no catalog uses `${name}` in `{key}` ({place}): {meant}"));
        }
        Ok(())
    }

    /// Checks the key of a button, whose text must be known before anybody is asked for an argument.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    pub fn button(&self, key: &str) -> Result<(), String> {
        self.known(key)?;
        for loaded in &self.loaded {
            if let Some((name, at)) = loaded.messages.wanted(key).into_iter().next() {
                let place = format!("{}:{}", at.catalog, at.line);
                return Err(format!("the text of a button is told by itself: take `${name}` out of `{key}` ({place})"));
            }
        }
        Ok(())
    }

    /// The key that was probably meant by one that there is not.
    #[must_use]
    pub fn nearest_key(&self, key: &str) -> Option<&str> {
        nearest(key, self.loaded.first()?.messages.keys())
    }

    /// Whether the first catalog has a message.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.loaded.first().is_some_and(|base| base.messages.0.contains_key(key))
    }

    fn known(&self, key: &str) -> Result<&Message, String> {
        let base = self.loaded.first().ok_or("there are no catalogs")?;
        if let Some(message) = base.messages.0.get(key).filter(|_| !key.starts_with('-')) {
            return Ok(message);
        }
        let file = base.messages.0.values().next().map_or("the first catalog", |first| first.catalog.as_str());
        let elsewhere = self.loaded.iter().find_map(|loaded| loaded.messages.0.get(key));
        Err(match (nearest(key, base.messages.keys()), elsewhere) {
            (_, Some(Message { catalog, line, .. })) => format!(
                "{file} has no `{key}`, which only {catalog}:{line} has: add it to {file}, which every other language falls \
                 back to"
            ),
            (Some(meant), None) => format!("{file} has no `{key}`: did you mean `{meant}`?"),
            (None, None) => format!("{file} has no `{key}`: add `{key} = …`"),
        })
    }

    /// What can't be meant as it stands: references to nothing, plural forms that there are not. In the first catalog
    /// also forms that are missing.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        let base = self.loaded.first().into_iter().flat_map(|base| missing_forms(&base.locale, base));
        self.loaded.iter().flat_map(broken).chain(base).collect()
    }
}

impl Catalogs {
    /// What a reader of another language than the first would notice: messages, arguments and plural forms that its
    /// catalog lacks; and what can't be meant as it stands.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.loaded.iter().flat_map(broken).collect();
        let Some((base, others)) = self.loaded.split_first() else { return warnings };
        for other in others {
            let lacks: Vec<&str> = base.messages.keys().filter(|key| !other.messages.0.contains_key(*key)).collect();
            if !lacks.is_empty() {
                let (locale, count) = (&other.locale, lacks.len());
                let some = lacks.iter().take(5).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                let more = if count > 5 { ", …" } else { "" };
                let from = &base.locale;
                warnings.push(format!("catalog `{locale}` lacks {count} of the messages of `{from}`: {some}{more}"));
            }
            for key in base.messages.keys().filter(|key| other.messages.0.contains_key(*key)) {
                let has = other.messages.wanted(key);
                for name in base.messages.wanted(key).into_keys().filter(|name| !has.contains_key(name)) {
                    let (locale, from) = (&other.locale, &base.locale);
                    warnings.push(format!("catalog `{locale}`, `{key}`: does not say `${name}`, which `{from}` does"));
                }
            }
            for key in other.messages.keys().filter(|key| !base.messages.0.contains_key(*key)) {
                let (locale, from) = (&other.locale, &base.locale);
                let meant = nearest(key, base.messages.keys()).map(|meant| format!(": is it `{meant}`?"));
                let meant = meant.unwrap_or_default();
                warnings.push(format!("catalog `{locale}`: `{from}` has no `{key}`{meant}"));
            }
        }
        warnings.extend(self.loaded.iter().flat_map(|loaded| missing_forms(&loaded.locale, loaded)));
        warnings
    }
}

/// References to nothing, and plural forms that there are not.
fn broken(loaded: &Loaded) -> Vec<String> {
    let messages = &loaded.messages.0;
    let mut problems = Vec::new();
    for (key, message) in messages {
        let place = format!("{}:{}, `{key}`", message.catalog, message.line);
        for name in message.references.iter().filter(|name| !messages.contains_key(*name)) {
            if name.ends_with("()") {
                problems.push(format!("{place}: there is no function `{name}`; only NUMBER()"));
                continue;
            }
            let others = messages.keys().map(String::as_str);
            let meant = nearest(name, others).map(|meant| format!(": did you mean `{meant}`?"));
            problems
                .push(format!("{place}: refers to `{name}`, which this catalog lacks{}", meant.unwrap_or_default()));
        }
        for choice in message.choices.iter().filter(|choice| choice.counts()) {
            for name in choice.names.iter().filter(|name| !FORMS.contains(&name.as_str())) {
                let meant =
                    nearest(name, FORMS).map_or_else(|| FORMS.join(", "), |meant| format!("did you mean `{meant}`?"));
                problems.push(format!("{place}: `{name}` is no plural form: {meant}"));
            }
        }
    }
    problems
}

/// Plural forms that the language has and a message does not tell apart, or the other way round.
fn missing_forms(locale: &LanguageIdentifier, loaded: &Loaded) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, message) in &loaded.messages.0 {
        for choice in message.choices.iter().filter(|choice| choice.counts()) {
            let forms = Forms::of(locale, choice.is_ordinal);
            let place = format!("{}:{}, `{key}`", message.catalog, message.line);
            let says = |form: &str| choice.names.iter().any(|name| name == form);
            let missing: Vec<_> = forms.whole.iter().filter(|(form, _)| !says(form)).collect();
            // The variant for all the rest stands for one form, where it is not itself the name of one.
            let stands_in = forms.whole.iter().all(|(form, _)| *form != choice.default);
            if missing.len() > usize::from(stands_in) {
                let missing: Vec<_> = missing.iter().map(|(form, number)| format!("`{form}` ({number})")).collect();
                problems.push(format!("{place}: `{locale}` also counts with {}", missing.join(", ")));
            }
            let known = choice.names.iter().filter(|name| FORMS.contains(&name.as_str()) && **name != choice.default);
            for name in known.filter(|name| !forms.all.contains(name.as_str())) {
                problems.push(format!("{place}: `{locale}` never counts with `{name}`"));
            }
        }
    }
    problems
}

impl Choice {
    /// Whether it is one between plural forms: it says so, or has a form that means nothing else.
    fn counts(&self) -> bool {
        let names: BTreeSet<&str> = self.names.iter().map(String::as_str).collect();
        self.is_number || FORMS.iter().any(|form| *form != "other" && names.contains(form))
    }
}

/// The name that was probably meant: one letter in three may be wrong, or two that have changed places.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|other| (strsim::osa_distance(name, other), other));
    let close = near.filter(|(away, other)| *away > 0 && *away <= (name.len().min(other.len()) / 3).clamp(1, 3));
    close.min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(locale: &str, text: &str) -> Source {
        Source { file: format!("locales/{locale}.ftl"), locale: locale.to_owned(), text: text.to_owned() }
    }

    fn lint(catalogs: &[(&str, &str)]) -> Lint {
        Lint::read(catalogs.iter().map(|(locale, text)| source(locale, text)).collect()).unwrap()
    }

    const EN: &str = "hello = Hello, { $name }!\nmenu = Menu\n    .order = Order\nbrand = { -firm } of { $town }\n\
                      -firm = Tea { $case }\nwelcome = { brand } says { hello }\n\
                      cups = { $n ->\n    [one] One cup of { $kind }\n   *[other] { $n } cups\n }\n";

    #[test]
    fn calls_are_checked_against_every_language() {
        let uz =
            "hello = Salom, { $nmae }!\ncups = { $n } piyola { $kind }\nbrand = { $town } { $owner }\nonly = faqat\n";
        let both = lint(&[("uz", uz), ("en", EN)]);
        let one = lint(&[("en", EN)]);
        let call = |lint: &Lint, key: &str, given: &[&str]| {
            lint.call(key, &given.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).err().unwrap_or_default()
        };
        for (key, given) in [
            ("hello", &["name"] as &[&str]),
            ("menu", &[]),
            ("menu.order", &[]),
            ("welcome", &["name", "town"]),
            ("cups", &["kind", "n"]),
        ] {
            assert_eq!(call(&one, key, given), "", "{key}");
        }
        for (lint, key, given, says) in [
            (&one, "helo", &["name"] as &[&str], "locales/en.ftl has no `helo`: did you mean `hello`?"),
            (&one, "menu.oder", &[], "locales/en.ftl has no `menu.oder`: did you mean `menu.order`?"),
            (&one, "-firm", &[], "has no `-firm`"),
            (&one, "farewell", &[], "locales/en.ftl has no `farewell`: add `farewell = …`"),
            (&both, "only", &[], "locales/en.ftl has no `only`, which only locales/uz.ftl:4 has"),
            (&one, "hello", &[], "`hello` wants `$name` (locales/en.ftl:1): give it here, `name = …`"),
            (&one, "hello", &["nam"], "wants `$name` (locales/en.ftl:1), and is given `nam`: one of them is misspelt"),
            (&one, "hello", &["name", "age"], "no catalog uses `$age` in `hello` (locales/en.ftl:1): take it out"),
            (&one, "hello", &["name", "names"], "did you mean `name`?"),
            // Only in one branch, or through another message.
            (&one, "cups", &["n"], "wants `$kind` (locales/en.ftl:7)"),
            (&one, "welcome", &["name"], "wants `$town` (locales/en.ftl:4)"),
            // Only in one language.
            (
                &both,
                "hello",
                &["name"],
                "wants `$nmae` in locales/uz.ftl:1 alone: did it mean `$name`, as locales/en.ftl",
            ),
            (&both, "brand", &["town"], "wants `$owner` (locales/uz.ftl:3)"),
        ] {
            assert!(call(lint, key, given).contains(says), "{key}: {}", call(lint, key, given));
        }
        assert_eq!(call(&both, "brand", &["town", "owner"]), "");
    }

    #[test]
    fn a_buttons_text_is_fixed() {
        let lint = lint(&[("en", EN), ("uz", "menu = Menyu { $n }")]);
        assert!(lint.button("menu.order").is_ok());
        assert!(lint.button("menu.ordr").unwrap_err().contains("did you mean `menu.order`?"));
        assert!(lint.button("menu").unwrap_err().contains("take `$n` out of `menu` (locales/uz.ftl:1)"));
    }

    #[test]
    fn what_can_not_be_meant_is_an_error() {
        let errors = |locale: &str, text: &str| lint(&[(locale, text)]).errors().join("\n");
        for (locale, text, says) in [
            ("en", "a = { b }", "locales/en.ftl:1, `a`: refers to `b`, which this catalog lacks"),
            ("en", "\nhello = x\na = { helo } { -frm }\n-firm = y", "did you mean `hello`?"),
            ("en", "a = { -frm }\n-firm = y", "refers to `-frm`, which this catalog lacks: did you mean `-firm`?"),
            ("en", "a = { DATETIME($d) }", "there is no function `DATETIME()`"),
            (
                "en",
                "a = { $n ->\n [one] 1\n [ohter] 2\n *[other] 3\n }",
                "`ohter` is no plural form: did you mean `other`?",
            ),
            ("en", "a = { NUMBER($n) ->\n [oen] 1\n *[other] 3\n }", "`oen` is no plural form: did you mean `one`?"),
            ("ru", "a = { $n ->\n [one] 1\n *[other] 3\n }", "`ru` also counts with `many` (0), `few` (2)"),
            ("ar", "a = { $n ->\n [one] 1\n *[other] 3\n }", "`zero` (0), `two` (2), `few` (3), `many` (11)"),
            ("en", "a = { $n ->\n [few] 1\n [one] 1\n *[other] 3\n }", "`en` never counts with `few`"),
            ("en", "a = { NUMBER($n, type: \"ordinal\") ->\n [one] st\n *[other] th\n }", "`two` (2), `few` (3)"),
        ] {
            assert!(errors(locale, text).contains(says), "{text}: {}", errors(locale, text));
        }
        for (locale, text) in [
            ("en", EN),
            ("en", "a = { $sex ->\n [male] he\n [female] she\n *[other] they\n }"),
            ("ru", "a = { $n ->\n [one] день\n [few] дня\n *[many] дней\n }"),
            ("ru", "a = { $n ->\n [one] день\n [few] дня\n *[other] дней\n }"),
            ("pl", "a = { $n ->\n [one] dzień\n [few] dni\n *[many] dni\n }"),
            ("ja", "a = { $n ->\n [0] なし\n *[other] { $n }\n }"),
            ("uz-Latn-UZ", "a = { $n ->\n [one] bitta\n *[other] { $n } ta\n }"),
            ("pt-BR", "a = { $n ->\n [one] um\n *[other] { $n }\n }"),
        ] {
            assert_eq!(errors(locale, text), "", "{locale}: {text}");
        }
    }

    #[test]
    fn what_a_translation_lacks_is_a_warning() {
        let sources: Vec<_> = [("uz", "menu = Menyu\nhello = Salom!\nhelo = x\ncups = { $n } { $kind }"), ("en", EN)]
            .map(|(locale, text)| (locale.to_owned(), text.to_owned()))
            .to_vec();
        let warnings = Catalogs::load(&[sources[1].clone(), sources[0].clone()], None, "en").unwrap().warnings();
        for says in [
            "catalog `uz` lacks 3 of the messages of `en`: `brand`, `menu.order`, `welcome`",
            "catalog `uz`, `hello`: does not say `$name`, which `en` does",
            "catalog `uz`: `en` has no `helo`: is it `hello`?",
        ] {
            assert!(warnings.iter().any(|warning| warning == says), "{says}: {warnings:#?}");
        }
        assert_eq!(warnings.len(), 3, "{warnings:#?}");
    }
}
