//! Files to send, and files that came.
//!
//! What a file holds goes to the host, which keeps it on disk until it is sent. So a file may be larger than the plugin's
//! memory: write it with a [`FileWriter`], read it from a [`Download`].

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::Deserialize;

use crate::bindings::botyard::files::files::Info;
use crate::{CallError, Error, host};

/// The host takes far more at a time, but it has to fit into the plugin's memory once more.
const PIECE: usize = 256 << 10;

/// A file to send: made by the plugin, known to Telegram, or at an address from which Telegram fetches it.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// fn receipt(ctx: &Run, text: String) {
///     ctx.reply_media(document(File::bytes("receipt.txt", text)).caption("Thank you!"));
///     ctx.reply_media(photo(File::url("https://example.org/cat.jpg")));
///     ctx.reply_media(sticker(File::id("CAACAgIAAxkBAAE")));
/// }
/// ```
///
/// The host uploads the same content once: sent again, also to other chats and on other days, it goes by the `file_id`
/// that Telegram gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File(Source);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// Whatever the Bot API takes in a file's place.
    Known(String),
    Bytes {
        name: String,
        content_type: String,
        bytes: Vec<u8>,
    },
}

impl File {
    /// A file with this content. The name's ending tells Telegram what it is.
    #[must_use]
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self(Source::Bytes { name: name.into(), content_type: String::new(), bytes: bytes.into() })
    }

    /// A file that Telegram has, by the `file_id` that this bot got. Nothing is uploaded.
    #[must_use]
    pub fn id(file_id: impl Into<String>) -> Self {
        Self(Source::Known(file_id.into()))
    }

    /// A file that Telegram fetches from an address: photos of up to 5 MB, others of up to 20 MB.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self(Source::Known(url.into()))
    }

    /// Sets the MIME type of a file that was made of bytes; without it Telegram goes by the name.
    #[must_use]
    pub fn content_type(mut self, mime: impl Into<String>) -> Self {
        if let Source::Bytes { content_type, .. } = &mut self.0 {
            *content_type = mime.into();
        }
        self
    }

    /// What stands for the file in a call's parameters; for calls that the SDK has no builder for. Hands the content
    /// over to the host, for calls of this run.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn new_photo(ctx: &Run, png: Vec<u8>) -> Result<(), Error> {
    ///     let photo = File::bytes("group.png", png).reference()?;
    ///     ctx.enqueue("setChatPhoto", json!({ "chat_id": ctx.chat_id(), "photo": photo }))?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the file is empty or too large, or the host can't keep it.
    pub fn reference(self) -> Result<String, Error> {
        match self.0 {
            Source::Known(text) => Ok(text),
            Source::Bytes { name, content_type, bytes } => {
                let mut writer = FileWriter::begin(&name, &content_type)?;
                writer.write_all(&bytes)?;
                writer.finish()?.reference()
            }
        }
    }
}

/// A file under construction; see [`Run::write_file`](crate::Run::write_file).
///
/// ```
/// use std::io::Write as _;
///
/// use botyard_sdk::prelude::*;
///
/// fn export(ctx: &Run) -> Result<(), Error> {
///     let mut file = ctx.write_file("numbers.csv", "text/csv")?;
///     for number in 0..1_000_000 {
///         writeln!(file, "{number},{}", number * number)?;
///     }
///     ctx.reply_media(document(file.finish()?));
///     Ok(())
/// }
/// ```
pub struct FileWriter {
    file: u32,
    buffer: Vec<u8>,
}

impl FileWriter {
    pub(crate) fn begin(name: &str, content_type: &str) -> Result<Self, Error> {
        let file = host::file_create(name, content_type).map_err(Error::new)?;
        Ok(Self { file, buffer: Vec::new() })
    }

    /// Ends the file; it can be sent by this run.
    ///
    /// # Errors
    /// When it is empty or too large, or the host can't keep it.
    pub fn finish(mut self) -> Result<File, Error> {
        self.flush()?;
        Ok(File::id(host::file_finish(self.file).map_err(Error::new)?))
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = bytes.get(..PIECE).unwrap_or(bytes);
        if self.buffer.is_empty() && some.len() == PIECE {
            host::file_append(self.file, some).map_err(io::Error::other)?;
            return Ok(some.len());
        }
        self.buffer.extend_from_slice(some);
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            host::file_append(self.file, &self.buffer).map_err(io::Error::other)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A file that was fetched from Telegram; see [`Run::download`](crate::Run::download). It is read from the host piece by
/// piece.
#[derive(Debug)]
pub struct Download {
    info: Info,
    at: u64,
}

impl Download {
    pub(crate) fn fetch(file_id: &str) -> Result<Self, CallError> {
        Ok(Self { info: host::file_open(file_id)?, at: 0 })
    }

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.info.size
    }

    /// The same for the same file, over time and for other bots.
    #[must_use]
    pub fn unique_id(&self) -> &str {
        &self.info.unique_id
    }

    /// What it is called at Telegram's server: not its name, but the ending tells what it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// All of it, in memory.
    ///
    /// # Errors
    /// When the host can't read it.
    pub fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.info.size).unwrap_or_default());
        self.at = 0;
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The same content to be sent, under another name or as something else. It does not pass through the plugin.
    /// (To send a file as it came, its `file_id` is enough: [`File::id`].)
    ///
    /// # Errors
    /// When it is too large, or the host can't keep it.
    pub fn to_file(&self, name: &str, content_type: &str) -> Result<File, Error> {
        Ok(File::id(host::file_attach(self.info.file, name, content_type).map_err(Error::new)?))
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.at >= self.info.size {
            return Ok(0);
        }
        let length = u32::try_from(buffer.len().min(PIECE)).unwrap_or(u32::MAX);
        let bytes = host::file_read(self.info.file, self.at, length).map_err(io::Error::other)?;
        let some = buffer
            .get_mut(..bytes.len())
            .ok_or_else(|| io::Error::other("the host gives more than it was asked for"))?;
        some.copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

impl Seek for Download {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.info.size.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// A file in a message that came; see [`Run::file`](crate::Run::file).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// `photo`, `document`, `video`, `animation`, `audio`, `voice`, `video_note` or `sticker`.
    pub kind: &'static str,
    /// For sending it on, and for [`Run::download`](crate::Run::download).
    pub file_id: String,
    /// The same for the same file, over time and for other bots.
    pub unique_id: String,
    /// Its bytes, where Telegram tells them.
    pub size: Option<u64>,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its MIME type, where Telegram tells it. Whoever sent the file may have chosen it.
    pub content_type: Option<String>,
}

#[derive(Deserialize)]
struct Raw {
    file_id: String,
    #[serde(default)]
    file_unique_id: String,
    file_size: Option<u64>,
    file_name: Option<String>,
    mime_type: Option<String>,
}

/// The parts of a message that may be a file. An animation is a document as well, so it is looked for first.
#[derive(Deserialize)]
pub(crate) struct Attached {
    #[serde(default)]
    photo: Vec<Raw>,
    animation: Option<Raw>,
    document: Option<Raw>,
    video: Option<Raw>,
    audio: Option<Raw>,
    voice: Option<Raw>,
    video_note: Option<Raw>,
    sticker: Option<Raw>,
}

impl Attached {
    pub(crate) fn received(mut self) -> Option<Received> {
        let found = [
            // The last size is the largest.
            ("photo", self.photo.pop()),
            ("animation", self.animation),
            ("document", self.document),
            ("video", self.video),
            ("audio", self.audio),
            ("voice", self.voice),
            ("video_note", self.video_note),
            ("sticker", self.sticker),
        ];
        let (kind, raw) = found.into_iter().find_map(|(kind, raw)| Some((kind, raw?)))?;
        Some(Received {
            kind,
            file_id: raw.file_id,
            unique_id: raw.file_unique_id,
            size: raw.file_size,
            name: raw.file_name,
            content_type: raw.mime_type,
        })
    }
}
