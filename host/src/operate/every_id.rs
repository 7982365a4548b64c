//! One chat under all its ids: a group that has become a supergroup is found by either.
//!
//! Much moves along with a group, but calls, jobs, dead letters and recipients of broadcasts stay where they were.

use super::Operator;
use crate::domain::ChatId;
use crate::store;
use crate::store::rows::erasure::Subject;
use crate::store::rows::moved::{self, MovedRow};

impl Operator {
    /// Somebody under each of their ids, the given one first.
    pub(super) fn every_id(&self, subject: Subject) -> Result<Vec<Subject>, store::Error> {
        let Subject::Chat(chat) = subject else { return Ok(vec![subject]) };
        let rows = self.store.scan_prefix(&moved::bot_prefix(self.bot), usize::MAX)?;
        let moves: Vec<(ChatId, ChatId)> = rows
            .iter()
            .filter_map(|(key, row)| Some((moved::parse_key(key)?, MovedRow::decode(row).ok()?.to)))
            .collect();
        let mut ids = vec![chat];
        let mut at = 0;
        while let Some(&id) = ids.get(at) {
            for &(group, to) in &moves {
                let other = if group == id { to } else { group };
                if (group == id || to == id) && !ids.contains(&other) {
                    ids.push(other);
                }
            }
            at += 1;
        }
        Ok(ids.into_iter().map(Subject::Chat).collect())
    }
}
