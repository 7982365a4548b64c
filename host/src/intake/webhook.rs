//! Updates through a webhook: Telegram calls, and is told 200 once the update is on disk.
//!
//! [`receive`](self::receive) takes the calls, [`reconcile`](self::reconcile) sees to it that Telegram makes them. The two
//! share nothing but the secrets that are accepted. The webhook is never removed when the host stops: Telegram keeps
//! what comes meanwhile, and another host may have taken over.

mod receive;
mod reconcile;
mod secrets;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::Url;
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use self::receive::Endpoint;
use self::reconcile::{Reconciler, Wanted};
use self::secrets::Secrets;
use self::tls::Tls;
use super::accept::{Error, Ledger};
use super::status::Status;
use super::supervise::{Parts, SetNow};
use super::way;
use crate::clock::unix_millis;
use crate::config;
use crate::config::redaction::hide;
use crate::domain::BotId;
use crate::store::Store;
use crate::store::rows::webhook::WebhookRow;
use crate::telegram::{Client, WebhookInfo};

/// Why a webhook can't be served.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The address can't be had.
    #[error("could not listen on {address} for the webhook: {source}; set another `listen` in [intake.webhook]")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Certificate or key can't be used.
    #[error("{file}: {reason}; look at `certificate` and `key` in [intake.webhook]")]
    Tls {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Takes the address.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, SetupError> {
    TcpListener::bind(address).await.map_err(|source| SetupError::Listen { address, source })
}

/// Whether certificate and key can be used, for whoever checks a configuration.
///
/// # Errors
/// What is wrong with them.
pub fn test_tls(files: &config::Tls) -> Result<(), SetupError> {
    Tls::load(files).map(drop)
}

/// Takes updates until told to stop; requests under way are answered first.
pub(super) async fn run(
    parts: &Parts,
    fingerprint: [u8; 8],
    hook: &config::Webhook,
    listener: &TcpListener,
    orders: &mut mpsc::Receiver<SetNow>,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    Status::begin(&parts.status, "the last good look at the webhook", reconcile::PATIENCE);
    let mut row = way::load(&parts.store, parts.bot)?;
    let secret = secret_of(hook, &mut row, &parts.store, parts.bot).await?;
    let tls = hook.tls.as_ref().map(Tls::load).transpose()?;
    // What Telegram was told before is what it sends until it is told otherwise.
    let secrets = Arc::new(Secrets::new(&secret, row.confirmed.as_ref().map(|confirmed| confirmed.secret)));
    let ledger =
        Ledger::open(parts.store.clone(), parts.bot, fingerprint, parts.arrivals.clone(), parts.lanes.clone())?
            .telling(parts.sender.clone());
    let endpoint = Arc::new(Endpoint::new(path_of(&hook.url), secrets.clone(), ledger));
    let wanted = Wanted::new(hook, secret);
    let reconciler = Reconciler::new(parts, wanted, tls.as_ref(), secrets, endpoint.clone());
    tracing::info!(address = %hook.listen, tls = tls.is_some(), "taking updates through the webhook");
    tokio::select! {
        () = receive::serve(listener, tls.as_ref(), endpoint, stop.clone()) => Ok(()),
        error = reconciler.run(orders, stop) => Err(error),
    }
}

/// Sets the webhook once, for a bot whose host does not run.
///
/// # Errors
/// When Telegram refuses, the store fails or the certificate can't be read.
pub async fn set_once(
    client: &Client,
    store: &Store,
    bot: BotId,
    hook: &config::Webhook,
) -> anyhow::Result<WebhookInfo> {
    let mut row = way::load(store, bot)?;
    let secret = secret_of(hook, &mut row, store, bot).await?;
    let tls = hook.tls.as_ref().map(Tls::load).transpose()?;
    let mut wanted = Wanted::new(hook, secret);
    wanted.certificate = tls.as_ref().and_then(Tls::own_certificate);
    reconcile::set(client, store, bot, &wanted).await?;
    Ok(client.webhook_info().await?)
}

/// The configured secret, or the one that was made for want of it.
async fn secret_of(hook: &config::Webhook, row: &mut WebhookRow, store: &Store, bot: BotId) -> Result<String, Error> {
    if let Some(secret) = &hook.secret {
        return Ok(secret.expose_secret().to_owned());
    }
    let made = match &row.made_secret {
        Some(made) => made.clone(),
        None => {
            let made: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
            row.made_secret = Some(made.clone());
            way::save(store, bot, row).await?;
            made
        }
    };
    hide(&made);
    Ok(made)
}

/// The path that Telegram asks for, with the query if there is one.
fn path_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    url.map_or_else(
        || "/".to_owned(),
        |url| match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        },
    )
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could ask for it is gone, which is as good.
    stop.wait_for(|stop| *stop).await.map(drop).unwrap_or_default();
}

fn sha256(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn unix_seconds() -> u64 {
    unix_millis() / 1000
}
