//! What a plugin's file is and wants, for whoever thinks about letting it in.

use std::fmt::Write as _;

use serde::Serialize;

use crate::cli::check::size;
use crate::plugin::{self, Plugin, Rights};

/// Everything that is said of a file.
#[derive(Debug, Serialize)]
pub(super) struct Sheet {
    file: String,
    bytes: u64,
    sha256: String,
    /// As the host calls it, in its log and lists.
    version: String,
    name: String,
    manifest_version: String,
    description: String,
    commands: Vec<String>,
    locales: Vec<String>,
    /// What a conversation is.
    key: String,
    /// 0 where it keeps no states.
    state_version: u32,
    /// Names of the timers that the host keeps for it.
    recurs: Vec<String>,
    /// Its filters, in words.
    answers_to: Vec<String>,
    /// Sees events that others take.
    observes: bool,
    /// With their versions.
    interfaces: Vec<String>,
    rights: Rights,
    /// The names of the secrets that it is handed.
    pub(super) secrets: Vec<String>,
    /// What the host would warn of.
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared>,
}

/// The differences to what is installed.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// The entry in `bot.toml`.
    pub(super) with: String,
    pub(super) same_file: bool,
    pub(super) gains: Rights,
    pub(super) loses: Rights,
}

impl Compared {
    pub(super) fn new(with: &str, same_file: bool, new: &Rights, old: &Rights) -> Self {
        Self { with: with.to_owned(), same_file, gains: new.beyond(old), loses: old.beyond(new) }
    }

    pub(super) fn text(&self) -> String {
        let mut text = match self.same_file {
            true => format!("the same file as the installed `{}`\n", self.with),
            false if self.gains.is_empty() => format!("wants no more than the installed `{}`\n", self.with),
            false => format!("wants more than the installed `{}`:\n", self.with),
        };
        for (sign, rights) in [('+', &self.gains), ('-', &self.loses)] {
            text.extend(rights.lines().iter().map(|line| format!("  {sign} {line}\n")));
        }
        text
    }
}

impl Sheet {
    pub(super) fn of(file: &str, wasm: &[u8], plugin: &Plugin, compared: Option<Compared>) -> Self {
        let manifest = &plugin.manifest;
        Self {
            file: file.to_owned(),
            bytes: wasm.len() as u64,
            sha256: plugin::file_hash(wasm),
            version: plugin.version.to_string(),
            name: manifest.name.clone(),
            manifest_version: manifest.version.clone(),
            description: manifest.description.clone(),
            commands: manifest.commands.iter().map(|command| command.name.clone()).collect(),
            locales: plugin.locales().collect(),
            key: manifest.key.to_string(),
            state_version: manifest.state_version,
            recurs: manifest.schedules.iter().map(|schedule| schedule.name.clone()).collect(),
            answers_to: manifest.filters.iter().map(ToString::to_string).collect(),
            observes: manifest.filters.iter().any(|filter| filter.observe),
            interfaces: plugin.interfaces.clone(),
            rights: plugin.rights.clone(),
            secrets: Vec::new(),
            warnings: plugin.warnings.iter().map(|warning| warning.replace(" of [plugins.plugin]", "")).collect(),
            compared,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: &str| {
            if !value.is_empty() {
                writeln!(text, "{what:<12} {value}").expect("writing to a text can't fail");
            }
        };
        let joined = |list: &[String]| list.join(", ");
        line("plugin", format!("{} {}", self.name, self.manifest_version).trim());
        line("", "");
        line("about", &self.description);
        line("file", &format!("{} ({})", self.file, size(self.bytes)));
        line("sha256", &self.sha256);
        line("commands", &self.commands.iter().map(|name| format!("/{name}")).collect::<Vec<_>>().join(", "));
        line("languages", &joined(&self.locales));
        line(
            "states",
            &match self.state_version {
                0 => String::new(),
                version => format!("version {version}, one for each {}", self.key.replace('_', " ")),
            },
        );
        line("calls", &joined(&self.rights.methods));
        line(
            "is given",
            &match self.rights.kinds.first().map(String::as_str) {
                Some("*") => "every kind of update".to_owned(),
                _ => joined(&self.rights.kinds),
            },
        );
        for (index, filter) in self.answers_to.iter().enumerate() {
            line(if index == 0 { "answers to" } else { "" }, filter);
        }
        line("requests to", &joined(&self.rights.http));
        line("is handed", &self.secrets.iter().map(|name| format!("the secret {name}")).collect::<Vec<_>>().join(", "));
        line("recurs", &joined(&self.recurs));
        if self.observes {
            line("looks on", "sees events that other plugins take");
        }
        for (index, interface) in self.interfaces.iter().enumerate() {
            line(if index == 0 { "uses" } else { "" }, &format!("{interface}{}", meaning(interface)));
        }
        for warning in &self.warnings {
            line("to grant", warning);
        }
        if let Some(compared) = &self.compared {
            write!(text, "\n{}", compared.text()).expect("writing to a text can't fail");
        }
        text
    }
}

/// What an operator should know of an interface before saying yes.
fn meaning(interface: &str) -> &'static str {
    match interface.split('@').next().unwrap_or_default() {
        "botyard:broadcast/broadcasts" => ": sends to many chats at once, once it is granted `broadcast`",
        "botyard:config/config" => ": reads its own `config`, and the `secrets` of its entry",
        "botyard:http/client" => ": sends HTTP requests to the servers that it names, once they are granted",
        "botyard:jobs/jobs" => ": queues heavy work, within the bounds of its `jobs`",
        "botyard:schedule/timers" => ": sets timers",
        "botyard:files/files" => ": makes files, and fetches those of people",
        "botyard:telegram/chats" => ": is told what the host knows of chats",
        "botyard:i18n/languages" => ": keeps the languages that people choose, for all plugins",
        "botyard:storage/key-value" => ": keeps values",
        "botyard:fsm/conversation" => ": keeps states of conversations",
        _ => "",
    }
}
