//! What a run finds around it: time, chance, its configuration, and other conversations.

use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;

use super::{Run, millis};
use crate::bindings::botyard::types::types::StateKey;
use crate::{Error, OldState, State, host, json};

impl Run {
    /// Waits. The conversation waits too; nothing else does. Bounded by the run's time limit.
    pub fn sleep(&self, time: Duration) {
        host::sleep(millis(time));
    }

    /// The time at which this event was first handled: every attempt sees the same.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.invocation.now)
    }

    /// A random number. The sequence is the same on every attempt; not for secrets.
    #[must_use]
    pub fn random(&self) -> u64 {
        // SplitMix64: the seed is good, so a plain walk with a strong finish will do.
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `bound`; 0 for a bound of 0.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn roll(ctx: &Run) -> u64 {
    ///     1 + ctx.random_below(6)
    /// }
    /// ```
    #[must_use]
    pub fn random_below(&self, bound: u64) -> u64 {
        ((u128::from(self.random()) * u128::from(bound)) >> 64) as u64
    }

    /// Random bytes from the host, at most 65,536 at a time. The same on every attempt; not for secrets.
    #[must_use]
    pub fn random_bytes(&self, length: u32) -> Vec<u8> {
        host::random_bytes(length)
    }

    /// The `config` of this plugin's entry in `bot.toml`. Give the type `#[serde(default)]` so that an operator sets
    /// only what differs.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// # use botyard_sdk::__private::serde;
    /// #[derive(Deserialize, Default)]
    /// # #[serde(crate = "serde")]
    /// #[serde(default)]
    /// struct Config {
    ///     currency: String,
    /// }
    /// fn price(ctx: &Run, sum: u32) -> Result<String, Error> {
    ///     let config: Config = ctx.config()?;
    ///     Ok(format!("{sum} {}", config.currency))
    /// }
    /// ```
    ///
    /// # Errors
    /// Permanently, naming the field, when it is no `T`.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_str(&host::config())
            .map_err(|error| Error::permanent(format!("`config` of this plugin in bot.toml: {error}")))
    }

    /// A secret that the operator gave to this plugin.
    ///
    /// # Errors
    /// Permanently, when it was not given.
    pub fn secret(&self, name: &str) -> Result<String, Error> {
        host::secret(name).ok_or_else(|| {
            Error::permanent(format!("no secret `{name}`: add it to `secrets` of this plugin in bot.toml"))
        })
    }

    /// The state of another conversation of this plugin, if it has one: of this chat, of a user in it, …, as the
    /// plugin's key says.
    ///
    /// # Errors
    /// Permanently, when it can't be read as an `S`.
    pub fn peek<S: State>(
        &self,
        chat: Option<i64>,
        user: Option<i64>,
        thread: Option<i64>,
    ) -> Result<Option<S>, Error> {
        let key = StateKey { chat_id: chat, user_id: user, thread_id: thread };
        host::state_peek(key).map(|stored| OldState::from(stored).read()).transpose()
    }
}
