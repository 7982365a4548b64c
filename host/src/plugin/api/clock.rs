//! `botyard:clock/clock`: the run's fixed time, and waiting.

use std::time::Duration;

use super::Host;
use crate::plugin::bindings::botyard::clock::clock as wit;

impl wit::Host for Host {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(Self::now(self))
    }

    async fn sleep(&mut self, milliseconds: u64) -> wasmtime::Result<()> {
        self.wait(Duration::from_millis(milliseconds)).await;
        Ok(())
    }
}

impl Host {
    /// Unix milliseconds; 0 while the plugin is being described.
    pub(super) fn now(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.now)
    }

    /// Nanoseconds of a clock that moves on by what the guest waits on purpose, and by nothing else.
    pub(super) fn monotonic(&self) -> u64 {
        self.now().saturating_mul(1_000_000).saturating_add(self.waited)
    }

    /// Waits; not while the plugin is being described. The end of the run's time ends this, too.
    pub(super) async fn wait(&mut self, time: Duration) {
        if self.run.is_some() && !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        self.waited = self.waited.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}
