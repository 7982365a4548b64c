//! What Telegram says: of the token, of a webhook, and of the time.

use std::time::Duration;

use bytes::Bytes;
use secrecy::ExposeSecret as _;
use serde_json::Value as Json;

use super::{Finding, Health, called};
use crate::clock::{unix_millis, utc};
use crate::config::{Config, Mode};
use crate::telegram::{Client, Error, Token, WebhookInfo, host};

const DEADLINE: Duration = Duration::from_secs(10);
/// A clock that is wrong by more than this spoils timers; TLS bears with days.
const SKEW: u64 = 60;
/// What Telegram met longer ago, in seconds, is history.
const RECENT: u64 = 3_600;

/// Each of the bots, and the time.
pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for config in config.bots.keys().filter_map(|name| config.of(name)) {
        findings.extend(look_at(&config).await);
    }
    findings.extend(time(&config.bot.api_base).await.map(|theirs| clock(theirs, unix_millis() / 1000)));
    findings
}

async fn look_at(config: &Config) -> Vec<Finding> {
    let what = |what: &str| called(what, config);
    let Some(token) = &config.bot.token else {
        let mend = format!(
            "@BotFather gives one: set the variable that `token` in {} names. --simulator needs none",
            config.section()
        );
        return vec![Finding::new(Health::Warn, &what("token"), "there is none", mend)];
    };
    let client = match Token::parse(token.expose_secret()).map(|token| Client::new(&config.bot.api_base, token)) {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return vec![Finding::new(Health::Fail, &what("network"), error.to_string(), "")],
        // Told of by the look at the configuration.
        Err(_) => return Vec::new(),
    };
    let me = match client.call("getMe", Bytes::from_static(b"{}"), DEADLINE).await {
        Ok(me) => serde_json::from_slice::<Json>(&me).unwrap_or_default(),
        Err(error) => return vec![unreachable(&error, config)],
    };
    let name = me["username"].as_str().unwrap_or("without a name");
    let webhook = match client.webhook_info().await {
        Ok(info) => webhook(&info, config, unix_millis() / 1000),
        Err(error) => Finding::new(Health::Warn, &what("webhook"), error.to_string(), ""),
    };
    vec![Finding::ok(&what("bot"), format!("this is @{name}")), webhook]
}

fn unreachable(error: &Error, config: &Config) -> Finding {
    let section = config.section();
    match error {
        Error::Unauthorized { .. } | Error::Refused { code: 404, .. } => {
            let mend = format!("look at `token` in {section}, or ask @BotFather for a new one");
            Finding::new(Health::Fail, &called("bot", config), format!("Telegram does not know it: {error}"), mend)
        }
        error => {
            let mend = format!(
                "the bot starts all the same, and goes on when the network is there; look at `api_base` in {section}"
            );
            Finding::new(Health::Warn, &called("network", config), error.to_string(), mend)
        }
    }
}

/// Of a webhook's address only the host is told: what follows is often a secret.
fn webhook(info: &WebhookInfo, config: &Config, now: u64) -> Finding {
    let what = called("webhook", config);
    let waiting = format!("{} updates wait at Telegram", info.pending_update_count);
    let wanted = match (config.intake.mode, &config.intake.webhook) {
        (Mode::Webhook, Some(webhook)) => webhook,
        _ if info.url.is_empty() => return Finding::ok(&what, format!("none is set, as polling needs it; {waiting}")),
        _ => {
            let mend = "as long as it is set, polling gets nothing: a host that had set it removes it at its start; of \
                        another program's, `botyard run --take-over` or `botyard webhook delete` does";
            return Finding::new(Health::Fail, &what, format!("one is set, at {}; {waiting}", info.host()), mend);
        }
    };
    if info.url.is_empty() {
        return Finding::new(Health::Warn, &what, format!("none is set; {waiting}"), "the bot sets it at its start");
    }
    if info.url != wanted.url {
        let found = format!("it leads to {}, and not to `url` at {}; {waiting}", info.host(), host(&wanted.url));
        return Finding::new(
            Health::Warn,
            &what,
            found,
            "the bot sets it at its start, and so does `botyard webhook set`",
        );
    }
    let at = info.ip_address.as_ref().map(|address| format!(" ({address})")).unwrap_or_default();
    let place = format!("at {}{at}; {waiting}", info.host());
    match (&info.last_error_message, info.last_error_date) {
        (Some(trouble), Some(date)) if now.saturating_sub(date) < RECENT => {
            let found = format!("{place}; at {} UTC Telegram met: {trouble}", utc(date * 1000));
            let mend = "see that the host runs, and that what stands before it passes the calls on to `listen`";
            Finding::new(Health::Warn, &what, found, mend)
        }
        _ => Finding::ok(&what, place),
    }
}

/// What time it is there, in Unix seconds. Asked without the token.
async fn time(api_base: &str) -> Option<u64> {
    let mut client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(DEADLINE);
    if api_base.starts_with("http:") {
        client = client.no_proxy().tls_certs_only(std::iter::empty());
    }
    let answer = client.build().ok()?.get(api_base).send().await.ok()?;
    parse_date(answer.headers().get("date")?.to_str().ok()?)
}

fn clock(theirs: u64, ours: u64) -> Finding {
    let difference = theirs.abs_diff(ours);
    if difference <= SKEW {
        return Finding::ok("clock", "right to the minute");
    }
    let way = if ours > theirs { "ahead" } else { "behind" };
    Finding::new(
        Health::Warn,
        "clock",
        format!("{difference} s {way} of Telegram's"),
        "timers and states that expire go by this machine's clock: let it be set by NTP (`timedatectl set-ntp true`)",
    )
}

/// `Mon, 30 Nov 2026 04:22:48 GMT`
fn parse_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_whitespace().skip(1);
    let day: u64 = parts.next()?.parse().ok()?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = parts.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut time = parts.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    // Howard Hinnant's `days_from_civil`.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let days = (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Mon, 30 Nov 2026 04:22:48 GMT", Some(1_796_012_568)),
            ("Mon, 28 Feb 2000 23:59:59 GMT", Some(951_782_399)),
            ("yesterday", None),
            ("Mon, 30 Nov", None),
        ] {
            assert_eq!(parse_date(text), seconds, "{text}");
        }
    }

    fn config(text: &str) -> Config {
        let options = crate::config::LoadOptions { token_optional: true };
        let path = std::path::Path::new("/x/bot.toml");
        Config::parse(path, text, &crate::config::Environment::default(), options).unwrap()
    }

    #[test]
    fn what_telegram_says_is_put_into_words() {
        assert_eq!(clock(1000, 1059).health, Health::Ok);
        assert!(clock(1000, 2000).found.contains("1000 s ahead"), "{:?}", clock(1000, 2000));
        let (method, description) = ("getMe".to_owned(), "Unauthorized".to_owned());
        let unknown = Error::Unauthorized { method, code: 401, description };
        assert_eq!(unreachable(&unknown, &config("[bots.shop]")).health, Health::Fail);
    }

    #[test]
    fn a_webhook_has_to_be_the_one_that_is_wanted() {
        let polls = config("[bot]");
        let hears = config("[intake]\nmode = \"webhook\"\nwebhook.url = \"https://bot.example/secret-path\"");
        let at = |url: &str| WebhookInfo { url: url.to_owned(), pending_update_count: 3, ..WebhookInfo::default() };
        let failing = |date| {
            let message = Some("Connection refused".to_owned());
            let last_error_date = Some(date);
            WebhookInfo { last_error_date, last_error_message: message, ..at("https://bot.example/secret-path") }
        };
        for (info, config, health, words) in [
            (at(""), &polls, Health::Ok, "none is set"),
            (at("https://bot.example/secret-path"), &polls, Health::Fail, "at bot.example"),
            (at(""), &hears, Health::Warn, "none is set"),
            (at("https://other.example/secret"), &hears, Health::Warn, "to other.example, and not to"),
            (at("https://bot.example/secret-path"), &hears, Health::Ok, "at bot.example; 3 updates"),
            (failing(100_000), &hears, Health::Warn, "met: Connection refused"),
            (failing(9), &hears, Health::Ok, "at bot.example"),
        ] {
            let finding = webhook(&info, config, 100_500);
            assert!(finding.health == health && finding.found.contains(words), "{finding:?}");
            assert!(!finding.found.contains("secret"), "{finding:?}");
        }
    }
}
