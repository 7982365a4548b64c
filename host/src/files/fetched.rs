//! Files that were fetched: read piece by piece, from where they lie.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::Scratch;

/// A file from Telegram. It goes when this is dropped, unless it is a local server's own.
#[derive(Debug)]
pub struct Fetched {
    content: Content,
    /// Bytes of it.
    pub size: u64,
    /// The same for the same file, whoever has it.
    pub unique_id: String,
    /// The last part of its path at the server.
    pub name: String,
}

#[derive(Debug)]
enum Content {
    Copy(Scratch),
    Own(File),
}

impl Fetched {
    /// One that was copied here.
    #[must_use]
    pub fn copy(scratch: Scratch, size: u64, unique_id: String, name: String) -> Self {
        Self { content: Content::Copy(scratch), size, unique_id, name }
    }

    /// One that a local Bot API server has put into its folder. Blocks for the disk.
    ///
    /// # Errors
    /// For whoever configures the host: when it is not in that folder, or can't be read.
    pub fn local(path: &Path, folder: Option<&Path>, unique_id: String) -> Result<Self, String> {
        let Some(folder) = folder else {
            return Err(
                "the Bot API server keeps the file on its own disk: name the folder with `local_files` in [bot]"
                    .to_owned(),
            );
        };
        // Without links and `..` on either side.
        let resolve = |path: &Path| -> Result<PathBuf, String> {
            let shown = if path == folder { folder.display().to_string() } else { "the file".to_owned() };
            path.canonicalize().map_err(|error| format!("{shown} can't be read: {error} (`local_files` in [bot])"))
        };
        let (inside, path) = (resolve(folder)?, resolve(path)?);
        if !path.starts_with(&inside) {
            return Err(format!("the file lies outside of {} (`local_files` in [bot])", folder.display()));
        }
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| format!("the file can't be read: {error}"))?;
        if !metadata.is_file() {
            return Err("what the Bot API server names is no file".to_owned());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { content: Content::Own(file), size: metadata.len(), unique_id, name })
    }

    /// What lies from `offset` on, at most `length` bytes; nothing behind the end. Blocks for the disk.
    ///
    /// # Errors
    /// As the system says.
    pub fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let file = match &self.content {
            Content::Copy(scratch) => scratch.file(),
            Content::Own(file) => file,
        };
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(left)];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_server_s_files_are_read_from_its_folder_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("bot-api"), folder.path().join("secret"));
        std::fs::create_dir_all(inside.join("documents")).unwrap();
        std::fs::write(inside.join("documents/a.txt"), "content").unwrap();
        std::fs::write(&outside, "secret").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let open = |path: &str, folder| Fetched::local(Path::new(path), folder, String::new());
        let at = |name: &str| inside.join(name).display().to_string();

        let file = open(&at("documents/a.txt"), Some(&inside)).unwrap();
        assert_eq!((file.size, file.name.as_str()), (7, "a.txt"));
        assert_eq!(file.read(3, 100).unwrap(), b"tent");
        assert_eq!(file.read(9, 100).unwrap(), b"");
        for (path, folder, part) in [
            (at("documents/a.txt"), None, "name the folder with `local_files`"),
            (at("../secret"), Some(&*inside), "outside"),
            (at("link"), Some(&*inside), "outside"),
            (outside.display().to_string(), Some(&*inside), "outside"),
            ("/etc/passwd".to_owned(), Some(&*inside), "outside"),
            (at("documents"), Some(&*inside), "no file"),
            (at("nothing"), Some(&*inside), "can't be read"),
        ] {
            let error = open(&path, folder).unwrap_err();
            assert!(error.contains(part) && !error.contains("passwd"), "{path}: {error}");
        }
    }
}
