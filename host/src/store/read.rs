//! Reading rows: joins large values, hides the store's own rows.
//!
//! Readers run beside the committer without a snapshot: one value is always whole, two reads may stand on
//! either side of a commit. A commit that depends on what it read says so, and is checked.

use std::path::Path;

use bytes::Bytes;
use sled::IVec;

use super::Error;
use super::layout::{self, Chunked, Stored};
use super::rows::counted;

/// Reads of one opened database; the path is for what errors say.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) db: &'a sled::Db,
    pub(super) path: &'a Path,
}

impl<'a> Reader<'a> {
    pub(super) fn get(self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let mut found = self.raw(key)?;
        loop {
            let Some(row) = found else { return Ok(None) };
            match layout::parse(&row).ok_or_else(|| self.unreadable(key))? {
                Stored::Inline(value) => return Ok(Some(Bytes::copy_from_slice(value))),
                Stored::Chunked(chunked) => {
                    if let Some(value) = self.join(key, chunked)? {
                        return Ok(Some(value));
                    }
                }
            }
            // A chunk is missing: either the value was replaced while it was read, or it is damaged.
            let again = self.raw(key)?;
            if again.as_ref() == Some(&row) {
                return Err(self.unreadable(key));
            }
            found = again;
        }
    }

    /// Bytes of a value, which need not be read for that.
    pub(super) fn length(self, key: &[u8]) -> Result<Option<u64>, Error> {
        let Some(row) = self.raw(key)? else { return Ok(None) };
        Ok(Some(layout::parse(&row).ok_or_else(|| self.unreadable(key))?.length()))
    }

    /// How long a stored value is, and how it begins: enough to see whose it is. None for what is no value.
    pub(super) fn start(self, key: &[u8], stored: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        Ok(match layout::parse(stored) {
            None => None,
            Some(found @ Stored::Inline(value)) => Some((found.length(), counted::start(value).to_vec())),
            Some(Stored::Chunked(Chunked { id, length })) => {
                let first = self.raw(&layout::chunk_key(key, id, 0))?;
                Some((length, first.map(|chunk| counted::start(&chunk).to_vec()).unwrap_or_default()))
            }
        })
    }

    pub(super) fn range(self, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let mut rows = Vec::new();
        let mut found = self.rows(from, Some(to));
        while rows.len() < limit
            && let Some(row) = found.next()
        {
            rows.extend(self.whole(row)?);
        }
        Ok(rows)
    }

    /// How many rows there are; no more than `most` are counted.
    pub(super) fn count(self, from: &[u8], to: &[u8], most: usize) -> Result<usize, Error> {
        let rows = self.rows(from, Some(to)).take(most);
        rows.into_iter().try_fold(0, |n, row| row.map(|_| n + 1)).map_err(|error| self.error(error))
    }

    pub(super) fn first_key(self, from: &[u8], to: &[u8]) -> Result<Option<Bytes>, Error> {
        self.key(self.rows(from, Some(to)).next())
    }

    pub(super) fn last_key(self, from: &[u8], to: &[u8]) -> Result<Option<Bytes>, Error> {
        self.key(self.rows(from, Some(to)).next_back())
    }

    /// Everybody's rows in `[from, to)`, values as they are stored.
    pub(super) fn rows(
        self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = sled::Result<(IVec, IVec)>> + use<> {
        let chunks: (&[u8], &[u8]) = (&[layout::CHUNK], &[layout::CHUNK + 1]);
        let below = self.span(from.max(&[layout::META + 1]), Some(to.map_or(chunks.0, |to| to.min(chunks.0))));
        let above = self.span(from.max(chunks.1), to);
        below.into_iter().flatten().chain(above.into_iter().flatten())
    }

    /// A row with its whole value; `None` if it is gone by now.
    pub(super) fn whole(self, row: sled::Result<(IVec, IVec)>) -> Result<Option<(Bytes, Bytes)>, Error> {
        let (key, stored) = row.map_err(|error| self.error(error))?;
        let value = match layout::parse(&stored).ok_or_else(|| self.unreadable(&key))? {
            Stored::Inline(value) => Some(Bytes::copy_from_slice(value)),
            Stored::Chunked(_) => self.get(&key)?,
        };
        Ok(value.map(|value| (Bytes::copy_from_slice(&key), value)))
    }

    pub(super) fn raw(self, key: &[u8]) -> Result<Option<IVec>, Error> {
        self.db.get(key).map_err(|error| self.error(error))
    }

    pub(super) fn error(self, error: sled::Error) -> Error {
        Error::sled(self.path, error)
    }

    fn key(self, row: Option<sled::Result<(IVec, IVec)>>) -> Result<Option<Bytes>, Error> {
        let row = row.transpose().map_err(|error| self.error(error))?;
        Ok(row.map(|(key, _)| Bytes::copy_from_slice(&key)))
    }

    fn span(self, from: &[u8], to: Option<&[u8]>) -> Option<sled::Iter> {
        match to {
            Some(to) => (from < to).then(|| self.db.range(from..to)),
            None => Some(self.db.range(from..)),
        }
    }

    fn join(self, key: &[u8], chunked: Chunked) -> Result<Option<Bytes>, Error> {
        let mut value = Vec::with_capacity(usize::try_from(chunked.length).unwrap_or(0).min(64 << 20));
        for index in 0..chunked.n_chunks() {
            let Some(chunk) = self.raw(&layout::chunk_key(key, chunked.id, index))? else { return Ok(None) };
            value.extend_from_slice(&chunk);
        }
        if value.len() as u64 != chunked.length {
            return Err(self.unreadable(key));
        }
        Ok(Some(value.into()))
    }

    fn unreadable(self, key: &[u8]) -> Error {
        Error::corrupt(self.path, format!("the value of key {} can't be read", key.escape_ascii()))
    }
}
