//! How many recipients the broadcasts of one plugin may reach in a minute. Those beyond wait; nothing is refused.
//!
//! What an operator sends is limited by nobody. Pure: the time is given.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::PluginName;
use crate::limit::Window;
use crate::plugin::Limit;

const MINUTE: Duration = Duration::from_secs(60);

/// The shares of all plugins.
#[derive(Default)]
pub(super) struct Shares {
    /// By plugin; 0 for no limit.
    most: BTreeMap<PluginName, u32>,
    used: HashMap<String, Used>,
}

#[derive(Default)]
struct Used {
    window: Window,
    /// When it was last said that a plugin's broadcasts wait.
    told: Option<Instant>,
}

impl Shares {
    pub(super) fn set(&mut self, most: BTreeMap<PluginName, u32>) {
        self.most = most;
    }

    /// When the next one may be sent to, if not now.
    pub(super) fn ready_at(&self, owner: &str, now: Instant) -> Option<Instant> {
        let most = self.most(owner)?;
        let ready = self.used.get(owner)?.window.ready_at(1, most, MINUTE, now)?;
        (ready > now).then_some(ready)
    }

    /// The same, counted and told of once in a while.
    pub(super) fn wait(&mut self, owner: &str, now: Instant) -> Option<Instant> {
        let ready = self.ready_at(owner, now)?;
        let used = self.used.entry(owner.to_owned()).or_default();
        if used.told.is_none_or(|told| told + MINUTE <= now) {
            used.told = Some(now);
            let plugin = PluginName::new(owner);
            Limit::BulkPerMinute.count(&plugin);
            let limit = Limit::BulkPerMinute.of(&plugin);
            tracing::info!(%plugin, limit, "a plugin's broadcasts go on more slowly: it has used up its bulk messages");
        }
        Some(ready)
    }

    /// One is sent to.
    pub(super) fn take(&mut self, owner: &str, now: Instant) {
        if self.most(owner).is_some() {
            self.used.entry(owner.to_owned()).or_default().window.take(1, MINUTE, now);
        }
    }

    fn most(&self, owner: &str) -> Option<u64> {
        // An operator has no name.
        let most = self.most.iter().find(|(plugin, _)| plugin.as_str() == owner).map(|(_, most)| *most)?;
        (most > 0).then_some(most.into())
    }
}
