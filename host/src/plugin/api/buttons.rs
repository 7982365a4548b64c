//! A plugin's buttons on their way to Telegram and back.
//!
//! All callback data of a call is sealed, whatever the call is; data that has no room for that is kept in the store for
//! [`KEPT_FOR`], in the commit of the run. How much is kept is bounded: of a full share, the oldest goes. The same data
//! in the same place is kept once, however often it is sent.

use std::time::Duration;

use super::storage::put;
use super::{CallError, Host, HostFailed, Run};
use crate::domain::button::markup::{may_have_buttons, rewrite};
use crate::domain::button::{MOST_DATA, Owner};
use crate::domain::{ChatId, Lane};
use crate::plugin::version::Context;
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::{expiry, prefix_end, seal};
use crate::telegram::{is_of_name, lane_of};

/// How long data that does not fit on a button is kept.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 3600);
/// Kept data is shared out by the first letters of its id, so that a look at one share is enough to keep it bounded: by
/// one letter within a chat, which makes 64 shares, by two where it is for any chat.
const LETTERS_IN_CHAT: usize = 1;
const LETTERS_ANYWHERE: usize = 2;
const MOST_IN_SHARE: usize = 16;

impl Host {
    /// The chat that a call is for, where it is named by its number.
    pub(super) fn chat_of(&mut self, method: &str, params: &str) -> Result<Option<ChatId>, CallError> {
        match (lane_of(method, params), &mut self.run) {
            (Lane::Chat(chat), Some(run)) if !is_of_name(Lane::Chat(chat)) => run.chat(chat).map(Some).map_err(of_host),
            _ => Ok(None),
        }
    }

    /// The parameters with all buttons sealed for this chat, or for any.
    pub(super) fn seal_buttons(&mut self, params: String, chat: Option<ChatId>) -> Result<String, CallError> {
        let Some(run) = self.run.as_mut().filter(|_| may_have_buttons(&params)) else { return Ok(params) };
        let context = &self.context;
        let plugin = &context.name;
        let seal = seal::of(&mut run.tx, run.bot).map_err(of_host)?;
        let owner = Owner { bot: run.bot, plugin, chat };
        let sealed = rewrite(&params, &mut |data| {
            if data.is_empty() {
                return Ok(None);
            }
            if data.len() > MOST_DATA {
                let length = data.len();
                return Err(CallError::Invalid(format!(
                    "the callback data of a button has {length} bytes; at most {MOST_DATA} are possible"
                )));
            }
            let sealed = seal.seal(&owner, data);
            if let Some(id) = sealed.kept {
                run.keep_button(context, chat, &id, data)?;
            }
            Ok(Some(sealed.wire))
        })?;
        Ok(sealed.unwrap_or(params))
    }

    /// An answer of Telegram's with this plugin's buttons as it made them. Whatever goes wrong here, the call was made:
    /// then the answer is given as it came.
    pub(super) fn open_buttons(&mut self, answer: String, chat: Option<ChatId>) -> String {
        let Some(run) = self.run.as_mut().filter(|_| may_have_buttons(&answer)) else { return answer };
        let places: Vec<_> = chat.into_iter().collect();
        let owner = (run.bot, &self.context.name);
        let opened = seal::of(&mut run.tx, run.bot)
            .and_then(|seal| rewrite(&answer, &mut |wire| seal::open(&seal, &run.tx, owner, &places, wire, run.now)));
        opened.map_err(of_host).ok().flatten().unwrap_or(answer)
    }
}

impl Run {
    fn keep_button(&mut self, context: &Context, chat: Option<ChatId>, id: &str, data: &str) -> Result<(), CallError> {
        let plugin = &context.name;
        let life = u64::try_from(KEPT_FOR.as_millis()).unwrap_or(u64::MAX);
        let scope = Scope::Buttons(chat);
        let before = self.tx.get(&kv::key(self.bot, plugin, scope, id)).map_err(of_host)?;
        let before = before.and_then(|row| ValueRow::decode(&row).ok());
        if before.as_ref().is_some_and(|row| row.expires > self.now.saturating_add(life / 2)) {
            return Ok(());
        }
        if before.is_none() {
            self.make_room(context, chat, id)?;
        }
        let row = ValueRow { expires: self.now.saturating_add(life), bytes: data.as_bytes().to_vec() };
        put(self, context, scope, id, &row).map_err(CallError::Denied)
    }

    /// Sees to it that there is room for one more in the share of this id.
    fn make_room(&mut self, context: &Context, chat: Option<ChatId>, id: &str) -> Result<(), CallError> {
        let letters = if chat.is_some() { LETTERS_IN_CHAT } else { LETTERS_ANYWHERE };
        let share = kv::key(self.bot, &context.name, Scope::Buttons(chat), id.get(..letters).unwrap_or_default());
        let page = self.tx.page(&share, &prefix_end(&share), MOST_IN_SHARE + 1).map_err(of_host)?;
        self.charge_data(page.bytes).map_err(CallError::Denied)?;
        let ends = page.rows.iter().map(|(key, row)| (ValueRow::decode(row).map_or(0, |row| row.expires), key));
        let mut ends: Vec<_> = ends.collect();
        ends.sort();
        let surplus = (ends.len() + 1).saturating_sub(MOST_IN_SHARE);
        for (due, key) in ends.into_iter().take(surplus) {
            self.tx.delete(expiry::key(self.bot, due, key));
            self.credit_stored(key);
            self.tx.delete(key.to_vec());
        }
        Ok(())
    }
}

/// Of the host's own failures the guest learns only that the call was not made.
fn of_host(error: impl std::fmt::Display) -> CallError {
    let error = HostFailed(error.to_string());
    tracing::error!(%error, "a plugin's buttons can't be sealed");
    CallError::Unreachable(error.to_string())
}
