//! The call of one row: read, marked as begun where it must not be made twice, made, and made once more without markup
//! where Telegram can't read it.

use bytes::Bytes;

use super::Ending;
use crate::domain::Lane;
use crate::sender::attempt::{attempt, known_to_telegram};
use crate::sender::{CALL_DEADLINE, Shared, decide, edits};
use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow};
use crate::store::{self, Commit, CommitError, Op, Read};
use crate::telegram::{self, Error};

/// Makes the call of one row; once more with `again`, if an attempt may have taken effect.
pub(super) async fn deliver(shared: &Shared, lane: Lane, number: u64, again: bool) -> Ending {
    let mut row = match shared.store.get(&outbox::key(shared.bot, lane, number)) {
        Ok(Some(value)) => match OutboxRow::decode(&value) {
            Ok(row) => Box::new(row),
            Err(error) => return Ending::Unreadable(error.to_string()),
        },
        Ok(None) => return Ending::Missing,
        Err(error) => return Ending::StoreFailed(error),
    };
    let begun_before = row.begun != 0 && row.begun != shared.process;
    match edits::is_superseded(&shared.store, shared.bot, lane, number, &row) {
        Ok(true) if !begun_before => return Ending::Superseded(row),
        Ok(_) => {}
        Err(error) => return Ending::StoreFailed(error),
    }
    if again
        && !decide::is_repeatable(&row.method)
        && let Err(error) = known_to_telegram(shared, &row.method).await
    {
        let params = Bytes::from(std::mem::take(&mut row.params));
        return Ending::Called(row, params, Err(error));
    }
    if row.delivery == Delivery::AtMostOnce {
        if begun_before {
            let params = Bytes::from(std::mem::take(&mut row.params));
            return Ending::Interrupted(row, params);
        }
        // Also when it says so already: what takes the mark away may be on its way to the store.
        match rewrite(shared, lane, number, |row| row.begun = shared.process).await {
            Ok(Some(marked)) => *row = marked,
            Ok(None) => return Ending::Missing,
            Err(error) => return Ending::StoreFailed(error),
        }
    }
    let params = Bytes::from(std::mem::take(&mut row.params));
    match attempt(shared, lane, &row.method, params.clone(), &row.files, CALL_DEADLINE).await {
        Err(error) if row.fallback == Fallback::Plain && error.is_bad_markup() => {
            without_markup(shared, lane, number, row, params, error).await
        }
        result => Ending::Called(row, params, result.map(drop)),
    }
}

/// Takes the markup out of a row that was refused for it, durably, so that it is tried once and no more.
async fn without_markup(
    shared: &Shared,
    lane: Lane,
    number: u64,
    mut row: Box<OutboxRow>,
    params: Bytes,
    error: Error,
) -> Ending {
    let Some(plain) = std::str::from_utf8(&params).ok().and_then(telegram::plain) else {
        return Ending::Called(row, params, Err(error));
    };
    // What was refused has had no effect: nobody has begun.
    let change = |row: &mut OutboxRow| {
        (row.params, row.fallback, row.begun) = (plain.clone(), Fallback::Tried, 0);
    };
    match rewrite(shared, lane, number, change).await {
        Ok(Some(changed)) => {
            *row = changed;
            Ending::Plain(row, error)
        }
        Ok(None) => Ending::Missing,
        Err(error) => Ending::StoreFailed(error),
    }
}

/// Changes the row and answers with it once that is on disk; `None` where it is not there any more, since somebody had it
/// erased: then it must not come back.
async fn rewrite(
    shared: &Shared,
    lane: Lane,
    number: u64,
    change: impl Fn(&mut OutboxRow),
) -> Result<Option<OutboxRow>, store::Error> {
    let key = outbox::key(shared.bot, lane, number);
    loop {
        let Some(seen) = shared.store.get(&key)? else { return Ok(None) };
        // It could be read before.
        let Ok(mut row) = OutboxRow::decode(&seen) else { return Ok(None) };
        change(&mut row);
        let ops = vec![Op::Put { key: key.clone(), value: row.encode() }];
        let reads = vec![Read::Value { key: key.clone(), seen: Some(seen) }];
        match shared.store.commit(Commit { reads, ops, on_durable: None }).await {
            Ok(receipt) => return receipt.durable().await.map(|()| Some(row)),
            Err(CommitError::Store(error)) => return Err(error),
            Err(CommitError::Conflict { .. }) => {}
        }
    }
}
