//! Compiled components on disk, so that a restart does not compile every plugin again.
//!
//! An entry is named after the hash of the plugin's file and of everything about the engine that compiled code
//! depends on. Loading one means running it, so entries are taken only from a folder that nobody else can
//! write to, and only when their own hash fits. An entry that can't be used is compiled again; a cache that
//! can't be used is no cache. Nothing here is ever an error to the caller.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use wasmtime::component::Component;

/// Entries kept; the ones used longest ago go first.
const MOST_ENTRIES: usize = 64;
const EXTENSION: &str = "compiled";
const HASH: usize = 32;

/// The folder, and what distinguishes this engine.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    engine: u64,
}

impl Cache {
    /// A cache in `folder`; none, with a warning, where the folder can't be trusted or made.
    pub(super) fn open(folder: PathBuf, engine: &wasmtime::Engine) -> Option<Self> {
        if let Err(error) = private_folder(&folder) {
            tracing::warn!(folder = %folder.display(), %error, "plugins are compiled without a cache");
            return None;
        }
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        // How a module is turned into a component is this host's business, too.
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Some(Self { folder, engine: hasher.finish() })
    }

    /// The component compiled from the file with this hash, if it is there and whole.
    pub(super) fn get(&self, engine: &wasmtime::Engine, file_hash: &str) -> Option<Component> {
        let path = self.path(file_hash);
        let bytes = fs::read(&path).ok()?;
        let component = match bytes.split_at_checked(HASH) {
            Some((hash, compiled)) if Sha256::digest(compiled)[..] == *hash => deserialize(engine, compiled),
            _ => Err(wasmtime::Error::msg("its hash does not fit")),
        };
        match component {
            Ok(component) => {
                // Marks the entry as used; if that fails it is dropped a little early, which does no harm.
                drop(fs::File::open(&path).and_then(|file| file.set_modified(SystemTime::now())));
                Some(component)
            }
            Err(error) => {
                tracing::warn!(entry = %path.display(), %error, "a cached plugin can't be used; compiling it again");
                None
            }
        }
    }

    /// Keeps a component.
    pub(super) fn put(&self, file_hash: &str, component: &Component) {
        if let Err(error) = self.write(file_hash, component) {
            tracing::warn!(folder = %self.folder.display(), %error, "a compiled plugin could not be cached");
        }
    }

    fn write(&self, file_hash: &str, component: &Component) -> wasmtime::Result<()> {
        let compiled = component.serialize()?;
        let mut entry = Sha256::digest(&compiled).to_vec();
        entry.extend_from_slice(&compiled);
        // Written aside and renamed, so that another process never reads half of it.
        let path = self.path(file_hash);
        let aside = path.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&aside, entry)?;
        fs::rename(&aside, path)?;
        self.drop_oldest()?;
        Ok(())
    }

    fn drop_oldest(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
                entries.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        entries.sort_unstable();
        for (_, path) in entries.iter().take(entries.len().saturating_sub(MOST_ENTRIES)) {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    fn path(&self, file_hash: &str) -> PathBuf {
        self.folder.join(format!("{file_hash}-{:016x}.{EXTENSION}", self.engine))
    }
}

/// Makes the folder where it is missing; an error where somebody else could write to it.
fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::metadata(folder)?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !ours || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write to this folder (wanted: owned by this user, mode 0700)"));
    }
    Ok(())
}

#[expect(unsafe_code, reason = "compiled code can't be checked, so `Cache::get` takes only what `Cache::put` wrote")]
fn deserialize(engine: &wasmtime::Engine, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes come from a folder that only this user writes to, and their hash is the one written
    // with them; wasmtime itself refuses what another version or configuration of it has made.
    unsafe { Component::deserialize(engine, compiled) }
}
