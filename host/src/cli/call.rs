//! `botyard call`: one update in, all that would come of it out. Nothing is kept and nothing leaves the machine.

pub(super) mod effects;
pub(super) mod room;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value as Json;

use self::effects::{Broadcast, Effects, Timer};
use self::room::Room;
use super::bot::BotFile;
use super::exit::{Exit, WrongArgument};
use super::hand::block_on;
use super::table::clean;
use super::{BotConfig, say};
use crate::domain::UpdateView;

/// Give one update to the plugins, and see what they would do with it
///
/// The update is JSON as Telegram sends it, such as {"message": {"chat": {"id": 1, "type": "private"},
/// "from": {"id": 1, "first_name": "Alice"}, "text": "/start"}}. It meets an empty store, unless --state says
/// where the conversation is. Shown are the plugins that were asked and what they answered, calls of the Bot
/// API, states and values before and after, timers, log lines and the time on the processor. Calls whose
/// answer a plugin waits for are answered by a simulated Telegram.
///
/// Exit code 0: the update was handled, or nobody wanted it; 1: a plugin failed.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Call {
    /// A file with one update, or - for standard input
    #[arg(value_name = "UPDATE.json")]
    update: PathBuf,
    #[command(flatten)]
    config: BotConfig,
    /// The plugins to ask, instead of those in bot.toml
    #[arg(long, value_name = "[NAME=]FILE.wasm")]
    plugin: Vec<String>,
    /// The state that the conversation is in, as this command shows it: 'age={"Age":{"name":"Zoë"}}'
    #[arg(long, value_name = "[PLUGIN:]NAME=JSON")]
    state: Vec<String>,
    /// Take the .wasm file that is there, even if the source has changed
    #[arg(long)]
    no_build: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Call {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let update = read_update(&self.update)?;
        let bot = BotFile::find(&self.config.file.config, &self.plugin)?;
        if !self.no_build {
            bot.build_here()?;
        }
        let config = self.config.choose(&bot.config()?)?;
        let states = self.state.iter().map(|state| parse_state(state)).collect::<Result<Vec<_>, _>>()?;
        let effects = block_on(async {
            let mut room = Room::open(&config).await?;
            for (plugin, name, value) in &states {
                room.set_state(plugin.as_deref(), name, value, &update).await?;
            }
            let effects = room.handle(&update, 1).await;
            room.close().await?;
            effects
        })?;
        say(&if self.json { format!("{}\n", serde_json::to_string_pretty(&effects)?) } else { text(&effects) });
        Ok(if effects.failed.is_some() { Exit::Failed } else { Exit::Done })
    }
}

/// Reads one update; an id is given to one that has none.
pub(super) fn read_update(path: &Path) -> anyhow::Result<Json> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).context("could not read standard input")?;
    } else {
        text = std::fs::read_to_string(path)
            .map_err(|error| WrongArgument(format!("{}: can't be read: {error}", path.display())))?;
    }
    let wrong = |why: String| WrongArgument(format!("{}: {why}", path.display()));
    let mut update: Json = serde_json::from_str(&text).map_err(|error| wrong(format!("is no JSON: {error}")))?;
    let fields = update.as_object_mut().ok_or_else(|| wrong("an update is a JSON object".to_owned()))?;
    fields.entry("update_id").or_insert_with(|| 1.into());
    let text = update.to_string();
    let view = UpdateView::parse(&text).map_err(|error| wrong(error.to_string()))?;
    if view.kind.is_empty() {
        return Err(wrong("the update says nothing of what happened; expected `message` or the like".to_owned()).into());
    }
    Ok(update)
}

type State = (Option<String>, String, Json);

fn parse_state(text: &str) -> Result<State, WrongArgument> {
    let example = "expected something like --state 'age={\"Age\":{\"name\":\"Zoë\"}}'";
    let (name, value) = text.split_once('=').ok_or_else(|| WrongArgument(format!("{text:?}: {example}")))?;
    let value = serde_json::from_str(value)
        .map_err(|error| WrongArgument(format!("{value:?} is no JSON ({error}); {example}")))?;
    let (plugin, name) = match name.split_once(':') {
        Some((plugin, name)) => (Some(plugin.to_owned()), name),
        None => (None, name),
    };
    Ok((plugin, name.to_owned(), value))
}

/// For people.
pub(super) fn text(effects: &Effects) -> String {
    let mut text = String::new();
    let mut line = |part: &str| text += &format!("{}\n", clean(part).replace('\n', "\n    "));
    if effects.asked.is_empty() && effects.failed.is_none() {
        line("no plugin wants this update; `botyard routes` with the same file says why");
    }
    for asked in &effects.asked {
        let looks = if asked.observes { ", looking on" } else { "" };
        line(&format!(
            "{} {}{looks}: {} ({:.1} ms), because of {}",
            asked.plugin,
            asked.version,
            asked.verdict,
            asked.cpu_ms,
            asked.filters.join("; ")
        ));
    }
    if let Some(failed) = &effects.failed {
        line(&format!("nothing comes of it: {failed}"));
    }
    for call in &effects.calls {
        let how = if call.direct { "direct call" } else { "call" };
        let refused = call.refused.as_ref().map(|why| format!("\nrefused: {why}")).unwrap_or_default();
        line(&format!("  {how}  {} {}{refused}", call.method, call.params));
    }
    let shown = |value: &Option<Json>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    for change in &effects.states {
        line(&format!("  state  {}: {} -> {}", change.plugin, shown(&change.before), shown(&change.after)));
    }
    for change in &effects.values {
        let (before, after) = (shown(&change.before), shown(&change.after));
        line(&format!("  value  {} {} {:?}: {before} -> {after}", change.plugin, change.scope, change.key));
    }
    for timer in &effects.timers {
        let repeats = timer.repeats.as_ref().map(|rule| format!(", {rule}")).unwrap_or_default();
        let when = if timer.cancelled { "cancelled, was due" } else { "due" };
        let Timer { plugin, name, seconds, payload, .. } = timer;
        line(&format!("  timer  {plugin} {name:?} {when} in {seconds} s{repeats}: {payload}"));
    }
    for Broadcast { plugin, name, recipients, method, params } in &effects.broadcasts {
        let to = recipients.map_or_else(|| "all known chats".to_owned(), |n| format!("{n} chats"));
        line(&format!("  broadcast  {plugin} {name:?} to {to}: {method} {params}"));
    }
    for logged in &effects.log {
        line(&format!("  log    {logged}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_shown() {
        let (plugin, name, value) = parse_state("form:age={\"Age\":{\"name\":\"a=b:c\"}}").unwrap();
        assert_eq!((plugin.as_deref(), name.as_str()), (Some("form"), "age"));
        assert_eq!(value["Age"]["name"], "a=b:c");
        assert!(parse_state("age").is_err() && parse_state("age=x").is_err());
    }

    #[test]
    fn what_is_no_update_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("u.json");
        for (text, word) in
            [("", "no JSON"), ("[]", "object"), ("{}", "what happened"), ("{\"update_id\": 3}", "what happened")]
        {
            std::fs::write(&file, text).unwrap();
            let error = read_update(&file).unwrap_err();
            assert!(error.to_string().contains(word) && Exit::of(&error) == Exit::Usage, "{text}: {error}");
        }
        std::fs::write(&file, r#"{"message":{"text":"hi"}}"#).unwrap();
        assert_eq!(read_update(&file).unwrap()["update_id"], 1);
        assert!(read_update(&folder.path().join("none")).is_err());
    }
}
