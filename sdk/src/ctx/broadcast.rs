//! One message to many chats.

use serde::Serialize;

use super::{ChatTarget, Run, to_json};
use crate::api::Json;
use crate::bindings::botyard::broadcast::broadcasts as wit;
use crate::json::{self, Object};
use crate::keyboard::Markup;
use crate::{CallError, host};

pub use wit::{Report as BroadcastStatus, State as BroadcastState};

/// Who gets a [`Broadcast`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipients {
    /// Every chat that the bot knows: people, groups and channels.
    KnownChats,
    /// These: ids, or public `@name`s. At most 100,000; each once, however often it stands here.
    Listed(Vec<ChatTarget>),
}

#[cfg(not(target_arch = "wasm32"))]
impl Recipients {
    pub(crate) fn from_wire(to: &wit::Recipients) -> Self {
        match to {
            wit::Recipients::KnownChats => Self::KnownChats,
            wit::Recipients::Listed(listed) => Self::Listed(
                listed
                    .iter()
                    .map(|recipient| match recipient {
                        wit::Recipient::Chat(id) => ChatTarget::Id(*id),
                        wit::Recipient::Name(name) => ChatTarget::Name(name.clone()),
                    })
                    .collect(),
            ),
        }
    }
}

impl<T: Into<ChatTarget>> FromIterator<T> for Recipients {
    fn from_iter<I: IntoIterator<Item = T>>(chats: I) -> Self {
        Self::Listed(chats.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<ChatTarget>> From<Vec<T>> for Recipients {
    fn from(chats: Vec<T>) -> Self {
        chats.into_iter().collect()
    }
}

/// A broadcast that [`Run::broadcast`] has begun to describe. Nothing happens before [`start`](Self::start).
#[must_use = "nothing is sent before `start()`"]
pub struct Broadcast<'run> {
    run: &'run Run,
    to: Recipients,
    method: String,
    params: Result<String, CallError>,
    object: Object,
    options: wit::Options,
}

impl Run {
    /// Sends a text to many chats: in the time that answers leave, within Telegram's limits, over restarts, and to nobody
    /// twice. Whoever has blocked the bot is skipped. Needs `grants = { broadcast = true }` in `bot.toml`.
    ///
    /// ```
    /// # use botyard_sdk::{Recipients, prelude::*};
    /// fn announce(ctx: &Run) -> Result<u64, Error> {
    ///     Ok(ctx.broadcast(Recipients::KnownChats, "<b>Open again</b>").html().name("reopening").start()?)
    /// }
    /// ```
    pub fn broadcast(&self, to: impl Into<Recipients>, text: impl AsRef<str>) -> Broadcast<'_> {
        let mut object = Object::new();
        object.text("text", text.as_ref());
        Broadcast::new(self, to.into(), "sendMessage", object)
    }

    /// The same with any other method that sends something; `params` are those of a single call, without `chat_id`.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn pass_on(ctx: &Run, members: Vec<i64>) -> Result<u64, Error> {
    ///     let post = json!({ "from_chat_id": ctx.chat_id(), "message_id": ctx.message_id() });
    ///     Ok(ctx.broadcast_call(members, "copyMessage", post).start()?)
    /// }
    /// ```
    pub fn broadcast_call(&self, to: impl Into<Recipients>, method: &str, params: impl Serialize) -> Broadcast<'_> {
        Broadcast { params: to_json(&params), ..Broadcast::new(self, to.into(), method, Object::new()) }
    }

    /// How a broadcast of this plugin stands; `None` if there is none with this id.
    ///
    /// # Errors
    /// [`CallError::Denied`] without the grant.
    pub fn broadcast_status(&self, id: u64) -> Result<Option<BroadcastStatus>, CallError> {
        Ok(host::broadcast_status(id)?)
    }

    /// Lets a broadcast of this plugin wait, once the run has committed; false if there is none that could.
    ///
    /// # Errors
    /// [`CallError::Denied`] without the grant.
    pub fn pause_broadcast(&self, id: u64) -> Result<bool, CallError> {
        Ok(host::broadcast_pause(id)?)
    }

    /// Lets it go on, also where the host has stopped it.
    ///
    /// # Errors
    /// [`CallError::Denied`] without the grant.
    pub fn resume_broadcast(&self, id: u64) -> Result<bool, CallError> {
        Ok(host::broadcast_resume(id)?)
    }

    /// Ends it: whoever has not got it will not get it.
    ///
    /// # Errors
    /// [`CallError::Denied`] without the grant.
    pub fn cancel_broadcast(&self, id: u64) -> Result<bool, CallError> {
        Ok(host::broadcast_cancel(id)?)
    }
}

impl<'run> Broadcast<'run> {
    fn new(run: &'run Run, to: Recipients, method: &str, object: Object) -> Self {
        let options = wit::Options { name: String::new(), at_least_once: false, max_stars: None };
        Self { run, to, method: method.to_owned(), params: Ok(String::new()), object, options }
    }

    /// A name for the operator to know it by.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.options.name);
        self
    }

    /// The text is [HTML](https://core.telegram.org/bots/api#html-style).
    pub fn html(self) -> Self {
        self.with(|object| object.text("parse_mode", "HTML"))
    }

    /// The text is [MarkdownV2](https://core.telegram.org/bots/api#markdownv2-style).
    pub fn markdown(self) -> Self {
        self.with(|object| object.text("parse_mode", "MarkdownV2"))
    }

    /// Adds buttons.
    pub fn keyboard(self, keyboard: impl Markup) -> Self {
        match keyboard.into_json() {
            Ok(json) => self.with(|object| object.raw("reply_markup", &json)),
            Err(error) => {
                self.run.fail(error);
                self
            }
        }
    }

    /// Without a sound.
    pub fn silent(self) -> Self {
        self.with(|object| object.raw("disable_notification", "true"))
    }

    /// Rather twice than never: what may or may not have arrived is sent again.
    pub fn at_least_once(mut self) -> Self {
        self.options.at_least_once = true;
        self
    }

    /// Pays Telegram to take up to 1000 messages in a second, 0.1 Stars for each, and stops before it costs more than
    /// `max_stars`. Needs `grants = { broadcast = "paid" }`, and a bot that Telegram lets do so.
    pub fn paid(mut self, max_stars: u64) -> Self {
        self.options.max_stars = Some(max_stars);
        self
    }

    /// Begins it once the run has committed; answers with its id.
    ///
    /// # Errors
    /// [`CallError::Denied`] without the grants, [`CallError::Invalid`] when it could never be sent.
    pub fn start(self) -> Result<u64, CallError> {
        let params = self.params?;
        // A call of any method brings parameters of its own; what was set beside them has no place in a text of JSON.
        let params = if params.is_empty() { self.object.finish() } else { merged(&params, self.object)? };
        let to = match self.to {
            Recipients::KnownChats => wit::Recipients::KnownChats,
            Recipients::Listed(chats) => wit::Recipients::Listed(
                chats
                    .into_iter()
                    .map(|chat| match chat {
                        ChatTarget::Id(id) => Ok(wit::Recipient::Chat(id)),
                        ChatTarget::Name(name) => Ok(wit::Recipient::Name(name)),
                        ChatTarget::Topic(..) => {
                            Err(CallError::Invalid("a broadcast goes to chats; a topic is none".to_owned()))
                        }
                    })
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(host::broadcast_start(&to, &self.method, &params, &self.options)?)
    }

    fn with(mut self, add: impl FnOnce(&mut Object) -> &mut Object) -> Self {
        add(&mut self.object);
        self
    }
}

/// Parameters, and those that were set beside them.
fn merged(params: &str, beside: Object) -> Result<String, CallError> {
    let beside = beside.finish();
    if beside == "{}" {
        return Ok(params.to_owned());
    }
    let mut all = Json::from(params);
    if !all.is_object() {
        return Err(CallError::Invalid("the parameters are not a JSON object".into()));
    }
    for (key, value) in json::fields(&beside) {
        all.put_raw(key, beside.get(value).unwrap_or_default());
    }
    Ok(all.as_json().to_owned())
}
