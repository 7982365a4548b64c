//! Folders for what nobody needs when a command has ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

/// A folder that goes when it is dropped.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(purpose: &str) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("botyard-{purpose}-{}-{count}", std::process::id()));
        // Not one that is there: it could be anybody's.
        std::fs::create_dir(&folder).with_context(|| format!("could not make the folder {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left in the folder for temporary files, it harms nobody.
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}
