//! Sees to it that every pressed button is answered: until somebody does, the person's client shows it as under way.
//!
//! The host's answer is a row in the outbox that is committed together with the end of the event, whatever the end is,
//! and only where no run has answered. A second answer would do no harm, and nor does one that comes too late.

use std::time::Duration;

use super::run::Context;
use crate::clock::unix_millis;
use crate::domain::{Lane, PluginName, callback_query_id};
use crate::plugin::CallError;
use crate::sender::{METHOD, acknowledgement};
use crate::store::rows::inbox::{InboxRow, StoredEvent};
use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow, Priority};
use crate::store::{Commit, Op};
use crate::telegram::{Refusal, lane_of};

/// Nobody waits for an answer after this, nor does Telegram take it.
const TOO_LATE: Duration = Duration::from_secs(15 * 60);

/// The lane of the answer to an event, and the parameters of the simplest one; `None` where there is nothing to answer.
fn answer_to(row: &InboxRow) -> Option<(Lane, String)> {
    let StoredEvent::Update(raw) = &row.event else { return None };
    callback_query_id(std::str::from_utf8(raw).ok()?).map(|id| acknowledgement(&id))
}

impl Context {
    /// Adds an answer to the commit that ends an event, where it needs one.
    pub(super) fn answer(&self, commit: &mut Commit, row: &InboxRow, event: u64) {
        let Some((lane, params)) = answer_to(row) else { return };
        let age = Duration::from_millis(unix_millis().saturating_sub(row.received));
        let is_answered = age > TOO_LATE
            || commit.ops.iter().any(|op| answers(op, lane))
            || self.sender.has_acknowledged(lane)
            || self.has_answered_directly(event, lane);
        if is_answered {
            return;
        }
        let value = Self::answer_row(event, params).encode();
        commit.ops.push(Op::Append { prefix: outbox::lane_prefix(self.bot, lane), value });
        metrics::counter!("botyard_callbacks_acknowledged_total", "when" => "end").increment(1);
    }

    /// An answer of the host's own.
    pub(super) fn answer_row(event: u64, params: String) -> OutboxRow {
        OutboxRow {
            plugin: PluginName::new(""),
            carries: 0,
            event,
            method: METHOD.to_owned(),
            params,
            priority: Priority::Interactive,
            attempts: 0,
            queued: unix_millis(),
            delivery: Delivery::AtLeastOnce,
            begun: 0,
            files: Vec::new(),
            fallback: Fallback::None,
            follows: false,
        }
    }

    /// The event is over: there is nothing to be acknowledged early any more.
    pub(super) fn answered(&self, row: &InboxRow) {
        if let Some((lane, _)) = answer_to(row) {
            self.sender.answered(lane);
        }
    }

    fn has_answered_directly(&self, event: u64, lane: Lane) -> bool {
        let took = |answer: &Result<String, CallError>| {
            matches!(answer, Ok(_) | Err(CallError::Refused { kind: Refusal::NoOp, .. }))
        };
        [false, true].into_iter().any(|observes| {
            self.journal(event, observes).any_call(|method, params, answer| {
                method.eq_ignore_ascii_case(METHOD) && lane_of(method, params) == lane && took(answer)
            })
        })
    }
}

/// True for a row that answers the query of this lane.
fn answers(op: &Op, lane: Lane) -> bool {
    let Op::Append { prefix, value } = op else { return false };
    outbox::parse_lane_prefix(prefix) == Some(lane)
        && OutboxRow::decode(value).is_ok_and(|row| row.method.eq_ignore_ascii_case(METHOD))
}
