//! `botyard:clock/clock`: the run's fixed time, and waiting.

use std::time::Duration;

use super::Host;
use crate::plugin::bindings::botyard::clock::clock as wit;

impl wit::Host for Host {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.run.as_ref().map_or(0, |run| run.now))
    }

    async fn sleep(&mut self, milliseconds: u64) -> wasmtime::Result<()> {
        if self.run.is_some() {
            // The end of the run's time ends this, too.
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        Ok(())
    }
}
