//! How a command gets at a bot's store: through the host that runs on it, else by opening it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use reqwest::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::exit::WrongArgument;
use crate::admin::{Failed, Host, KeptVersion, PluginStatus};
use crate::app;
use crate::config::Config;
use crate::domain::{BotName, ChatId};
use crate::operate::{ChatList, Letter, List, Operator, Outcome, Reach, Selection};
use crate::store::{self, Store};
use crate::telegram::WebhookInfo;

mod many;
mod state;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A host that is just starting answers when it is ready.
const FIRST_ANSWER: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(120);

/// What a command works with.
pub(super) enum Hand {
    /// The host that runs.
    Running(Running),
    /// Nobody runs.
    Stopped { store: Store, operator: Operator, files: PathBuf },
}

pub(super) struct Running {
    client: reqwest::Client,
    base: String,
    /// Which bot is meant, where there are several.
    bot: Option<BotName>,
}

impl Hand {
    /// Asks the host of this configuration, and opens the store when there is none.
    pub(super) async fn on(config: &Config, simulated: bool) -> anyhow::Result<Self> {
        let why_not = match Running::find(config).await {
            Ok(running) => return Ok(Self::Running(running)),
            Err(why_not) => why_not,
        };
        let path = &config.store.path;
        if !path.exists() {
            let message = format!("no host answers ({why_not}), and there is no store at {}", path.display());
            return Err(WrongArgument(message).into());
        }
        let bot = app::bot_id(config, simulated).context(
            "no host answers, and in its store the bot's token tells which bot is meant (--simulator for the simulated one)",
        )?;
        let store = Store::open(path).map_err(|error| match error {
            store::Error::Locked { .. } => {
                let cure = "ask it where it runs, with the same `listen` in [admin], or stop it";
                anyhow!(error).context(format!("a host has the store open but can't be asked ({why_not}); {cure}"))
            }
            error => error.into(),
        })?;
        let operator = Operator::on_stopped(store.clone(), bot);
        Ok(Self::Stopped { store, operator, files: app::files_dir(path) })
    }

    /// Whether the store is open here, so that nothing is handled before the next start.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped { .. })
    }

    pub(super) async fn list(&self, limit: usize, plugin: Option<&str>) -> anyhow::Result<List> {
        match self {
            Self::Running(host) => {
                let limit = ("limit", limit.to_string());
                let plugin = plugin.map(|plugin| ("plugin", plugin.to_owned()));
                host.get("/api/dead", &std::iter::once(limit).chain(plugin).collect::<Vec<_>>()).await
            }
            Self::Stopped { operator, .. } => Ok(operator.list(limit, plugin)?),
        }
    }

    pub(super) async fn chats(&self, after: Option<i64>, limit: usize, reach: Reach) -> anyhow::Result<ChatList> {
        match self {
            Self::Running(host) => {
                let limit = ("limit", limit.to_string());
                let after = after.map(|after| ("after", after.to_string()));
                let query: Vec<_> = [limit, ("reach", reach.to_string())].into_iter().chain(after).collect();
                host.get("/api/chats", &query).await
            }
            Self::Stopped { operator, .. } => Ok(operator.chats(after.map(ChatId), limit, reach)?),
        }
    }

    pub(super) async fn show(&self, number: u64, payload: bool) -> anyhow::Result<Letter> {
        match self {
            Self::Running(host) => host.get(&format!("/api/dead/{number}"), &[("payload", payload.to_string())]).await,
            Self::Stopped { operator, .. } => {
                operator.show(number, payload)?.with_context(|| format!("there is no dead letter {number}"))
            }
        }
    }

    pub(super) async fn retry(&self, which: &Selection) -> anyhow::Result<Outcome> {
        match self {
            Self::Running(host) => host.post("/api/dead/retry", which).await,
            Self::Stopped { operator, .. } => Ok(operator.retry(which).await?),
        }
    }

    pub(super) async fn drop_letters(&self, which: &Selection) -> anyhow::Result<Outcome> {
        match self {
            Self::Running(host) => host.post("/api/dead/drop", which).await,
            Self::Stopped { operator, .. } => Ok(operator.drop_letters(which).await?),
        }
    }

    /// Lets go of the store, once everything is on disk.
    pub(super) async fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Running(_) => Ok(()),
            Self::Stopped { store, .. } => Ok(store.close().await?),
        }
    }
}

impl Running {
    /// The host of this configuration, which must run.
    pub(super) async fn on(config: &Config) -> anyhow::Result<Self> {
        let found = Self::find(config).await;
        found.map_err(|why_not| anyhow!("only a running host can tell, and none can be asked: {why_not}"))
    }

    pub(super) async fn plugins(&self) -> anyhow::Result<Vec<PluginStatus>> {
        self.get("/api/plugins", &[]).await
    }

    /// `action` is `reload`, `pause`, `resume`, `disable`, `enable` or `rollback`.
    pub(super) async fn change_plugin(&self, plugin: &str, action: &str) -> anyhow::Result<PluginStatus> {
        self.post(&format!("/api/plugins/{plugin}/{action}"), &()).await
    }

    /// What plugins are given from now on, as lines.
    pub(super) async fn record(&self, plugin: Option<&str>) -> anyhow::Result<reqwest::Response> {
        let mut url = self.url("/api/record")?;
        if let Some(plugin) = plugin {
            url.query_pairs_mut().append_pair("plugin", plugin);
        }
        let answer = self.client.get(url).send().await.context("the host does not answer")?;
        match answer.status() {
            StatusCode::OK => Ok(answer),
            status => Err(refused(status, &answer.bytes().await.unwrap_or_default())),
        }
    }

    pub(super) async fn set_webhook(&self) -> anyhow::Result<WebhookInfo> {
        self.post("/api/webhook/set", &()).await
    }

    pub(super) async fn plugin_versions(&self, plugin: &str) -> anyhow::Result<Vec<KeptVersion>> {
        self.get(&format!("/api/plugins/{plugin}/versions"), &[]).await
    }

    /// The host of this configuration; else why it can't be asked.
    async fn find(config: &Config) -> Result<Self, String> {
        let mut address = config.admin.listen;
        if address.port() == 0 {
            return Err("`listen` in [admin] has port 0, so nobody knows where it listens".to_owned());
        }
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        // Fails only where somebody has chosen a provider already, which is as good. None is needed for `http:`.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tls_certs_only(std::iter::empty())
            .build()
            .map_err(|error| error.to_string())?;
        let bot = (config.bots.len() > 1).then(|| config.name.clone());
        let running = Self { client, base: format!("http://{address}"), bot };
        let nobody = |_| format!("nobody answers at {address}");
        let request = running.client.get(format!("{}/healthz", running.base)).timeout(FIRST_ANSWER);
        if request.send().await.map_err(nobody)?.status() != StatusCode::OK {
            return Err(format!("what answers at {address} is no botyard"));
        }
        let host: Host = running.get("/api/host", &[]).await.map_err(|error| format!("{error:#}"))?;
        if !is_same(&host.store, &config.store.path) {
            return Err(format!("the host at {address} has another store, {}", host.store.display()));
        }
        Ok(running)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<T> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.answer(self.client.get(url)).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> anyhow::Result<T> {
        let request = self.client.post(self.url(path)?);
        self.answer(request.header("content-type", "application/json").body(serde_json::to_vec(body)?)).await
    }

    fn url(&self, path: &str) -> anyhow::Result<reqwest::Url> {
        let url = reqwest::Url::parse(&format!("{}{path}", self.base));
        let mut url = url.with_context(|| format!("{path:?} can't be asked for"))?;
        if let Some(bot) = &self.bot {
            url.query_pairs_mut().append_pair("bot", bot.as_str());
        }
        Ok(url)
    }

    async fn answer<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> anyhow::Result<T> {
        let answer = request.timeout(ANSWER).send().await.context("the host does not answer")?;
        let status = answer.status();
        let body = answer.bytes().await.context("the host's answer breaks off")?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).context("the host is of another version: its answer can't be read");
        }
        Err(refused(status, &body))
    }
}

fn refused(status: StatusCode, body: &[u8]) -> anyhow::Error {
    let said = serde_json::from_slice::<Failed>(body).map(|failed| failed.error);
    anyhow!(said.unwrap_or_else(|_| format!("the host answers with {status}; is it of another version?")))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Runs a command that waits, on this thread alone.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("could not start a thread's runtime")?.block_on(work)
}
