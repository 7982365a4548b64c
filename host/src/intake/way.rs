//! Whether a webhook is in the way of polling, and whose it is.
//!
//! A webhook that this host has set goes when the configuration says polling; what waits at Telegram stays. One that
//! somebody else has set is left alone, since it may be the one that the bot's users are served through.

use crate::domain::BotId;
use crate::store::rows::webhook::{self, WebhookRow};
use crate::store::{Commit, CommitError, Op, Store};
use crate::telegram::{self, Client, WebhookInfo};

use super::Error;

/// A webhook that this host has not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a webhook is set for this bot, to {host}, and not by this host: as long as it is there, the bot can't poll, and what is \
     served there would hear nothing any more if it went. If nothing is, remove it with `botyard webhook delete`, or start \
     with --take-over; for a bot of your own to try things with, take another token"
)]
pub struct Foreign {
    /// Where it leads.
    pub host: String,
}

/// Why polling can't begin.
pub(super) enum Blocked {
    By(Foreign),
    /// Telegram did not tell, or did not do it.
    Unknown(telegram::Error),
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Blocked {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Looks at the webhook before polling and removes it if it is ours to remove. When Telegram can't be asked, the first
/// poll will tell.
///
/// # Errors
/// [`Error::Foreign`], or when the store fails.
pub async fn clear(client: &Client, store: &Store, bot: BotId, take_over: bool) -> Result<(), Error> {
    match clear_way(client, store, bot, take_over).await {
        Ok(_) => Ok(()),
        Err(Blocked::By(foreign)) => Err(foreign.into()),
        Err(Blocked::Unknown(error)) => {
            tracing::warn!(%error, "could not ask whether a webhook is set; polling will tell");
            Ok(())
        }
        Err(Blocked::Failed(error)) => Err(error),
    }
}

pub(super) async fn clear_way(
    client: &Client,
    store: &Store,
    bot: BotId,
    take_over: bool,
) -> Result<WebhookInfo, Blocked> {
    let info = client.webhook_info().await.map_err(Blocked::Unknown)?;
    if info.url.is_empty() {
        return Ok(info);
    }
    let mut row = load(store, bot)?;
    let is_ours = row.is_ours(&info.url);
    if !is_ours && !take_over {
        return Err(Blocked::By(Foreign { host: info.host() }));
    }
    client.delete_webhook(false).await.map_err(Blocked::Unknown)?;
    tracing::warn!(host = info.host(), is_ours, "removed the webhook, to poll; what waits at Telegram stays");
    (row.asked, row.confirmed) = (None, None);
    save(store, bot, &row).await?;
    Ok(WebhookInfo { url: String::new(), ..info })
}

/// What is known of the webhook.
pub(super) fn load(store: &Store, bot: BotId) -> Result<WebhookRow, Error> {
    let row = store.get(&webhook::key(bot))?.map(|value| WebhookRow::decode(&value)).transpose()?;
    Ok(row.unwrap_or_default())
}

/// Keeps what is known, and answers once it is durable.
pub(super) async fn save(store: &Store, bot: BotId, row: &WebhookRow) -> Result<(), Error> {
    let op = Op::Put { key: webhook::key(bot), value: row.encode() };
    match store.commit(Commit { ops: vec![op], ..Commit::default() }).await {
        Ok(receipt) => Ok(receipt.durable().await?),
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(CommitError::Conflict { .. }) => unreachable!("the commit reads nothing"),
    }
}
