//! Who the bot is, by Telegram's own word, and how polling goes, for those who ask whether the host is ready.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::watch;

use super::Parts;
use crate::backoff;
use crate::intake::Status;
use crate::telegram::{Client, Error};

const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Me {
    username: String,
}

/// What is known of the bot's name, and else how long Telegram wants not to be asked.
pub(super) type Known = Result<Option<String>, Duration>;

/// Asks once, at the start. That Telegram can't be reached now is no reason not to start.
///
/// # Errors
/// When Telegram refuses the token.
pub(super) async fn ask(client: &Client, section: &str) -> anyhow::Result<Known> {
    match client.call("getMe", Bytes::from_static(b"{}"), DEADLINE).await {
        Ok(me) => Ok(Ok(username(&me))),
        Err(error @ (Error::Unauthorized { .. } | Error::Refused { code: 404, .. })) => Err(anyhow::Error::new(error))
            .with_context(|| {
                format!("Telegram does not know the bot's token; look at `token` in {section}, or ask @BotFather for a new one")
            }),
        Err(error) => {
            tracing::warn!(%error, "Telegram can't be reached yet; starting all the same");
            Ok(Err(asked_to_wait(&error)))
        }
    }
}

/// Gives the bot its name, asking on until Telegram tells it.
pub(super) async fn learn(parts: Arc<Parts>, client: Arc<Client>, known: Known) {
    let mut attempt = 0;
    let (mut known, mut wait) = known.map_or_else(|wait| (None, wait), |known| (known, Duration::ZERO));
    while known.is_none() {
        attempt += 1;
        tokio::time::sleep(backoff::delay(attempt, rand::random()).max(wait)).await;
        let me = client.call("getMe", Bytes::from_static(b"{}"), DEADLINE).await;
        wait = me.as_ref().err().map_or(Duration::ZERO, asked_to_wait);
        known = me.ok().as_deref().and_then(username);
    }
    if let Some(username) = known {
        tracing::info!(username, "this is the bot");
        parts.dispatcher.set_username(username);
    }
}

/// Servers load bots that they do not know yet at a limited rate, and say how long to wait.
fn asked_to_wait(error: &Error) -> Duration {
    match error {
        Error::Flooded { retry_after, .. } => *retry_after,
        _ => Duration::ZERO,
    }
}

fn username(me: &[u8]) -> Option<String> {
    serde_json::from_slice::<Me>(me).ok().map(|me| me.username)
}

/// Tells the readiness how intake goes.
pub(super) async fn follow_health(parts: Arc<Parts>, mut heard: watch::Receiver<Status>) {
    loop {
        let status = heard.borrow_and_update().clone();
        parts.readiness.intake(status);
        if heard.changed().await.is_err() {
            return;
        }
    }
}

/// Tells the readiness which chats Telegram makes wait for long.
pub(super) async fn follow_floods(parts: Arc<Parts>) {
    let mut floods = parts.sender.long_floods();
    loop {
        let chats = floods.borrow_and_update().iter().map(|(lane, until)| (lane.to_string(), *until)).collect();
        parts.readiness.chats_flooded(chats);
        if floods.changed().await.is_err() {
            return;
        }
    }
}
