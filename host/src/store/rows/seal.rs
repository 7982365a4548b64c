//! What a bot's buttons are sealed with: `S bot`. It goes wherever the store goes, so that buttons outlive a change of
//! machines; without it, all buttons that are out there are out of date.

use super::super::{Error, Tx};
use super::kv::{self, Scope, ValueRow};
use super::{BotId, ChatId, PluginName, prefix};
use crate::domain::button::{self, Owner, Seal, Wire};

const KIND: u8 = b'S';

/// The one key of this kind.
#[must_use]
pub fn key(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// The bot's seal; made when it is first asked for, and there for good once that is committed.
///
/// # Errors
/// When the store can't be read.
pub fn of(tx: &mut Tx, bot: BotId) -> Result<Seal, Error> {
    let key = key(bot);
    if let Some(secret) = tx.get(&key)? {
        return Ok(Seal::new(&secret));
    }
    let secret: [u8; 32] = rand::random();
    tx.put(key, secret.to_vec());
    Ok(Seal::new(&secret))
}

/// The plugin's own data of a button, if that is what came from a place; `places` are the chat and the groups that it
/// was. Kept data is read as it is just now.
///
/// # Errors
/// When the store can't be read.
pub fn open(
    seal: &Seal,
    tx: &Tx,
    (bot, plugin): (BotId, &PluginName),
    places: &[ChatId],
    wire: &str,
    now: u64,
) -> Result<Option<String>, Error> {
    let owner = |chat| Owner { bot, plugin, chat };
    match button::read(wire) {
        Wire::Carried { bound: false, seal: told, data } => {
            Ok(seal.holds(&owner(None), told, data).then(|| data.to_owned()))
        }
        Wire::Carried { bound: true, seal: told, data } => {
            Ok(places.iter().any(|chat| seal.holds(&owner(Some(*chat)), told, data)).then(|| data.to_owned()))
        }
        Wire::Kept { bound, id } => {
            // What a group had kept has moved with it.
            let chat = places.first().copied().filter(|_| bound);
            if bound && chat.is_none() {
                return Ok(None);
            }
            let row = tx.peek(&kv::key(bot, plugin, Scope::Buttons(chat), id))?;
            let row = row.and_then(|row| ValueRow::decode(&row).ok()).filter(|row| !row.is_expired(now));
            Ok(row.and_then(|row| String::from_utf8(row.bytes).ok()))
        }
        Wire::Foreign => Ok(None),
    }
}
