//! The way out, the way back, and the check: everything as JSON lines.
//!
//! An export begins with a line that names its format, has one line per row, keys and values in hexadecimal,
//! and ends with a line that counts them, so that half of one is never taken for a whole. Commits wait while
//! it is made: it shows one moment. An import makes a new store or nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use serde::{Deserialize, Serialize};

use super::committer::Request;
use super::layout::{self, FORMAT, Stored};
use super::read::Reader;
use super::stage::Stage;
use super::{Error, Store, engine, usage};

/// An import applies this many rows at once.
const ROWS_PER_BATCH: usize = 32;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    botyard_store: u32,
    next_number: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    k: String,
    v: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    rows: u64,
}

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// How many rows there are, and their bytes.
    pub rows: u64,
    /// Keys and values together.
    pub bytes: u64,
    /// Rows by the first byte of their key.
    pub kinds: BTreeMap<u8, u64>,
    /// What is wrong, a sentence each. Empty if all is well.
    pub problems: Vec<String>,
}

impl Store {
    /// Writes every row to `out` and returns how many there are. Blocks; commits wait meanwhile.
    ///
    /// # Errors
    /// When the store can't be read or `out` not be written.
    pub fn export(&self, out: impl Write) -> Result<u64, Error> {
        let _resume = self.pause()?;
        self.shared.read(|reader| write_rows(reader, BufWriter::new(out)))
    }

    /// Exports to a file, which appears only when it is whole and on the disk.
    ///
    /// # Errors
    /// When the store can't be read or the file not be written.
    pub fn export_to(&self, path: &Path) -> Result<u64, Error> {
        let unfinished = with_suffix(path, ".unfinished");
        let io = |error| Error::io(path, error);
        let mut file = File::create(&unfinished).map_err(io)?;
        let rows = self.export(&mut file)?;
        file.sync_all().map_err(io)?;
        fs::rename(&unfinished, path).map_err(io)?;
        engine::sync_folder(engine::parent(path))?;
        Ok(rows)
    }

    /// Makes a new store in `path` from an export and returns how many rows it has. Blocks.
    ///
    /// # Errors
    /// When `path` holds anything already, the export is not whole, or the disk fails. Then `path` is as it
    /// was.
    pub fn import(path: &Path, input: impl BufRead) -> Result<u64, Error> {
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::NotEmpty { path: path.to_path_buf() });
        }
        let unfinished = with_suffix(path, ".unfinished");
        let io = |error| Error::io(path, error);
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(io)?;
        }
        let rows = read_rows(&unfinished, input).inspect_err(|_| {
            // It is of no use, and the error that counts is on its way.
            fs::remove_dir_all(&unfinished).ok();
        })?;
        fs::rename(&unfinished, path).map_err(io)?;
        engine::sync_folder(engine::parent(path))?;
        Ok(rows)
    }

    /// Reads everything and looks for damage. Blocks; commits wait meanwhile.
    ///
    /// # Errors
    /// When the store has failed or is closed; damage is not an error but what is looked for.
    pub fn check(&self) -> Result<Check, Error> {
        let _resume = self.pause()?;
        self.shared.read(|reader| Ok(check_rows(reader)))
    }

    /// Holds commits back until what it returns is dropped.
    pub(super) fn pause(&self) -> Result<mpsc::Sender<()>, Error> {
        let (paused, is_paused) = mpsc::sync_channel(1);
        let (resume, resumed) = mpsc::channel();
        let asked = self.requests.send(Request::Pause { paused, resume: resumed });
        if asked.is_err() || is_paused.recv().is_err() {
            return Err(self.shared.end().unwrap_or(Error::Closed));
        }
        Ok(resume)
    }
}

fn write_rows(reader: Reader<'_>, mut out: impl Write) -> Result<u64, Error> {
    write_line(&mut out, &Head { botyard_store: FORMAT, next_number: Stage::load(reader)?.next_number() })?;
    let mut rows = 0;
    for row in reader.rows(&[], None) {
        if let Some((key, value)) = reader.whole(row)? {
            write_line(&mut out, &Row { k: hex(&key), v: hex(&value) })?;
            rows += 1;
        }
    }
    write_line(&mut out, &End { rows })?;
    out.flush().map_err(not_written)?;
    Ok(rows)
}

fn write_line(mut out: impl Write, line: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(&mut out, line).map_err(|error| not_written(error.into()))?;
    out.write_all(b"\n").map_err(not_written)
}

fn not_written(source: io::Error) -> Error {
    Error::ExportNotWritten { source: Arc::new(source) }
}

/// Fills a new store in `path`.
fn read_rows(path: &Path, input: impl BufRead) -> Result<u64, Error> {
    let mut lines = input.lines().zip(1..);
    let (head, _) = next_line(&mut lines, 0)?;
    let head: Head = parse(&head, 1)?;
    if head.botyard_store != FORMAT {
        return Err(Error::OtherFormat {
            path: path.to_path_buf(),
            found: head.botyard_store.to_string(),
            expected: FORMAT.to_string(),
        });
    }
    let engine = engine::open(path)?;
    let data = engine.data_file()?;
    let mut stage = Stage::load(engine.reader())?;
    stage.numbers_from(head.next_number);
    let mut rows = 0;
    loop {
        let (line, number) = next_line(&mut lines, rows + 1)?;
        if let Ok(end) = serde_json::from_str::<End>(&line) {
            if end.rows != rows {
                return Err(bad(number, format!("it ends after {rows} rows, not {}", end.rows)));
            }
            break;
        }
        let row: Row = parse(&line, number)?;
        let key = unhex(&row.k).filter(|key| !layout::is_reserved(key));
        let (key, value) =
            key.zip(unhex(&row.v)).ok_or_else(|| bad(number, "`k` and `v` must be hexadecimal".to_owned()))?;
        stage.put(key, value);
        rows += 1;
        if stage.n_rows() >= ROWS_PER_BATCH
            && let Some(batch) = stage.take()
        {
            engine.apply(batch)?;
        }
    }
    if let Some(batch) = stage.take() {
        engine.apply(batch)?;
    }
    engine.flush(&data)?;
    engine.release(&data);
    Ok(rows)
}

fn next_line(lines: &mut impl Iterator<Item = (io::Result<String>, u64)>, after: u64) -> Result<(String, u64), Error> {
    let (line, number) = lines.next().ok_or_else(|| bad(after + 1, "the rest of the file is missing".to_owned()))?;
    Ok((line.map_err(|error| bad(number, error.to_string()))?, number))
}

fn parse<'a, T: Deserialize<'a>>(line: &'a str, number: u64) -> Result<T, Error> {
    serde_json::from_str(line).map_err(|error| bad(number, error.to_string()))
}

fn bad(line: u64, problem: String) -> Error {
    Error::BadExport { line, problem }
}

fn check_rows(reader: Reader<'_>) -> Check {
    let mut check = Check::default();
    let mut problem = |text: String| check.problems.push(text);
    for row in reader.db.iter() {
        let (key, stored) = match row {
            Ok(row) => row,
            // sled can't go on from here.
            Err(error) => {
                problem(format!("the rows after the first {} can't be read: {error}", check.rows));
                break;
            }
        };
        match key.first() {
            Some(&layout::META) => {}
            Some(&layout::CHUNK) => {
                if !belongs(reader, &key) {
                    problem(format!("the chunk {} belongs to no value", key.escape_ascii()));
                }
            }
            kind => {
                *check.kinds.entry(kind.copied().unwrap_or_default()).or_default() += 1;
                check.rows += 1;
                match reader.whole(Ok((key.clone(), stored))) {
                    Ok(row) => check.bytes += row.map_or(0, |(key, value)| (key.len() + value.len()) as u64),
                    Err(error) => problem(error.to_string()),
                }
            }
        }
    }
    match (usage::stored(reader), usage::count(reader)) {
        (Ok(stored), Ok(counted)) if stored == counted => {}
        (Ok(_), Ok(_)) => problem("what plugins keep is not as much as is written down of it".to_owned()),
        (stored, counted) => stored.err().into_iter().chain(counted.err()).for_each(|error| problem(error.to_string())),
    }
    check
}

/// Whether a chunk is part of a value that is there.
fn belongs(reader: Reader<'_>, key: &[u8]) -> bool {
    let Some((owner, id, index)) = layout::parse_chunk_key(key) else { return false };
    let Ok(Some(head)) = reader.raw(owner) else { return false };
    matches!(layout::parse(&head), Some(Stored::Chunked(chunked)) if chunked.id == id && index < chunked.n_chunks())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("a nibble is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
