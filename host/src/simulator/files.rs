//! Files that were uploaded. What is larger than a bot can fetch (20 MiB) is known by name, size and hash only; the rest
//! is in memory, and the oldest go when they pass 64 MiB together. Only as a local server ([`local`]) it writes to disk.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::params::Upload;

const KEEP_BYTES: usize = 64 << 20;
const KEEP_FILES: usize = 10_000;
/// The largest file that Telegram lets a bot fetch.
pub(super) const DOWNLOAD_LIMIT: u64 = 20 << 20;

#[derive(Debug, Clone)]
pub(super) struct StoredFile {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) name: String,
    pub(super) content_type: String,
    pub(super) size: u64,
    pub(super) bytes: Option<Bytes>,
}

impl StoredFile {
    /// One that lies elsewhere, and is never fetched: its address stands for it.
    pub(super) fn at(address: &str) -> Self {
        let name = address.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file");
        let (path, content_type) = (String::new(), String::new());
        Self { id: address.to_owned(), path, name: name.to_owned(), content_type, size: 0, bytes: None }
    }
}

/// A file that arrived with a call, whatever became of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uploaded {
    /// The call, as the bot spelled it.
    pub method: String,
    /// The name of its part.
    pub field: String,
    /// Its own name.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256 in hexadecimal.
    pub hash: String,
}

/// What is kept. A restart keeps only the counter, so that ids are not given twice.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Files {
    next: u64,
    #[serde(skip)]
    files: VecDeque<StoredFile>,
    #[serde(skip)]
    total: usize,
    #[serde(skip)]
    pub(super) uploaded: VecDeque<Uploaded>,
}

impl Files {
    /// Notes what came with a call.
    pub(super) fn note(&mut self, method: &str, uploads: &[Upload]) {
        for Upload { field, name, content_type, size, hash, .. } in uploads {
            self.uploaded.push_back(Uploaded {
                method: method.to_owned(),
                field: field.clone(),
                name: name.clone(),
                content_type: content_type.clone(),
                size: *size,
                hash: hash.clone(),
            });
        }
        let surplus = self.uploaded.len().saturating_sub(KEEP_FILES);
        self.uploaded.drain(..surplus);
    }

    /// Keeps a file and answers its `file_id`.
    pub(super) fn add(&mut self, kind: &str, upload: &Upload) -> String {
        self.next += 1;
        let id = format!("SIM-{kind}-{}", self.next);
        let extension = upload.name.rsplit_once('.').map(|(_, extension)| extension);
        let extension = extension.filter(|text| text.chars().all(|c| c.is_ascii_alphanumeric())).unwrap_or("bin");
        let path = format!("{kind}s/file_{}.{extension}", self.next);
        let (content_type, size, bytes) = (upload.content_type.clone(), upload.size, upload.bytes.clone());
        self.total += bytes.as_ref().map_or(0, Bytes::len);
        let name = upload.name.clone();
        self.files.push_back(StoredFile { id: id.clone(), path, name, content_type, size, bytes });
        while self.files.len() > 1 && (self.total > KEEP_BYTES || self.files.len() > KEEP_FILES) {
            let oldest = self.files.pop_front().and_then(|file| file.bytes);
            self.total -= oldest.map_or(0, |bytes| bytes.len());
        }
        id
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&StoredFile> {
        self.files.iter().find(|file| file.id == id)
    }

    pub(super) fn by_path(&self, path: &str) -> Option<&StoredFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// Puts a file where a local server would have it, and answers where that is.
pub(super) fn local(folder: &Path, bot: i64, file: &StoredFile) -> std::io::Result<PathBuf> {
    let path = folder.join(bot.to_string()).join(&file.path);
    std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
    std::fs::write(&path, file.bytes.as_deref().unwrap_or_default())?;
    path.canonicalize()
}
