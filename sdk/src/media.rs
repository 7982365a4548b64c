//! Messages with files: photos, documents and their like, and albums of them.
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! fn show(ctx: &Run, chart: Vec<u8>, table: Vec<u8>, icon: Vec<u8>) {
//!     ctx.reply_media(photo(File::bytes("chart.png", chart)).caption("<b>May</b>").html());
//!     ctx.reply_media(document(File::bytes("table.csv", table)).thumbnail(File::bytes("icon.jpg", icon)));
//! }
//! fn trip(ctx: &Run, ids: &[String]) {
//!     let photos = ids.iter().map(|id| photo(File::id(id))).collect::<Vec<_>>();
//!     ctx.send_media("@travels", album(photos).caption("The trip")).silent();
//! }
//! ```

use serde::Serialize;

use crate::json::{self, Object, push_text};
use crate::{Error, File};

/// One file as a message, made by [`photo`], [`document`] and their like.
#[derive(Debug, Clone)]
pub struct Media {
    kind: Kind,
    file: File,
    thumbnail: Option<File>,
    /// Names and JSON, or why there is none.
    fields: Vec<(String, Result<String, Error>)>,
}

/// Two to ten files that belong together, made by [`album`].
#[derive(Debug, Clone)]
pub struct Album(Vec<Media>);

#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    method: &'static str,
}

macro_rules! kinds {
    ($($(#[$doc:meta])+ $function:ident $method:literal)+) => {
        $(
            $(#[$doc])+
            #[must_use]
            pub fn $function(file: File) -> Media {
                let kind = Kind { name: stringify!($function), method: $method };
                Media { kind, file, thumbnail: None, fields: Vec::new() }
            }
        )+
    };
}

kinds! {
    /// A photo, of up to 10 MB. Telegram makes it smaller; what must stay as it is goes as a [`document`].
    photo "sendPhoto"
    /// Any file, as it is.
    document "sendDocument"
    /// A video, MPEG-4 as a rule.
    video "sendVideo"
    /// A GIF, or a video without sound.
    animation "sendAnimation"
    /// Music, with [`Media::title`] and [`Media::performer`].
    audio "sendAudio"
    /// A voice message: OGG with Opus.
    voice "sendVoice"
    /// A round video message.
    video_note "sendVideoNote"
    /// A sticker: WEBP, TGS or WEBM.
    sticker "sendSticker"
}

/// Files shown together: photos and videos, or documents, or music.
#[must_use]
pub fn album(items: impl IntoIterator<Item = Media>) -> Album {
    Album(items.into_iter().collect())
}

impl Media {
    /// The text below it.
    #[must_use]
    pub fn caption(self, text: impl AsRef<str>) -> Self {
        self.text("caption", text.as_ref())
    }

    /// The caption is [HTML](https://core.telegram.org/bots/api#html-style).
    #[must_use]
    pub fn html(self) -> Self {
        self.text("parse_mode", "HTML")
    }

    /// The caption is [MarkdownV2](https://core.telegram.org/bots/api#markdownv2-style).
    #[must_use]
    pub fn markdown(self) -> Self {
        self.text("parse_mode", "MarkdownV2")
    }

    /// Covered until it is tapped.
    #[must_use]
    pub fn spoiler(self) -> Self {
        self.field("has_spoiler", Ok("true".to_owned()))
    }

    /// A small picture of it: JPEG, up to 200 kB and 320 pixels wide and high. It must be made of bytes.
    #[must_use]
    pub fn thumbnail(mut self, file: File) -> Self {
        self.thumbnail = Some(file);
        self
    }

    /// The title of an [`audio`].
    #[must_use]
    pub fn title(self, text: impl AsRef<str>) -> Self {
        self.text("title", text.as_ref())
    }

    /// Who performs an [`audio`].
    #[must_use]
    pub fn performer(self, text: impl AsRef<str>) -> Self {
        self.text("performer", text.as_ref())
    }

    /// Any other field that the Bot API knows for it.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn clip(ctx: &Run, mp4: Vec<u8>) {
    ///     ctx.reply_media(video(File::bytes("clip.mp4", mp4)).set("supports_streaming", true).set("width", 640));
    /// }
    /// ```
    #[must_use]
    pub fn set(self, name: &str, value: impl Serialize) -> Self {
        let json = json::to_string(&value).map_err(Into::into);
        self.field(name, json)
    }

    fn text(self, name: &str, text: &str) -> Self {
        let mut json = String::new();
        push_text(&mut json, text);
        self.field(name, Ok(json))
    }

    fn field(mut self, name: &str, json: Result<String, Error>) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), json));
        self
    }

    /// Writes it with the file under this name.
    fn write(self, into: &mut Object, name: &str) -> Result<(), Error> {
        into.text(name, &self.file.reference()?);
        if let Some(thumbnail) = self.thumbnail {
            into.text("thumbnail", &thumbnail.reference()?);
        }
        for (name, json) in self.fields {
            into.raw(&name, &json?);
        }
        Ok(())
    }

    /// As part of an album, or in another message's place.
    pub(crate) fn into_item(self) -> Result<String, Error> {
        let mut item = Object::new();
        item.text("type", self.kind.name);
        self.write(&mut item, "media")?;
        Ok(item.finish())
    }
}

impl Album {
    /// The text below it: that of its first item.
    #[must_use]
    pub fn caption(self, text: impl AsRef<str>) -> Self {
        self.on_first(|first| first.caption(text))
    }

    /// The caption is [HTML](https://core.telegram.org/bots/api#html-style).
    #[must_use]
    pub fn html(self) -> Self {
        self.on_first(Media::html)
    }

    /// The caption is [MarkdownV2](https://core.telegram.org/bots/api#markdownv2-style).
    #[must_use]
    pub fn markdown(self) -> Self {
        self.on_first(Media::markdown)
    }

    fn on_first(mut self, change: impl FnOnce(Media) -> Media) -> Self {
        if !self.0.is_empty() {
            let first = change(self.0.remove(0));
            self.0.insert(0, first);
        }
        self
    }
}

/// What [`Run::reply_media`](crate::Run::reply_media) takes: [`Media`] or an [`Album`].
pub trait Attachable {
    /// Writes the parameters; answers with the method.
    #[doc(hidden)]
    fn write_call(self, params: &mut Params<'_>) -> Result<&'static str, Error>;
}

/// The parameters of a call.
#[doc(hidden)]
pub struct Params<'a>(pub(crate) &'a mut Object);

impl Attachable for Media {
    fn write_call(self, params: &mut Params<'_>) -> Result<&'static str, Error> {
        let kind = self.kind;
        self.write(params.0, kind.name)?;
        Ok(kind.method)
    }
}

impl Attachable for Album {
    fn write_call(self, params: &mut Params<'_>) -> Result<&'static str, Error> {
        if !(2..=10).contains(&self.0.len()) {
            return Err(Error::permanent(format!("an album has 2 to 10 files, not {}", self.0.len())));
        }
        let items = self.0.into_iter().map(Media::into_item).collect::<Result<Vec<_>, _>>()?;
        params.0.raw("media", &format!("[{}]", items.join(",")));
        Ok("sendMediaGroup")
    }
}
