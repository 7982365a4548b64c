//! `botyard:telegram/bot-api`: API calls, at once or queued.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{DESCRIBING, Host, Run, StopOnDrop};
use crate::clock::unix_millis;
use crate::plugin::allowance::Short;
use crate::plugin::bindings::botyard::telegram::bot_api as wit;
use crate::plugin::tape::NOT_ON_TAPE;
use crate::plugin::version::Context;
use crate::plugin::{Answer, Attachment, CallError, Limit, grants, reach};
use crate::store::rows::file::{self, Attached};
use crate::store::rows::moved;
use crate::store::rows::outbox::{Delivery, Fallback, OutboxRow, Priority, lane_prefix};
use crate::telegram::{Refusal, lane_of, redirect, split};
use crate::whose;

const CHAT_ACTION: &str = "sendChatAction";
/// In so many chats a run can keep one up.
const MOST_ACTIONS: usize = 8;

impl wit::Host for Host {
    async fn call(&mut self, method: String, params: String) -> wasmtime::Result<Result<String, wit::CallError>> {
        Ok(self.call_now(method, params).await.map_err(Into::into))
    }

    fn enqueue(
        &mut self,
        method: String,
        params: String,
        options: wit::Options,
    ) -> wasmtime::Result<Result<(), wit::CallError>> {
        Ok(self.call_later(method, params, options).map_err(Into::into))
    }

    fn keep_action(&mut self, params: String) -> wasmtime::Result<Result<(), wit::CallError>> {
        Ok(self.keep_acting(params).map_err(Into::into))
    }
}

impl Host {
    async fn call_now(&mut self, method: String, params: String) -> Result<String, CallError> {
        self.permit(&method, &params)?;
        let Some(tape) = self.run.as_ref().and_then(|run| run.tape.clone()) else {
            return self.call_at_once(method, params).await;
        };
        let asked = (method.clone(), params.clone());
        let answer = if tape.plays() {
            match tape.play(&method, &params) {
                Some(Answer::Result(result)) => Ok(result.text().to_owned()),
                Some(Answer::Refused(error)) => Err(error),
                _ => Err(CallError::Unreachable(NOT_ON_TAPE.to_owned())),
            }
        } else {
            self.call_at_once(method, params).await
        };
        tape.record(&asked.0, &asked.1, (&answer).into());
        answer
    }

    async fn call_at_once(&mut self, method: String, params: String) -> Result<String, CallError> {
        let chat = self.chat_of(&method, &params)?;
        // Also where the answer is known already: what is kept for its buttons is kept when this run commits.
        let sealed = self.seal_buttons(params.clone(), chat)?;
        let plugin = &self.context.name;
        let run = self.run.as_mut().ok_or_else(|| CallError::Denied(DESCRIBING.to_owned()))?;
        let tx = &mut run.tx;
        let bot = run.bot;
        // An earlier attempt may have been made before the group moved: the same call, with the id of then.
        let now = |params: &str| {
            redirect(params, |chat| moved::current(tx, bot, chat).ok().filter(|current| *current != chat))
        };
        let asked = (&*method, &*params);
        if let Some(answer) = run.journal.calls.recall(&mut run.cursor, run.attempt, plugin, asked, now) {
            let lost = "an earlier attempt at this event ended before the answer came";
            return answer.unwrap_or_else(|| Err(CallError::UnknownOutcome(lost.to_owned())));
        }
        let files = run.attachments(&params)?;
        if run.calls >= self.context.limits.calls {
            return Err(CallError::Denied(self.context.too_many_calls()));
        }
        // The journal keeps it for as long as the event is not settled.
        run.charge_data(method.len() + params.len()).map_err(CallError::Denied)?;
        run.take_calls(&self.context, 1, true)?;
        run.calls += 1;
        let place = run.journal.calls.begin(&mut run.cursor, run.attempt, plugin, &method, &params);
        let deadline = run.deadline.saturating_duration_since(tokio::time::Instant::now());
        let (outbound, plugin, params) = (Arc::clone(&run.outbound), plugin.clone(), sealed);
        // A task of its own: what this future is polled on is the guest's small stack, and its time is the guest's.
        let task = tokio::spawn(whose::same(async move {
            if files.is_empty() {
                outbound.call(&plugin, &method, params, deadline).await
            } else {
                outbound.call_with_files(&plugin, &method, params, files, deadline).await
            }
        }));
        let _stop = StopOnDrop(task.abort_handle());
        let answer = task.await.unwrap_or_else(|error| Err(CallError::UnknownOutcome(error.to_string())));
        let answer = answer.map(|answer| self.open_buttons(answer, chat));
        let run = self.run.as_mut().ok_or_else(|| CallError::Denied(DESCRIBING.to_owned()))?;
        let kept = answer.as_ref().err().is_none_or(CallError::is_final);
        run.journal.calls.finish(place, &answer, kept, true);
        // As with HTTP: it was made, and another attempt is given the same answer.
        run.charge_data(answer.as_ref().map_or(0, String::len)).map_err(CallError::Denied)?;
        answer
    }

    fn call_later(&mut self, method: String, params: String, options: wit::Options) -> Result<(), CallError> {
        self.permit(&method, &params)?;
        let chat = self.chat_of(&method, &params)?;
        let params = self.seal_buttons(params, chat)?;
        let run = self.run.as_mut().ok_or_else(|| CallError::Denied(DESCRIBING.to_owned()))?;
        // The first part goes to the chat that all go to.
        let lane = lane_of(&method, &params);
        let plain = options.bad_markup == wit::BadMarkup::SendPlain;
        let calls = match options.long_text {
            wit::LongText::Split => split(&method, &params, plain),
            wit::LongText::Whole => None,
        };
        let calls = calls.unwrap_or_else(|| vec![(method, params)]);
        for (method, params) in &calls {
            // What goes on in messages needs the grant for messages.
            grants::check(&self.context.name, &self.context.methods, &self.context.grants, method)
                .and_then(|()| run.charge_effect(method.len() + params.len()))
                .map_err(CallError::Denied)?;
        }
        run.take_calls(&self.context, calls.len() as u64, false)?;
        let numbered = |file: Attachment| Attached { number: rand::random(), ..file.attached };
        let (before, mut contents) = (run.tx.savepoint(), HashSet::new());
        for (place, (method, params)) in calls.into_iter().enumerate() {
            let files: Vec<_> = run.attachments(&params)?.into_iter().map(numbered).collect();
            // Some calls may carry the same file: its content is there once.
            let new = files.iter().filter(|file| contents.insert(file.hash));
            let row = OutboxRow {
                plugin: self.context.name.clone(),
                carries: new.map(|file| file.size).sum(),
                event: run.event,
                method,
                params,
                priority: options.priority.into(),
                attempts: 0,
                queued: unix_millis(),
                delivery: options.delivery.into(),
                begun: 0,
                files,
                fallback: if plain { Fallback::Plain } else { Fallback::None },
                follows: place > 0,
            };
            let (prefix, encoded) = (lane_prefix(run.bot, lane), row.encode());
            // With the number that the commit will choose.
            let bytes = (prefix.len() + 8 + encoded.len()) as u64;
            if let Err(error) = run.charge_queued(&self.context, bytes, row.carries) {
                run.tx.roll_back(before);
                return Err(error);
            }
            for file in &row.files {
                run.tx.put(file::reference(run.bot, file), Vec::new());
            }
            run.tx.append(prefix, encoded);
        }
        Ok(())
    }

    fn keep_acting(&mut self, params: String) -> Result<(), CallError> {
        self.permit(CHAT_ACTION, &params)?;
        let run = self.run.as_mut().ok_or_else(|| CallError::Denied(DESCRIBING.to_owned()))?;
        run.charge_effect(params.len()).map_err(CallError::Denied)?;
        let lane = lane_of(CHAT_ACTION, &params);
        if run.acting.len() >= MOST_ACTIONS && !run.acting.contains_key(&lane) {
            return Err(CallError::Denied(format!("a run can keep up chat actions in at most {MOST_ACTIONS} chats")));
        }
        let task = tokio::spawn(whose::same(run.outbound.keep_acting(params)));
        run.acting.insert(lane, StopOnDrop(task.abort_handle()));
        Ok(())
    }

    /// Checks what can be checked without making the call: every way to Telegram begins here.
    pub(super) fn permit(&mut self, method: &str, params: &str) -> Result<(), CallError> {
        if !grants::is_method_name(method) {
            return Err(CallError::Invalid(format!("`{method:.64}` is not the name of a Bot API method")));
        }
        let context = &self.context;
        grants::check(&context.name, &context.methods, &context.grants, method).map_err(CallError::Denied)?;
        if params.len() as u64 > context.limits.value {
            return Err(CallError::Invalid(context.too_long()));
        }
        if !params.trim_start().starts_with('{') {
            return Err(CallError::Invalid("the parameters are not a JSON object".to_owned()));
        }
        match serde_json::from_str::<Pays>(params) {
            // It takes the bot's Stars, and nothing here would count them.
            Ok(Pays { allow_paid_broadcast: Some(_) }) => {
                grants::check_broadcast(&context.name, &context.grants, true).map_err(CallError::Denied)?;
            }
            Ok(_) => {}
            Err(error) => return Err(CallError::Invalid(format!("the parameters are not a JSON object: {error}"))),
        }
        let named = reach::named_in(method, params).map_err(|unfit| match unfit {
            reach::Unfit::OnDisk => CallError::Denied(unfit.to_string()),
            reach::Unfit::Unreadable(_) => CallError::Invalid(unfit.to_string()),
        })?;
        self.permit_chats(named)
    }
}

impl Run {
    /// Takes calls from what the plugin may make in a minute; those that are only queued come back if they are not
    /// committed.
    pub(super) fn take_calls(&mut self, context: &Context, count: u64, at_once: bool) -> Result<(), CallError> {
        let most = context.limits.calls_per_minute;
        let of_run = u64::from(self.calls) + self.queued.count() + count;
        let taken = match at_once {
            // Another attempt would ask for as many again.
            _ if most > 0 && of_run > u64::from(most) => Err(Short::Always),
            true => context.allowance.take_calls(self.bot, count, most),
            false => self.queued.take(count, most),
        };
        taken.map_err(|short| {
            let limit = Limit::CallsPerMinute;
            let place = limit.hit(&context.name);
            match short {
                Short::For(wait) => {
                    self.short = Some((limit, wait));
                    CallError::Flooded(wait)
                }
                Short::Always => {
                    CallError::Denied(format!("this run alone asks for more than {most} calls in a minute: {place}"))
                }
            }
        })
    }
}

impl Host {
    /// Checks whether the plugin may have to do with these chats.
    pub(super) fn permit_chats(&mut self, chats: impl IntoIterator<Item = reach::Named>) -> Result<(), CallError> {
        let context = &self.context;
        let (Some(list), Some(run)) = (&context.grants.chats, &mut self.run) else { return Ok(()) };
        match reach::check(&context.name, list, chats, &mut run.tx, run.bot) {
            Ok(answer) => answer.map_err(CallError::Denied),
            // As good as no answer: whoever can't be looked up is not called.
            Err(error) => Err(CallError::Unreachable(error.to_string())),
        }
    }
}

/// Whether Telegram is to be paid for a call.
#[derive(Deserialize)]
struct Pays {
    allow_paid_broadcast: Option<IgnoredAny>,
}

impl From<CallError> for wit::CallError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { code, description, kind } => {
                Self::Refused(wit::Refusal { code, description, kind: kind.into() })
            }
            CallError::Flooded(wait) => {
                let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
                Self::Flooded(u32::try_from(seconds).unwrap_or(u32::MAX))
            }
            CallError::UnknownOutcome(text) => Self::UnknownOutcome(text),
            CallError::Unreachable(text) => Self::Unreachable(text),
            CallError::Denied(text) => Self::Denied(text),
            CallError::Invalid(text) => Self::Invalid(text),
        }
    }
}

impl From<Refusal> for wit::RefusalKind {
    fn from(kind: Refusal) -> Self {
        match kind {
            Refusal::Call => Self::Call,
            Refusal::NoOp => Self::NoOp,
            Refusal::ChatGone => Self::ChatGone,
            Refusal::Migrated(chat) => Self::Migrated(chat.0),
        }
    }
}

impl From<wit::Delivery> for Delivery {
    fn from(delivery: wit::Delivery) -> Self {
        match delivery {
            wit::Delivery::AtLeastOnce => Self::AtLeastOnce,
            wit::Delivery::AtMostOnce => Self::AtMostOnce,
        }
    }
}

impl From<wit::Priority> for Priority {
    fn from(priority: wit::Priority) -> Self {
        match priority {
            wit::Priority::Interactive => Self::Interactive,
            wit::Priority::Normal => Self::Normal,
            wit::Priority::Bulk => Self::Bulk,
        }
    }
}
