//! The uploads that are remembered, in the store.
//!
//! Losing one costs an upload and nothing else, so nobody waits for the disk here. Bounded: beyond [`MOST`], those that
//! were not used for longest make room.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::{Commit, Error, Hash, KnownRow, Op, Shared, Uploads, file, unix_millis};
use crate::domain::BotId;
use crate::store::rows::prefix_end;
use crate::store::{self, Store};

const MOST: usize = 20_000;
/// How many new ones there are between two looks at how many there are.
const LOOK_EVERY: usize = 1_000;
const DAY: u64 = 24 * 3600 * 1000;

/// Those of these that are known.
pub(super) fn look_up(shared: &Shared, keys: &[Hash]) -> Result<HashMap<Hash, String>, Error> {
    let mut found = HashMap::new();
    let mut ops = Vec::new();
    for key in keys {
        let row = file::known(shared.bot, key);
        let value = shared.store.get(&row).map_err(|error| trouble(&error))?;
        let Some(mut known) = value.and_then(|value| KnownRow::decode(&value).ok()) else { continue };
        found.insert(*key, known.file_id.clone());
        let now = unix_millis();
        if now.saturating_sub(known.at) > DAY {
            known.at = now;
            ops.push(Op::Put { key: row, value: known.encode() });
        }
    }
    if !ops.is_empty() {
        shared.store.submit(Commit { ops, ..Commit::default() });
    }
    Ok(found)
}

pub(super) async fn remember(shared: &Shared, uploads: &Uploads, told: &[(Hash, String)]) {
    if told.is_empty() {
        return;
    }
    let row = |(key, file_id): &(Hash, String)| Op::Put {
        key: file::known(shared.bot, key),
        value: KnownRow { file_id: file_id.clone(), at: unix_millis() }.encode(),
    };
    let commit = Commit { ops: told.iter().map(row).collect(), ..Commit::default() };
    // Applied is enough: those who wait for the upload look next. A store that fails stops the host.
    shared.store.commit(commit).await.ok();
    if uploads.learnt.fetch_add(told.len(), Ordering::Relaxed) % LOOK_EVERY < told.len() {
        let (store, bot) = (shared.store.clone(), shared.bot);
        tokio::task::spawn_blocking(move || make_room(&store, bot, MOST));
    }
}

pub(super) async fn forget(shared: &Shared, ids: &HashMap<Hash, String>) -> Result<(), Error> {
    let mut ops = Vec::new();
    for (key, id) in ids {
        let row = file::known(shared.bot, key);
        let value = shared.store.get(&row).map_err(|error| trouble(&error))?;
        // A newer one stays.
        if value.and_then(|value| KnownRow::decode(&value).ok()).is_some_and(|known| known.file_id == *id) {
            ops.push(Op::Delete { key: row });
        }
    }
    shared.store.commit(Commit { ops, ..Commit::default() }).await.ok();
    Ok(())
}

/// Leaves three quarters of the most where there are more.
pub(super) fn make_room(store: &Store, bot: BotId, most: usize) {
    let mut ages = Vec::new();
    let mut from = file::known_prefix(bot);
    let end = prefix_end(&from);
    while let Ok(rows) = store.range(&from, &end, 256)
        && let Some((last, _)) = rows.last()
    {
        from = last.to_vec();
        from.push(0);
        ages.extend(rows.iter().map(|(key, value)| (KnownRow::decode(value).map_or(0, |row| row.at), key.to_vec())));
    }
    if ages.len() > most {
        ages.sort_unstable();
        ages.truncate(ages.len() - most / 4 * 3);
        for some in ages.chunks(32) {
            let ops = some.iter().map(|(_, key)| Op::Delete { key: key.clone() }).collect();
            store.submit(Commit { ops, ..Commit::default() });
        }
    }
}

fn trouble(error: &store::Error) -> Error {
    // The store is about to stop the host: the call stays for the next start.
    Error::Unreachable { method: "a call with files".to_owned(), reason: error.to_string() }
}
