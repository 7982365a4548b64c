//! Write Telegram bots as plugins for the Botyard host.
//!
//! A plugin is a module of plain functions, marked with what they answer to:
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! #[plugin]
//! mod echo {
//!     #[text]
//!     fn echo(ctx: &mut Ctx) {
//!         ctx.reply(ctx.text());
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The host runs each event in a fresh instance, so nothing in memory outlives a run. What should last goes into the
//! conversation's [state](State) or into [storage](Run::storage). Everything a run asks for (messages, state, values,
//! timers) becomes true together when its handler has returned, and not at all when it fails.
//!
//! - [`macro@plugin`]: the attributes for handlers, and what a manifest holds.
//! - [`Ctx`] and [`Run`]: all a handler can read and do.
//! - [`api`]: the whole Bot API, typed.
//! - [`CallbackData`], [`Menu`], [`Pager`]: what buttons stand for.
//! - [`Dialog`]: forms of several steps.
//! - [`extract`], [`Command`], [`filter`], [`check`], [`link`]: what handlers are given, and what they answer to.
//! - [`State`]: conversations that remember where they are.
//! - [`http`]: requests to other servers.
//! - [`media`], [`File`], [`Run::download`]: photos, documents and albums; files that came.
//! - [`format`](mod@format): bold, links, and escaping.
//! - [`keyboard`], [`t!`], [`log`]: buttons, translations, logging.
//! - [`mod@test`]: running a plugin natively.
//!
//! Nothing is lost silently: where an effect can't be asked for (a call that is not granted, a state that is too
//! large) the run fails with that reason.

#![warn(missing_docs)]

// The macros name this crate by its full path, in here too.
extern crate self as botyard_sdk;

#[cfg(all(target_arch = "wasm32", feature = "bump-alloc"))]
mod alloc;
mod callback;
mod ctx;
mod dialog;
mod error;
mod file;
#[cfg(doctest)]
mod guide;
mod host;
mod json;
mod menu;
mod pager;
mod plugin;
mod state;
mod update;

pub mod api;
pub mod check;
pub mod command;
pub mod extract;
pub mod filter;
pub mod format;
pub mod http;
pub mod i18n;
pub mod keyboard;
pub mod link;
pub mod log;
pub mod media;
#[cfg(not(target_arch = "wasm32"))]
pub mod test;

pub use botyard_sdk_macros::{CallbackData, Command, State, plugin, t};
pub use callback::{CallbackData, CallbackField};
pub use command::Command;
pub use ctx::{
    Broadcast, BroadcastState, BroadcastStatus, ChatTarget, Ctx, JobError, JobStatus, Message, QueuedJob, Recipients,
    Recurring, Run, Scope, SetTimer, Storage,
};
pub use dialog::{Dialog, Question};
pub use error::{CallError, Error, Refusal};
pub use file::{Download, File, FileWriter, Received};
pub use menu::Menu;
pub use pager::Pager;
pub use plugin::{Handled, Next, Plugin, Returned};
pub use serde_json::{Value, json};
pub use state::{NoState, OldState, State};
pub use update::User;

pub use bindings::botyard::telegram::bot_api::Priority;
pub use bindings::botyard::telegram::chats::KnownChat;
pub use bindings::botyard::types::types::{Album, Event, Job, Timer, Update};

/// All that a plugin usually needs: `use botyard_sdk::prelude::*;`.
pub mod prelude {
    pub use std::time::Duration;

    pub use serde::{Deserialize, Serialize};

    pub use crate::Handled::{Done, Pass};
    pub use crate::api::{self, Method as _, Object as _};
    pub use crate::keyboard::{AskReply, Button, InlineKeyboard, RemoveKeyboard, ReplyButton, ReplyKeyboard, Style};
    pub use crate::media::{album, animation, audio, document, photo, sticker, video, video_note, voice};
    pub use crate::{
        Album, CallError, CallbackData, ChatTarget, Command, Ctx, Dialog, Error, File, Handled, JobError, Menu, Next,
        OldState, Pager, Priority, Question, Run, State, Timer, User, Value, check, extract, filter, json, plugin,
    };
    pub use crate::{debug, error, info, t, trace, warn};
}

/// What the macros' output is made of. Not for use by hand: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::bindings;
    pub use crate::bindings::botyard::types::types::{Invocation, State as Stored};
    pub use crate::bindings::export_plugin;
    pub use crate::bindings::exports::botyard::plugin::handler::Manifest;
    pub use crate::callback::{Parts, Reading};
    pub use crate::check::Checked;
    pub use crate::command::{CommandInfo, Words, extract as extract_command, misfit};
    pub use crate::plugin::{Every, Matcher, Route, Table, Text};
    pub use serde;
}

/// The host's interfaces, made from `wit/`.
#[doc(hidden)]
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "plugin",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_plugin",
        default_bindings_module: "::botyard_sdk::bindings",
        runtime_path: "::botyard_sdk::bindings::rt",
    });
    pub use wit_bindgen::rt;
}
