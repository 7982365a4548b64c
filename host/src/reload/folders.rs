//! The system's file events, as nothing more than a wake-up call.
//!
//! Where there are none to be had, the reason is logged and the regular looks are all there is.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

pub(super) struct Folders {
    watcher: Option<RecommendedWatcher>,
    /// Each with its inode: a folder that was made anew must be watched anew.
    watched: BTreeMap<PathBuf, (u64, u64)>,
}

impl Folders {
    pub(super) fn new(woken: Arc<Notify>) -> Self {
        let on_event = move |event: notify::Result<notify::Event>| {
            // Reading a file is an event too, and we read.
            let is_reading = |kind: &EventKind| matches!(kind, EventKind::Access(kind) if *kind != AccessKind::Close(AccessMode::Write));
            if !event.is_ok_and(|event| is_reading(&event.kind)) {
                woken.notify_one();
            }
        };
        let watcher = notify::recommended_watcher(on_event)
            .inspect_err(|error| tracing::warn!(%error, "no file events to be had, files are looked at every 2 s"))
            .ok();
        Self { watcher, watched: BTreeMap::new() }
    }

    /// As on a system without file events.
    #[cfg(test)]
    pub(super) fn without_events() -> Self {
        Self { watcher: None, watched: BTreeMap::new() }
    }

    /// Watches the folders of these paths and of the files behind symlinks, and no others any more. Called again and
    /// again, it keeps up with links that point elsewhere and folders that were made anew.
    pub(super) fn watch<'a>(&mut self, paths: impl IntoIterator<Item = &'a PathBuf>) {
        let mut wanted = BTreeMap::new();
        for path in paths {
            let target = path.canonicalize().ok();
            for file in [Some(path.as_path()), target.as_deref()].into_iter().flatten() {
                wanted.extend(folder_of(file));
                // Itself, where it is one.
                wanted.extend(folder_of(&file.join("any")).filter(|(folder, _)| folder == file));
            }
        }
        let Some(watcher) = &mut self.watcher else { return };
        for (folder, inode) in &self.watched {
            if wanted.get(folder) != Some(inode) {
                // It fails when the folder is gone, which is as good.
                watcher.unwatch(folder).unwrap_or_default();
            }
        }
        for (folder, inode) in &wanted {
            if self.watched.get(folder) == Some(inode) {
                continue;
            }
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "no file events from this folder, it is looked at every 2 s");
            }
        }
        self.watched = wanted;
    }
}

/// The folder of `file` with its inode, or the nearest one above it that is there: where it will appear.
fn folder_of(file: &Path) -> Option<(PathBuf, (u64, u64))> {
    file.ancestors().skip(1).find_map(|folder| {
        let metadata = std::fs::metadata(folder).ok().filter(|metadata| metadata.is_dir())?;
        Some((folder.to_owned(), (metadata.dev(), metadata.ino())))
    })
}
