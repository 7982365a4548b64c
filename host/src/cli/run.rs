//! `botyard run`: loads the configuration, hands over to the app, and turns signals into a stop.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::ConfigFile;
use super::exit::Exit;
use crate::app::{self, RunOptions};
use crate::config::{Config, LoadOptions};

/// Run the bot until Ctrl-C or SIGTERM
///
/// Ctrl-C or SIGTERM stops it cleanly: what is being handled is finished, everything else is kept for
/// the next start. A second one stops it at once (exit code 130), and no update is lost either.
///
/// bot.toml and the plugins are watched: save one, and it is in force for the next message. What can't
/// be loaded changes nothing; the log says why.
///
/// With --simulator a page is served in which you chat with the bot; its address is logged.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Run {
    #[command(flatten)]
    file: ConfigFile,
    /// Play Telegram, at this address, instead of talking to it: no token, no network
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8090")]
    pub(super) simulator: Option<SocketAddr>,
    /// Remove a webhook that another program has set for the bot, to poll: it hears nothing any more
    #[arg(long)]
    pub(super) take_over: bool,
    /// Take the place of the host that runs on the same store: it is asked to end once this one is ready to begin
    #[arg(long)]
    pub(super) replace: bool,
}

impl Run {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let config = self.file.load(LoadOptions { token_optional: self.simulator.is_some() })?;
        for warning in &config.warnings {
            tracing::warn!(place = warning.line(&self.file.config), "configuration");
        }
        let options = RunOptions {
            simulator: self.simulator,
            take_over: self.take_over,
            replace: self.replace,
            ..RunOptions::default()
        };
        run_host(config, options, std::future::ready(()))?;
        Ok(Exit::Done)
    }
}

/// Runs the host until a signal, and `beside` along with it, which is given up when the host has stopped.
pub(super) fn run_host(config: Config, options: RunOptions, beside: impl Future<Output = ()>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("could not start the threads of the host")?;
    let done = runtime.block_on(async {
        let host = run_until_signal(config, options);
        tokio::pin!(host);
        tokio::select! {
            done = &mut host => return done,
            () = beside => {}
        }
        host.await
    });
    // A plugin may still be compiled, which nothing can interrupt and nobody waits for.
    runtime.shutdown_background();
    done
}

async fn run_until_signal(config: Config, options: RunOptions) -> anyhow::Result<()> {
    let signals = Signals::listen().context("could not listen for signals")?;
    let (stop, stopping) = watch::channel(false);
    let stopper = tokio::spawn(stop_on(signals, stop));
    let done = app::run(config, options, stopping).await;
    stopper.abort();
    done
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

async fn stop_on(mut signals: Signals, stop: watch::Sender<bool>) {
    let signal = signals.next().await;
    tracing::info!(signal, "stopping; a second signal stops at once");
    stop.send_replace(true);
    let signal = signals.next().await;
    tracing::warn!(signal, "stopped before everything in flight was finished");
    std::process::exit(Exit::Interrupted as i32);
}
