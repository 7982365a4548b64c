//! The effective configuration in the words of `bot.toml`, for `botyard check` and the log. Secrets are masked.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;

use super::redaction::{MASK, redact};
use super::{AllowedUpdates, Config, Grants, Limits, Mode, Plugin, show_bytes, show_duration};

pub(super) fn print(config: &Config) -> String {
    let mut out = Lines::default();
    out.section("bot");
    if config.bot.token.is_some() {
        out.text("token", MASK);
    }
    out.text("api_base", &config.bot.api_base);

    out.section("intake");
    let Mode::Polling = config.intake.mode;
    out.text("mode", "polling");
    out.text("poll_timeout", &show_duration(config.intake.poll_timeout));
    match &config.intake.allowed_updates {
        AllowedUpdates::Auto => out.text("allowed_updates", "auto"),
        AllowedUpdates::Only(names) => out.value("allowed_updates", &texts(names)),
    }

    out.section("dispatch");
    out.value("concurrency", &config.dispatch.concurrency.into());
    out.value("max_attempts", &config.dispatch.max_attempts.into());

    out.section("send");
    out.value("overall_per_second", &config.send.overall_per_second.into());
    out.value("chat_per_second", &config.send.chat_per_second.into());
    out.value("group_per_minute", &config.send.group_per_minute.into());
    out.value("bulk_per_second", &config.send.bulk_per_second.into());

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

fn print_plugin(out: &mut Lines, name: &str, plugin: &Plugin) {
    out.section(name);
    out.path("path", &plugin.path);
    out.value("enabled", &plugin.enabled.into());
    out.value("priority", &plugin.priority.into());
    out.value("config", &plugin.config);
    let masked = plugin.secrets.keys().map(|name| (name.clone(), MASK.into())).collect();
    out.value("secrets", &Json::Object(masked));

    let Grants { methods, http } = &plugin.grants;
    out.section(&format!("{name}.grants"));
    if let Some(methods) = methods {
        out.value("methods", &texts(methods));
    }
    out.value("http", &http.iter().map(ToString::to_string).collect());

    let Limits { memory, cpu, time, state, value, calls, log, http_bytes, http_calls, http_per_minute } =
        &plugin.limits;
    out.section(&format!("{name}.limits"));
    out.text("memory", &show_bytes(*memory));
    out.text("cpu", &show_duration(*cpu));
    out.text("time", &show_duration(*time));
    out.text("state", &show_bytes(*state));
    out.text("value", &show_bytes(*value));
    out.value("calls", &(*calls).into());
    out.text("log", &show_bytes(*log));
    out.text("http_bytes", &show_bytes(*http_bytes));
    out.value("http_calls", &(*http_calls).into());
    out.value("http_per_minute", &(*http_per_minute).into());
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
