//! The polling loop, and nothing else: what to do after a failure is decided in `wait`.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::accept::{Error, Ledger};
use super::backlog;
use super::status::{Status, alarm};
use super::supervise::{Parts, Settings};
use super::wait::{self, Next};
use super::way::{Blocked, clear_way};
use crate::telegram;

/// The most updates that one poll may bring; Telegram's maximum.
const LIMIT: u8 = 100;
/// How long the last confirmation may take when the host stops.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a poll counts as recent: as long as the next one may take, and time for another try.
const MARGIN: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(10);

/// Polls.
pub(super) struct Poller<'a> {
    pub(super) parts: &'a Parts,
    pub(super) settings: &'a Settings,
}

impl Poller<'_> {
    /// Polls until told to stop. A refused token does not end it, since a proxy may have said so, or Telegram may think
    /// better of it: then it is asked about rarely.
    pub(super) async fn run(&self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let Parts { store, bot, arrivals, lanes, sender, status, .. } = self.parts;
        Status::begin(status, "the last good poll", self.settings.poll_timeout + MARGIN);
        let fingerprint = self.settings.fingerprint;
        let ledger = Ledger::open(store.clone(), *bot, fingerprint, arrivals.clone(), lanes.clone())?;
        let mut ledger = ledger.telling(sender.clone());
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            ended = self.poll(&mut ledger) => return ended,
            () = self.follow_pending() => {}
        }
        self.confirm(&ledger).await;
        Ok(())
    }

    /// For ever. Dropping it at any point loses nothing: what was stored and not confirmed comes again, and is recognised.
    async fn poll(&self, ledger: &mut Ledger) -> Result<(), Error> {
        let poll_timeout = self.settings.poll_timeout;
        let client = &self.parts.client;
        self.look_for_webhook().await?;
        let (mut failures, mut empty) = (0, 0);
        // The first poll does not wait: whether all is well is to be known soon.
        let mut probe = true;
        // When there was the last good answer, or the watchdog did what it can.
        let mut progress = Instant::now();
        loop {
            let timeout = if probe { Duration::ZERO } else { poll_timeout };
            let allowed = self.parts.allowed_updates.borrow().clone();
            let asked = Instant::now();
            let give_up = (progress + wait::stalled(poll_timeout)).max(asked + timeout + wait::SLACK);
            let answer = tokio::select! {
                biased;
                answer = client.get_updates(ledger.offset(), timeout, LIMIT, allowed.as_deref()) => answer,
                () = tokio::time::sleep_until(give_up) => Err(silence(asked)),
            };
            let outcome = match answer {
                Ok(body) => self.take(ledger, &body, failures).await?,
                Err(error) => Err(Trouble::of(error, failures, poll_timeout)),
            };
            let pause = match outcome {
                Ok(new) => {
                    (failures, probe, progress) = (0, false, Instant::now());
                    Status::good(&self.parts.status);
                    empty = if new > 0 { 0 } else { empty + 1 };
                    wait::after_nothing(empty, asked.elapsed())
                }
                Err(trouble) => {
                    if trouble.is_silence() && progress.elapsed() >= wait::stalled(poll_timeout) {
                        self.bite(progress.elapsed());
                        progress = Instant::now();
                    }
                    let pause = self.mend(&trouble, failures, &mut probe).await?;
                    failures += 1;
                    pause
                }
            };
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Says what went wrong, does what can be done about it, and answers how long to wait.
    async fn mend(&self, trouble: &Trouble, failures: u32, probe: &mut bool) -> Result<Duration, Error> {
        let status = &self.parts.status;
        let reason = &trouble.reason;
        Status::trouble(status, reason, trouble.is_certain());
        if matches!(trouble.error, Some(telegram::Error::Conflict { webhook: true, .. })) {
            self.look_for_webhook().await?;
            *probe = true;
            return Ok(Duration::from_secs(1));
        }
        match trouble.next {
            Next::Wait { pause, probe: short, rebuild } => {
                tracing::warn!(reason, ?pause, failures, "polling failed, and is tried again");
                *probe = short;
                if rebuild {
                    self.parts.client.rebuild();
                }
                Ok(pause)
            }
            Next::Refused => {
                alarm("token");
                tracing::error!(
                    reason,
                    "Telegram refuses the token: polling rests and asks rarely; a new token in the configuration ends that"
                );
                self.until_accepted().await;
                *probe = true;
                Ok(Duration::ZERO)
            }
        }
    }

    /// Nothing is heard although Telegram was asked again and again: everything that could have got stuck is begun anew.
    fn bite(&self, since: Duration) {
        alarm("stalled");
        let seconds = since.as_secs();
        tracing::error!(seconds, "no poll has been answered for long; all connections are made anew");
        self.parts.client.rebuild();
        Status::trouble(&self.parts.status, &format!("no poll has been answered for {seconds} s"), true);
    }

    /// Asks with long pauses whether the token works again.
    async fn until_accepted(&self) {
        for attempt in 0.. {
            tokio::time::sleep(wait::before_probe(attempt)).await;
            if self.parts.client.call("getMe", Bytes::from_static(b"{}"), DEADLINE).await.is_ok() {
                tracing::info!("Telegram accepts the token again; polling goes on");
                return;
            }
        }
    }

    /// Returns when no webhook is in the way, or Telegram can't be asked; then the next poll tells.
    async fn look_for_webhook(&self) -> Result<(), Error> {
        let Parts { client, store, bot, status, .. } = self.parts;
        loop {
            match clear_way(client, store, *bot, self.settings.take_over).await {
                Ok(_) | Err(Blocked::Unknown(_)) => return Ok(()),
                Err(Blocked::Failed(error)) => return Err(error),
                Err(Blocked::By(foreign)) => {
                    alarm("webhook");
                    tracing::error!(host = foreign.host, "a webhook that is not ours is set: the bot can't poll");
                    Status::trouble(status, &foreign.to_string(), true);
                    tokio::time::sleep(wait::FOREIGN).await;
                }
            }
        }
    }

    async fn follow_pending(&self) {
        loop {
            tokio::time::sleep(backlog::EVERY).await;
            if let Ok(info) = self.parts.client.webhook_info().await {
                backlog::pending(self.parts, info.pending_update_count);
            }
        }
    }

    /// Takes a batch in. The inner error is an answer that made no sense.
    async fn take(&self, ledger: &mut Ledger, body: &[u8], failures: u32) -> Result<Result<usize, Trouble>, Error> {
        match ledger.accept(body).await {
            Ok(accepted) => {
                if accepted.duplicates > 0 {
                    tracing::info!(duplicates = accepted.duplicates, "updates came again, and were recognised");
                }
                Ok(Ok(accepted.new + accepted.unreadable))
            }
            Err(error @ Error::NotAList(_)) => {
                let next = wait::again(failures, rand::random());
                Ok(Err(Trouble { next, reason: error.to_string(), error: None }))
            }
            Err(error) => Err(error),
        }
    }

    /// Tells Telegram once what is stored, so that it does not come again after the restart. The answer does not
    /// matter: a redelivered update is recognised.
    async fn confirm(&self, ledger: &Ledger) {
        let Some(offset) = ledger.offset() else { return };
        let confirm = self.parts.client.get_updates(Some(offset), Duration::ZERO, 1, None);
        match tokio::time::timeout(FAREWELL, confirm).await {
            Ok(Ok(_)) => tracing::debug!(offset, "confirmed what is stored"),
            Ok(Err(error)) => tracing::debug!(offset, %error, "could not confirm; duplicates will be recognised"),
            Err(_) => tracing::debug!(offset, "no answer to the confirmation; duplicates will be recognised"),
        }
    }
}

/// A failed poll: why, and what follows.
struct Trouble {
    next: Next,
    reason: String,
    error: Option<telegram::Error>,
}

impl Trouble {
    fn of(error: telegram::Error, failures: u32, poll_timeout: Duration) -> Self {
        let next = wait::after(&error, failures, poll_timeout, rand::random());
        Self { next, reason: error.to_string(), error: Some(error) }
    }

    /// Nobody has answered anything that makes sense: the connections themselves may be the trouble.
    fn is_silence(&self) -> bool {
        self.error.as_ref().is_none_or(telegram::Error::is_transient)
    }

    /// The bot hears nothing, whatever is tried.
    fn is_certain(&self) -> bool {
        use telegram::Error::{Conflict, Unauthorized};
        self.next == Next::Refused || matches!(self.error, Some(Conflict { .. } | Unauthorized { .. }))
    }
}

/// The transport has its own deadline, which a poll that is stuck has missed.
fn silence(asked: Instant) -> telegram::Error {
    let reason = format!("no answer within {} s, nor a time-out", asked.elapsed().as_secs());
    telegram::Error::UnknownOutcome { method: "getUpdates".to_owned(), reason, silent: true }
}
