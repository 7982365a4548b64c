//! Values without I/O: ids, lanes and conversation keys.

pub mod button;
mod callback;
mod conversation;
mod event_lane;
mod ids;
mod lane;
mod origin;
mod reach;
mod update;

pub use callback::callback_query_id;
pub use conversation::{Conversation, KeyStrategy};
pub use event_lane::{EventLane, LaneRule, Part};
pub use ids::{BotId, BotName, ChatId, PluginName, ThreadId, UpdateId, UserId};
pub use lane::Lane;
pub use origin::{NoOrigin, Origin, OriginPattern, Server};
pub use reach::{ChatFacts, ChatGrant, is_listed};
pub use update::{CommandView, UPDATE_KINDS, UpdateView};
