//! `botyard routes`: which plugin takes what. Shows what the manifests say, as the router reads them.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::bot::BotFile;
use super::call::{read_update, room};
use super::exit::{Exit, WrongArgument};
use super::table::{clean, table};
use super::{BotConfig, say};
use crate::dispatch::{Explained, Routes};
use crate::domain::UpdateView;
use crate::plugin::Schedule;

/// Show which plugin takes what, and who would be asked about an update
///
/// Without an update: every plugin in the order they are asked, with all that reaches it. With one: who would
/// be asked, in which turn, and why the others are not.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Show {
    /// A file with one update, or - for standard input
    #[arg(value_name = "UPDATE.json")]
    update: Option<PathBuf>,
    #[command(flatten)]
    config: BotConfig,
    /// The plugins to look at, instead of those in bot.toml
    #[arg(long, value_name = "[NAME=]FILE.wasm")]
    plugin: Vec<String>,
    /// The state that a plugin's conversation is in; by default none is open
    #[arg(long, value_name = "PLUGIN:NAME", requires = "update")]
    state: Vec<String>,
    /// The bot's username, by which commands for another bot are told
    #[arg(long, value_name = "NAME", requires = "update")]
    username: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    plugin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    /// Its turn, where there is an update; 0 for a plugin that is not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<usize>,
    observes: bool,
    /// What it would have to be granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<String>,
    filters: Vec<FilterRow>,
    /// The timers that the host keeps for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedules: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FilterRow {
    filter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

impl Show {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let bot = BotFile::find(&self.config.file.config, &self.plugin)?;
        let routes = room::load(&self.config.choose(&bot.config()?)?)?;
        let rows = match &self.update {
            None => all(&routes),
            Some(path) => {
                let states = self.states(&routes)?;
                let update = read_update(path)?.to_string();
                let view = UpdateView::parse(&update)?;
                let state_of = |plugin: &crate::plugin::Plugin| {
                    states.iter().find(|(name, _)| name == plugin.name.as_str()).map(|(_, state)| state.clone())
                };
                routes.explain(&view, self.username.as_deref(), state_of).into_iter().map(Row::of).collect()
            }
        };
        let shown = match (self.json, &self.update) {
            (true, _) => format!("{}\n", serde_json::to_string_pretty(&rows)?),
            (false, None) => overview(&rows),
            (false, Some(_)) => explanation(&rows),
        };
        say(&shown);
        Ok(Exit::Done)
    }

    fn states(&self, routes: &Routes) -> anyhow::Result<Vec<(String, String)>> {
        let mut states = Vec::new();
        for state in &self.state {
            let (plugin, name) = state.split_once(':').unwrap_or(("", state));
            let Some(entry) = routes.entries().iter().find(|entry| entry.plugin.name.as_str() == plugin) else {
                let message = format!("--state {state}: there is no plugin {plugin:?}; expected PLUGIN:NAME");
                return Err(WrongArgument(message).into());
            };
            states.push((entry.plugin.name.to_string(), name.to_owned()));
        }
        Ok(states)
    }
}

impl Row {
    fn of(Explained { plugin, turn, observes, denied, filters }: Explained) -> Self {
        let filters = filters.into_iter().map(|(filter, why_not)| FilterRow { filter, why_not }).collect();
        Self {
            plugin: plugin.to_string(),
            priority: None,
            turn: Some(turn.unwrap_or(0)),
            observes,
            denied,
            filters,
            schedules: Vec::new(),
        }
    }
}

fn all(routes: &Routes) -> Vec<Row> {
    let row = |entry: &crate::dispatch::Entry| {
        let manifest = &entry.plugin.manifest;
        let filters = &manifest.filters;
        let timer = |schedule: &Schedule| format!("its timer {}, {}", schedule.name, schedule.rule);
        Row {
            plugin: entry.plugin.name.to_string(),
            priority: Some(entry.priority),
            turn: None,
            observes: filters.iter().all(|filter| filter.observe) && !filters.is_empty(),
            denied: None,
            filters: filters.iter().map(|filter| FilterRow { filter: filter.to_string(), why_not: None }).collect(),
            schedules: manifest.schedules.iter().map(timer).collect(),
        }
    };
    routes.entries().iter().map(row).collect()
}

fn overview(rows: &[Row]) -> String {
    let mut cells = Vec::new();
    for row in rows {
        let (mut name, mut priority) = (row.plugin.clone(), row.priority.unwrap_or_default().to_string());
        for filter in row.filters.iter().map(|row| &row.filter).chain(&row.schedules) {
            cells.push([std::mem::take(&mut priority), std::mem::take(&mut name), clean(filter)]);
        }
        if row.filters.is_empty() && row.schedules.is_empty() {
            cells.push([priority, name, "nothing: no update reaches it".to_owned()]);
        }
    }
    table(["PRIORITY", "PLUGIN", "TAKES"], &cells)
        + "\nAsked from the top, until one takes the update; one whose conversation waits for it goes first.\n"
}

fn explanation(rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| if row.turn == Some(0) { usize::MAX } else { row.turn.unwrap_or_default() });
    let mut text = String::new();
    for row in rows {
        let turn = match row.turn {
            Some(turn) if turn > 0 && row.observes => format!("{turn}. looks on"),
            Some(turn) if turn > 0 => format!("{turn}. is asked"),
            _ => row.denied.as_ref().map_or("is not asked".to_owned(), |denied| format!("is not asked: {denied}")),
        };
        text += &format!("{}: {turn}\n", row.plugin);
        for FilterRow { filter, why_not } in &row.filters {
            let verdict = why_not.as_ref().map_or_else(|| "fits".to_owned(), |why| format!("no: {why}"));
            text += &clean(&format!("    {filter}: {verdict}\n"));
        }
    }
    text
}
