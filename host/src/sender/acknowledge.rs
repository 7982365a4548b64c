//! Pressed buttons that nobody has answered in time: Telegram shows them as under way until somebody does, and takes no
//! answer any more after a while.
//!
//! Intake tells of each as it comes, dispatch when it is done with it. What is still open after the time that the
//! operator has set is acknowledged here, directly, past all queues; its event keeps its place and its handling. The
//! handler's own answer then comes second, which Telegram refuses as one that can't matter any more: a no-op.
//!
//! All of it is in memory and bounded. What is forgotten, by a restart say, is answered when its event is done.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::counter;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::{Sender, Shared};
use crate::domain::Lane;
use crate::telegram::{Refusal, lane_of};
use crate::whose;

/// What the host answers queries with.
pub const METHOD: &str = "answerCallbackQuery";
/// How many are watched; beyond these, queries are answered only when their events are done.
const MOST: usize = 10_000;
const MOST_AT_ONCE: usize = 16;
const DEADLINE: Duration = Duration::from_secs(10);
/// An event that waits for longer, for a paused plugin say, is as good as forgotten.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The parameters that acknowledge a query, and the lane of that call.
#[must_use]
pub fn acknowledgement(query_id: &str) -> (Lane, String) {
    let params = json!({ "callback_query_id": query_id }).to_string();
    (lane_of(METHOD, &params), params)
}

#[derive(Default)]
pub(super) struct Queries {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    /// Zero for never.
    after: Duration,
    /// In the order in which they came. Some are answered by now.
    due: VecDeque<(Instant, String)>,
    open: HashMap<Lane, Open>,
}

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Waiting,
    Acknowledged(Instant),
}

impl Queries {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn expect(&mut self, query_id: String, now: Instant) {
        if self.open.len() >= MOST {
            self.open.retain(|_, open| !matches!(open, Open::Acknowledged(at) if now - *at > REMEMBERED));
        }
        if self.after.is_zero() || self.open.len() >= MOST || self.due.len() >= MOST {
            return;
        }
        self.open.insert(acknowledgement(&query_id).0, Open::Waiting);
        self.due.push_back((now + self.after, query_id));
    }

    /// The next one whose time has come and that is still open, with the call that acknowledges it.
    fn take_due(&mut self, now: Instant) -> Option<(Lane, String)> {
        while self.due.front().is_some_and(|(due, _)| *due <= now) {
            let (_, query_id) = self.due.pop_front()?;
            let call = acknowledgement(&query_id);
            if self.open.get(&call.0) == Some(&Open::Waiting) {
                return Some(call);
            }
        }
        None
    }
}

impl Sender {
    /// Acknowledges a pressed button when it has no answer after so long; zero for never. Without this, never.
    pub fn acknowledge_after(&self, time: Duration) {
        self.shared.queries.state().after = time;
    }

    /// Tells of pressed buttons. Never blocks.
    pub fn expect_answers(&self, query_ids: impl IntoIterator<Item = String>) {
        let now = Instant::now();
        let mut told = false;
        for query_id in query_ids {
            self.shared.queries.state().expect(query_id, now);
            told = true;
        }
        if told {
            self.shared.queries.wake.notify_one();
        }
    }

    /// The query of this lane needs no acknowledgement any more.
    pub fn answered(&self, lane: Lane) {
        self.shared.queries.state().open.remove(&lane);
    }

    /// True if the query of this lane has been acknowledged here.
    #[must_use]
    pub fn has_acknowledged(&self, lane: Lane) -> bool {
        matches!(self.shared.queries.state().open.get(&lane), Some(Open::Acknowledged(_)))
    }
}

/// Runs until told to stop; what is under way then is left to its event.
pub(super) async fn run(shared: &Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let queries = &shared.queries;
    let mut calls = JoinSet::new();
    loop {
        let now = Instant::now();
        while calls.len() < MOST_AT_ONCE
            && let Some((lane, params)) = { queries.state().take_due(now) }
        {
            let shared = shared.clone();
            calls.spawn(whose::same(async move { acknowledge(&shared, lane, params).await }));
        }
        let next = queries.state().due.front().map(|(due, _)| *due).filter(|_| calls.len() < MOST_AT_ONCE);
        tokio::select! {
            biased;
            // Whoever drops the signal has gone, which is a reason to stop as well.
            _ = stop.wait_for(|stop| *stop) => return,
            Some(_) = calls.join_next() => {}
            () = queries.wake.notified() => {}
            () = time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
        }
    }
}

async fn acknowledge(shared: &Shared, lane: Lane, params: String) {
    let error = shared.client.call(METHOD, params.into(), DEADLINE).await.err();
    let is_over = error.as_ref().is_none_or(|error| error.refusal() == Some(Refusal::NoOp));
    let mut state = shared.queries.state();
    match state.open.get_mut(&lane) {
        Some(open) if is_over => *open = Open::Acknowledged(Instant::now()),
        // Its event will see to it.
        _ => drop(state.open.remove(&lane)),
    }
    match error {
        None => counter!("botyard_callbacks_acknowledged_total", "when" => "early").increment(1),
        Some(error) => tracing::debug!(%error, "a pressed button was not acknowledged early"),
    }
}
