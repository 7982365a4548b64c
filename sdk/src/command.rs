//! Commands with arguments: one by one, or all of a plugin's in an enum.
//!
//! A command is written as it is typed, `remind {minutes} {what...}`:
//! - `{minutes}` is a word, of any type that can be parsed from a text;
//! - `{times?}` may be left out, and is an `Option`; only others like it, or the rest, may follow;
//! - `{what...}` is all that remains, at least a word; `{what...?}` may be empty, and is an `Option`.
//!
//! What does not fit is answered with how it is written. The answer is the text `command-usage` of the plugin's catalogs
//! (with `usage`), else an English one.

use std::str::FromStr;

use crate::extract::Rejected;
use crate::{Error, Handled, Run, t};

/// The commands of a plugin, as the variants of an enum. Derive it.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod reminders {
///     #[derive(Command)]
///     enum Cmd {
///         /// What I can do
///         Help,
///         /// Remind me in some minutes
///         #[command("remind {minutes} {what...}", "r")]
///         Remind { minutes: u64, what: String },
///         /// The last reminders
///         Last { how_many: Option<u8> },
///         #[command(hidden)]
///         Debug,
///     }
///
///     #[command(Cmd)]
///     fn command(ctx: &mut Ctx, cmd: Cmd) -> Result<(), Error> {
///         match cmd {
///             Cmd::Help => ctx.reply(Cmd::help()),
///             Cmd::Remind { minutes, what } => {
///                 ctx.after("remind", Duration::from_secs(60 * minutes), &what)?;
///                 ctx.reply(format!("In {minutes} min: {what}"))
///             }
///             Cmd::Last { how_many } => ctx.reply(format!("The last {}", how_many.unwrap_or(5))),
///             Cmd::Debug => ctx.reply("…"),
///         };
///         Ok(())
///     }
/// }
///
/// # fn main() {
/// let mut bot = botyard_sdk::test::Bot::<reminders::Plugin>::new();
/// assert_eq!(bot.text("/remind 5 drink tea").texts(), ["In 5 min: drink tea"]);
/// assert_eq!(bot.text("/r soon").texts(), ["Please write it like this: /remind MINUTES WHAT…"]);
/// assert_eq!(bot.text("/last").texts(), ["The last 5"]);
/// assert_eq!(
///     bot.text("/help").texts(),
///     ["/help – What I can do\n/remind MINUTES WHAT… – Remind me in some minutes\n/last [HOW-MANY] – The last reminders"]
/// );
/// # }
/// ```
///
/// A variant without an attribute is its name in snake case, with its fields as words: `Option`s may be left out, and a
/// `String` at the end takes the rest. The first line of its documentation (or `help = "…"`) describes it, in the menu
/// behind `/` and in [`help`](Self::help): a text, or a key of the catalogs. `menu = "groups"` says in whose menu it is. `hidden`, or without a description, it is
/// in neither. Further names in the attribute are aliases, which are in neither as well.
pub trait Command: Sized {
    /// All of them.
    #[doc(hidden)]
    const COMMANDS: &'static [CommandInfo];

    /// Reads one; `None` where its arguments don't fit.
    #[doc(hidden)]
    fn read(index: usize, args: &str) -> Option<Self>;

    /// A line for each command: how it is written, and what it is for.
    #[must_use]
    fn help() -> String {
        lines(Self::COMMANDS, str::to_owned)
    }

    /// [`help`](Self::help) in the language of the user.
    #[must_use]
    fn help_for(ctx: &Run) -> String {
        lines(Self::COMMANDS, |help| ctx.translate(help, &[], help))
    }
}

/// One command.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct CommandInfo {
    /// The name, and its aliases.
    pub names: &'static [&'static str],
    pub usage: &'static str,
    /// Empty: hidden.
    pub help: &'static str,
    /// The menus that it is in; everybody's where empty.
    pub menus: &'static [&'static str],
}

fn lines(commands: &[CommandInfo], describe: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for command in commands.iter().filter(|command| !command.help.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(command.usage);
        text.push_str(" – ");
        text.push_str(&describe(command.help));
    }
    text
}

/// What a derived command takes from an event.
#[doc(hidden)]
pub fn extract<C: Command>(ctx: &Run) -> Result<C, Rejected> {
    let name = ctx.command().ok_or(Rejected::Pass)?;
    let index = C::COMMANDS.iter().position(|command| command.names.contains(&name)).ok_or(Rejected::Pass)?;
    C::read(index, ctx.args()).ok_or_else(|| {
        say_usage(ctx, C::COMMANDS[index].usage);
        Rejected::Answered
    })
}

/// The answer to a command whose arguments don't fit.
#[doc(hidden)]
pub fn misfit(ctx: &Run, usage: &str) -> Result<Handled, Error> {
    say_usage(ctx, usage);
    Ok(Handled::Done)
}

fn say_usage(ctx: &Run, usage: &str) {
    ctx.reply(t!(ctx, "command-usage", usage = usage; "Please write it like this: {$usage}"));
}

/// The arguments of a command, taken one by one. `None` ends it: they don't fit.
#[doc(hidden)]
#[derive(Debug)]
pub struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    #[must_use]
    pub fn new(args: &'a str) -> Self {
        Self(args.trim())
    }

    pub fn word<T: FromStr>(&mut self) -> Option<T> {
        let (word, rest) = self.0.split_once(char::is_whitespace).unwrap_or((self.0, ""));
        self.0 = rest.trim_start();
        (!word.is_empty()).then_some(word)?.parse().ok()
    }

    pub fn optional_word<T: FromStr>(&mut self) -> Option<Option<T>> {
        if self.0.is_empty() { Some(None) } else { self.word().map(Some) }
    }

    pub fn rest<T: FromStr>(&mut self) -> Option<T> {
        let rest = std::mem::take(&mut self.0);
        (!rest.is_empty()).then_some(rest)?.parse().ok()
    }

    pub fn optional_rest<T: FromStr>(&mut self) -> Option<Option<T>> {
        if self.0.is_empty() { Some(None) } else { self.rest().map(Some) }
    }

    #[must_use]
    pub fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_one_by_one() {
        let mut words = Words::new("  5 \n drink  tea ");
        assert_eq!(words.word::<u8>(), Some(5));
        assert_eq!(words.end(), None);
        assert_eq!(words.optional_word::<String>(), Some(Some("drink".to_owned())));
        assert_eq!(words.rest::<String>().as_deref(), Some("tea"));
        assert_eq!((words.optional_word::<u8>(), words.optional_rest::<u8>()), (Some(None), Some(None)));
        assert_eq!((words.word::<String>(), words.rest::<String>(), words.end()), (None, None, Some(())));
        assert_eq!(Words::new("x").optional_word::<u8>(), None, "it is there, and does not fit");
        assert_eq!(Words::new("300").word::<u8>(), None);
    }
}
