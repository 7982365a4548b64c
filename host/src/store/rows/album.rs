//! Albums that were given to plugins not long ago, so that what comes after them is known as late: `g bot chat`.

use super::{BotId, ChatId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'g';
/// Of one chat. Nobody's albums of a minute are more.
const MOST: usize = 16;
/// Milliseconds for which an album is remembered. What Telegram itself brings apart is seconds apart.
const KEPT: u64 = 3_600_000;

/// The last albums of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AlbumsRow {
    /// `media_group_id`, and when it was given in Unix milliseconds; the oldest first.
    given: Vec<(String, u64)>,
}

impl AlbumsRow {
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
        decode("albums", bytes)
    }

    /// Those that were given, the oldest first.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.given.iter().map(|(album, _)| album.as_str())
    }

    /// Whether this album was given.
    #[must_use]
    pub fn knows(&self, album: &str) -> bool {
        self.given.iter().any(|(given, _)| given == album)
    }

    /// Remembers an album, and forgets old ones.
    pub fn add(&mut self, album: &str, now: u64) {
        self.given.retain(|(given, at)| given != album && at.saturating_add(KEPT) > now);
        self.given.push((album.to_owned(), now));
        self.given.drain(..self.given.len().saturating_sub(MOST));
    }

    /// Whether there is nothing in it that is worth keeping.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.given.iter().all(|(_, at)| at.saturating_add(KEPT) <= now)
    }
}

/// Every chat's albums.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// The albums of a chat.
#[must_use]
pub fn key(bot: BotId, chat: ChatId) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    key.extend_from_slice(&(chat.0 ^ i64::MIN).to_be_bytes());
    key
}

/// The chat of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<ChatId> {
    let chat: [u8; 8] = key.strip_prefix(&[KIND])?.get(8..)?.try_into().ok()?;
    Some(ChatId(i64::from_be_bytes(chat) ^ i64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_last_and_no_more_than_that() {
        let mut row = AlbumsRow::default();
        for n in 0..40u64 {
            row.add(&format!("a{n}"), n);
        }
        row.add("a39", 50);
        assert!(row.knows("a39") && row.knows("a24") && !row.knows("a23"));
        assert!(!row.is_over(KEPT + 30) && row.is_over(KEPT + 50));
        row.add("b", KEPT + 50);
        assert_eq!(AlbumsRow::decode(&row.encode()).unwrap(), AlbumsRow { given: vec![("b".to_owned(), KEPT + 50)] });
    }
}
