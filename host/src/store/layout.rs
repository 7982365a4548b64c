//! How keys and values lie in sled.
//!
//! - A value ends with one byte that says what it is: [`INLINE`], the value itself; [`CHUNKED`], an id and a
//!   length, the bytes being in rows of their own.
//! - A chunk lies at `~`, the key it belongs to, the id and its index. An id is used once, so that a reader
//!   that meets a missing chunk knows that the value was replaced.
//! - Keys that begin with a zero byte are the store's own: its format, the numbers it has set aside, and how much is kept.

/// The layout described here, and that of the rows.
pub(super) const FORMAT: u32 = 1;
/// Holds [`FORMAT`] as text.
pub(super) const FORMAT_KEY: &[u8] = b"\0format";
/// Every number below this one may have been given out.
pub(super) const NEXT_KEY: &[u8] = b"\0next";

/// There when it is counted what plugins have; the counts stand behind it, each with its own bytes.
pub(super) const KEPT_KEY: &[u8] = b"\0used";

/// First byte of the store's own rows.
pub(super) const META: u8 = 0;
/// First byte of chunks.
pub(super) const CHUNK: u8 = b'~';
/// Longer values are cut up: sled keeps a page that is too large in a file that it never syncs.
pub(super) const CHUNK_SIZE: usize = 64 << 10;

const INLINE: u8 = 0;
const CHUNKED: u8 = 1;
/// Id and index.
const CHUNK_SUFFIX: usize = 8 + 4;

/// A value as it was found.
#[derive(Debug, PartialEq)]
pub(super) enum Stored<'a> {
    Inline(&'a [u8]),
    Chunked(Chunked),
}

/// Where the bytes of a large value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunked {
    pub(super) id: u64,
    pub(super) length: u64,
}

impl Stored<'_> {
    /// Bytes of the value.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Inline(value) => value.len() as u64,
            Self::Chunked(chunked) => chunked.length,
        }
    }
}

impl Chunked {
    pub(super) fn n_chunks(self) -> u32 {
        u32::try_from(self.length.div_ceil(CHUNK_SIZE as u64)).unwrap_or(u32::MAX)
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let mut row = Vec::with_capacity(17);
        row.extend_from_slice(&self.id.to_be_bytes());
        row.extend_from_slice(&self.length.to_be_bytes());
        row.push(CHUNKED);
        row
    }
}

pub(super) fn encode_inline(mut value: Vec<u8>) -> Vec<u8> {
    value.push(INLINE);
    value
}

pub(super) fn parse(row: &[u8]) -> Option<Stored<'_>> {
    match row.split_last()? {
        (&INLINE, value) => Some(Stored::Inline(value)),
        (&CHUNKED, head) => {
            let (id, length) = head.split_first_chunk::<8>()?;
            let length = u64::from_be_bytes(length.try_into().ok()?);
            Some(Stored::Chunked(Chunked { id: u64::from_be_bytes(*id), length }))
        }
        _ => None,
    }
}

pub(super) fn chunk_key(owner: &[u8], id: u64, index: u32) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + owner.len() + CHUNK_SUFFIX);
    key.push(CHUNK);
    key.extend_from_slice(owner);
    key.extend_from_slice(&id.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    key
}

/// Owner, id and index of a chunk's key.
pub(super) fn parse_chunk_key(key: &[u8]) -> Option<(&[u8], u64, u32)> {
    let (owner, suffix) = key.strip_prefix(&[CHUNK])?.split_last_chunk::<CHUNK_SUFFIX>()?;
    let (id, index) = suffix.split_first_chunk::<8>()?;
    Some((owner, u64::from_be_bytes(*id), u32::from_be_bytes(index.try_into().ok()?)))
}

pub(super) fn kept_key(owner: &[u8]) -> Vec<u8> {
    [KEPT_KEY, owner].concat()
}

/// Whether a key is the store's own and hidden from everybody else.
pub(super) fn is_reserved(key: &[u8]) -> bool {
    matches!(key.first(), None | Some(&META | &CHUNK))
}
