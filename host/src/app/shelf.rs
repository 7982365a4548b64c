//! What is kept of a plugin's versions: their files, and the row that says how they stand.
//!
//! The files lie beside the store, `NAME.versions/PLUGIN/VERSION.wasm`: the one that serves, for the day on which
//! `path` holds another that does not, and those before it, to go back to. A file that can't be kept or read is told of and
//! missed only when it is needed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::clock::unix_millis;
use crate::domain::{BotId, BotName, PluginName};
use crate::plugin;
use crate::store::rows::version::{self, PaceRow, Past, Rejected, VersionRow};
use crate::store::{Commit, CommitError, Op, Read, Store};

/// Versions that can be gone back to.
const KEPT: usize = 5;
/// Versions that are remembered for not serving again.
const REJECTED: usize = 20;

/// Somebody else has changed a row meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("what is known of the plugin's versions has changed meanwhile")]
pub(super) struct Changed;

/// What is to be done with the version that a plugin's file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Let it serve.
    Serve,
    /// Let it show what it does, beside the version that has served.
    Try,
    /// Let the version before it serve on.
    Refuse(&'a Rejected),
}

/// Decides it; pure.
pub(super) fn step<'a>(row: &'a VersionRow, found: &str, is_watched: bool) -> Step<'a> {
    if row.serving.is_empty() || row.serving == found {
        return Step::Serve;
    }
    match row.rejected.iter().find(|rejected| rejected.version == found) {
        Some(rejected) => Step::Refuse(rejected),
        None if is_watched => Step::Try,
        None => Step::Serve,
    }
}

/// The rows of one bot's plugins, and the files.
#[derive(Clone)]
pub(super) struct Shelf {
    folder: PathBuf,
    store: Store,
    bot: BotId,
}

impl Shelf {
    pub(super) fn new(store_path: &Path, name: &BotName, store: Store, bot: BotId) -> Self {
        let mut folder = store_path.file_name().unwrap_or_default().to_owned();
        folder.push(".versions");
        let mut folder = store_path.with_file_name(folder);
        if name.as_str() != BotName::OF_THE_ONE {
            // No plugin is named so: names have no dot.
            folder.push(format!("bots.{name}"));
        }
        Self { folder, store, bot }
    }

    pub(super) fn row(&self, name: &PluginName) -> anyhow::Result<VersionRow> {
        let row = self.store.get(&version::key(self.bot, name))?;
        Ok(row.map(|row| VersionRow::decode(&row)).transpose()?.unwrap_or_default())
    }

    /// Changes the row as it is by then. Answers when it is on disk.
    pub(super) async fn change(&self, name: &PluginName, change: impl Fn(&mut VersionRow)) -> anyhow::Result<()> {
        loop {
            let seen = self.row(name)?;
            let mut row = seen.clone();
            change(&mut row);
            match self.write(name, &seen, &row).await {
                Err(error) if error.is::<Changed>() => {}
                written => return written,
            }
        }
    }

    /// Puts the row in the place of the one that was seen. Answers when it is on disk.
    ///
    /// # Errors
    /// [`Changed`], when it is another one by now.
    pub(super) async fn write(&self, name: &PluginName, seen: &VersionRow, row: &VersionRow) -> anyhow::Result<()> {
        let key = version::key(self.bot, name);
        let there = self.store.get(&key)?;
        if there.as_deref().map(VersionRow::decode).transpose()?.unwrap_or_default() != *seen {
            anyhow::bail!(Changed);
        }
        let reads = vec![Read::Value { key: key.clone(), seen: there }];
        let ops = vec![Op::Put { key, value: row.encode() }];
        match self.store.commit(Commit { reads, ops, on_durable: None }).await {
            Ok(receipt) => receipt.durable().await?,
            Err(CommitError::Store(error)) => return Err(error.into()),
            Err(CommitError::Conflict { .. }) => anyhow::bail!(Changed),
        }
        let (folder, row) = (self.of(name), row.clone());
        tokio::task::spawn_blocking(move || tidy(&folder, &row)).await.unwrap_or_default();
        Ok(())
    }

    /// Keeps a version's file. The row that names it is to be written afterwards.
    pub(super) async fn keep(&self, name: &PluginName, version: &str, wasm: Vec<u8>) {
        let path = self.file(name, version);
        let kept = tokio::task::spawn_blocking(move || keep(&path, &wasm)).await;
        if let Err(error) = kept.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::warn!(plugin = %name, version, %error, "a version's file can't be kept; nobody can go back to it");
        }
    }

    pub(super) async fn read(&self, name: &PluginName, version: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.file(name, version);
        let read = tokio::task::spawn_blocking({
            let path = path.clone();
            move || plugin::read_file(&path)
        });
        let wasm = read.await?.with_context(|| format!("could not read {}", path.display()))?;
        anyhow::ensure!(
            plugin::Version::of(&wasm).as_str() == version,
            "{} is damaged: it is not the version that its name says",
            path.display()
        );
        Ok(wasm)
    }

    fn of(&self, name: &PluginName) -> PathBuf {
        self.folder.join(name.as_str())
    }

    fn file(&self, name: &PluginName, version: &str) -> PathBuf {
        self.of(name).join(format!("{version}.wasm"))
    }
}

fn keep(path: &Path, wasm: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() == wasm.len() as u64) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(wasm)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    File::open(folder)?.sync_all()
}

/// Throws away what the row does not name.
fn tidy(folder: &Path, row: &VersionRow) {
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let path = file.path();
        let version = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_named = row.good.iter().any(|past| past.version == version) || row.trial.as_deref() == Some(version);
        if !is_named && let Err(error) = fs::remove_file(&path) {
            tracing::debug!(path = %path.display(), %error, "a version's file can't be removed");
        }
    }
}

/// The version serves, for good: it is the newest of those to go back to.
pub(super) fn serves(row: &mut VersionRow, version: &str, manifest_version: &str) {
    row.trial = None;
    if row.serving == version && row.good.last().is_some_and(|last| last.version == version) {
        return;
    }
    row.serving = version.to_owned();
    row.pace = PaceRow::default();
    row.good.retain(|past| past.version != version);
    let (version, manifest_version) = (version.to_owned(), manifest_version.to_owned());
    row.good.push(Past { version, manifest_version, since: unix_millis() });
    let surplus = row.good.len().saturating_sub(KEPT);
    row.good.drain(..surplus);
}

/// The version must not serve again by itself.
pub(super) fn reject(row: &mut VersionRow, version: &str, reason: &str) {
    row.trial.take_if(|trial| trial == version);
    row.good.retain(|past| past.version != version);
    row.rejected.retain(|rejected| rejected.version != version);
    row.rejected.push(Rejected { version: version.to_owned(), at: unix_millis(), reason: reason.to_owned() });
    let surplus = row.rejected.len().saturating_sub(REJECTED);
    row.rejected.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_served_tried_or_refused() {
        let mut row = VersionRow::default();
        assert_eq!(step(&row, "a", true), Step::Serve, "the first one");
        serves(&mut row, "a", "1");
        assert_eq!(step(&row, "a", true), Step::Serve);
        assert_eq!(step(&row, "b", true), Step::Try);
        assert_eq!(step(&row, "b", false), Step::Serve, "nobody watches");
        reject(&mut row, "b", "slow");
        assert!(matches!(step(&row, "b", false), Step::Refuse(rejected) if rejected.reason == "slow"));
        assert_eq!(step(&row, "c", true), Step::Try);
    }

    #[test]
    fn a_few_versions_are_kept_to_go_back_to() {
        let mut row = VersionRow::default();
        for n in 0..8 {
            serves(&mut row, &format!("v{n}"), "1");
        }
        serves(&mut row, "v5", "1");
        let good: Vec<_> = row.good.iter().map(|past| past.version.as_str()).collect();
        assert_eq!(good, ["v3", "v4", "v6", "v7", "v5"]);
        assert_eq!(row.serving, "v5");
        row.trial = Some("v7".to_owned());
        reject(&mut row, "v7", "");
        assert_eq!((row.trial, row.good.len()), (None, 4));
    }

    #[test]
    fn files_that_nobody_names_go() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["a", "b", "c"] {
            keep(&folder.path().join(format!("{version}.wasm")), b"wasm").unwrap();
        }
        let mut row = VersionRow::default();
        serves(&mut row, "a", "1");
        row.trial = Some("c".to_owned());
        tidy(folder.path(), &row);
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["a.wasm", "c.wasm"]);
    }
}
