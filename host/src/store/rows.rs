//! What stands in the store: one file per kind of row, each with its key and its codec.
//!
//! Keys begin with one byte for the kind, then the bot; numbers are big-endian, so that keys sort as they
//! should. Values are postcard, which is not self-describing: a changed layout needs a new format version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::{BotId, ChatId, Conversation, EventLane, Lane, PluginName, UserId};

pub mod album;
pub mod broadcast;
pub mod button;
pub mod chat;
pub mod counted;
pub mod dead;
pub mod erasure;
pub mod expiry;
pub mod file;
pub mod flood;
pub mod fsm;
pub mod inbox;
pub mod job;
pub mod kv;
pub mod language;
pub mod menu;
pub mod meta;
pub mod moved;
pub mod outbox;
pub mod parked;
pub mod paused;
pub mod seal;
pub mod seen;
pub mod timer;
pub mod unknown;
pub mod version;
pub mod webhook;

/// A row that does not read as what its key says.
#[derive(Debug, thiserror::Error)]
#[error("a {kind} row can't be read: {source}")]
pub struct Unreadable {
    kind: &'static str,
    source: postcard::Error,
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("rows hold plain values, which always serialize")
}

fn decode<T: DeserializeOwned>(kind: &'static str, bytes: &[u8]) -> Result<T, Unreadable> {
    postcard::from_bytes(bytes).map_err(|source| Unreadable { kind, source })
}

/// `kind`, then the bot.
fn prefix(kind: u8, bot: BotId) -> Vec<u8> {
    let mut key = Vec::with_capacity(48);
    key.push(kind);
    key.extend_from_slice(&(bot.0 ^ i64::MIN).to_be_bytes());
    key
}

/// The plugin's name and a zero byte, which names never hold.
fn push_plugin(key: &mut Vec<u8>, plugin: &PluginName) {
    key.extend_from_slice(plugin.as_str().as_bytes());
    key.push(0);
}

/// What [`push_plugin`] has pushed, and what follows it.
fn split_plugin(bytes: &[u8]) -> Option<(PluginName, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let (plugin, rest) = bytes.split_at_checked(end)?;
    Some((PluginName::new(std::str::from_utf8(plugin).ok()?), rest.get(1..)?))
}

/// The number at the end of a key that an `Append` made.
#[must_use]
pub fn number_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(key.len().checked_sub(8)?..)?.try_into().ok()?))
}

/// The smallest key above every key that begins with `prefix`.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Only a prefix of nothing but 0xff has no end; no kind of row uses that byte.
    vec![u8::MAX]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    /// The bytes are constants of the modules' own, so they are looked up in the source.
    #[test]
    fn no_two_kinds_of_rows_share_a_byte() {
        let mut kinds = BTreeMap::new();
        for file in Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/rows").read_dir().unwrap() {
            let path = file.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            let lines = source.lines().map(|line| line.trim_start_matches("pub(super) "));
            let constants = lines.filter(|line| line.starts_with("const ") && line.contains(": u8 = b'"));
            for constant in constants {
                let byte = constant.split('\'').nth(1).unwrap().to_owned();
                let name = format!("{} {constant}", path.display());
                assert_eq!(kinds.insert(byte, name.clone()), None, "{name}");
            }
        }
        let bytes = kinds.into_keys().collect::<String>();
        assert_eq!(
            bytes, "BLPSabcdefghijklmnopqrstuvwxyz",
            "a new kind is added here; one that has gone is not used again"
        );
    }
}
