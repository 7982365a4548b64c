//! `botyard:i18n`: translations, and the languages that people have chosen.

use super::{DESCRIBING, Host, Run, failed};
use crate::domain::UserId;
use crate::i18n::{Markup, Value, normal_locale};
use crate::plugin::bindings::botyard::i18n::{catalogs as wit, languages};
use crate::store::rows::language::{self, LanguageRow, Whose};

/// Bytes of all arguments together: a message can name each of them a hundred times.
const ARGUMENT_BYTES: usize = 64 << 10;

impl wit::Host for Host {
    fn translate(
        &mut self,
        locale: String,
        key: String,
        args: Vec<(String, wit::Value)>,
    ) -> wasmtime::Result<Option<String>> {
        self.translate_markup(locale, key, args, wit::Markup::Plain)
    }

    fn translate_markup(
        &mut self,
        locale: String,
        key: String,
        args: Vec<(String, wit::Value)>,
        markup: wit::Markup,
    ) -> wasmtime::Result<Option<String>> {
        let text = |value: &wit::Value| if let wit::Value::Text(text) = value { text.len() } else { 0 };
        let size: usize = args.iter().map(|(name, value)| name.len() + text(value)).sum();
        if size > ARGUMENT_BYTES {
            return Err(wasmtime::Error::msg(format!(
                "the arguments of `{key:.64}` have {size} bytes; {ARGUMENT_BYTES} are possible"
            )));
        }
        let args: Vec<_> = args.into_iter().map(|(name, value)| (name, value.into())).collect();
        Ok(self.context.catalogs.load().translate(&locale, &key, &args, markup.into()))
    }

    fn available(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.context.catalogs.load().locales().collect())
    }
}

impl languages::Host for Host {
    fn chosen(&mut self, whose: languages::Whose) -> wasmtime::Result<Option<String>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        match run.whose(whose) {
            Some(whose) => run.chosen(whose),
            None => Ok(None),
        }
    }

    fn of_user(&mut self, user: i64) -> wasmtime::Result<Option<String>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        run.charge_read(0)?;
        run.chosen(Whose::User(UserId(user)))
    }

    fn choose(&mut self, whose: languages::Whose, locale: Option<String>) -> wasmtime::Result<Result<String, String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        let Some(of) = run.whose(whose) else {
            let who = if whose == languages::Whose::User { "user" } else { "chat" };
            return Ok(Err(format!("this event has no {who} whose language it could be")));
        };
        let chosen = match locale {
            None => None,
            Some(locale) => match normal_locale(&locale) {
                Some(locale) => Some(locale),
                None => return Ok(Err(format!("`{locale:.64}` is no language tag such as `en` or `pt-BR`"))),
            },
        };
        if let Err(problem) = run.charge_effect(language::key(run.bot, of).len()) {
            return Ok(Err(problem));
        }
        let row = LanguageRow { chosen, ..language::of(&run.tx, run.bot, of).map_err(failed)? };
        run.keep_language(of, &row);
        run.language().map(Ok)
    }
}

impl Run {
    /// The language that the run speaks now.
    pub(in crate::plugin) fn language(&self) -> wasmtime::Result<String> {
        self.listener.language(&self.tx, self.bot).map_err(failed)
    }

    /// What Telegram tells of the user's language is kept for an event that is put off: then nobody will tell it.
    pub(super) fn remember_language(&mut self) -> wasmtime::Result<()> {
        let Some(whose) = self.listener.whose(false).filter(|_| self.listener.told.is_some()) else { return Ok(()) };
        let row = language::of(&self.tx, self.bot, whose).map_err(failed)?;
        if row.told != self.listener.told {
            let told = self.listener.told.clone();
            self.keep_language(whose, &LanguageRow { told, ..row });
        }
        Ok(())
    }

    fn keep_language(&mut self, whose: Whose, row: &LanguageRow) {
        let key = language::key(self.bot, whose);
        if *row == LanguageRow::default() {
            self.tx.delete(key);
        } else {
            self.tx.put(key, row.encode());
        }
    }

    fn chosen(&self, whose: Whose) -> wasmtime::Result<Option<String>> {
        Ok(language::of(&self.tx, self.bot, whose).map_err(failed)?.chosen)
    }

    fn whose(&self, whose: languages::Whose) -> Option<Whose> {
        self.listener.whose(whose == languages::Whose::Chat)
    }
}

impl From<wit::Value> for Value {
    fn from(value: wit::Value) -> Self {
        match value {
            wit::Value::Text(text) => Self::Text(text),
            wit::Value::Integer(number) => Self::Integer(number),
            wit::Value::Number(number) => Self::Number(number),
        }
    }
}

impl From<wit::Markup> for Markup {
    fn from(markup: wit::Markup) -> Self {
        match markup {
            wit::Markup::Plain => Self::Plain,
            wit::Markup::Html => Self::Html,
            wit::Markup::MarkdownV2 => Self::MarkdownV2,
        }
    }
}
