//! Identifiers, each a type of its own. Telegram's ids have up to 52 significant bits and may be negative.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A bot's user id: the number before the colon of its token.
    BotId
);
id!(
    /// A chat. Groups and channels are negative; a private chat has its user's id.
    ChatId
);
id!(
    /// A user.
    UserId
);
id!(
    /// `message_thread_id`: a forum topic.
    ThreadId
);
id!(
    /// `update_id`. Consecutive within one epoch only: it may jump, down as well as up.
    UpdateId
);

impl ChatId {
    /// An id of a basic group, the one kind of chat that may become another: a supergroup.
    #[must_use]
    pub fn is_basic_group(self) -> bool {
        (-999_999_999_999..0).contains(&self.0)
    }

    /// An id of a supergroup or channel.
    #[must_use]
    pub fn is_supergroup(self) -> bool {
        (-(1 << 52)..-1_000_000_000_000).contains(&self.0)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", from = "String")]
        pub struct $name(Arc<str>);

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl $name {
            /// Wraps a name that the configuration has accepted.
            #[must_use]
            pub fn new(name: &str) -> Self {
                Self(name.into())
            }

            /// The name as it stands in `bot.toml`.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of an entry under `[plugins]`.
    PluginName
);
name!(
    /// The name of an entry under `[bots]`.
    BotName
);

impl BotName {
    /// The bot in `[bot]`.
    pub const OF_THE_ONE: &str = "bot";
}
