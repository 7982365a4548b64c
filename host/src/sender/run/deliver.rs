//! The call of one row: read, marked as begun where it must not be made twice, made, and made once more without markup
//! where Telegram can't read it.

use bytes::Bytes;

use super::Ending;
use crate::domain::Lane;
use crate::sender::attempt::attempt;
use crate::sender::{CALL_DEADLINE, Shared, edits};
use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow};
use crate::store::{self, Commit, CommitError, Op};
use crate::telegram::{self, Error};

/// Makes the call of one row.
pub(super) async fn deliver(shared: &Shared, lane: Lane, number: u64) -> Ending {
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
    if row.delivery == Delivery::AtMostOnce {
        if begun_before {
            let params = Bytes::from(std::mem::take(&mut row.params));
            return Ending::Interrupted(row, params);
        }
        if let Err(error) = mark_begun(shared, lane, number, &mut row).await {
            return Ending::StoreFailed(error);
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
    (row.params, row.fallback, row.begun) = (plain, Fallback::Tried, 0);
    match write_row(shared, lane, number, &row).await {
        Ok(()) => Ending::Plain(row, error),
        Err(error) => Ending::StoreFailed(error),
    }
}

/// Writes into the row, durably, that the call begins. Also when it says so already: what takes the mark away may be
/// on its way to the store.
async fn mark_begun(shared: &Shared, lane: Lane, number: u64, row: &mut OutboxRow) -> Result<(), store::Error> {
    row.begun = shared.process;
    write_row(shared, lane, number, row).await
}

/// Answers once the row is on disk.
async fn write_row(shared: &Shared, lane: Lane, number: u64, row: &OutboxRow) -> Result<(), store::Error> {
    let ops = vec![Op::Put { key: outbox::key(shared.bot, lane, number), value: row.encode() }];
    match shared.store.commit(Commit { ops, ..Commit::default() }).await {
        Ok(receipt) => receipt.durable().await,
        Err(CommitError::Store(error)) => Err(error),
        Err(CommitError::Conflict { .. }) => unreachable!("a commit that has read nothing"),
    }
}
