//! `[store]`: where state lives.

use std::path::PathBuf;

use super::reader::Reader;
use super::tree::Node;

/// `[store]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// `path`: the folder of the database, made when it is not there; `"data"` beside `bot.toml`.
    pub path: PathBuf,
}

impl Store {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let default = section.resolve("data");
        let path = section.path("path").unwrap_or(default);
        let _: Option<()> = section.value("url", not_yet);
        section.finish();
        Self { path }
    }
}

fn not_yet(_: &Node) -> Result<(), String> {
    Err("a database server is not supported yet; use `path`".to_owned())
}
