//! Which chats something may have to do with, as an operator lists them. Pure.
//!
//! A list names kinds of chats, chats by number, and chats by `@name`. Whoever asks brings along what is known of the
//! chat; what is not known counts as not listed.

use std::fmt;

use super::ChatId;

/// The kinds that the Bot API tells apart.
const KINDS: [&str; 4] = ["private", "group", "supergroup", "channel"];

/// One entry of such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatGrant {
    /// All chats of a kind: `private`, `group`, `supergroup` or `channel`.
    Kind(&'static str),
    /// One chat.
    Id(ChatId),
    /// One chat by its public name, kept without the `@`, in lower case.
    Name(String),
}

impl ChatGrant {
    /// Reads a kind or an `@name`.
    ///
    /// # Errors
    /// When it is neither; the error says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(kind) = KINDS.into_iter().find(|kind| *kind == text) {
            return Ok(Self::Kind(kind));
        }
        match text.strip_prefix('@').filter(|name| is_name(name)) {
            Some(name) => Ok(Self::Name(name.to_ascii_lowercase())),
            None => Err(format!("{text:?} is no chat; expected {}, a number, or an @name", KINDS.join(", "))),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// As it stands in `bot.toml`.
impl fmt::Display for ChatGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "\"{kind}\""),
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => write!(f, "\"@{name}\""),
        }
    }
}

/// A chat, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatFacts<'a> {
    /// By its number.
    Number {
        /// The number that it has now.
        id: ChatId,
        /// Where it is known.
        kind: Option<&'a str>,
        /// Its public name without the `@`, where that is known.
        username: Option<&'a str>,
    },
    /// By its `@name`, here without the `@`: a supergroup or a channel, nobody knows which.
    Name(&'a str),
}

/// True if the list names the chat. `current` answers with the number that a listed chat has now.
pub fn is_listed(list: &[ChatGrant], chat: &ChatFacts<'_>, mut current: impl FnMut(ChatId) -> ChatId) -> bool {
    let has_kind = |kind: &str| list.iter().any(|grant| matches!(grant, ChatGrant::Kind(granted) if *granted == kind));
    let has_name = |name: &str| {
        list.iter().any(|grant| matches!(grant, ChatGrant::Name(granted) if granted.eq_ignore_ascii_case(name)))
    };
    match *chat {
        ChatFacts::Name(name) => has_name(name) || (has_kind("supergroup") && has_kind("channel")),
        ChatFacts::Number { id, kind, username } => {
            let by_kind = match (id.0, kind) {
                (1.., _) => has_kind("private"),
                _ if id.is_basic_group() => has_kind("group"),
                (_, Some(kind)) => has_kind(kind),
                // One of the two.
                (_, None) => has_kind("supergroup") && has_kind("channel"),
            };
            by_kind
                || username.is_some_and(has_name)
                || list.iter().any(|grant| matches!(grant, ChatGrant::Id(granted) if current(*granted) == id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPER: i64 = -1_001_557_912_345;

    #[test]
    fn reads_what_operators_write_and_says_it_the_same_way() {
        for text in ["private", "group", "supergroup", "channel", "@botyard_news"] {
            assert_eq!(ChatGrant::parse(text).unwrap().to_string(), format!("{text:?}"));
        }
        assert_eq!(ChatGrant::parse("@BotYard"), ChatGrant::parse("@botyard"), "names differ in more than case");
        assert_eq!(ChatGrant::Id(ChatId(SUPER)).to_string(), SUPER.to_string());
        for text in ["Private", "privat", "", "@", "botyard", "@a b", "7"] {
            assert!(ChatGrant::parse(text).unwrap_err().contains("expected private, group"), "{text}");
        }
    }

    #[test]
    fn a_chat_is_listed_by_kind_number_or_name() {
        let number = |id, kind, username| ChatFacts::Number { id: ChatId(id), kind, username };
        for (list, chat, expected) in [
            ("private", number(7, None, None), true),
            // What an event says of a person's chat, or does not, changes nothing about it.
            ("group", number(7, Some("group"), None), false),
            ("group", number(-5, None, None), true),
            ("supergroup", number(-5, None, None), false),
            ("supergroup", number(SUPER, Some("supergroup"), None), true),
            ("supergroup", number(SUPER, Some("channel"), None), false),
            ("supergroup", number(SUPER, None, None), false),
            ("supergroup channel", number(SUPER, None, None), true),
            ("@news", number(SUPER, None, Some("News")), true),
            ("@news", number(SUPER, None, None), false),
            ("@news", ChatFacts::Name("NEWS"), true),
            ("@news", ChatFacts::Name("news2"), false),
            ("supergroup channel", ChatFacts::Name("news"), true),
            ("channel private group", ChatFacts::Name("news"), false),
            ("7", number(7, None, None), true),
            ("7", number(8, None, None), false),
            // The group that was -9.
            ("-9", number(SUPER, Some("supergroup"), None), true),
            ("", number(7, None, None), false),
        ] {
            let grant = |text: &str| match text.parse() {
                Ok(id) => ChatGrant::Id(ChatId(id)),
                Err(_) => ChatGrant::parse(text).unwrap(),
            };
            let list: Vec<_> = list.split_whitespace().map(grant).collect();
            let moved = |chat| if chat == ChatId(-9) { ChatId(SUPER) } else { chat };
            assert_eq!(is_listed(&list, &chat, moved), expected, "{list:?} {chat:?}");
        }
    }
}
