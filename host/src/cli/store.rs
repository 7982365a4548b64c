//! `botyard store`: the way back from a broken store, and to another machine or version.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::exit::{Exit, WrongArgument};
use super::{ConfigFile, say, tell};
use crate::app::files_dir;
use crate::config::LoadOptions;
use crate::store;
use crate::store::rows::file::all_references;

/// Save, restore or check the store of a bot that is not running
///
/// `export` makes a backup. To get back from a damaged store: move its folder away and import the last
/// backup. To another machine or version: export there, import here.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Store {
    #[command(flatten)]
    file: ConfigFile,
    /// The store's folder, instead of the one that the configuration names
    #[arg(long = "path", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write everything in the store to a file of JSON lines
    Export {
        /// The file, which appears when it is whole; `-` writes to stdout
        file: PathBuf,
    },
    /// Make a new store from an exported file
    Import {
        /// The file; `-` reads from stdin. The store's folder must be empty or not there
        file: PathBuf,
    },
    /// Read everything in the store and look for damage
    Check {
        /// The report as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Store {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let folder = match self.folder {
            Some(folder) => folder,
            None => {
                let config = self.file.load(LoadOptions { token_optional: true });
                config.context("name the store's folder with --path DIR, or mend the configuration")?.store.path
            }
        };
        match self.action {
            Action::Export { file } => export(&folder, &file),
            Action::Import { file } => import(&folder, &file),
            Action::Check { json } => check(&folder, json),
        }
    }
}

fn export(folder: &Path, file: &Path) -> anyhow::Result<Exit> {
    let store = open(folder)?;
    let rows = if is_standard(file) { store.export(io::stdout().lock())? } else { store.export_to(file)? };
    tell(&format!("exported {rows} rows from {}", folder.display()));
    if !store.scan_prefix(&all_references(), 1)?.is_empty() {
        let files = files_dir(folder);
        tell(&format!("files wait to be sent; they are not in the export: copy {} as well", files.display()));
    }
    Ok(Exit::Done)
}

fn import(folder: &Path, file: &Path) -> anyhow::Result<Exit> {
    let input: Box<dyn BufRead> = if is_standard(file) {
        Box::new(io::stdin().lock())
    } else {
        let opened = std::fs::File::open(file);
        Box::new(BufReader::new(opened.with_context(|| format!("could not open {}", file.display()))?))
    };
    let rows = store::Store::import(folder, input)?;
    tell(&format!("imported {rows} rows into {}", folder.display()));
    Ok(Exit::Done)
}

fn check(folder: &Path, json: bool) -> anyhow::Result<Exit> {
    let check = open(folder)?.check()?;
    if json {
        let kinds: serde_json::Map<String, serde_json::Value> =
            check.kinds.iter().map(|(kind, rows)| (char::from(*kind).to_string(), (*rows).into())).collect();
        let report = serde_json::json!({
            "path": folder, "rows": check.rows, "bytes": check.bytes, "kinds": kinds, "problems": check.problems,
        });
        say(&format!("{report:#}\n"));
    } else {
        say(&format!("{}: {} rows, {} bytes\n", folder.display(), check.rows, check.bytes));
        check.problems.iter().for_each(|problem| say(&format!("  {problem}\n")));
    }
    Ok(if check.problems.is_empty() { Exit::Done } else { Exit::Store })
}

/// Opening makes a store where there is none, which nobody wants here.
fn open(folder: &Path) -> anyhow::Result<store::Store> {
    if !folder.exists() {
        let message = format!("there is no store at {}; name its folder with --path DIR", folder.display());
        return Err(WrongArgument(message).into());
    }
    Ok(store::Store::open(folder)?)
}

fn is_standard(file: &Path) -> bool {
    file == Path::new("-")
}
