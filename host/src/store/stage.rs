//! Gathers operations until they are applied as one sled batch.
//!
//! Cuts large values into chunks and removes those of values that are replaced, and hands out numbers. It
//! never touches the disk: what it keeps in memory is read at the start and true as long as every batch
//! that it gives is applied.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::Error;
use super::layout::{self, Chunked, Stored};
use super::read::Reader;
use super::rows::counted;

/// Numbers are set aside on disk by the thousand, so that hardly any commit has to write them.
const NUMBERS_AT_A_TIME: u64 = 4096;

/// Operations that wait for their batch.
pub(super) struct Stage {
    rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
    /// Which keys hold large values: without it, every write would first have to read.
    large: BTreeMap<Vec<u8>, Chunked>,
    next: u64,
    set_aside: u64,
}

impl Stage {
    pub(super) fn load(reader: Reader<'_>) -> Result<Stage, Error> {
        let next = match reader.raw(layout::NEXT_KEY)? {
            Some(next) => u64::from_be_bytes(
                next.as_ref().try_into().map_err(|_| Error::corrupt(reader.path, "the counter can't be read"))?,
            ),
            None => 1,
        };
        let large = large_values(reader)?;
        Ok(Stage { rows: BTreeMap::new(), bytes: 0, large, next, set_aside: next })
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.drop_chunks(&key);
        if value.len() <= layout::CHUNK_SIZE {
            return self.stage(key, Some(layout::encode_inline(value)));
        }
        let chunked = Chunked { id: self.number(), length: value.len() as u64 };
        for (index, chunk) in (0..).zip(value.chunks(layout::CHUNK_SIZE)) {
            self.stage(layout::chunk_key(&key, chunked.id, index), Some(chunk.to_vec()));
        }
        self.large.insert(key.clone(), chunked);
        self.stage(key, Some(chunked.encode()));
    }

    pub(super) fn delete(&mut self, key: Vec<u8>) {
        self.drop_chunks(&key);
        self.stage(key, None);
    }

    /// The next number that will be given out.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Numbers go on from here: for an import.
    pub(super) fn numbers_from(&mut self, next: u64) {
        (self.next, self.set_aside) = (next, next);
        self.stage(layout::NEXT_KEY.to_vec(), Some(next.to_be_bytes().to_vec()));
    }

    pub(super) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.bytes
    }

    /// The length of the value that is going to be there and how it begins, if that is to change.
    pub(super) fn start(&self, key: &[u8]) -> Option<Option<(u64, &[u8])>> {
        let row = self.rows.get(key)?;
        Some(row.as_ref().and_then(|row| match layout::parse(row)? {
            Stored::Inline(value) => Some((value.len() as u64, counted::start(value))),
            Stored::Chunked(Chunked { id, length }) => {
                let first = self.rows.get(&layout::chunk_key(key, id, 0)).and_then(Option::as_ref);
                Some((length, first.map_or(&[][..], |chunk| counted::start(chunk))))
            }
        }))
    }

    /// A row of the store's own.
    pub(super) fn own(&mut self, key: Vec<u8>, row: Option<Vec<u8>>) {
        self.stage(key, row);
    }

    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.rows.contains_key(key)
    }

    pub(super) fn holds_any(&self, from: &[u8], to: &[u8]) -> bool {
        from < to && self.rows.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to))).next().is_some()
    }

    /// What was gathered; `None` if that is nothing.
    pub(super) fn take(&mut self) -> Option<sled::Batch> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return None;
        }
        let mut batch = sled::Batch::default();
        for (key, value) in rows {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        Some(batch)
    }

    fn stage(&mut self, key: Vec<u8>, row: Option<Vec<u8>>) {
        self.bytes += key.len() + row.as_ref().map_or(0, Vec::len);
        self.rows.insert(key, row);
    }

    fn drop_chunks(&mut self, key: &[u8]) {
        if let Some(old) = self.large.remove(key) {
            for index in 0..old.n_chunks() {
                self.stage(layout::chunk_key(key, old.id, index), None);
            }
        }
    }

    /// The next number. Those that are set aside in the batch that uses the first of them can't be given twice: who sees
    /// the use also sees the mark.
    pub(super) fn number(&mut self) -> u64 {
        if self.next == self.set_aside {
            self.set_aside += NUMBERS_AT_A_TIME;
            self.stage(layout::NEXT_KEY.to_vec(), Some(self.set_aside.to_be_bytes().to_vec()));
        }
        self.next += 1;
        self.next - 1
    }
}

/// Skips from large value to large value.
fn large_values(reader: Reader<'_>) -> Result<BTreeMap<Vec<u8>, Chunked>, Error> {
    let mut large = BTreeMap::new();
    let mut from = vec![layout::CHUNK];
    while let Some(row) = reader.db.range::<&[u8], _>(from.as_slice()..&[layout::CHUNK + 1]).next() {
        let (key, _) = row.map_err(|error| reader.error(error))?;
        let (owner, id, _) =
            layout::parse_chunk_key(&key).ok_or_else(|| Error::corrupt(reader.path, "a chunk's key is too short"))?;
        from = layout::chunk_key(owner, id, u32::MAX);
        if let Some(head) = reader.raw(owner)?
            && let Some(Stored::Chunked(chunked)) = layout::parse(&head)
            && chunked.id == id
        {
            large.insert(owner.to_vec(), chunked);
        }
    }
    Ok(large)
}
