//! Health and metrics over HTTP, for probes, scrapers and people: `/healthz`, `/readyz`, `/metrics`; a page and `/api/…`
//! for operators on this machine.
//!
//! It reads what others report and hands on what operators want; it decides nothing. There is no login, which is why it
//! listens on the loopback address unless told otherwise. When its port is taken the host does not start, with an error
//! that names the address and the key.

mod api;
mod bots;
mod broadcasts;
pub mod metrics;
mod outbox;
mod page;
mod plugins;
mod readiness;
mod record;
mod state;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::store::rows::counted::Ledger;
use bots::Which;

pub use api::{Failed, HandOver, Host, Shared, Summary};
pub use bots::{BotStatus, Bots, Reports, Served};
pub use broadcasts::{Recipients, Terms};
pub use plugins::{Action, KeptVersion, Order, OrderError, PluginState, PluginStatus};
pub use readiness::{Readiness, Reason, Report};

/// How long a request that is being answered may hold up the stop.
const GRACE: Duration = Duration::from_secs(1);

/// How often histograms are summed up when nobody asks for them: until then they keep every sample.
const UPKEEP: Duration = Duration::from_secs(5);

const INDEX: &str = "botyard\n\n\
    /         a page for operators\n\
    /healthz  200 while the process lives\n\
    /readyz   200 when updates are fetched and handled, else 503 with the reasons; ?bot=NAME for one of several\n\
    /metrics  counters and timings for Prometheus\n\
    /api      what the page and the commands ask, from this machine only\n";

/// Why the admin endpoints can't be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another program has the port.
    #[error(
        "the admin address {0} is in use, perhaps by another botyard; \
         stop that one, or set another `listen` in [admin] of bot.toml (BOTYARD__ADMIN__LISTEN)"
    )]
    InUse(SocketAddr),
    /// The system does not let us listen there.
    #[error("could not listen on the admin address {address}: {source}; set another `listen` in [admin] of bot.toml")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The server stopped.
    #[error("the admin server has stopped: {0}")]
    Serve(#[source] io::Error),
}

/// Takes the address: early, before anything is changed that a second host would disturb.
///
/// # Errors
/// When it is in use or not to be had.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::InUse(address),
        _ => Error::Listen { address, source },
    })
}

/// Begins to record metrics, if nobody has yet. What is counted before is not recorded.
pub fn install_metrics() {
    metrics::install();
}

/// Answers until told to stop.
///
/// # Errors
/// When the server can't go on.
pub async fn serve(listener: TcpListener, api: Shared, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
    let metrics = metrics::install();
    let mut asked_to_stop = stop.clone();
    let routes = routes(api.bots.clone(), metrics.clone()).merge(page::routes()).merge(api::routes(api));
    let server = axum::serve(listener, routes.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async move { stopped(&mut asked_to_stop).await });
    let out_of_grace = async {
        stopped(&mut stop).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = server.into_future() => served.map_err(Error::Serve),
        () = out_of_grace => Ok(()),
        () = keep_up(metrics) => Ok(()),
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could ask for the stop is gone, which is one.
    stop.wait_for(|stop| *stop).await.map(|_| ()).unwrap_or_default();
}

async fn keep_up(metrics: &PrometheusHandle) {
    let mut tick = tokio::time::interval(UPKEEP);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
    }
}

fn routes(bots: Bots, metrics: PrometheusHandle) -> Router {
    Router::new()
        .route("/healthz", get("ok\n"))
        .route("/readyz", get(ready).with_state(bots.clone()))
        .route("/metrics", get(render).with_state((bots, metrics)))
        .fallback((StatusCode::NOT_FOUND, INDEX))
}

async fn ready(State(bots): State<Bots>, Query(which): Query<Which>) -> Response {
    let status = |ready| if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let report = match &which.bot {
        Some(name) => match bots.report_of(name) {
            Ok(report) => Ok(report),
            Err(refusal) => return refusal.into_response(),
        },
        None => bots.report(),
    };
    match report {
        Ok(one) => (status(one.ready), Json(one)).into_response(),
        Err(all) => (status(all.ready), Json(all)).into_response(),
    }
}

async fn render(State((bots, metrics)): State<(Bots, PrometheusHandle)>) -> Response {
    for bot in bots.list() {
        let name: String = bot.name.into();
        ::metrics::gauge!("botyard_bot_ready", "bot" => name).set(u8::from(bot.ready));
    }
    for (ledger, metric) in [
        (Ledger::Kept, "botyard_plugin_stored_bytes"),
        (Ledger::Timers, "botyard_plugin_timers"),
        (Ledger::Queued, "botyard_plugin_queued_bytes"),
        (Ledger::Dead, "botyard_plugin_dead_letters"),
    ] {
        for (bot, plugins) in bots.used(ledger) {
            for (plugin, used) in plugins {
                let labels = [("bot", bot.to_string()), ("plugin", plugin.to_string())];
                ::metrics::gauge!(metric, &labels).set(used as f64);
            }
        }
    }
    // The version is part of the format that scrapers negotiate.
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render()).into_response()
}

#[cfg(test)]
mod tests;
