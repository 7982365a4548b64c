//! What all connections share: the world behind its lock, the faults, and who waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use super::api::{self, ApiError};
use super::faults::{Action, Fault, Faults, Rule};
use super::insight::Insight;
use super::params::Params;
use super::people::polls;
use super::poll;
use super::world::{Signals, World};
use crate::clock;

/// See the module.
pub(super) struct Hub {
    world: Mutex<World>,
    faults: Mutex<Faults>,
    /// Spares the lock while there are no faults, which is nearly always.
    faulty: AtomicBool,
    pub(super) signals: Signals,
    /// The only token that is accepted, if not all are.
    token: Option<String>,
    /// The host, if it runs in this process and shows itself.
    insight: OnceLock<Arc<dyn Insight>>,
    /// Whether the process's clock goes with the simulated one.
    moves_clock: bool,
    /// Something may have to be saved.
    pub(super) changed: Notify,
}

impl Hub {
    pub(super) fn new(world: World, token: Option<String>, moves_clock: bool) -> Arc<Self> {
        let signals = world.signals.clone();
        let (faults, faulty, insight, changed) = Default::default();
        let hub = Self { world: Mutex::new(world), faults, faulty, signals, token, moves_clock, insight, changed };
        // It may have been put ahead before the last stop.
        hub.advance_clock(0);
        Arc::new(hub)
    }

    /// Puts the simulated clock ahead.
    pub(super) fn advance_clock(&self, seconds: i64) {
        let mut world = self.world();
        world.clock_ahead = world.clock_ahead.saturating_add(seconds);
        if self.moves_clock {
            clock::set_ahead(world.clock_ahead);
        }
        polls::close_due(&mut world);
    }

    pub(super) fn moves_clock(&self) -> bool {
        self.moves_clock
    }

    pub(super) fn set_insight(&self, insight: Arc<dyn Insight>) {
        // A second one would be a second host.
        drop(self.insight.set(insight));
    }

    pub(super) fn insight(&self) -> Option<&Arc<dyn Insight>> {
        self.insight.get()
    }

    /// The world, for a moment. Never held across an await.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.changed.notify_one();
        self.look()
    }

    /// The world, for those who change nothing.
    pub(super) fn look(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_fault(&self, fault: Fault) {
        self.faults().rules.push(Rule::new(fault));
        self.faulty.store(true, Ordering::Release);
    }

    pub(super) fn set_faults(&self, faults: Vec<Fault>) {
        self.faulty.store(!faults.is_empty(), Ordering::Release);
        self.faults().rules = faults.into_iter().map(Rule::new).collect();
    }

    pub(super) fn fault_rules(&self) -> Vec<Rule> {
        self.faults().rules.clone()
    }

    /// Notes a call that arrived. Answers with its number, and with what shall go wrong with it.
    pub(super) fn arrived(&self, method: &str, params: &Params) -> (u64, Option<Action>) {
        let number = {
            let mut world = self.world();
            let keep = world.load.is_none();
            world.files.note(method, &params.uploads);
            let at = world.now_millis();
            world.calls.record(method, &params.values, at, keep)
        };
        if !self.faulty.load(Ordering::Acquire) {
            return (number, None);
        }
        (number, self.faults().decide(method, params.int("chat_id")))
    }

    /// Notes what a call was answered with.
    pub(super) fn answered(&self, number: u64, result: &Result<Vec<u8>, ApiError>) {
        let mut world = self.look();
        if world.load.is_some() {
            return;
        }
        match result {
            Ok(answer) => world.calls.answered(number, answer),
            Err(error) => world.calls.refused(number, &error.description),
        }
        world.emit(&serde_json::json!({ "event": "activity" }));
    }

    /// What shall go wrong while the body of a call is taken in.
    pub(super) fn body_fault(&self, method: &str) -> Option<Action> {
        if !self.faulty.load(Ordering::Acquire) {
            return None;
        }
        self.faults().decide_body(method)
    }

    /// What shall go wrong with something that is no call.
    pub(super) fn fault(&self, name: &str, chat: Option<i64>) -> Option<Action> {
        if self.faulty.load(Ordering::Acquire) { self.faults().decide(name, chat) } else { None }
    }

    /// True if calls with this token are answered. The bot takes over the id that its token begins with.
    pub(super) fn admits(&self, token: &str) -> Result<(), ApiError> {
        let id = bot_id(token).ok_or_else(|| ApiError::new(404, "Not Found"))?;
        if self.token.as_deref().is_some_and(|only| only != token) {
            return Err(ApiError::new(401, "Unauthorized"));
        }
        let mut world = self.world();
        world.bot.id = id;
        Ok(())
    }

    /// Plays one call: the whole answer, or the refusal.
    pub(super) async fn call(&self, method: &str, params: &Params) -> Result<Vec<u8>, ApiError> {
        let method = method.to_ascii_lowercase();
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(b"{\"ok\":true,\"result\":");
        if method == "getupdates" {
            poll::get_updates(self, params, &mut out).await?;
        } else {
            api::call(&mut self.world(), &method, params, &mut out)?;
        }
        out.push(b'}');
        Ok(out)
    }
}

/// The number before the colon of a token, if it is one.
pub(super) fn bot_id(token: &str) -> Option<i64> {
    let (id, secret) = token.split_once(':')?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let well_formed = !secret.is_empty() && secret.chars().all(allowed);
    id.parse().ok().filter(|&id: &i64| id > 0 && well_formed)
}
