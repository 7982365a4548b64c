//! The files that a plugin is made of, and whether one of them has changed. Looked at, not waited for: that works on every
//! file system, and a crate has few files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::cli::bot::Workshop;

/// More than any crate has: a folder with so many is not one that should be looked at five times a second.
const MOST: usize = 5_000;

type Picture = BTreeMap<PathBuf, (SystemTime, u64)>;

/// See the module.
pub(super) struct Sources {
    folder: PathBuf,
    /// What lies elsewhere.
    others: Vec<PathBuf>,
    last: Picture,
}

impl Sources {
    pub(super) fn of(workshop: &Workshop) -> Self {
        let mut sources = Self { folder: workshop.folder.clone(), others: Vec::new(), last: Picture::new() };
        sources.learn(workshop);
        sources.look();
        sources
    }

    /// Reads in what cargo has noted which files lie outside the folder.
    pub(super) fn learn(&mut self, workshop: &Workshop) {
        let note = workshop.package.dependencies_file();
        let Some(text) = note.and_then(|note| fs::read_to_string(note).ok()) else { return };
        let mut others = paths(&text);
        others.retain(|path| !path.starts_with(&self.folder));
        if others != self.others {
            self.others = others;
            // They are new to us, and not changed.
            let known = self.others.iter().filter_map(|path| Some((path.clone(), state(path)?)));
            self.last.extend(known);
        }
    }

    /// Takes the present for what is known.
    pub(super) fn look(&mut self) {
        self.last = self.picture();
    }

    /// Until something has changed, and then nothing more for a while.
    pub(super) async fn wait_for_change(&mut self, look: Duration) {
        let mut before = None;
        loop {
            tokio::time::sleep(look).await;
            if self.has_settled(&mut before) {
                return;
            }
        }
    }

    /// The same, while nothing else runs.
    #[expect(clippy::disallowed_methods, reason = "nothing runs yet that it could hold up")]
    pub(super) fn wait_for_change_blocking(&mut self, look: Duration) {
        let mut before = None;
        loop {
            std::thread::sleep(look);
            if self.has_settled(&mut before) {
                return;
            }
        }
    }

    fn has_settled(&self, before: &mut Option<Picture>) -> bool {
        let now = self.picture();
        let settled = now != self.last && before.as_ref() == Some(&now);
        *before = Some(now);
        settled
    }

    fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        walk(&self.folder, &mut picture);
        picture.extend(self.others.iter().filter_map(|path| Some((path.clone(), state(path)?))));
        picture
    }
}

fn state(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Everything that could be source: not what is hidden, built, kept by the bot, or read by others.
fn walk(folder: &Path, picture: &mut Picture) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_other = name.starts_with('.')
            || name.starts_with("data")
            || matches!(&*name, "target" | "node_modules" | "bot.toml" | "Cargo.lock")
            || [".wasm", ".chat", ".md", "~", ".swp", ".tmp"].iter().any(|end| name.ends_with(end));
        if is_other || picture.len() >= MOST {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, picture),
            Ok(_) => {
                if let Some(state) = state(&path) {
                    picture.insert(path, state);
                }
            }
            Err(_) => {}
        }
    }
}

/// The files behind the colon of `made: of these files`; a blank in a name has a backslash before it.
fn paths(text: &str) -> Vec<PathBuf> {
    let line = text.lines().next().unwrap_or_default();
    let Some((_, files)) = line.split_once(": ") else { return Vec::new() };
    let mut paths = vec![String::new()];
    let mut chars = files.chars().peekable();
    while let Some(c) = chars.next() {
        let path = paths.last_mut().expect("there is always one");
        match c {
            '\\' if chars.peek() == Some(&' ') => path.extend(chars.next()),
            ' ' => paths.push(String::new()),
            c => path.push(c),
        }
    }
    paths.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_notes_are_read() {
        let text = "/t/tea.wasm: /a/src/lib.rs /a\\ b/x.ftl\n\n/a/src/lib.rs:\n";
        assert_eq!(paths(text), [PathBuf::from("/a/src/lib.rs"), PathBuf::from("/a b/x.ftl")]);
        assert!(paths("").is_empty() && paths("x:").is_empty());
    }

    #[test]
    fn only_source_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "1");
        let mut sources = Sources { folder: folder.path().to_owned(), others: Vec::new(), last: Picture::new() };
        sources.look();
        for file in ["target/x.rs", "data/db", "tea.wasm", "tea.chat", ".git/HEAD", "bot.toml"] {
            write(file, "x");
        }
        assert_eq!(sources.picture(), sources.last);
        write("src/lib.rs", "22");
        assert_ne!(sources.picture(), sources.last);
        let mut before = None;
        assert!(!sources.has_settled(&mut before), "it may go on changing");
        assert!(sources.has_settled(&mut before));
        sources.look();
        write("locales/en.ftl", "a = b");
        assert_ne!(sources.picture(), sources.last);
    }
}
