//! Translations.
//!
//! Catalogs are [Fluent](https://projectfluent.org) files, one for each language, in the folder `locales` of the plugin's
//! crate: `locales/en.ftl`, `locales/uz.ftl`. `#[plugin]` puts them into the plugin, and the operator can override them.
//! [`t!`](crate::t!) is checked against them when the plugin is built. The host looks in the language of the run
//! ([`Run::locale`]), then in its parents, then in the operator's default, then in the first catalog (English, else the
//! first by name); where no catalog has the text, the one given in the call is used.

use std::borrow::Cow;

use crate::bindings::botyard::i18n::catalogs::{Markup, Value as Wire};
use crate::bindings::botyard::i18n::languages::Whose;
use crate::format::{Marked, ParseMode};
use crate::{Ctx, Error, Run, State, host};

/// The value of an argument: a text or a number (of which catalogs can take the plural).
#[derive(Debug, Clone)]
pub struct Argument {
    wire: Wire,
    /// A fraction as a text. It is written where it is made: what writes fractions is large, and so gets into no plugin
    /// that has none.
    fraction: String,
    /// It is markup already.
    marked: bool,
}

impl From<Wire> for Argument {
    fn from(wire: Wire) -> Self {
        Self { wire, fraction: String::new(), marked: false }
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Wire::Text(text.to_owned()).into()
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Wire::Text(text).into()
    }
}

impl From<&String> for Argument {
    fn from(text: &String) -> Self {
        Wire::Text(text.clone()).into()
    }
}

impl From<f64> for Argument {
    fn from(number: f64) -> Self {
        Self { fraction: number.to_string(), ..Wire::Number(number).into() }
    }
}

/// As a match on `&self` gives them.
macro_rules! numbers_behind_references {
    ($($number:ty),*) => {
        $(impl From<&$number> for Argument {
            fn from(number: &$number) -> Self {
                Self::from(*number)
            }
        })*
    };
}

numbers_behind_references!(f64, i8, i16, i32, i64, u8, u16, u32, u64, usize, isize);

macro_rules! integers {
    ($($lossless:ty),* ; $($wide:ty),*) => {
        $(impl From<$lossless> for Argument {
            fn from(number: $lossless) -> Self {
                Wire::Integer(i64::from(number)).into()
            }
        })*
        $(impl From<$wide> for Argument {
            fn from(number: $wide) -> Self {
                // Beyond 63 bits a catalog can't count any more, but the digits are still right.
                i64::try_from(number).map_or_else(|_| Wire::Text(number.to_string()), Wire::Integer).into()
            }
        })*
    };
}

integers!(i8, i16, i32, i64, u8, u16, u32; u64, usize, isize);

impl Argument {
    /// The text of one that is markup already.
    fn as_given(&self) -> Option<&str> {
        match &self.wire {
            Wire::Text(text) if self.marked => Some(text),
            _ => None,
        }
    }

    /// As a text, for want of a catalog.
    fn shown(&self) -> Cow<'_, str> {
        match &self.wire {
            Wire::Text(text) => text.into(),
            Wire::Integer(number) => number.to_string().into(),
            Wire::Number(_) => (&self.fraction).into(),
        }
    }
}

/// Markup of one's own, a link say, in a text with markup. Never what somebody else wrote.
impl From<Marked> for Argument {
    fn from(text: Marked) -> Self {
        Self { marked: true, ..Wire::Text(text.into_string()).into() }
    }
}

/// Languages and texts.
impl Run {
    /// The language of this run: the one that the user has chosen ([`Ctx::set_locale`]), else the chat's, else what
    /// Telegram tells of the user, else the host's default.
    #[must_use]
    pub fn locale(&self) -> &str {
        self.own_locale()
    }

    /// The language that the chat has chosen, if it has: for what is said to everybody in a group.
    #[must_use]
    pub fn chat_locale(&self) -> Option<String> {
        host::language_chosen(Whose::Chat)
    }

    /// The language that a user has chosen, if they have: for what is sent to others than the event's user.
    #[must_use]
    pub fn locale_of(&self, user: i64) -> Option<String> {
        host::language_of_user(user)
    }

    /// The languages that there are catalogs for, the operator's among them: what a person can choose from.
    #[must_use]
    pub fn locales(&self) -> Vec<String> {
        host::catalogs_available()
    }

    /// Texts in another language than the run's.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn tell(ctx: &Run, courier: i64) {
    ///     let locale = ctx.locale_of(courier).unwrap_or_default();
    ///     ctx.send(courier, t!(ctx.speaking(locale), "new-order"; "A new order"));
    /// }
    /// ```
    #[must_use]
    pub fn speaking<'a>(&self, locale: impl Into<Cow<'a, str>>) -> Speaker<'a> {
        Speaker { locale: locale.into() }
    }

    /// Texts for everybody in the chat: in the language that the chat has chosen, else in the host's default.
    #[must_use]
    pub fn for_chat(&self) -> Speaker<'static> {
        Speaker { locale: self.chat_locale().unwrap_or_default().into() }
    }

    /// Texts that are HTML: arguments are escaped, and the message is sent as HTML.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn greet(ctx: &Run) {
    ///     ctx.reply(t!(ctx.html(), "hello", name = ctx.user().first_name; "Hello, <b>{$name}</b>!"));
    /// }
    /// ```
    #[must_use]
    pub fn html(&self) -> MarkupSpeaker<'_> {
        MarkupSpeaker { locale: self.locale().into(), mode: ParseMode::Html }
    }

    /// Texts that are MarkdownV2, as [`html`](Self::html).
    #[must_use]
    pub fn markdown(&self) -> MarkupSpeaker<'_> {
        MarkupSpeaker { locale: self.locale().into(), mode: ParseMode::MarkdownV2 }
    }

    /// What [`t!`](crate::t!) calls: for keys and arguments that are known at run time only.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// # use botyard_sdk::i18n::Argument;
    /// fn name_of(ctx: &Run, dish: &str) -> String {
    ///     ctx.translate(&format!("dish-{dish}"), &[("count", Argument::from(1))], dish)
    /// }
    /// ```
    #[must_use]
    pub fn translate(&self, key: &str, args: &[(&str, Argument)], fallback: &str) -> String {
        plain(self.locale(), key, args, fallback)
    }
}

/// What people have chosen.
impl<S: State> Ctx<S> {
    /// Makes `locale` the language of the user who caused this event, for all plugins, from now on and in their timers
    /// too. In a group it is the language of what is said to this user. The rest of the run speaks it already.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn choose(ctx: &mut Ctx) {
    ///     ctx.set_locale("uz");
    ///     ctx.reply(t!(ctx, "language-chosen"; "From now on in English."));
    /// }
    /// ```
    pub fn set_locale(&mut self, locale: &str) {
        self.choose(Whose::User, Some(locale));
    }

    /// Forgets what the user has chosen: what Telegram tells counts again.
    pub fn clear_locale(&mut self) {
        self.choose(Whose::User, None);
    }

    /// Makes `locale` the language of the chat: of [`Run::for_chat`], of conversations that belong to no user, and of
    /// replies to those who have not chosen one themselves. Who may do that in a group is for the plugin to see to.
    pub fn set_chat_locale(&mut self, locale: &str) {
        self.choose(Whose::Chat, Some(locale));
    }

    /// Forgets what the chat has chosen.
    pub fn clear_chat_locale(&mut self) {
        self.choose(Whose::Chat, None);
    }

    fn choose(&mut self, whose: Whose, locale: Option<&str>) {
        match host::language_choose(whose, locale) {
            Ok(locale) => self.run_mut().speak(locale),
            Err(problem) => self.fail(Error::permanent(problem)),
        }
    }
}

/// Texts in one language: what [`Run::speaking`] and [`Run::for_chat`] give to [`t!`](crate::t!).
#[derive(Debug, Clone)]
pub struct Speaker<'a> {
    locale: Cow<'a, str>,
}

impl<'a> Speaker<'a> {
    /// The language; empty for the host's default.
    #[must_use]
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// The same with HTML.
    #[must_use]
    pub fn html(self) -> MarkupSpeaker<'a> {
        MarkupSpeaker { locale: self.locale, mode: ParseMode::Html }
    }

    /// The same with MarkdownV2.
    #[must_use]
    pub fn markdown(self) -> MarkupSpeaker<'a> {
        MarkupSpeaker { locale: self.locale, mode: ParseMode::MarkdownV2 }
    }

    /// As [`Run::translate`].
    #[must_use]
    pub fn translate(&self, key: &str, args: &[(&str, Argument)], fallback: &str) -> String {
        plain(&self.locale, key, args, fallback)
    }
}

/// Texts with markup, in one language: what [`Run::html`] and [`Run::markdown`] give to [`t!`](crate::t!).
#[derive(Debug, Clone)]
pub struct MarkupSpeaker<'a> {
    locale: Cow<'a, str>,
    mode: ParseMode,
}

impl MarkupSpeaker<'_> {
    /// As [`Run::translate`], with arguments escaped. A [`Marked`] argument is markup itself.
    #[must_use]
    pub fn translate(&self, key: &str, args: &[(&str, Argument)], fallback: &str) -> Marked {
        let markup = match self.mode {
            ParseMode::Html => Markup::Html,
            ParseMode::MarkdownV2 => Markup::MarkdownV2,
        };
        // What is markup already is put in afterwards, in the place of a name that no text holds and no markup touches.
        let given = |at: usize| format!("\u{e000}{at}\u{e001}");
        let wire: Vec<(String, Wire)> = args
            .iter()
            .enumerate()
            .map(|(at, (name, argument))| {
                let value = if argument.as_given().is_some() { Wire::Text(given(at)) } else { argument.wire.clone() };
                ((*name).to_owned(), value)
            })
            .collect();
        let text = host::translate_markup(&self.locale, key, &wire, markup);
        let shown = |argument: &Argument| match argument.as_given() {
            Some(markup) => markup.to_owned(),
            None => self.mode.escape(&argument.shown()),
        };
        let mut text = text.unwrap_or_else(|| fill_in(fallback, args, &shown));
        for (at, (_, argument)) in args.iter().enumerate() {
            if let Some(markup) = argument.as_given() {
                text = text.replace(&given(at), markup);
            }
        }
        Marked::new(text, self.mode)
    }
}

fn plain(locale: &str, key: &str, args: &[(&str, Argument)], fallback: &str) -> String {
    let wire: Vec<(String, Wire)> = args.iter().map(|(name, value)| ((*name).to_owned(), value.wire.clone())).collect();
    host::translate(locale, key, &wire).unwrap_or_else(|| fill_in(fallback, args, &|value| value.shown().into_owned()))
}

/// Puts the arguments in place of `{$name}` and `{ $name }`; what names no argument stays as it is.
fn fill_in(text: &str, args: &[(&str, Argument)], shown: &dyn Fn(&Argument) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| {
            let name = name.trim().strip_prefix('$')?;
            args.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, behind))
        });
        if let Some((value, behind)) = known {
            out.push_str(&shown(value));
            rest = behind;
        } else {
            out.push('{');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_take_their_arguments() {
        let args = [("name", "{$n} 👩".into()), ("n", (-3).into()), ("half", 0.5.into())];
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("Hi {$name}!", "Hi {$n} 👩!"),
            ("{ $n }{$n}", "-3-3"),
            ("{$other} {n} {$n", "{$other} {n} {$n"),
            ("{{$n}}", "{-3}"),
            ("{$half}", "0.5"),
        ] {
            assert_eq!(fill_in(text, &args, &|value| value.shown().into_owned()), expected, "{text}");
        }
    }
}
