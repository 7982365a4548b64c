//! Sending and fetching files.

use super::message::Message;
use super::{ChatTarget, Run};
use crate::file::{Attached, Download, FileWriter, Received};
use crate::json::Object;
use crate::media::{Attachable, Media, Params};
use crate::{CallError, Error};

/// Files.
impl Run {
    /// Answers with a photo, a document, …, or an album of them; see [`crate::media`].
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn ticket(ctx: &Run, pdf: Vec<u8>) {
    ///     let keyboard = InlineKeyboard::new().row([Button::callback("Cancel it", "cancel")]);
    ///     ctx.reply_media(document(File::bytes("ticket.pdf", pdf)).caption("Your ticket")).keyboard(keyboard);
    /// }
    /// ```
    pub fn reply_media(&self, media: impl Attachable) -> Message<'_> {
        match self.reply_params() {
            Some(params) => self.media(params, media),
            None => Message::nowhere(self),
        }
    }

    /// The same to any chat: an id, or a public `@name`.
    pub fn send_media(&self, chat: impl Into<ChatTarget>, media: impl Attachable) -> Message<'_> {
        let mut params = Object::new();
        chat.into().write(&mut params);
        self.media(params, media)
    }

    /// Puts another file in place of the message below which a button was pressed. As with [`edit`](Self::edit), its
    /// keyboard goes unless the builder is given one.
    pub fn edit_media(&self, media: Media) -> Message<'_> {
        let Some(mut params) = self.edit_params() else { return Message::nowhere(self) };
        match media.into_item() {
            Ok(item) => {
                params.raw("media", &item);
                Message::new(self, "editMessageMedia", params)
            }
            Err(error) => Message::broken(self, error),
        }
    }

    /// Begins a file that is written piece by piece, and may be larger than the plugin's memory. The content type may
    /// be empty: then Telegram goes by the name. See [`FileWriter`].
    ///
    /// # Errors
    /// When the run has too many files already.
    pub fn write_file(&self, name: &str, content_type: &str) -> Result<FileWriter, Error> {
        FileWriter::begin(name, content_type)
    }

    /// The file in the message, if there is one.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn count(ctx: &Run) -> Result<(), Error> {
    ///     let Some(file) = ctx.file() else { return Ok(()) };
    ///     let bytes = ctx.download(&file.file_id)?.bytes()?;
    ///     ctx.reply(format!("{} lines", bytes.split(|byte| *byte == b'\n').count()));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn file(&self) -> Option<Received> {
        self.part::<Attached>()?.received()
    }

    /// Fetches a file that is at Telegram, and waits for it. Needs a grant for `getFile`. What is not there when the
    /// run's time is over goes on being fetched, and the next attempt at the event finds it.
    ///
    /// # Errors
    /// See [`CallError`]; `Denied` as well when the file is larger than `limits.download`.
    pub fn download(&self, file_id: &str) -> Result<Download, CallError> {
        Download::fetch(file_id)
    }

    fn media(&self, mut params: Object, media: impl Attachable) -> Message<'_> {
        match media.write_call(&mut Params(&mut params)) {
            Ok(method) => Message::new(self, method, params),
            Err(error) => Message::broken(self, error),
        }
    }
}
