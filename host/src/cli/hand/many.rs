//! Broadcasts, calls that wait and unknown calls, through the running host or on the store.

use super::Hand;
use crate::admin::{Recipients, Terms};
use crate::cli::exit::WrongArgument;
use crate::operate::{
    AT_A_TIME, Audience, Begun, Broadcast, Cancel, Change, Draft, MissedPage, Outbox, Outcome, Selection, UnknownCall,
    UnknownList, Waiting, WaitingCall,
};
use crate::store::rows::broadcast::Recipient;

fn word(change: Change) -> &'static str {
    match change {
        Change::Run => "run",
        Change::Pause => "pause",
        Change::Resume => "resume",
        Change::Cancel => "cancel",
    }
}

fn texts(recipients: &[Recipient]) -> Recipients {
    let text = |recipient: &Recipient| match recipient {
        Recipient::Chat(chat) => chat.to_string(),
        Recipient::Name(name) => name.clone(),
    };
    Recipients { recipients: recipients.iter().map(text).collect() }
}

impl Hand {
    /// Writes a broadcast down and begins it. What was written before something fails is taken back.
    pub(in crate::cli) async fn begin(&self, draft: &Draft, recipients: &[Recipient]) -> anyhow::Result<Broadcast> {
        let Begun { id } = match self {
            Self::Running(host) => host.post("/api/broadcasts", draft).await?,
            Self::Stopped { operator, .. } => operator.draft(draft).await?,
        };
        let begun = async {
            for lot in recipients.chunks(AT_A_TIME) {
                match self {
                    Self::Running(host) => {
                        let _: Broadcast = host.post(&format!("/api/broadcasts/{id}/recipients"), &texts(lot)).await?;
                    }
                    Self::Stopped { operator, .. } => operator.add_recipients(id, lot).await?,
                }
            }
            self.change_broadcast(id, Change::Run, None).await
        };
        match begun.await {
            Ok(broadcast) => Ok(broadcast),
            Err(error) => {
                // The error that counts is on its way; nothing of a draft is ever sent.
                self.change_broadcast(id, Change::Cancel, None).await.ok();
                Err(error)
            }
        }
    }

    pub(in crate::cli) async fn change_broadcast(
        &self,
        id: u64,
        change: Change,
        max_stars: Option<u64>,
    ) -> anyhow::Result<Broadcast> {
        match self {
            Self::Running(host) => {
                host.post(&format!("/api/broadcasts/{id}/{}", word(change)), &Terms { max_stars }).await
            }
            Self::Stopped { operator, .. } => Ok(operator.change_broadcast(id, change, max_stars).await?),
        }
    }

    pub(in crate::cli) async fn broadcasts(&self, limit: usize) -> anyhow::Result<Vec<Broadcast>> {
        match self {
            Self::Running(host) => host.get("/api/broadcasts", &[("limit", limit.to_string())]).await,
            Self::Stopped { operator, .. } => Ok(operator.broadcasts(limit)?),
        }
    }

    pub(in crate::cli) async fn broadcast(&self, id: u64) -> anyhow::Result<Broadcast> {
        match self {
            Self::Running(host) => host.get(&format!("/api/broadcasts/{id}"), &[]).await,
            Self::Stopped { operator, .. } => Ok(operator.broadcast(id)?),
        }
    }

    pub(in crate::cli) async fn missed(&self, id: u64, from: u32) -> anyhow::Result<MissedPage> {
        match self {
            Self::Running(host) => {
                host.get(&format!("/api/broadcasts/{id}/missed"), &[("from", from.to_string())]).await
            }
            Self::Stopped { operator, .. } => Ok(operator.missed(id, from)?),
        }
    }

    /// Who would be reached; by all known chats if there is no list.
    pub(in crate::cli) async fn reach(&self, recipients: Option<&[Recipient]>) -> anyhow::Result<Audience> {
        let Some(recipients) = recipients else {
            return match self {
                Self::Running(host) => host.get("/api/reach", &[]).await,
                Self::Stopped { operator, .. } => Ok(operator.reach_of_all()?),
            };
        };
        let mut sum = Audience::default();
        for lot in recipients.chunks(AT_A_TIME) {
            let reach: Audience = match self {
                Self::Running(host) => host.post("/api/reach", &texts(lot)).await?,
                Self::Stopped { operator, .. } => operator.reach_of(lot)?,
            };
            sum = Audience { chats: sum.chats + reach.chats, gone: sum.gone + reach.gone };
        }
        Ok(sum)
    }

    pub(in crate::cli) async fn outbox(&self, which: &Waiting, limit: usize) -> anyhow::Result<Outbox> {
        match self {
            Self::Running(host) => {
                let limit = ("limit", Some(limit.to_string()));
                let query = [limit, ("chat", which.chat.clone()), ("plugin", which.plugin.clone())];
                let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                host.get("/api/outbox", &query).await
            }
            Self::Stopped { operator, .. } => Ok(operator.outbox(which, limit).await?),
        }
    }

    pub(in crate::cli) async fn waiting_call(&self, number: u64, content: bool) -> anyhow::Result<WaitingCall> {
        match self {
            Self::Running(host) => {
                host.get(&format!("/api/outbox/{number}"), &[("content", content.to_string())]).await
            }
            Self::Stopped { operator, .. } => {
                let missing = || WrongArgument(format!("no call {number} waits; see `botyard outbox list`"));
                Ok(operator.waiting_call(number, content).await?.ok_or_else(missing)?)
            }
        }
    }

    pub(in crate::cli) async fn cancel_calls(&self, which: &Cancel) -> anyhow::Result<Outcome> {
        match self {
            Self::Running(host) => host.post("/api/outbox/cancel", which).await,
            Self::Stopped { operator, .. } => Ok(operator.cancel_calls(which).await?),
        }
    }

    pub(in crate::cli) async fn unknown_calls(&self, limit: usize) -> anyhow::Result<UnknownList> {
        match self {
            Self::Running(host) => host.get("/api/unknown", &[("limit", limit.to_string())]).await,
            Self::Stopped { operator, .. } => Ok(operator.unknown_calls(limit)?),
        }
    }

    pub(in crate::cli) async fn unknown_call(&self, number: u64) -> anyhow::Result<UnknownCall> {
        match self {
            Self::Running(host) => host.get(&format!("/api/unknown/{number}"), &[]).await,
            Self::Stopped { operator, .. } => {
                let missing = || WrongArgument(format!("there is no call {number}; see `botyard unknown list`"));
                Ok(operator.unknown_call(number)?.ok_or_else(missing)?)
            }
        }
    }

    pub(in crate::cli) async fn drop_unknown(&self, which: &Selection) -> anyhow::Result<Outcome> {
        match self {
            Self::Running(host) => host.post("/api/unknown/drop", which).await,
            Self::Stopped { operator, .. } => Ok(operator.drop_unknown(which).await?),
        }
    }
}
