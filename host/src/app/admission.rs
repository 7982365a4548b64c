//! Holds the files of plugins against `bot.lock`: who is let in, and who goes on.
//!
//! - A file in its plugin's place is let in by its hash, or by what it wants; the hash is looked at before any of it runs.
//! - A file that is kept of an earlier day goes on as far as it is, or was, approved. It also goes on while `bot.lock` can't
//!   be read, which lets nobody new in; where only the approved file itself may serve, nobody serves then.

use crate::config::{self, Config};
use crate::domain::PluginName;
use crate::plugin::{self, Lock, LockError, Plugin};

/// A file that may be let in, by its hash.
pub(super) struct Admission {
    lock: Lock,
    name: String,
    strict: bool,
    sha256: String,
}

impl Admission {
    /// Looks at the hash.
    ///
    /// # Errors
    /// Why the file is not let in.
    pub(super) async fn of(
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        wasm: &[u8],
    ) -> Result<Self, LockError> {
        let (strict, sha256) = (entry.pin == config::Pin::Hash, plugin::file_hash(wasm));
        let lock = read(config).await?;
        lock.check_hash(name.as_str(), strict, &sha256)?;
        Ok(Self { lock, name: name.to_string(), strict, sha256 })
    }

    /// Looks at what it wants.
    ///
    /// # Errors
    /// Why the file is not let in.
    pub(super) fn admits(&self, plugin: &Plugin) -> Result<(), LockError> {
        self.lock.check(&self.name, self.strict, &self.sha256, &plugin.rights)
    }
}

/// Whether a file that has been let in before may serve on, or again.
///
/// # Errors
/// Why it may not.
pub(super) async fn goes_on(
    config: &Config,
    entry: &config::Plugin,
    plugin: &Plugin,
    wasm: &[u8],
) -> Result<(), LockError> {
    let strict = entry.pin == config::Pin::Hash;
    match read(config).await {
        Ok(lock) => lock.check_kept(plugin.name.as_str(), strict, &plugin::file_hash(wasm), &plugin.rights),
        Err(error) if strict => Err(error),
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(plugin = %plugin.name, error, "a version that has served before goes on unseen");
            Ok(())
        }
    }
}

async fn read(config: &Config) -> Result<Lock, LockError> {
    let file = config.file.clone();
    let lock = tokio::task::spawn_blocking(move || Lock::read(&file)).await;
    lock.unwrap_or_else(|error| Err(LockError::Unreadable { path: "bot.lock".to_owned(), reason: error.to_string() }))
}
