//! Jobs, and what plugins keep, through the running host or on the store.

use anyhow::Context as _;
use tokio::task::spawn_blocking;

use super::Hand;
use crate::domain::PluginName;
use crate::files::{Files, ServerLimits};
use crate::operate::{EntryList, Erase, Erased, Forget, JobList, JobRef, Left, Outcome, Put, Wanted};

impl Hand {
    pub(in crate::cli) async fn jobs(&self, limit: usize, plugin: Option<&str>) -> anyhow::Result<JobList> {
        match self {
            Self::Running(host) => {
                let plugin = plugin.map(|plugin| ("plugin", plugin.to_owned()));
                let query: Vec<_> = std::iter::once(("limit", limit.to_string())).chain(plugin).collect();
                host.get("/api/jobs", &query).await
            }
            Self::Stopped { operator, .. } => Ok(operator.jobs(limit, plugin)?),
        }
    }

    pub(in crate::cli) async fn cancel_jobs(&self, which: &JobRef) -> anyhow::Result<Outcome> {
        match self {
            Self::Running(host) => host.post("/api/jobs/cancel", which).await,
            Self::Stopped { operator, .. } => Ok(operator.cancel_jobs(which).await?),
        }
    }

    pub(in crate::cli) async fn retry_jobs(&self, which: &JobRef) -> anyhow::Result<Outcome> {
        match self {
            Self::Running(host) => host.post("/api/jobs/retry", which).await,
            Self::Stopped { operator, .. } => Ok(operator.retry_jobs(which).await?),
        }
    }

    pub(in crate::cli) async fn left(&self) -> anyhow::Result<Vec<Left>> {
        match self {
            Self::Running(host) => host.get("/api/state/left", &[]).await,
            Self::Stopped { operator, .. } => Ok(operator.left()),
        }
    }

    pub(in crate::cli) async fn forget(&self, plugin: &str) -> anyhow::Result<u64> {
        match self {
            Self::Running(host) => host.post("/api/state/forget", &Forget { plugin: plugin.to_owned() }).await,
            Self::Stopped { operator, .. } => Ok(operator.forget(&PluginName::new(plugin)).await?),
        }
    }

    pub(in crate::cli) async fn entries(
        &self,
        wanted: &Wanted,
        after: Option<&str>,
        limit: usize,
    ) -> anyhow::Result<EntryList> {
        match self {
            Self::Running(host) => {
                let mut query = vec![("limit", limit.to_string()), ("all", wanted.all.to_string())];
                query.extend(after.map(|after| ("after", after.to_owned())));
                query.extend(wanted.plugin.clone().map(|plugin| ("plugin", plugin)));
                query.extend(wanted.chat.map(|chat| ("chat", chat.to_string())));
                query.extend(wanted.user.map(|user| ("user", user.to_string())));
                host.get("/api/state", &query).await
            }
            Self::Stopped { operator, .. } => Ok(operator.entries(wanted, after, limit)?),
        }
    }

    pub(in crate::cli) async fn put_entry(&self, put: &Put) -> anyhow::Result<bool> {
        match self {
            Self::Running(host) => host.post("/api/state/put", put).await,
            Self::Stopped { operator, .. } => Ok(operator.put_entry(put).await?),
        }
    }

    pub(in crate::cli) async fn erase(&self, order: &Erase) -> anyhow::Result<Erased> {
        match self {
            Self::Running(host) => host.post("/api/state/erase", order).await,
            Self::Stopped { operator, store, files } => {
                let erased = operator.erase(order).await?;
                if !order.dry_run && files.exists() {
                    // To open the folder is to remove what no row needs any more.
                    let (files, store) = (files.clone(), store.clone());
                    let tidied = spawn_blocking(move || Files::open(&files, &store, ServerLimits::default()).map(drop));
                    tidied.await?.context("the rows are erased, but files of theirs are still there")?;
                }
                Ok(erased)
            }
        }
    }
}
