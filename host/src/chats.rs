//! What is known of chats.
//!
//! - [`known`]: all chats that the bot has met, one row each in the store, for whoever wants to reach everybody.

mod known;

pub use self::known::{Known, known};
