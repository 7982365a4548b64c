//! `botyard:telegram/chats`: what is known of chats without a call.

use super::{DESCRIBING, Host, failed};
use crate::domain::ChatId;
use crate::plugin::bindings::botyard::telegram::chats as wit;
use crate::plugin::{CallError, grants, reach};
use crate::store::rows::chat::{ChatRow, key};

/// Whoever may ask Telegram may be told what is here.
const METHOD: &str = "getChat";

impl wit::Host for Host {
    fn known(&mut self, chat_id: i64) -> wasmtime::Result<Result<Option<wit::KnownChat>, String>> {
        let context = &self.context;
        if let Err(denied) = grants::check(&context.name, &context.methods, &context.grants, METHOD) {
            return Ok(Err(denied));
        }
        if let Err(CallError::Denied(denied)) = self.permit_chats([reach::Named::Number(ChatId(chat_id))]) {
            return Ok(Err(denied));
        }
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        let id = run.chat(ChatId(chat_id))?;
        let row = run.tx.peek(&key(run.bot, id)).map_err(failed)?;
        run.charge_read(row.as_ref().map_or(0, |row| row.len()))?;
        let row = row.map(|row| ChatRow::decode(&row)).transpose().map_err(failed)?;
        Ok(Ok(row.map(|row| wit::KnownChat {
            id: id.0,
            chat_type: row.kind,
            title: row.title,
            username: row.username,
            seen: row.seen,
            gone: row.gone,
        })))
    }
}
