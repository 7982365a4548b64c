//! What an update must be like for a handler: values that are put together with `&`, `|` and `!`.
//!
//! They stand behind `filter =` in a handler's attribute, where all functions of this module are at hand:
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! #[plugin]
//! mod gallery {
//!     #[message(filter = private() & (photo() | document()) & !forwarded())]
//!     fn keep(ctx: &mut Ctx) {
//!         ctx.reply("Kept.");
//!     }
//!
//!     #[command("stop", filter = owners())]
//!     fn stop(ctx: &mut Ctx) {
//!         ctx.reply("Stopped.");
//!     }
//!
//!     fn owners() -> filter::Filter {
//!         filter::user([7, 8]) & filter::private()
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The host evaluates them: a run is only begun for what they let through, and no regular expression is part of a plugin.
//! So they are put together once, when the plugin is loaded, and can't look at its configuration or its storage. What
//! they can't say a [check](crate::check) can, in a run.
//!
//! Of an album they see its first message, with the text of whichever has one.

use std::fmt::Write;
use std::ops::{BitAnd, BitOr, Not};

use crate::json::push_text;

/// A condition on updates. [`Display`](std::fmt::Display) gives the form that the host reads and shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a filter does something only as `filter = …` of a handler"]
pub struct Filter {
    text: String,
    kind: Kind,
}

/// What holds its text together: what decides about parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    All,
    Any,
}

impl Filter {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), kind: Kind::One }
    }

    fn of_texts(name: &str, texts: &[&str]) -> Self {
        let mut filter = Self::new(name);
        for (at, text) in texts.iter().enumerate() {
            filter.text.push_str(if at == 0 { "(" } else { ", " });
            push_text(&mut filter.text, text);
        }
        filter.text.push(')');
        filter
    }

    fn of_ids(name: &str, ids: impl IntoIterator<Item = i64>) -> Self {
        let mut filter = Self::new(name);
        let mut before = "(";
        for id in ids {
            write!(filter.text, "{before}{id}").expect("writing to a string never fails");
            before = ", ";
        }
        // Without an id nothing is let through; the host says what is wrong with "()".
        filter.text.push_str(if before == "(" { "()" } else { ")" });
        filter
    }

    fn join(self, other: Self, kind: Kind, sign: &str) -> Self {
        let mut text = self.within(kind);
        text.push_str(sign);
        text.push_str(&other.within(kind));
        Self { text, kind }
    }

    fn within(self, kind: Kind) -> String {
        if self.kind == Kind::One || self.kind == kind { self.text } else { format!("({})", self.text) }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl BitAnd for Filter {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        self.join(other, Kind::All, " & ")
    }
}

impl BitOr for Filter {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.join(other, Kind::Any, " | ")
    }
}

impl Not for Filter {
    type Output = Self;
    fn not(self) -> Self {
        Self { text: format!("!{}", self.within(Kind::One)), kind: Kind::One }
    }
}

/// In a private chat.
pub fn private() -> Filter {
    Filter::new("private")
}

/// In a group, supergroups included.
pub fn group() -> Filter {
    Filter::new("group")
}

/// In a channel.
pub fn channel() -> Filter {
    Filter::new("channel")
}

/// In one of these chats: `chat([-1001234567890])`.
pub fn chat(ids: impl IntoIterator<Item = i64>) -> Filter {
    Filter::of_ids("chat", ids)
}

/// In one of these forum topics.
pub fn topic(ids: impl IntoIterator<Item = i64>) -> Filter {
    Filter::of_ids("topic", ids)
}

/// From one of these people.
pub fn user(ids: impl IntoIterator<Item = i64>) -> Filter {
    Filter::of_ids("user", ids)
}

/// From somebody with this language in Telegram, or a variant of it: `pt` lets `pt-br` through.
pub fn language(tag: &str) -> Filter {
    Filter::of_texts("language", &[tag])
}

/// With exactly this text or caption.
pub fn text(text: &str) -> Filter {
    Filter::of_texts("text", &[text])
}

/// With a text or caption that begins like this.
pub fn text_begins(beginning: &str) -> Filter {
    Filter::of_texts("text_begins", &[beginning])
}

/// With a text or caption that a regular expression matches somewhere: in the syntax of the crate `regex`, so `(?i)` for
/// both cases.
pub fn text_matches(regex: &str) -> Filter {
    Filter::of_texts("text_matches", &[regex])
}

/// A command that is followed by something that begins like this; `""` for anything.
pub fn args_begin(beginning: &str) -> Filter {
    Filter::of_texts("args_begin", &[beginning])
}

/// With this field in its object, by the Bot API's own name. Of a pressed button the message is looked at.
pub fn has(field: &str) -> Filter {
    Filter::of_texts("has", &[field])
}

/// With one of these fields.
pub fn has_one_of(fields: &[&str]) -> Filter {
    Filter::of_texts("has", fields)
}

macro_rules! fields {
    ($($(#[$meta:meta])* $name:ident $field:literal;)*) => {
        $(
            $(#[$meta])*
            #[doc = concat!("\n\nThe same as `has(\"", $field, "\")`.")]
            pub fn $name() -> Filter {
                has($field)
            }
        )*
    };
}

fields! {
    /// With a text of its own, not a caption.
    any_text "text";
    /// With a caption.
    caption "caption";
    /// A photo.
    photo "photo";
    /// A file; animations are one, too.
    document "document";
    /// A video.
    video "video";
    /// An animation.
    animation "animation";
    /// Music.
    audio "audio";
    /// A voice message.
    voice "voice";
    /// A round video.
    video_note "video_note";
    /// A sticker.
    sticker "sticker";
    /// A place; venues are one, too.
    location "location";
    /// A venue.
    venue "venue";
    /// A contact.
    contact "contact";
    /// A poll.
    poll "poll";
    /// A dice.
    dice "dice";
    /// Forwarded from elsewhere.
    forwarded "forward_origin";
    /// An answer to another message of the chat.
    reply "reply_to_message";
    /// Sent by way of a bot, from its inline results.
    via_bot "via_bot";
    /// On behalf of a chat: by an anonymous administrator, or a channel.
    sender_chat "sender_chat";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_means_the_same_to_the_host() {
        for (filter, shown) in [
            (private() & (photo() | document()), r#"private & (has("photo") | has("document"))"#),
            (
                private() & photo() & !reply() & voice(),
                r#"private & has("photo") & !has("reply_to_message") & has("voice")"#,
            ),
            (private() & photo() | channel(), r#"private & has("photo") | channel"#),
            (!(private() | group()), "!(private | group)"),
            (!!private(), "!!private"),
            (chat([-100, 7]) | user(vec![8]) | topic([5]), "chat(-100, 7) | user(8) | topic(5)"),
            (text("a \"b\"\n") & language("uz"), r#"text("a \"b\"\n") & language("uz")"#),
            (text_begins("x") | text_matches(r"^\d"), r#"text_begins("x") | text_matches("^\\d")"#),
            (has_one_of(&["a", "b"]), r#"has("a", "b")"#),
        ] {
            let condition = botyard_filter::Condition::parse(&filter.to_string(), 1 << 20).unwrap();
            assert_eq!(condition.to_string(), shown);
        }
        let none = user([]).to_string();
        assert!(botyard_filter::Condition::parse(&none, 1 << 20).unwrap_err().to_string().contains("one or more ids"));
    }
}
