//! Files that calls carry: which rows still need a content, and by which `file_id` Telegram knows one.
//!
//! - `f hash bot number`: a queued call needs the content with this hash; written and removed with the call's own row.
//!   The content lies on disk beside the store, and goes when no such row is left.
//! - `h bot key`: what was uploaded before. The key is a hash too, of the content and of all that Telegram keeps with
//!   it, such as its name.

use super::{BotId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const REFERENCE: u8 = b'f';
const KNOWN: u8 = b'h';

/// The SHA-256 of a content.
pub type Hash = [u8; 32];

/// A file that a call carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// What stands behind `attach://` in the call's parameters.
    pub id: String,
    /// Its content.
    pub hash: Hash,
    /// Bytes of it.
    pub size: u64,
    /// The file's name, as the person who gets it will see it.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// Tells apart the rows that need the same content.
    pub number: u64,
}

/// An upload that Telegram remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRow {
    /// Telegram's name for it.
    pub file_id: String,
    /// Unix milliseconds at which it was last seen to be good, to the day.
    pub at: u64,
}

impl KnownRow {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When the bytes are not a row of this kind.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        decode("known file", bytes)
    }
}

/// Everything that needs some content.
#[must_use]
pub fn all_references() -> Vec<u8> {
    vec![REFERENCE]
}

/// Everything that needs this content.
#[must_use]
pub fn references(hash: &Hash) -> Vec<u8> {
    let mut key = vec![REFERENCE];
    key.extend_from_slice(hash);
    key
}

/// The content that a key of [`reference()`] is about.
#[must_use]
pub fn needed_by(key: &[u8]) -> Option<Hash> {
    let (hash, rest) = key.strip_prefix(&[REFERENCE])?.split_first_chunk()?;
    (rest.len() == 16).then_some(*hash)
}

/// One call's need of a content.
#[must_use]
pub fn reference(bot: BotId, file: &Attached) -> Vec<u8> {
    let mut key = references(&file.hash);
    key.extend_from_slice(&(bot.0 ^ i64::MIN).to_be_bytes());
    key.extend_from_slice(&file.number.to_be_bytes());
    key
}

/// All uploads of a bot that are remembered.
#[must_use]
pub fn known_prefix(bot: BotId) -> Vec<u8> {
    prefix(KNOWN, bot)
}

/// One of them.
#[must_use]
pub fn known(bot: BotId, key: &Hash) -> Vec<u8> {
    let mut row = known_prefix(bot);
    row.extend_from_slice(key);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_says_which_content_it_is_about() {
        let (id, name, content_type) = (String::new(), String::new(), String::new());
        let file = Attached { id, hash: [7; 32], size: 1, name, content_type, number: 3 };
        assert_eq!(needed_by(&reference(BotId(42), &file)), Some([7; 32]));
        for other in [references(&file.hash), known(BotId(42), &file.hash), Vec::new()] {
            assert_eq!(needed_by(&other), None);
        }
    }
}
