//! Compares what Telegram has with what is wanted, again and again, and sets it where it differs.
//!
//! What Telegram does not tell, the secret above all, is remembered in the store as a hash. A webhook that somebody else
//! sets while this host runs is set back, in ever longer pauses: two hosts with different addresses must not fight. All
//! that can be seen of the deliveries from here is reported: how many wait, and why the last one failed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::sync::{mpsc, watch};

use super::receive::Endpoint;
use super::secrets::Secrets;
use super::tls::Tls;
use super::{sha256, stopped, unix_seconds};
use crate::backoff;
use crate::config;
use crate::domain::BotId;
use crate::intake::accept::Error;
use crate::intake::status::{Status, alarm};
use crate::intake::supervise::{Parts, SetNow};
use crate::intake::{backlog, wait, way};
use crate::store::Store;
use crate::store::rows::webhook::{ConfirmedWebhook, WebhookRow};
use crate::telegram::{self, Client, SetWebhook, WebhookInfo};

const EVERY: Duration = Duration::from_secs(60);
/// How long a good look counts: until the next one, and some time for trying again.
pub(super) const PATIENCE: Duration = Duration::from_secs(150);
/// Telegram takes `setWebhook` once a second.
const SET_AGAIN: Duration = Duration::from_secs(1);
/// How long an error that Telegram reports counts as one of now, in seconds: as long as it waits at most before another
/// try, several times.
const RECENT: u64 = 600;
/// What failed while the host was away is tried again within so many seconds of its start, most likely.
const SETTLING: u64 = 10;
/// How soon to look again when nothing can be delivered.
const SOON: Duration = Duration::from_secs(10);

/// What Telegram is to have.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    url: String,
    secret: String,
    max_connections: u32,
    ip_address: Option<String>,
    pub(super) certificate: Option<Arc<[u8]>>,
    allowed_updates: Option<Vec<String>>,
}

impl Wanted {
    pub(super) fn new(hook: &config::Webhook, secret: String) -> Self {
        Self {
            url: hook.url.clone(),
            secret,
            max_connections: hook.max_connections,
            ip_address: hook.ip_address.map(|address| address.to_string()),
            certificate: None,
            allowed_updates: None,
        }
    }

    /// Of what Telegram does not tell, or tells only in part.
    fn digest(&self) -> [u8; 32] {
        let mut text = format!("{}\n{}\n{:?}\n", self.url, self.secret, self.ip_address).into_bytes();
        text.extend_from_slice(self.certificate.as_deref().unwrap_or_default());
        sha256(&text)
    }
}

/// Why the webhook has to be set, if it has to.
fn difference(wanted: &Wanted, info: &WebhookInfo, row: &WebhookRow) -> Option<&'static str> {
    let kinds =
        |list: &Option<Vec<String>>| -> Option<BTreeSet<String>> { Some(list.as_ref()?.iter().cloned().collect()) };
    if info.url.is_empty() {
        Some("none is set")
    } else if !is_same(&info.url, &wanted.url) {
        Some("another address is set")
    } else if row.confirmed.as_ref().is_none_or(|confirmed| confirmed.digest != wanted.digest()) {
        Some("address, secret or certificate are not known to be those that are set")
    } else if info.max_connections.is_some_and(|set| set != wanted.max_connections) {
        Some("`max_connections` differs")
    } else if info.has_custom_certificate != wanted.certificate.is_some() {
        Some("the certificate differs")
    } else if wanted.ip_address.is_some() && info.ip_address != wanted.ip_address {
        Some("`ip_address` differs")
    } else if wanted.allowed_updates.is_some() && kinds(&info.allowed_updates) != kinds(&wanted.allowed_updates) {
        Some("`allowed_updates` differs")
    } else {
        None
    }
}

/// Telegram may write an address in another way.
fn is_same(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// What Telegram reports of deliveries: why there are none just now, or what has been wrong.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    Nothing,
    /// Worth a note.
    Before(String),
    /// Nothing arrives.
    Now(String),
}

/// `received`: when an update last arrived here; `since`: when this began to look. In Unix seconds.
fn reported(info: &WebhookInfo, now: u64, received: u64, since: u64) -> Reported {
    let (Some(at), Some(message)) = (info.last_error_date, &info.last_error_message) else { return Reported::Nothing };
    let ago = now.saturating_sub(at);
    let waiting = info.pending_update_count;
    let mut text = format!("a delivery failed {ago} s ago: {message}");
    if waiting > 0 {
        write!(text, " ({waiting} updates wait at Telegram)").expect("a String takes all text");
    }
    if ago > RECENT * 6 || at < since.saturating_sub(RECENT * 6) {
        Reported::Nothing
    } else if waiting > 0 && ago <= RECENT && at > received && at > since + SETTLING {
        Reported::Now(text)
    } else {
        Reported::Before(text)
    }
}

/// Sets the webhook, and remembers it: before, that it is ours, and after, what it is.
pub(super) async fn set(client: &Client, store: &Store, bot: BotId, wanted: &Wanted) -> Result<(), Failed> {
    let mut row = way::load(store, bot)?;
    row.asked = Some(wanted.url.clone());
    way::save(store, bot, &row).await?;
    let params = SetWebhook {
        url: &wanted.url,
        secret_token: &wanted.secret,
        max_connections: wanted.max_connections,
        ip_address: wanted.ip_address.clone(),
        allowed_updates: wanted.allowed_updates.as_deref(),
        certificate: wanted.certificate.as_deref(),
    };
    client.set_webhook(&params).await.map_err(Failed::Telegram)?;
    let secret = sha256(wanted.secret.as_bytes());
    row.confirmed = Some(ConfirmedWebhook { url: wanted.url.clone(), secret, digest: wanted.digest() });
    way::save(store, bot, &row).await?;
    Ok(())
}

/// Why a round came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Telegram(telegram::Error),
    #[error("{0}")]
    Taken(String),
    #[error(transparent)]
    Store(#[from] Error),
}

pub(super) struct Reconciler<'a> {
    parts: &'a Parts,
    wanted: Wanted,
    tls: Option<&'a Tls>,
    secrets: Arc<Secrets>,
    endpoint: Arc<Endpoint>,
    since: u64,
    /// What Telegram made of what was wanted, where that is not the same: asking again would change nothing.
    settled: Option<(Wanted, WebhookInfo)>,
    was_good: bool,
    /// How often somebody else's was there.
    taken: u32,
    /// Requests come with a secret that is not the one that was set: somebody else has set the same address.
    has_wrong_secret: bool,
    /// When it may be set back.
    set_back: Option<tokio::time::Instant>,
}

impl<'a> Reconciler<'a> {
    pub(super) fn new(
        parts: &'a Parts,
        wanted: Wanted,
        tls: Option<&'a Tls>,
        secrets: Arc<Secrets>,
        endpoint: Arc<Endpoint>,
    ) -> Self {
        let since = unix_seconds();
        Self {
            parts,
            wanted,
            tls,
            secrets,
            endpoint,
            since,
            settled: None,
            was_good: false,
            taken: 0,
            has_wrong_secret: false,
            set_back: None,
        }
    }

    /// For ever, unless the store fails. Once told to stop it does nothing any more.
    pub(super) async fn run(mut self, orders: &mut mpsc::Receiver<SetNow>, mut stop: watch::Receiver<bool>) -> Error {
        let mut allowed = self.parts.allowed_updates.clone();
        let mut order: Option<SetNow> = None;
        let mut failures = 0;
        loop {
            self.wanted.allowed_updates = allowed.borrow_and_update().clone();
            self.wanted.certificate = self.tls.and_then(Tls::own_certificate);
            let round = tokio::select! {
                biased;
                () = stopped(&mut stop) => std::future::pending().await,
                round = self.round(order.is_some()) => round,
            };
            if let Some(SetNow(answer)) = order.take() {
                answer.send(round.as_ref().map(Clone::clone).map_err(ToString::to_string)).ok();
            }
            let pause = match round {
                Ok(_) => {
                    (failures, self.was_good) = (0, true);
                    if self.parts.status.borrow().is_deaf { SOON } else { EVERY }
                }
                Err(Failed::Store(error)) => return error,
                Err(failed) => {
                    let pause = self.speak_of(&failed, failures);
                    failures += 1;
                    pause
                }
            };
            tokio::select! {
                biased;
                () = stopped(&mut stop) => std::future::pending().await,
                () = tokio::time::sleep(pause) => {}
                Ok(()) = allowed.changed() => {}
                Some(now) = orders.recv() => order = Some(now),
            }
        }
    }

    async fn round(&mut self, force: bool) -> Result<WebhookInfo, Failed> {
        let Parts { client, store, bot, .. } = self.parts;
        let mut info = client.webhook_info().await.map_err(Failed::Telegram)?;
        self.observe(&info);
        let row = way::load(store, *bot)?;
        let is_settled =
            self.settled.as_ref().is_some_and(|(wanted, made)| *wanted == self.wanted && stable(&info) == *made);
        let why = difference(&self.wanted, &info, &row).filter(|_| !is_settled);
        let why = if force { Some("an operator wants it") } else { why };
        let has_wrong_secret = std::mem::take(&mut self.has_wrong_secret);
        let why = why.or(has_wrong_secret.then_some("Telegram's requests come with another secret"));
        let Some(why) = why else {
            Status::good(&self.parts.status);
            self.secrets.confirmed();
            self.report(&info);
            return Ok(info);
        };
        if !info.url.is_empty() && !is_same(&info.url, &self.wanted.url) {
            self.give_way(&info, force)?;
        }
        tracing::info!(host = telegram::host(&self.wanted.url), why, "setting the webhook");
        set(client, store, *bot, &self.wanted).await?;
        metrics::counter!("botyard_webhook_sets_total").increment(1);
        self.secrets.confirmed();
        tokio::time::sleep(SET_AGAIN).await;
        info = client.webhook_info().await.map_err(Failed::Telegram)?;
        self.observe(&info);
        let row = way::load(store, *bot)?;
        match difference(&self.wanted, &info, &row) {
            None => {}
            Some(_) if info.url.is_empty() || !is_same(&info.url, &self.wanted.url) => {
                return Err(Failed::Taken(format!("the webhook was set, and now {}", whose(&info))));
            }
            Some(what) => {
                tracing::warn!(what, "Telegram has set the webhook, but not quite as wanted; it is left so");
                self.settled = Some((self.wanted.clone(), stable(&info)));
            }
        }
        Status::good(&self.parts.status);
        self.report(&info);
        Ok(info)
    }

    /// At the start the configuration decides. Later somebody else has decided otherwise, who may do so again.
    fn give_way(&mut self, info: &WebhookInfo, force: bool) -> Result<(), Failed> {
        let now = tokio::time::Instant::now();
        if !self.was_good || force {
            tracing::warn!(host = info.host(), "a webhook to another host is set, and is replaced");
            return Ok(());
        }
        let due = *self.set_back.get_or_insert_with(|| {
            let pause = EVERY * (1 << self.taken.min(6));
            self.taken += 1;
            alarm("webhook");
            tracing::error!(
                host = info.host(),
                ?pause,
                "somebody else has set the bot's webhook; it is set back later"
            );
            now + pause
        });
        if now < due {
            return Err(Failed::Taken(format!("somebody else has taken the bot's webhook: {}", whose(info))));
        }
        self.set_back = None;
        Ok(())
    }

    fn observe(&self, info: &WebhookInfo) {
        backlog::pending(self.parts, info.pending_update_count);
        metrics::gauge!("botyard_webhook_last_error_timestamp_seconds").set(info.last_error_date.unwrap_or(0) as f64);
        self.parts.status.send_modify(|status| status.webhook = Some(info.clone()));
    }

    /// After a good round: what it can't see but Telegram does.
    fn report(&mut self, info: &WebhookInfo) {
        let note = match reported(info, unix_seconds(), self.endpoint.received(), self.since) {
            Reported::Nothing => None,
            Reported::Before(text) => Some(text),
            Reported::Now(text) => {
                alarm("delivery");
                // The answer to a wrong secret, and nothing else that this host answers.
                self.has_wrong_secret = text.contains("401");
                tracing::error!(reason = text, "Telegram can't deliver to the webhook");
                Status::trouble(&self.parts.status, &format!("Telegram can't deliver to the webhook: {text}"), true);
                None
            }
        };
        Status::note(&self.parts.status, "webhook", note);
    }

    fn speak_of(&self, failed: &Failed, failures: u32) -> Duration {
        let (pause, is_certain) = match failed {
            Failed::Taken(_) => (EVERY, true),
            Failed::Telegram(telegram::Error::Flooded { retry_after, .. }) => (*retry_after, false),
            Failed::Telegram(telegram::Error::Unauthorized { .. } | telegram::Error::Refused { code: 404, .. }) => {
                alarm("token");
                (wait::before_probe(failures), true)
            }
            // A host name that does not resolve, say: mending it takes people.
            Failed::Telegram(telegram::Error::Refused { .. }) => (EVERY / 2, true),
            Failed::Telegram(_) | Failed::Store(_) => {
                (backoff::delay(failures + 1, rand::random()).max(Duration::from_secs(1)), false)
            }
        };
        tracing::warn!(reason = %failed, ?pause, "the webhook could not be looked after; that is tried again");
        Status::trouble(&self.parts.status, &failed.to_string(), is_certain);
        pause
    }
}

fn whose(info: &WebhookInfo) -> String {
    if info.url.is_empty() { "none is set".to_owned() } else { format!("one to {} is set", info.host()) }
}

/// Without what changes by itself.
fn stable(info: &WebhookInfo) -> WebhookInfo {
    WebhookInfo { pending_update_count: 0, last_error_date: None, last_error_message: None, ..info.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            url: "https://bot.example/hook".to_owned(),
            secret: "secret".to_owned(),
            max_connections: 40,
            ip_address: None,
            certificate: None,
            allowed_updates: Some(vec!["message".to_owned(), "poll".to_owned()]),
        }
    }

    fn row(wanted: &Wanted) -> WebhookRow {
        let digest = wanted.digest();
        let confirmed = ConfirmedWebhook { url: wanted.url.clone(), secret: [0; 32], digest };
        WebhookRow { confirmed: Some(confirmed), ..WebhookRow::default() }
    }

    fn info() -> WebhookInfo {
        WebhookInfo {
            url: "https://bot.example:443/hook".to_owned(),
            max_connections: Some(40),
            ip_address: Some("203.0.113.7".to_owned()),
            allowed_updates: Some(vec!["poll".to_owned(), "message".to_owned()]),
            pending_update_count: 12,
            ..WebhookInfo::default()
        }
    }

    #[test]
    fn it_is_set_only_where_it_differs() {
        assert_eq!(difference(&wanted(), &info(), &row(&wanted())), None);
        assert_eq!(difference(&Wanted { allowed_updates: None, ..wanted() }, &info(), &row(&wanted())), None);
        let of_info = |change: fn(&mut WebhookInfo)| {
            let mut info = info();
            change(&mut info);
            difference(&wanted(), &info, &row(&wanted())).unwrap_or_default()
        };
        assert_eq!(of_info(|info| info.url.clear()), "none is set");
        assert_eq!(of_info(|info| info.url.push('2')), "another address is set");
        assert_eq!(of_info(|info| info.max_connections = Some(1)), "`max_connections` differs");
        assert_eq!(of_info(|info| info.has_custom_certificate = true), "the certificate differs");
        assert_eq!(of_info(|info| info.allowed_updates = None), "`allowed_updates` differs");
        let of_wanted = |change: fn(&mut Wanted)| {
            let mut new = wanted();
            change(&mut new);
            difference(&new, &info(), &row(&wanted())).is_some()
        };
        assert!(of_wanted(|wanted| wanted.secret.push('2')), "which Telegram does not tell");
        assert!(of_wanted(|wanted| wanted.ip_address = Some("203.0.113.8".to_owned())));
        assert!(of_wanted(|wanted| wanted.certificate = Some([1].into())));
        assert!(difference(&wanted(), &info(), &WebhookRow::default()).is_some(), "nothing is remembered");
        // Nor whether the address was fixed, once it is no longer.
        let fixed = Wanted { ip_address: Some("203.0.113.7".to_owned()), ..wanted() };
        assert!(difference(&wanted(), &info(), &row(&fixed)).is_some());
    }

    #[test]
    fn an_error_counts_while_nothing_arrives() {
        let now = 1_800_000_000;
        let failed = |ago: u64, pending_update_count| WebhookInfo {
            last_error_date: Some(now - ago),
            last_error_message: Some("Wrong response from the webhook: 500".to_owned()),
            pending_update_count,
            ..info()
        };
        let since = now - 5_000;
        assert_eq!(reported(&info(), now, 0, since), Reported::Nothing);
        let text = "a delivery failed 30 s ago: Wrong response from the webhook: 500 (12 updates wait at Telegram)";
        assert_eq!(reported(&failed(30, 12), now, now - 60, since), Reported::Now(text.to_owned()));
        for (info, received, since) in [
            (failed(30, 12), now - 10, since), // an update has come since
            (failed(30, 0), now - 60, since),  // nothing waits
            (failed(700, 12), 0, since),       // Telegram tries again more often than that
            (failed(30, 12), 0, now - 35),     // when this host had just begun
        ] {
            let reported = reported(&info, now, received, since);
            assert!(matches!(&reported, Reported::Before(_)), "{reported:?}");
        }
        assert_eq!(reported(&failed(4_000, 12), now, 0, since), Reported::Nothing, "long ago");
    }
}
