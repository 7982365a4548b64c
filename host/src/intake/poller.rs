//! The polling loop, and nothing else: what to do after a failure is decided in `wait`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::accept::{Error, Ledger};
use super::wait::{self, Next};
use crate::domain::{BotId, EventLane, LaneRule};
use crate::store::Store;
use crate::telegram::{self, Client};

/// The most updates that one poll may bring; Telegram's maximum.
const LIMIT: u8 = 100;
/// How long the last confirmation may take when the host stops.
const FAREWELL: Duration = Duration::from_secs(5);

/// What polling is built from.
pub struct Poller {
    /// Where updates go.
    pub store: Store,
    /// Where they come from.
    pub client: Arc<Client>,
    /// Whose they are.
    pub bot: BotId,
    /// Which queue of Telegram's this is: token and API base, hashed.
    pub fingerprint: [u8; 8],
    /// How long a poll waits for something to happen.
    pub poll_timeout: Duration,
    /// The kinds to ask for. A change takes effect with the next poll; `None` leaves the choice to Telegram.
    pub allowed_updates: watch::Receiver<Option<Vec<String>>>,
    /// Told the lanes in which something durable has come.
    pub arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    /// How updates find their lanes. A change is for the updates that come after it.
    pub lanes: watch::Receiver<LaneRule>,
    /// Told how it goes.
    pub status: watch::Sender<PollStatus>,
}

/// How polling goes.
#[derive(Debug, Clone, Default)]
pub struct PollStatus {
    /// When a poll last had a good answer.
    pub last_good: Option<Instant>,
    /// What went wrong since.
    pub problem: Option<String>,
}

impl Poller {
    /// Polls until told to stop, or until Telegram refuses the token.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let mut ledger =
            Ledger::open(self.store.clone(), self.bot, self.fingerprint, self.arrivals.clone(), self.lanes.clone())?;
        let (mut failures, mut empty) = (0, 0);
        // The first poll does not wait: whether all is well is to be known soon.
        let mut probe = true;
        loop {
            let timeout = if probe { Duration::ZERO } else { self.poll_timeout };
            let allowed = self.allowed_updates.borrow().clone();
            let asked = Instant::now();
            let answer = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                answer = self.client.get_updates(ledger.offset(), timeout, LIMIT, allowed.as_deref()) => answer,
            };
            let outcome = match answer {
                Ok(body) => self.take(&mut ledger, &body, failures).await?,
                Err(error) => Err(wait::after(&error, failures, self.poll_timeout, rand::random()).with_reason(&error)),
            };
            let pause = match outcome {
                Ok(new) => {
                    (failures, probe) = (0, false);
                    self.status.send_replace(PollStatus { last_good: Some(Instant::now()), problem: None });
                    empty = if new > 0 { 0 } else { empty + 1 };
                    wait::after_nothing(empty, asked.elapsed())
                }
                Err(trouble) => {
                    failures += 1;
                    self.status.send_modify(|status| status.problem = Some(trouble.reason.clone()));
                    match trouble.next {
                        Next::Wait { pause, probe: short, rebuild } => {
                            tracing::warn!(
                                reason = trouble.reason,
                                ?pause,
                                failures,
                                "polling failed, and is tried again"
                            );
                            probe = short;
                            if rebuild {
                                self.client.rebuild();
                            }
                            pause
                        }
                        Next::Stop => {
                            tracing::error!(
                                reason = trouble.reason,
                                "polling stops: only a restart with a valid token helps"
                            );
                            return Ok(());
                        }
                    }
                }
            };
            if !pause.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = stop.wait_for(|stop| *stop) => break,
                }
            }
        }
        self.confirm(&ledger).await;
        Ok(())
    }

    /// Takes a batch in. The inner error is an answer that made no sense.
    async fn take(&self, ledger: &mut Ledger, body: &[u8], failures: u32) -> Result<Result<usize, Trouble>, Error> {
        match ledger.accept(body).await {
            Ok(accepted) => {
                metrics::counter!("botyard_updates_total", "outcome" => "accepted").increment(accepted.new as u64);
                metrics::counter!("botyard_updates_total", "outcome" => "duplicate")
                    .increment(accepted.duplicates as u64);
                metrics::counter!("botyard_updates_total", "outcome" => "unreadable")
                    .increment(accepted.unreadable as u64);
                if accepted.duplicates > 0 {
                    tracing::info!(duplicates = accepted.duplicates, "updates came again, and were recognised");
                }
                Ok(Ok(accepted.new + accepted.unreadable))
            }
            Err(error @ Error::NotAList(_)) => {
                Ok(Err(Trouble { next: wait::again(failures, rand::random()), reason: error.to_string() }))
            }
            Err(error) => Err(error),
        }
    }

    /// Tells Telegram once what is stored, so that it does not come again after the restart. The answer does not
    /// matter: a redelivered update is recognised.
    async fn confirm(&self, ledger: &Ledger) {
        let Some(offset) = ledger.offset() else { return };
        let confirm = self.client.get_updates(Some(offset), Duration::ZERO, 1, None);
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
}

impl Next {
    fn with_reason(self, error: &telegram::Error) -> Trouble {
        Trouble { next: self, reason: error.to_string() }
    }
}
