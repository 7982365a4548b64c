//! `botyard:broadcast/broadcasts`: one call to many chats, begun when the run commits.
//!
//! Here is only written what is wanted; the sender does it. A plugin sees and changes its own broadcasts alone.

use std::collections::HashSet;

use super::{DESCRIBING, Host, failed};
use crate::clock::unix_millis;
use crate::plugin::bindings::botyard::broadcast::broadcasts as wit;
use crate::plugin::{CallError, grants, reach};
use crate::store::rows::broadcast::{
    self as rows, HeadRow, IDS_EACH, PIECE, ProgressRow, Recipient, State, To, Wanted, WishRow,
};
use crate::store::rows::outbox::Delivery;
use crate::telegram::cast;

/// Recipients of one broadcast; all of them are part of one commit.
const MOST: usize = 100_000;
/// What a recipient takes of the run's data.
const RECIPIENT_BYTES: usize = 16;
const NAME_BYTES: usize = 100;

type Answer<T> = wasmtime::Result<Result<T, wit::BroadcastError>>;

impl wit::Host for Host {
    fn start(&mut self, to: wit::Recipients, method: String, params: String, options: wit::Options) -> Answer<u64> {
        let checked = self
            .may_broadcast(options.max_stars.is_some())
            .and_then(|()| self.may_send(&method, &params))
            .and_then(|()| self.head(&method, &params, options));
        let (head, max_stars) = match checked {
            Ok(checked) => checked,
            Err(error) => return Ok(Err(error)),
        };
        // For many chats, so for any; the head was checked without, so that the limits are those of what the plugin wrote.
        let head = match self.seal_buttons(head.params.clone(), None) {
            Ok(params) => HeadRow { params, ..head },
            Err(error) => return Ok(Err(wit::BroadcastError::Invalid(error.to_string()))),
        };
        let recipients = match to {
            wit::Recipients::KnownChats => Vec::new(),
            wit::Recipients::Listed(listed) => match list(listed) {
                Ok(recipients) => recipients,
                Err(problem) => return Ok(Err(wit::BroadcastError::Invalid(problem))),
            },
        };
        let is_listed = !recipients.is_empty();
        let Some(run) = &mut self.run else { return Ok(Err(wit::BroadcastError::Denied(DESCRIBING.to_owned()))) };
        // Before each of them is looked up, which takes its time.
        if let Err(problem) = run.charge_effect(method.len() + params.len() + recipients.len() * RECIPIENT_BYTES) {
            return Ok(Err(wit::BroadcastError::Denied(problem)));
        }
        if let Err(denied) = self.may_reach(&recipients) {
            return Ok(Err(wit::BroadcastError::Denied(denied)));
        }
        let Some(run) = &mut self.run else { return Ok(Err(wit::BroadcastError::Denied(DESCRIBING.to_owned()))) };
        // Known before the commit, and the same on every attempt.
        let ids = (0..IDS_EACH).map(|n| run.event.wrapping_mul(IDS_EACH) + n);
        let mut free = None;
        for id in ids {
            if run.tx.peek(&rows::head_key(run.bot, id)).map_err(failed)?.is_none() {
                free = Some(id);
                break;
            }
        }
        let Some(id) = free else {
            return Ok(Err(wit::BroadcastError::Denied(format!("one event can begin at most {IDS_EACH} broadcasts"))));
        };
        let pieces = u32::try_from(recipients.len().div_ceil(PIECE)).unwrap_or(u32::MAX);
        let to = if is_listed { To::Listed { total: recipients.len() as u64, pieces } } else { To::KnownChats };
        for (piece, number) in recipients.chunks(PIECE).zip(0..) {
            run.tx.put(rows::piece_key(run.bot, id, number), rows::encode_piece(piece));
        }
        let wish = WishRow { wanted: Wanted::Run, number: 1, most: max_stars.saturating_mul(10) };
        run.tx.put(rows::head_key(run.bot, id), HeadRow { to, ..head }.encode());
        run.tx.put(rows::wish_key(run.bot, id), wish.encode());
        Ok(Ok(id))
    }

    fn status(&mut self, id: u64) -> Answer<Option<wit::Report>> {
        if let Err(error) = self.may_broadcast(false) {
            return Ok(Err(error));
        }
        let Some((head, wish, progress)) = self.broadcast(id)? else { return Ok(Ok(None)) };
        let total = if head.to == To::KnownChats { progress.total.max(progress.taken) } else { progress.total };
        let waiting = total.saturating_sub(progress.done());
        let state = match State::of(&wish, &progress) {
            State::Running | State::Incomplete => wit::State::Running,
            State::Paused => wit::State::Paused,
            State::Stopped => wit::State::Stopped,
            State::Done => wit::State::Done,
            State::Cancelled => wit::State::Cancelled,
        };
        Ok(Ok(Some(wit::Report {
            state,
            reason: progress.stopped.filter(|_| state == wit::State::Stopped).map(|(_, reason)| reason),
            total,
            sent: progress.sent,
            gone: progress.gone,
            refused: progress.refused,
            unknown: progress.unknown,
            waiting,
            spent: progress.spent,
            started: progress.started,
            ended: progress.ended,
        })))
    }

    fn pause(&mut self, id: u64) -> Answer<bool> {
        self.wish(id, Wanted::Pause)
    }

    fn resume(&mut self, id: u64) -> Answer<bool> {
        self.wish(id, Wanted::Run)
    }

    fn cancel(&mut self, id: u64) -> Answer<bool> {
        self.wish(id, Wanted::Cancel)
    }
}

impl Host {
    fn may_broadcast(&self, paid: bool) -> Result<(), wit::BroadcastError> {
        let context = &self.context;
        grants::check_broadcast(&context.name, &context.grants, paid).map_err(wit::BroadcastError::Denied)
    }

    /// Checks what is sent as if it were one call: what it names besides its recipients counts as it does there.
    fn may_send(&mut self, method: &str, params: &str) -> Result<(), wit::BroadcastError> {
        self.permit(method, params).map_err(|error| match error {
            CallError::Denied(denied) => wit::BroadcastError::Denied(denied),
            CallError::Invalid(problem) => wit::BroadcastError::Invalid(problem),
            error => wit::BroadcastError::Denied(error.to_string()),
        })
    }

    /// Checks the chats; no recipients at all are all chats that are known.
    fn may_reach(&mut self, recipients: &[Recipient]) -> Result<(), String> {
        if recipients.is_empty() && self.context.grants.chats.is_some() {
            return Err(format!(
                "`grants.chats` of [plugins.{}] in bot.toml leaves chats out, so a broadcast can't go to all that are \
                 known: list the recipients",
                self.context.name
            ));
        }
        let named = |recipient: &Recipient| match recipient {
            Recipient::Chat(id) => reach::Named::Number(*id),
            Recipient::Name(name) => reach::Named::Name(name.trim_start_matches('@').to_owned()),
        };
        self.permit_chats(recipients.iter().map(named)).map_err(|error| match error {
            CallError::Denied(denied) => denied,
            error => error.to_string(),
        })
    }

    /// What is sent, and how many Stars it may cost.
    fn head(&self, method: &str, params: &str, options: wit::Options) -> Result<(HeadRow, u64), wit::BroadcastError> {
        use wit::BroadcastError::Invalid;
        let context = &self.context;
        let paid = options.max_stars.is_some();
        let params = cast::for_many(method, params, paid).map_err(Invalid)?;
        if options.name.len() > NAME_BYTES || options.name.chars().any(char::is_control) {
            return Err(Invalid(format!("the name has control characters, or more than {NAME_BYTES} bytes")));
        }
        if options.max_stars == Some(0) {
            return Err(Invalid("a paid broadcast that may cost nothing sends nothing".to_owned()));
        }
        let head = HeadRow {
            name: options.name,
            owner: context.name.as_str().to_owned(),
            method: method.to_owned(),
            params,
            to: To::KnownChats,
            delivery: if options.at_least_once { Delivery::AtLeastOnce } else { Delivery::AtMostOnce },
            paid,
            created: unix_millis(),
        };
        Ok((head, options.max_stars.unwrap_or(0)))
    }

    /// A broadcast of this plugin. What others change of it meanwhile is no reason to run again.
    fn broadcast(&self, id: u64) -> wasmtime::Result<Option<(HeadRow, WishRow, ProgressRow)>> {
        let Some(run) = &self.run else { return Ok(None) };
        let get = |key: Vec<u8>| run.tx.peek(&key).map_err(failed);
        let (head, wish) = (get(rows::head_key(run.bot, id))?, get(rows::wish_key(run.bot, id))?);
        let (Some(head), Some(wish)) = (head, wish) else { return Ok(None) };
        let (head, wish) = (HeadRow::decode(&head).map_err(failed)?, WishRow::decode(&wish).map_err(failed)?);
        if head.owner != self.context.name.as_str() {
            return Ok(None);
        }
        let progress = match get(rows::progress_key(run.bot, id))? {
            Some(progress) => ProgressRow::decode(&progress).map_err(failed)?,
            None => ProgressRow::begun(head.to),
        };
        Ok(Some((head, wish, progress)))
    }

    fn wish(&mut self, id: u64, wanted: Wanted) -> Answer<bool> {
        if let Err(error) = self.may_broadcast(false) {
            return Ok(Err(error));
        }
        let Some((_, _, progress)) = self.broadcast(id)? else { return Ok(Ok(false)) };
        let Some(run) = &mut self.run else { return Ok(Ok(false)) };
        if let Err(problem) = run.charge_effect(0) {
            return Ok(Err(wit::BroadcastError::Denied(problem)));
        }
        let key = rows::wish_key(run.bot, id);
        // Read anew, and for good: what an operator wants at the same moment must not be lost.
        let Some(wish) = run.tx.get(&key).map_err(failed)? else { return Ok(Ok(false)) };
        let wish = WishRow::decode(&wish).map_err(failed)?;
        if matches!(State::of(&wish, &progress), State::Done | State::Cancelled) {
            return Ok(Ok(false));
        }
        run.tx.put(key, WishRow { wanted, number: wish.number + 1, ..wish }.encode());
        Ok(Ok(true))
    }
}

/// Each once, in their order.
fn list(listed: Vec<wit::Recipient>) -> Result<Vec<Recipient>, String> {
    if listed.len() > MOST {
        return Err(format!("{} recipients; one broadcast takes at most {MOST}", listed.len()));
    }
    let mut seen = HashSet::with_capacity(listed.len());
    let mut recipients = Vec::with_capacity(listed.len());
    for recipient in listed {
        let text = match recipient {
            wit::Recipient::Chat(id) => id.to_string(),
            wit::Recipient::Name(name) => name,
        };
        let recipient = cast::recipient(&text)?;
        if seen.insert(recipient.clone()) {
            recipients.push(recipient);
        }
    }
    if recipients.is_empty() { Err("there is nobody to send it to".to_owned()) } else { Ok(recipients) }
}
