//! Taking the place of the host that runs on the store, for a new version of it.
//!
//! The other one is asked to end through its admin address, once this one has everything ready that does not need the
//! store. It stops taking updates, lets what is under way finish, and closes the store; what comes meanwhile waits at
//! Telegram. When it does not do so in time, the start fails, and nothing is done to it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::lease::{Error, Holder, Lease};
use super::plugins::Loader;
use crate::admin;
use crate::clock::unix_millis;
use crate::config::Config;

/// For what the other host has under way: its runs, its calls, and the last flush.
const PATIENCE: Duration = Duration::from_secs(45);
const ANSWER: Duration = Duration::from_secs(5);

/// What has been taken over, for the one line that says so.
pub(super) struct Replaced {
    pub(super) pid: u32,
    /// When the other was asked, from which moment on nobody took updates.
    pub(super) asked: Instant,
}

/// Has the place of the host that runs, if there is one.
///
/// # Errors
/// When it does not make room.
pub(super) async fn take_place(
    config: &Config,
    loader: &Loader,
) -> anyhow::Result<(Lease, TcpListener, Option<Replaced>)> {
    let store = &config.store.path;
    let listen = config.admin.listen;
    // Whatever can be found wrong is to be found while the other host still runs.
    loader.warm(config).await?;
    let holder = match Lease::take(store) {
        Ok(lease) => {
            tracing::info!("no host runs on the store, so there is none to replace");
            return Ok((lease, admin::bind(listen).await?, None));
        }
        Err(Error::Held { holder: Some(holder), .. }) => holder,
        Err(error) => return Err(error.into()),
    };
    let early = match admin::bind(listen).await {
        // It will be free.
        Err(admin::Error::InUse(_)) if holder.admin.is_some_and(|admin| admin.port() == listen.port()) => None,
        bound => Some(bound?),
    };
    tracing::info!(pid = holder.pid, "asking the host that runs to make room");
    let asked = Instant::now();
    let who = holder.words();
    ask(&holder, store).await.with_context(|| {
        format!("the running host{who} can't be replaced, and goes on; stop it, then start this one without --replace")
    })?;
    let lease = Lease::wait(store, PATIENCE).await.with_context(|| {
        let seconds = PATIENCE.as_secs();
        format!(
            "the running host{who} was asked to make room, and has not ended within {seconds} s; nothing was done to it"
        )
    })?;
    let admin = match early {
        Some(admin) => admin,
        None => admin::bind(listen).await?,
    };
    Ok((lease, admin, Some(Replaced { pid: holder.pid, asked })))
}

async fn ask(holder: &Holder, store: &Path) -> anyhow::Result<()> {
    let mut address = holder.admin.context("it is just starting")?;
    if address.ip().is_unspecified() {
        address.set_ip(match address.is_ipv4() {
            true => std::net::Ipv4Addr::LOCALHOST.into(),
            false => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    // Fails only where somebody has chosen a provider already, which is as good. None is needed for `http:`.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder().no_proxy().timeout(ANSWER).tls_certs_only(std::iter::empty()).build()?;
    // The host knows its store without links.
    let store = std::fs::canonicalize(store).unwrap_or_else(|_| store.to_owned());
    let body = serde_json::to_vec(&admin::HandOver { store, until: unix_millis() + millis(ANSWER) })?;
    let request = client.post(format!("http://{address}/api/hand-over")).header("content-type", "application/json");
    let answer = request.body(body).send().await.context("it does not answer")?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let body = answer.bytes().await.unwrap_or_default();
    let said = serde_json::from_slice::<admin::Failed>(&body).map(|failed| failed.error);
    anyhow::bail!("it answers {}", said.unwrap_or_else(|_| format!("{status}; it may be too old to make room")))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
