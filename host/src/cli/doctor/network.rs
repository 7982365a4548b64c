//! What Telegram says: of the token, of a webhook, and of the time.

use std::time::Duration;

use bytes::Bytes;
use secrecy::ExposeSecret as _;
use serde_json::Value as Json;

use super::{Finding, Health};
use crate::clock::unix_millis;
use crate::config::Config;
use crate::telegram::{Client, Error, Token};

const DEADLINE: Duration = Duration::from_secs(10);
/// A clock that is wrong by more than this spoils timers; TLS bears with days.
const SKEW: u64 = 60;

pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let Some(token) = &config.bot.token else {
        let mend = "@BotFather gives one: set the variable that `token` in [bot] names. --simulator needs none";
        return vec![Finding::new(Health::Warn, "token", "there is none", mend)];
    };
    let client = match Token::parse(token.expose_secret()).map(|token| Client::new(&config.bot.api_base, token)) {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return vec![Finding::new(Health::Fail, "network", error.to_string(), "")],
        // Told of by the look at the configuration.
        Err(_) => return Vec::new(),
    };
    let me = match call(&client, "getMe").await {
        Ok(me) => me,
        Err(error) => return vec![unreachable(&error)],
    };
    let name = me["username"].as_str().unwrap_or("without a name");
    let mut findings = vec![Finding::ok("bot", format!("this is @{name}"))];
    findings.push(match call(&client, "getWebhookInfo").await {
        Ok(info) => webhook(&info, config.intake.mode == crate::config::Mode::Polling),
        Err(error) => Finding::new(Health::Warn, "webhook", error.to_string(), ""),
    });
    findings.extend(time(&config.bot.api_base).await.map(|theirs| clock(theirs, unix_millis() / 1000)));
    findings
}

async fn call(client: &Client, method: &str) -> Result<Json, Error> {
    let answer = client.call(method, Bytes::from_static(b"{}"), DEADLINE).await?;
    Ok(serde_json::from_slice(&answer).unwrap_or_default())
}

fn unreachable(error: &Error) -> Finding {
    match error {
        Error::Unauthorized { .. } | Error::Refused { code: 404, .. } => {
            let mend = "look at `token` in [bot], or ask @BotFather for a new one";
            Finding::new(Health::Fail, "bot", format!("Telegram does not know it: {error}"), mend)
        }
        error => {
            let mend =
                "the bot starts all the same, and goes on when the network is there; look at `api_base` in [bot]";
            Finding::new(Health::Warn, "network", error.to_string(), mend)
        }
    }
}

fn webhook(info: &Json, polling: bool) -> Finding {
    let (what, url) = ("webhook", info["url"].as_str().unwrap_or_default());
    let waiting = info["pending_update_count"].as_i64().unwrap_or(0);
    let waiting = format!("{waiting} updates wait at Telegram");
    // Of a webhook's address only the host is told: what follows is often a secret.
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let trouble = info["last_error_message"].as_str();
    match (url.is_empty(), polling, trouble) {
        (true, true, _) => Finding::ok(what, format!("none is set, as polling needs it; {waiting}")),
        (false, true, _) => {
            let mend = "as long as it is set, polling gets nothing: remove it with Telegram's deleteWebhook";
            Finding::new(Health::Fail, what, format!("one is set, at {host}; {waiting}"), mend)
        }
        (false, false, Some(trouble)) => {
            Finding::new(Health::Warn, what, format!("at {host}; {waiting}; Telegram last met: {trouble}"), "")
        }
        (false, false, None) => Finding::ok(what, format!("at {host}; {waiting}")),
        (true, false, _) => {
            Finding::new(Health::Warn, what, format!("none is set; {waiting}"), "the bot sets it at its start")
        }
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
    use serde_json::json;

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

    #[test]
    fn what_telegram_says_is_put_into_words() {
        assert_eq!(clock(1000, 1059).health, Health::Ok);
        assert!(clock(1000, 2000).found.contains("1000 s ahead"), "{:?}", clock(1000, 2000));
        let set = json!({ "url": "https://bot.example/secret-path", "pending_update_count": 3 });
        let finding = webhook(&set, true);
        assert_eq!(finding.health, Health::Fail);
        assert!(finding.found.contains("bot.example") && !finding.found.contains("secret"), "{finding:?}");
        assert_eq!(webhook(&json!({ "url": "" }), true).health, Health::Ok);
        assert_eq!(webhook(&set, false).health, Health::Ok);
        let unknown = Error::Unauthorized { method: "getMe".to_owned(), description: "Unauthorized".to_owned() };
        assert_eq!(unreachable(&unknown).health, Health::Fail);
    }
}
