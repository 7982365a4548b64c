//! `/api/plugins…`: what serves, and orders to those who can change it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::api::{Answer, Api, Refusal};
use crate::domain::PluginName;
use crate::telegram::WebhookInfo;

/// How a plugin stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginState {
    /// Its newest version handles events.
    Serving,
    /// Its newest version handles events, is watched, and goes if it does worse than the one before.
    Trial,
    /// One event after another has failed: they wait for a while.
    Resting,
    /// An operator has it switched off: it is given no events.
    Disabled,
    /// An operator has it paused: its events wait.
    Paused,
    /// An older version handles events, since the newest could not be loaded.
    Stale,
    /// No version of it could be loaded.
    Failed,
}

/// A plugin in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginStatus {
    /// As it stands in `bot.toml`.
    pub name: String,
    /// The beginning of the hash of the file that is loaded; empty when none is.
    pub version: String,
    /// The version that its author gave it; empty when none is loaded.
    pub manifest_version: String,
    /// Higher is asked earlier.
    pub priority: i32,
    /// How it stands.
    pub state: PluginState,
    /// Unix milliseconds since which it stands so.
    pub since: u64,
    /// Why it is not the newest version that serves, why it rests, or how the run ended for which it is paused.
    pub reason: Option<String>,
    /// Where that run crashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backtrace: Option<String>,
    /// While a version is on trial: the one that it is measured by, and is gone back to if it does worse.
    pub before: Option<String>,
    /// Bytes of the states and values that it keeps.
    #[serde(default)]
    pub stored: u64,
    /// Its limits, by their keys in `bot.toml`.
    #[serde(default)]
    pub limits: BTreeMap<String, String>,
}

/// A version that is kept, or that was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVersion {
    /// The beginning of the hash of its file.
    pub version: String,
    /// The version that its author gave it; empty when it has never served for good.
    pub manifest_version: String,
    /// Unix milliseconds since when it stands so.
    pub since: u64,
    /// `serving`, `trial`, `kept` or `rejected`.
    pub state: String,
    /// Why it was rolled back.
    pub reason: Option<String>,
}

/// What is to be done about a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Load its file again, changed or not.
    Reload {
        /// Also where conversations begin anew by it.
        force: bool,
    },
    /// Let its events wait.
    Pause,
    /// Let it go on.
    Resume,
    /// Go back to a version that has served.
    Rollback(
        /// The one that begins so, else the last one.
        Option<String>,
    ),
    /// Give it no more events, over restarts too.
    Disable,
    /// Let it have events again.
    Enable,
}

/// What whoever owns the plugins is asked. An answer that nobody waits for any more is done all the same.
#[derive(Debug)]
pub enum Order {
    /// Which there are.
    List(oneshot::Sender<Vec<PluginStatus>>),
    /// Set the webhook, whether or not it differs.
    SetWebhook(oneshot::Sender<Result<WebhookInfo, String>>),
    /// Which versions of one are kept, the newest first.
    Versions {
        /// Of which plugin.
        plugin: PluginName,
        /// Which they are.
        answer: oneshot::Sender<Result<Vec<KeptVersion>, OrderError>>,
    },
    /// Do something.
    Change {
        /// To whom.
        plugin: PluginName,
        /// What.
        action: Action,
        /// How it stands then.
        answer: oneshot::Sender<Result<PluginStatus, OrderError>>,
    },
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// There is no such plugin.
    #[error("there is no plugin `{name}` that is enabled; there {}", are(known))]
    Unknown {
        /// The one that was named.
        name: PluginName,
        /// Those that are there.
        known: Vec<PluginName>,
    },
    /// It was tried.
    #[error("{0}")]
    Failed(String),
}

fn are(known: &[PluginName]) -> String {
    match known {
        [] => "is none".to_owned(),
        [one] => format!("is `{one}`"),
        many => format!("are {}", many.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

pub(super) async fn list(api: Api) -> Answer<Vec<PluginStatus>> {
    let (answer, answered) = oneshot::channel();
    ask(&api.orders, Order::List(answer), answered).await.map(Json)
}

/// Refuses a name that no plugin has.
pub(super) async fn is_known(api: &Api, name: &str) -> Result<(), Refusal> {
    let (answer, answered) = oneshot::channel();
    let known = ask(&api.orders, Order::List(answer), answered).await?;
    let known: Vec<_> = known.iter().map(|plugin| PluginName::new(&plugin.name)).collect();
    let name = PluginName::new(name);
    if known.contains(&name) { Ok(()) } else { Err(OrderError::Unknown { name, known }.into()) }
}

pub(super) async fn versions(api: Api, Path(plugin): Path<String>) -> Answer<Vec<KeptVersion>> {
    let (answer, answered) = oneshot::channel();
    let order = Order::Versions { plugin: PluginName::new(&plugin), answer };
    Ok(Json(ask(&api.orders, order, answered).await??))
}

#[derive(Deserialize)]
pub(super) struct Options {
    to: Option<String>,
    #[serde(default)]
    force: bool,
}

pub(super) async fn change(
    api: Api,
    Path((plugin, action)): Path<(String, String)>,
    Query(options): Query<Options>,
) -> Answer<PluginStatus> {
    let action = match action.as_str() {
        "reload" => Action::Reload { force: options.force },
        "pause" => Action::Pause,
        "resume" => Action::Resume,
        "rollback" => Action::Rollback(options.to),
        "disable" => Action::Disable,
        "enable" => Action::Enable,
        _ => return Err(Refusal(StatusCode::NOT_FOUND, format!("there is no `{action}` for plugins"))),
    };
    let (answer, answered) = oneshot::channel();
    let order = Order::Change { plugin: PluginName::new(&plugin), action, answer };
    Ok(Json(ask(&api.orders, order, answered).await??))
}

impl From<OrderError> for Refusal {
    fn from(error: OrderError) -> Self {
        let status = match error {
            OrderError::Unknown { .. } => StatusCode::NOT_FOUND,
            OrderError::Failed(_) => StatusCode::CONFLICT,
        };
        Self(status, error.to_string())
    }
}

pub(super) async fn set_webhook(api: Api) -> Answer<WebhookInfo> {
    let (answer, answered) = oneshot::channel();
    let set = ask(&api.orders, Order::SetWebhook(answer), answered).await?;
    set.map(Json).map_err(|error| Refusal(StatusCode::CONFLICT, error))
}

async fn ask<T>(orders: &mpsc::Sender<Order>, order: Order, answered: oneshot::Receiver<T>) -> Result<T, Refusal> {
    let stopping = || Refusal(StatusCode::SERVICE_UNAVAILABLE, "the host is stopping".to_owned());
    orders.send(order).await.map_err(|_| stopping())?;
    answered.await.map_err(|_| stopping())
}
