//! Files that were uploaded, in memory. The oldest go when they pass 64 MiB together; nothing is written to disk.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

const KEEP_BYTES: usize = 64 << 20;

#[derive(Debug, Clone)]
pub(super) struct StoredFile {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) content_type: String,
    pub(super) bytes: Bytes,
}

/// What is kept. A restart keeps only the counter, so that ids are not given twice.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Files {
    next: u64,
    #[serde(skip)]
    files: VecDeque<StoredFile>,
    #[serde(skip)]
    total: usize,
}

impl Files {
    /// Keeps a file and answers its `file_id`.
    pub(super) fn add(&mut self, kind: &str, name: &str, content_type: &str, bytes: Bytes) -> String {
        self.next += 1;
        let id = format!("SIM-{kind}-{}", self.next);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let extension = extension.filter(|text| text.chars().all(|c| c.is_ascii_alphanumeric())).unwrap_or("bin");
        let path = format!("{kind}s/file_{}.{extension}", self.next);
        self.total += bytes.len();
        self.files.push_back(StoredFile { id: id.clone(), path, content_type: content_type.to_owned(), bytes });
        while self.total > KEEP_BYTES && self.files.len() > 1 {
            self.total -= self.files.pop_front().map_or(0, |file| file.bytes.len());
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
