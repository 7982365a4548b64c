//! What the Bot API's description can't say: short ways to objects, and where the SDK's own builders fit in.

use super::*;
use crate::keyboard::Markup;

/// A file to send: one that Telegram has already, one that it fetches, or one that goes along with the call.
///
/// A plain text is taken as it is.
///
/// ```
/// use botyard_sdk::api::{InputFile, SendPhoto};
/// use botyard_sdk::prelude::*;
///
/// fn show(ctx: &Run, file_id: &str) {
///     ctx.queue(SendPhoto::new(ctx.here(), InputFile::id(file_id)).caption("Again"));
///     ctx.queue(SendPhoto::new(ctx.here(), "https://example.org/cat.jpg"));
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile(String);

impl InputFile {
    /// A file that Telegram has already, by its `file_id`.
    pub fn id(file_id: impl Into<String>) -> Self {
        Self(file_id.into())
    }

    /// A file that Telegram fetches from the web.
    pub fn url(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// A file that goes along with the call as the part `name`.
    pub fn attached(name: impl AsRef<str>) -> Self {
        Self(format!("attach://{}", name.as_ref()))
    }

    /// As the parameter holds it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for InputFile {
    fn from(file: T) -> Self {
        Self(file.into())
    }
}

macro_rules! markups {
    ($($name:ident),*) => {
        $(impl Markup for $name {
            fn into_json(self) -> Result<String, Error> {
                let json = Json::from(self);
                json.failure().map_or_else(|| Ok(json.as_json().to_owned()), |error| Err(error.clone()))
            }
        })*
    };
}

markups!(InlineKeyboardMarkup, ReplyKeyboardMarkup, ReplyKeyboardRemove, ForceReply);

/// Objects that are hardly more than a text.
macro_rules! from_text {
    ($($name:ident),*) => {
        $(
            impl From<&str> for $name {
                fn from(text: &str) -> Self {
                    Self::new(text)
                }
            }
            impl From<String> for $name {
                fn from(text: String) -> Self {
                    Self::new(text)
                }
            }
        )*
    };
}

from_text!(InputPollOption, KeyboardButton, InputTextMessageContent, ReactionTypeEmoji);

impl From<&str> for ReactionType {
    fn from(emoji: &str) -> Self {
        Self::Emoji(emoji.into())
    }
}

impl From<&str> for InputMessageContent {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for InputMessageContent {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&str> for RichText {
    fn from(text: &str) -> Self {
        Self::Text(Json::text(text))
    }
}

impl<T: Into<Self>> FromIterator<T> for RichText {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Self {
        Self::List(Json::list(parts.into_iter().map(|part| part.into().into()).collect()))
    }
}

/// A command and what the menu says about it.
impl From<(&str, &str)> for BotCommand {
    fn from((command, description): (&str, &str)) -> Self {
        Self::new(command, description)
    }
}

/// A part of a price: what it is, and the amount in the smallest unit of the currency.
impl From<(&str, i64)> for LabeledPrice {
    fn from((label, amount): (&str, i64)) -> Self {
        Self::new(label, amount)
    }
}

impl ReplyParameters {
    /// The message that is answered.
    #[must_use]
    pub fn to(message_id: i64) -> Self {
        Self::new().message_id(message_id)
    }
}

impl MaybeInaccessibleMessage {
    /// The message, if the bot can read it.
    #[must_use]
    pub fn message(self) -> Option<Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }
}

impl Update {
    /// Reads an update from its JSON.
    #[must_use]
    pub fn parse(json: &str) -> Self {
        Self(Json::from(json))
    }

    /// The message that this update is or is about: new, edited, a channel's, a business', or the one below which a
    /// button was pressed.
    #[must_use]
    pub fn any_message(&self) -> Option<Message> {
        const KINDS: [&str; 7] = [
            "message",
            "edited_message",
            "channel_post",
            "edited_channel_post",
            "business_message",
            "edited_business_message",
            "guest_message",
        ];
        let direct = KINDS.iter().find_map(|kind| self.get::<Option<Message>>(kind));
        direct.or_else(|| self.callback_query()?.message()?.message())
    }
}

/// What a message is made of.
///
/// ```
/// use botyard_sdk::api::Content;
/// use botyard_sdk::prelude::*;
///
/// fn what(ctx: &Run) -> &'static str {
///     match ctx.message().and_then(|message| message.content()) {
///         Some(Content::Photo) => "a photo",
///         Some(Content::Sticker) => "a sticker",
///         _ => "something else",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Content {
    Text,
    Photo,
    LivePhoto,
    Video,
    Animation,
    Audio,
    Voice,
    VideoNote,
    Document,
    Sticker,
    PaidMedia,
    Story,
    Location,
    Venue,
    Contact,
    Dice,
    Poll,
    Checklist,
    Game,
    Invoice,
    SuccessfulPayment,
    RefundedPayment,
    RichMessage,
    NewChatMembers,
    LeftChatMember,
    PinnedMessage,
    WebAppData,
}

impl Content {
    /// Each with the field that tells it. What holds another comes first: an animation has a `document`, too.
    const FIELDS: [(Self, &str); 27] = [
        (Self::Text, "text"),
        (Self::LivePhoto, "live_photo"),
        (Self::Photo, "photo"),
        (Self::Animation, "animation"),
        (Self::Video, "video"),
        (Self::Audio, "audio"),
        (Self::Voice, "voice"),
        (Self::VideoNote, "video_note"),
        (Self::Document, "document"),
        (Self::Sticker, "sticker"),
        (Self::PaidMedia, "paid_media"),
        (Self::Story, "story"),
        (Self::Venue, "venue"),
        (Self::Location, "location"),
        (Self::Contact, "contact"),
        (Self::Dice, "dice"),
        (Self::Poll, "poll"),
        (Self::Checklist, "checklist"),
        (Self::Game, "game"),
        (Self::Invoice, "invoice"),
        (Self::SuccessfulPayment, "successful_payment"),
        (Self::RefundedPayment, "refunded_payment"),
        (Self::RichMessage, "rich_message"),
        (Self::NewChatMembers, "new_chat_members"),
        (Self::LeftChatMember, "left_chat_member"),
        (Self::PinnedMessage, "pinned_message"),
        (Self::WebAppData, "web_app_data"),
    ];
}

impl Message {
    /// What the message is made of; `None` for what is none of [`Content`]'s: most service messages.
    #[must_use]
    pub fn content(&self) -> Option<Content> {
        Content::FIELDS.iter().find(|(_, field)| self.has(field)).map(|&(content, _)| content)
    }

    /// The text, or the caption.
    #[must_use]
    pub fn text_or_caption(&self) -> Option<String> {
        self.text().or_else(|| self.caption())
    }

    /// The `file_id` of what the message carries: of a photo the largest size.
    #[must_use]
    pub fn file_id(&self) -> Option<String> {
        const FIELDS: [&str; 8] =
            ["animation", "video", "audio", "voice", "video_note", "document", "sticker", "live_photo"];
        let photo = self.photo().pop().map(|size| size.file_id());
        photo.or_else(|| FIELDS.iter().find_map(|field| self.json().get(field)?.get("file_id")?.as_text()))
    }
}
