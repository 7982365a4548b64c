//! Keeps intake going in the way that the configuration says, and changes it while it runs.
//!
//! One way at a time: what was begun is ended, in order, before the next begins, so that no two of them ever take updates
//! for one bot. Another token is taken over between the two, never under a poll.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

use super::accept::Error;
use super::poller::Poller;
use super::status::Status;
use super::{backlog, webhook};
use crate::config;
use crate::domain::{BotId, EventLane, LaneRule};
use crate::sender::Sender;
use crate::store::Store;
use crate::telegram::{Client, Token, WebhookInfo};

/// How long to wait before an address or a certificate that can't be had is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// What intake for one bot works with, in whatever way.
pub struct Parts {
    /// Where updates go.
    pub store: Store,
    /// Where they come from.
    pub client: Arc<Client>,
    /// Whose they are.
    pub bot: BotId,
    /// The kinds to ask for; `None` leaves the choice to Telegram.
    pub allowed_updates: watch::Receiver<Option<Vec<String>>>,
    /// Told the lanes in which something durable has come.
    pub arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    /// How updates find their lanes. A change is for the updates that come after it.
    pub lanes: watch::Receiver<LaneRule>,
    /// Told which buttons were pressed, so that it can acknowledge what takes too long.
    pub sender: Sender,
    /// Told how it goes.
    pub status: watch::Sender<Status>,
}

/// What the configuration says about it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which queue of Telegram's this is: token and API base, hashed.
    pub fingerprint: [u8; 8],
    /// The same in full, for taking it over when it changes.
    pub access: Option<Access>,
    /// How long a poll waits for something to happen.
    pub poll_timeout: Duration,
    /// Whether a webhook that somebody else has set may be removed.
    pub take_over: bool,
    /// Updates come through this webhook; without it they are polled.
    pub webhook: Option<config::Webhook>,
}

/// Which bot, and where.
#[derive(Debug, Clone)]
pub struct Access {
    /// The Bot API server.
    pub api_base: String,
    /// The bot's token.
    pub token: Token,
}

/// An operator wants the webhook to be set now, whether or not it differs.
#[derive(Debug)]
pub struct SetNow(pub oneshot::Sender<Result<WebhookInfo, String>>);

/// Intake for one bot.
pub struct Intake {
    /// What it works with.
    pub parts: Parts,
    /// How, now and from any change on.
    pub settings: watch::Receiver<Settings>,
    /// What operators want.
    pub orders: mpsc::Receiver<SetNow>,
}

impl Intake {
    /// Takes updates until told to stop.
    ///
    /// # Errors
    /// When the store fails, or the first settings can't be had: the address is taken, the certificate unreadable.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let mut fingerprint = self.settings.borrow_and_update().fingerprint;
        let mut ear = None;
        let mut is_first = true;
        while !*stop.borrow() {
            let settings = self.settings.borrow_and_update().clone();
            if let Some(access) = &settings.access
                && settings.fingerprint != fingerprint
            {
                match self.parts.client.replace(&access.api_base, access.token.clone()) {
                    Ok(()) => tracing::info!("the new token, or the new server, is in use from now on"),
                    Err(error) => tracing::error!(%error, "the new server can't be used; the old one stays"),
                }
                fingerprint = settings.fingerprint;
            }
            let ended = {
                let (halt, halted) = watch::channel(false);
                let once = once(&self.parts, &settings, &mut self.orders, &mut ear, halted);
                tokio::pin!(once);
                tokio::select! {
                    ended = &mut once => ended,
                    error = backlog::follow(&self.parts) => Err(error.into()),
                    () = told(&mut stop, &mut self.settings) => {
                        halt.send_replace(true);
                        once.await
                    }
                }
            };
            match ended {
                Err(Error::Webhook(error)) if !is_first => {
                    let problem = error.to_string();
                    tracing::error!(%error, "the webhook can't be served");
                    Status::trouble(&self.parts.status, &problem, true);
                    tokio::select! {
                        () = tokio::time::sleep(AGAIN) => {}
                        () = told(&mut stop, &mut self.settings) => {}
                    }
                }
                ended => ended?,
            }
            is_first = false;
        }
        Ok(())
    }
}

/// Until the host is to stop, or goes on in another way.
async fn told(stop: &mut watch::Receiver<bool>, settings: &mut watch::Receiver<Settings>) {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        // Whoever could change something is gone: nothing will.
        () = async { if settings.changed().await.is_err() { std::future::pending().await } } => {}
    }
}

/// Where a webhook listens. It is kept while the address stays, so that whoever connects meanwhile only waits.
type Ear = Option<(SocketAddr, TcpListener)>;

async fn once(
    parts: &Parts,
    settings: &Settings,
    orders: &mut mpsc::Receiver<SetNow>,
    ear: &mut Ear,
    stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    let Some(hook) = &settings.webhook else {
        *ear = None;
        let poller = Poller { parts, settings };
        return tokio::select! {
            ended = poller.run(stop) => ended,
            () = refuse(orders) => Ok(()),
        };
    };
    if ear.as_ref().is_none_or(|(address, _)| *address != hook.listen) {
        // The old one first: the new address may be the same port.
        *ear = None;
        *ear = Some((hook.listen, webhook::bind(hook.listen).await?));
    }
    match ear {
        Some((_, listener)) => webhook::run(parts, settings.fingerprint, hook, listener, orders, stop).await,
        None => Ok(()),
    }
}

/// There is no webhook to set while the bot polls.
async fn refuse(orders: &mut mpsc::Receiver<SetNow>) {
    while let Some(SetNow(answer)) = orders.recv().await {
        answer.send(Err("the host polls: its `mode` in [intake] is \"polling\"".to_owned())).ok();
    }
    std::future::pending().await
}
