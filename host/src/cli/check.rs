//! `botyard check`: everything that could keep the bot from starting, at once, without starting it.

use std::path::Path;

use clap::Args;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::exit::Exit;
use super::inspect::{self, Inspector};
use super::table::clean;
use super::{ConfigFile, say};
use crate::config::{self, Config, Examined, LoadOptions, OneBot, Origin, Problem, Problems, show_bytes};
use crate::domain::{BotName, PluginName};
use crate::intake;
use crate::store;
use crate::telegram::Token;

/// Check the configuration and everything it names, without starting anything
///
/// Keys and values, the token's form, the store's folder, and that every plugin loads and is let in by
/// bot.lock: all problems at once. Nothing is sent.
///
/// Exit code 0: all is well; 2: the configuration is wrong; 1: something that it names is.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Check {
    #[command(flatten)]
    file: ConfigFile,
    /// Check for a run with --simulator, which needs no token
    #[arg(long)]
    simulator: bool,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

/// The whole report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) ok: bool,
    file: String,
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<Part>,
    /// Where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bots: Vec<BotReport>,
    plugins: Vec<PluginReport>,
    /// The effective configuration, secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
}

/// A problem or warning and its place.
#[derive(Debug, Serialize)]
struct Finding {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    message: String,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct Part {
    ok: bool,
    message: String,
}

#[derive(Debug, Serialize)]
struct BotReport {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<Part>,
}

#[derive(Debug, Serialize)]
struct PluginReport {
    name: String,
    path: String,
    enabled: bool,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<inspect::Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Check {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let options = LoadOptions { token_optional: self.simulator };
        let report = match Config::examine(&self.file.config, options) {
            Ok(examined) => Report::of(&examined, &mut Inspector::default()),
            Err(config::Error::Invalid(problems)) => Report::without_config(&problems),
            Err(error) if self.json => Report::without_config(&Problems {
                file: self.file.config.clone(),
                list: vec![Problem { origin: Origin::Whole, message: error.to_string() }],
            }),
            Err(error) => return Err(error.into()),
        };
        if self.json {
            say(&format!("{}\n", serde_json::to_string_pretty(&report)?));
        } else {
            say(&report.table());
        }
        Ok(report.exit())
    }
}

impl Report {
    pub(super) fn of(examined: &Examined, inspector: &mut Inspector) -> Self {
        let Examined { config, problems } = examined;
        let plugins: Vec<PluginReport> =
            config.plugins.iter().map(|(name, plugin)| PluginReport::of(name, plugin, config, inspector)).collect();
        let mut bots: Vec<BotReport> = config.bots.iter().map(|(name, bot)| BotReport::of(name, bot)).collect();
        let (token, webhook) = match &mut bots[..] {
            [one] => (one.token.take(), one.webhook.take()),
            _ => (None, None),
        };
        bots.retain(|_| config.bots.len() > 1);
        let mut report = Self {
            token,
            store: Some(check_store(&config.store.path)),
            webhook,
            bots,
            plugins,
            warnings: config.warnings.iter().map(|warning| Finding::of(warning, &problems.file)).collect(),
            config: Some(config.redacted()),
            ..Self::without_config(problems)
        };
        let of_bots = report.bots.iter().flat_map(|bot| [&bot.token, &bot.webhook]);
        let parts = [&report.token, &report.store, &report.webhook].into_iter().chain(of_bots);
        let parts_are_fine = parts.flatten().all(|part| part.ok);
        let plugins_are_fine = report.plugins.iter().all(|plugin| plugin.ok);
        report.ok = report.problems.is_empty() && parts_are_fine && plugins_are_fine;
        report
    }

    fn without_config(problems: &Problems) -> Self {
        Self {
            ok: false,
            file: problems.file.display().to_string(),
            problems: problems.list.iter().map(|problem| Finding::of(problem, &problems.file)).collect(),
            warnings: Vec::new(),
            token: None,
            store: None,
            webhook: None,
            bots: Vec::new(),
            plugins: Vec::new(),
            config: None,
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.problems.is_empty(), self.ok) {
            (false, _) => Exit::Usage,
            (true, false) => Exit::Failed,
            (true, true) => Exit::Done,
        }
    }

    /// Each part that was looked at: `ok`, `off` or `WRONG`, its name, its place, and how it is.
    pub(super) fn rows(&self) -> Vec<[String; 4]> {
        let mut rows: Vec<[String; 4]> = Vec::new();
        let mark = |ok: bool| if ok { "ok" } else { "WRONG" }.to_owned();
        let configuration = match self.problems.len() {
            0 => "read".to_owned(),
            1 => "1 problem".to_owned(),
            n => format!("{n} problems"),
        };
        rows.push([mark(self.problems.is_empty()), "configuration".to_owned(), self.file.clone(), configuration]);
        for (name, part) in [("token", &self.token), ("store", &self.store), ("webhook", &self.webhook)] {
            if let Some(Part { ok, message }) = part {
                rows.push([mark(*ok), name.to_owned(), String::new(), message.clone()]);
            }
        }
        for BotReport { name, token, webhook } in &self.bots {
            for (what, part) in [("token", token), ("webhook", webhook)] {
                if let Some(Part { ok, message }) = part {
                    rows.push([mark(*ok), format!("{what} of {name}"), String::new(), message.clone()]);
                }
            }
        }
        rows.extend(self.plugins.iter().map(|plugin| {
            let mark = if plugin.enabled { mark(plugin.ok) } else { "off".to_owned() };
            [mark, format!("plugin {}", plugin.name), plugin.path.clone(), plugin.words()]
        }));
        rows
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut text = table(&self.rows());
        for plugin in &self.plugins {
            let Some(summary) = &plugin.summary else { continue };
            if !summary.answers_to.is_empty() {
                text +=
                    &format!("        plugin {} answers to: {}\n", plugin.name, clean(&summary.answers_to.join("; ")));
            }
            for warning in &summary.warnings {
                text += &format!("        plugin {}: {warning}\n", plugin.name);
            }
        }
        for (title, findings) in [("problems", &self.problems), ("warnings", &self.warnings)] {
            if !findings.is_empty() {
                text += &format!("\n{title}:\n");
                text.extend(findings.iter().map(|finding| format!("  {}\n", finding.text)));
            }
        }
        text
    }
}

/// Columns as wide as their widest cell; the last one runs free. Empty cells are left out with their gap.
fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let line = |[mark, name, path, words]: &[String; 4]| {
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        format!("{mark:first$}  {name:second$}  {path}{words}\n")
    };
    rows.iter().map(line).collect()
}

impl Finding {
    fn of(problem: &Problem, file: &Path) -> Self {
        let (line, column, variable) = match &problem.origin {
            Origin::At { line, column } => (Some(*line), Some(*column), None),
            Origin::Variable(name) => (None, None, Some(name.to_string())),
            Origin::Whole => (None, None, None),
        };
        Self { line, column, variable, message: problem.message.clone(), text: problem.line(file) }
    }
}

impl BotReport {
    fn of(name: &BotName, one: &OneBot) -> Self {
        Self {
            name: name.to_string(),
            token: one.bot.token.as_ref().map(|token| check_token(token.expose_secret())),
            webhook: one.intake.webhook.as_ref().and_then(|webhook| Some(check_tls(webhook.tls.as_ref()?))),
        }
    }
}

impl PluginReport {
    fn of(name: &PluginName, plugin: &config::Plugin, config: &Config, inspector: &mut Inspector) -> Self {
        let inspected = plugin.enabled.then(|| inspector.inspect(name, plugin, config)).transpose();
        let (summary, error) = match inspected {
            Ok(summary) => (summary, None),
            Err(error) => (None, Some(error)),
        };
        Self {
            name: name.to_string(),
            path: plugin.path.display().to_string(),
            enabled: plugin.enabled,
            ok: error.is_none(),
            summary,
            error,
        }
    }

    fn words(&self) -> String {
        match (&self.summary, &self.error) {
            (_, Some(error)) => error.clone(),
            (Some(summary), None) => format!("version {}, {}", summary.version, size(summary.bytes)),
            (None, None) => "disabled, not looked at".to_owned(),
        }
    }
}

fn check_token(token: &str) -> Part {
    match Token::parse(token) {
        Ok(token) => Part { ok: true, message: format!("has the right form, for the bot {}", token.bot_id()) },
        Err(error) => Part { ok: false, message: error.to_string() },
    }
}

fn check_tls(files: &config::Tls) -> Part {
    match intake::test_tls(files) {
        Ok(()) => Part { ok: true, message: "certificate and key can be used".to_owned() },
        Err(error) => Part { ok: false, message: error.to_string() },
    }
}

fn check_store(path: &Path) -> Part {
    let (ok, message) = match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => (false, "is a file, not a folder".to_owned()),
        Ok(_) => match store::Store::open(path) {
            Ok(_) => (true, "can be used".to_owned()),
            Err(store::Error::Locked { .. }) => (true, "in use by a running host".to_owned()),
            Err(error) => (false, error.to_string()),
        },
        Err(_) => can_be_made(path),
    };
    Part { ok, message: format!("{}: {message}", path.display()) }
}

fn can_be_made(path: &Path) -> (bool, String) {
    let Some(above) = path.ancestors().skip(1).find(|folder| folder.exists()) else {
        return (false, "there is no folder above it".to_owned());
    };
    match rustix::fs::access(above, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        Ok(()) if above.is_dir() => (true, "will be made".to_owned()),
        Ok(()) => (false, format!("can't be made: {} is a file", above.display())),
        Err(error) => (false, format!("can't be made in {}: {error}", above.display())),
    }
}

/// Rounded: `show_bytes` is exact.
pub(super) fn size(bytes: u64) -> String {
    if bytes < 10_240 { show_bytes(bytes) } else { show_bytes(bytes.div_ceil(1_024) * 1_024) }
}
