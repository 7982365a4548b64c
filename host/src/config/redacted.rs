//! The effective configuration in the words of `bot.toml`, for `botyard check` and the log. Secrets are masked.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;

use super::redaction::{MASK, redact};
use super::{
    AllowedUpdates, Broadcasting, Config, Grants, Jobs, Mode, OneBot, Plugin, Tls, Webhook, show_bytes, show_duration,
};
use crate::domain::{BotName, ChatGrant};

pub(super) fn print(config: &Config) -> String {
    let mut out = Lines::default();
    for (name, bot) in &config.bots {
        print_bot(&mut out, name, bot);
    }

    out.section("dispatch");
    out.value("concurrency", &config.dispatch.concurrency.into());
    out.value("max_attempts", &config.dispatch.max_attempts.into());
    out.value("jobs", &config.dispatch.jobs.into());
    out.value("dead_letters", &config.dispatch.dead_letters.into());
    out.text("dead_letter_bytes", &show_bytes(config.dispatch.dead_letter_bytes));
    out.text("dead_letter_age", &show_duration(config.dispatch.dead_letter_age));
    out.text("acknowledge_callbacks", &show_duration(config.dispatch.acknowledge_callbacks));

    out.section("store");
    out.path("path", &config.store.path);

    out.section("i18n");
    out.text("default_locale", &config.i18n.default_locale);
    if let Some(locales) = &config.i18n.locales {
        out.path("locales", locales);
    }

    out.section("admin");
    out.text("listen", &config.admin.listen.to_string());

    for (name, plugin) in &config.plugins {
        print_plugin(&mut out, &format!("plugins.{name}"), plugin);
    }
    redact(&out.0).into_owned()
}

/// The one bot's sections stand by themselves, another's below its name.
fn print_bot(out: &mut Lines, name: &BotName, one: &OneBot) {
    let OneBot { bot, intake, send } = one;
    let is_the_one = name.as_str() == BotName::OF_THE_ONE;
    let below = |section: &str| if is_the_one { section.to_owned() } else { format!("bots.{name}.{section}") };
    out.section(&if is_the_one { "bot".to_owned() } else { format!("bots.{name}") });
    if bot.token.is_some() {
        out.text("token", MASK);
    }
    out.text("api_base", &bot.api_base);
    out.value("local_server", &bot.local_server.into());
    if let Some(folder) = &bot.local_files {
        out.path("local_files", folder);
    }
    out.value("commands", &bot.commands.into());

    out.section(&below("intake"));
    out.text(
        "mode",
        match intake.mode {
            Mode::Polling => "polling",
            Mode::Webhook => "webhook",
        },
    );
    out.text("poll_timeout", &show_duration(intake.poll_timeout));
    match &intake.allowed_updates {
        AllowedUpdates::Auto => out.text("allowed_updates", "auto"),
        AllowedUpdates::Only(names) => out.value("allowed_updates", &texts(names)),
    }

    if let Some(webhook) = &intake.webhook {
        print_webhook(out, &below("intake.webhook"), webhook);
    }

    out.section(&below("send"));
    out.value("overall_per_second", &send.overall_per_second.into());
    out.value("chat_per_second", &send.chat_per_second.into());
    out.value("group_per_minute", &send.group_per_minute.into());
    out.value("bulk_per_second", &send.bulk_per_second.into());
    out.text("cache_ttl", &show_duration(send.cache_ttl));
    out.value("paid_per_second", &send.paid_per_second.into());
}

fn print_webhook(out: &mut Lines, section: &str, webhook: &Webhook) {
    let Webhook { url, listen, secret, max_connections, ip_address, tls } = webhook;
    out.section(section);
    out.text("url", url);
    out.text("listen", &listen.to_string());
    if secret.is_some() {
        out.text("secret", MASK);
    }
    out.value("max_connections", &(*max_connections).into());
    if let Some(address) = ip_address {
        out.text("ip_address", &address.to_string());
    }
    if let Some(Tls { certificate, key, self_signed }) = tls {
        out.path("certificate", certificate);
        out.path("key", key);
        out.value("self_signed", &(*self_signed).into());
    }
}

fn print_plugin(out: &mut Lines, name: &str, plugin: &Plugin) {
    out.section(name);
    out.path("path", &plugin.path);
    out.value("enabled", &plugin.enabled.into());
    if let Some(bots) = &plugin.bots {
        out.value("bots", &bots.iter().map(BotName::as_str).collect());
    }
    out.value("priority", &plugin.priority.into());
    out.value("config", &plugin.config);
    let masked = plugin.secrets.keys().map(|name| (name.clone(), MASK.into())).collect();
    out.value("secrets", &Json::Object(masked));
    out.text("on_crash", plugin.on_crash.name());
    out.text("probation", &show_duration(plugin.probation));
    out.value("canary", &plugin.canary.into());
    out.text("pin", plugin.pin.name());

    let Grants { methods, kinds, chats, broadcast, http } = &plugin.grants;
    out.section(&format!("{name}.grants"));
    if let Some(methods) = methods {
        out.value("methods", &texts(methods));
    }
    if let Some(kinds) = kinds {
        out.value("kinds", &texts(kinds));
    }
    if let Some(chats) = chats {
        let chat = |chat: &ChatGrant| match chat {
            ChatGrant::Kind(kind) => (*kind).into(),
            ChatGrant::Id(id) => id.0.into(),
            ChatGrant::Name(name) => format!("@{name}").into(),
        };
        out.value("chats", &Json::Array(chats.iter().map(chat).collect()));
    }
    let broadcast = match broadcast {
        Broadcasting::Denied => false.into(),
        Broadcasting::Free => true.into(),
        Broadcasting::Paid => "paid".into(),
    };
    out.value("broadcast", &broadcast);
    out.value("http", &http.iter().map(ToString::to_string).collect());

    out.section(&format!("{name}.limits"));
    for (key, limit) in plugin.limits.shown() {
        // Numbers stand as they are, everything else in quotes.
        match limit.parse::<u64>() {
            Ok(number) => out.value(key, &number.into()),
            Err(_) => out.text(key, &limit),
        }
    }

    let Jobs { waiting, workers, attempts, cpu, time, memory } = &plugin.jobs;
    out.section(&format!("{name}.jobs"));
    out.value("waiting", &(*waiting).into());
    out.value("workers", &(*workers).into());
    out.value("attempts", &(*attempts).into());
    out.text("cpu", &show_duration(*cpu));
    out.text("time", &show_duration(*time));
    out.text("memory", &show_bytes(*memory));
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn section(&mut self, name: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.line(format_args!("{gap}[{name}]"));
    }

    fn text(&mut self, key: &str, text: &str) {
        self.value(key, &text.into());
    }

    fn path(&mut self, key: &str, path: &Path) {
        self.text(key, &path.to_string_lossy());
    }

    fn value(&mut self, key: &str, value: &Json) {
        self.line(format_args!("{key} = {}", inline(value)));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a String takes all text");
    }
}

fn texts(texts: &[String]) -> Json {
    texts.iter().map(String::as_str).collect()
}

/// A value on one line. JSON and TOML write texts and numbers alike; tables differ.
fn inline(value: &Json) -> String {
    match value {
        Json::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Json::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{} = {}", bare(key), inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

fn bare(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_bare { key.to_owned() } else { Json::from(key).to_string() }
}
