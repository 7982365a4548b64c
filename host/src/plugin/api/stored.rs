//! How much more a plugin keeps after a run than before it: `limits.stored`.
//!
//! What is kept already, the store counts. Nothing of it is read by the run, so runs of one plugin are not in each other's
//! way; but what they are going to add is reserved until it is committed, so that many at once don't go beyond the limit
//! together. What was there before the limit was lowered stays, and may be made smaller.

use super::Run;
use crate::plugin::Limit;
use crate::plugin::version::Context;
use crate::store::{Room, Tx};

/// That of one run.
#[derive(Default)]
pub(in crate::plugin) struct Growth {
    /// Bytes; below 0 where it lets go of more than it keeps anew.
    bytes: i64,
    room: Option<Room>,
}

impl Growth {
    /// It is known to the store once what was written is committed, and until then has to be kept in mind.
    pub(in crate::plugin) fn hold(self, tx: &mut Tx) {
        if let Some(room) = self.room {
            tx.hold(room);
        }
    }
}

impl Run {
    /// Counts that a state or value is about to be written; the error is for the guest.
    pub(super) fn charge_stored(&mut self, context: &Context, key: &[u8], value: usize) -> Result<(), String> {
        let most = context.limits.stored;
        if most == 0 {
            return Ok(());
        }
        let new = (key.len() + value) as u64;
        let bytes = self.stored.bytes.saturating_add_unsigned(new).saturating_sub_unsigned(self.row_bytes(key));
        if let Ok(more) = u64::try_from(bytes) {
            let room = self.stored.room.get_or_insert_with(|| self.tx.room(self.bot, &context.name));
            if let Err(kept) = room.grow_to(more, most) {
                let place = Limit::Stored.hit(&context.name);
                return Err(format!(
                    "{kept} bytes are kept already, of at most {most} for all states and values: {place}"
                ));
            }
        }
        self.stored.bytes = bytes;
        Ok(())
    }

    /// Counts that one is about to be removed.
    pub(super) fn credit_stored(&mut self, context: &Context, key: &[u8]) {
        if context.limits.stored != 0 {
            self.stored.bytes = self.stored.bytes.saturating_sub_unsigned(self.row_bytes(key));
        }
    }

    /// Of a row as the run sees it. Where the store can't be read, the commit will say so.
    fn row_bytes(&self, key: &[u8]) -> u64 {
        let length = self.tx.length(key).ok().flatten();
        length.map_or(0, |length| key.len() as u64 + length)
    }
}
