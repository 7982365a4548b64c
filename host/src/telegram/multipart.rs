//! A call with files, as it goes over the wire: `multipart/form-data` of a length that is known before it begins.
//!
//! It holds texts and paths, never the files' contents, so that every attempt can make the whole body anew. Its
//! boundary depends on what it holds and nothing else: two attempts send the same bytes.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::patience::Progress;

/// What is read from the disk at a time.
const PIECE: usize = 256 << 10;

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The name of the part, as `attach://…` has it.
    pub field: String,
    /// The name of the file.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// Where its content lies, which must not change.
    pub path: PathBuf,
    /// Bytes of it.
    pub size: u64,
    /// Tells one content from another.
    pub hash: [u8; 32],
}

/// A body. Clones share it.
#[derive(Debug, Clone)]
pub struct Multipart {
    boundary: String,
    segments: Arc<[Segment]>,
    length: u64,
}

#[derive(Debug, Clone)]
enum Segment {
    Text(Bytes),
    File { path: PathBuf, size: u64 },
}

impl Multipart {
    /// A body of these parameters and files.
    #[must_use]
    pub fn new(texts: &[(String, String)], files: &[FilePart]) -> Self {
        let mut hash = Sha256::new();
        for (name, text) in texts {
            hash.update(name);
            hash.update([0]);
            hash.update(text);
            hash.update([0]);
        }
        files.iter().for_each(|file| hash.update(file.hash));
        // 128 bits of a hash over all of it: no part contains them.
        let boundary = hash.finalize().iter().take(16).fold("botyard".to_owned(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes all text");
            text
        });
        let mut segments = Vec::new();
        let mut head = String::new();
        for (name, text) in texts {
            let name = quoted(name);
            write!(head, "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
                .expect("a String takes all text");
        }
        for file in files {
            let (field, name, kind) = (quoted(&file.field), quoted(&file.name), plain(&file.content_type));
            write!(
                head,
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
                 Content-Type: {kind}\r\n\r\n"
            )
            .expect("a String takes all text");
            segments.push(Segment::Text(std::mem::take(&mut head).into()));
            segments.push(Segment::File { path: file.path.clone(), size: file.size });
            head.push_str("\r\n");
        }
        write!(head, "--{boundary}--\r\n").expect("a String takes all text");
        segments.push(Segment::Text(head.into()));
        let length = segments
            .iter()
            .map(|segment| match segment {
                Segment::Text(text) => text.len() as u64,
                Segment::File { size, .. } => *size,
            })
            .sum();
        Self { boundary, segments: segments.into(), length }
    }

    /// The header that goes with it.
    #[must_use]
    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// Bytes of the whole body.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The first file that is not there as it was, and why.
    pub(super) async fn missing(&self) -> Option<String> {
        for segment in self.segments.iter() {
            let Segment::File { path, size } = segment else { continue };
            match tokio::fs::metadata(path).await {
                Ok(there) if there.len() == *size => {}
                Ok(there) => return Some(format!("{} has {} bytes instead of {size}", path.display(), there.len())),
                Err(error) => return Some(format!("{}: {error}", path.display())),
            }
        }
        None
    }

    /// The whole body from its beginning; `progress` is told of every piece that is taken.
    pub fn stream(&self, progress: Progress) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let reading = Reading { body: self.clone(), at: 0, file: None, progress };
        stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(piece)) => Some((Ok(piece), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

/// How far a body has been read.
struct Reading {
    body: Multipart,
    /// The next segment.
    at: usize,
    /// The file that is being read, and what is left of it.
    file: Option<(File, u64)>,
    progress: Progress,
}

impl Reading {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let piece = loop {
            if let Some((file, left)) = &mut self.file {
                if *left == 0 {
                    self.file = None;
                    continue;
                }
                let mut piece = BytesMut::with_capacity(PIECE.min(usize::try_from(*left).unwrap_or(PIECE)));
                if file.take(*left).read_buf(&mut piece).await? == 0 {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
                }
                *left -= piece.len() as u64;
                break piece.freeze();
            }
            match self.body.segments.get(self.at) {
                None => return Ok(None),
                Some(Segment::Text(text)) => {
                    self.at += 1;
                    break text.clone();
                }
                Some(Segment::File { path, size }) => {
                    self.at += 1;
                    self.file = Some((File::open(path).await?, *size));
                }
            }
        };
        self.progress.advance(piece.len() as u64);
        Ok(Some(piece))
    }
}

/// As browsers do: what would end the name is written in another way.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace(['\r', '\n'], " ")
}

fn plain(content_type: &str) -> &str {
    let is_plain = !content_type.is_empty() && content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain { content_type } else { "application/octet-stream" }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    async fn all(body: &Multipart) -> Vec<u8> {
        let progress = Progress::of(body.length());
        let pieces: Vec<_> = body.stream(progress.clone()).map(Result::unwrap).collect().await;
        assert!(progress.is_whole());
        pieces.concat()
    }

    #[tokio::test]
    async fn a_body_is_as_long_as_it_says_and_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("content");
        let content: Vec<u8> = (0..600_000_u32).map(|at| at as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = FilePart {
            field: "f1".into(),
            name: "a \"b\"\r\n.png".into(),
            content_type: "image/png\r\nX: y".into(),
            path,
            size: content.len() as u64,
            hash: [7; 32],
        };
        let body = Multipart::new(&[("chat_id".into(), "7".into()), ("caption".into(), "ä\r\n".into())], &[file]);
        let sent = all(&body).await;
        assert_eq!(sent.len() as u64, body.length());
        assert_eq!(sent, all(&body).await);
        let text = String::from_utf8_lossy(&sent);
        let (_, boundary) =
            body.content_type().split_once("boundary=").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(text.starts_with(&format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n--{boundary}\r\n\
             Content-Disposition: form-data; name=\"caption\"\r\n\r\nä\r\n\r\n--{boundary}\r\n\
             Content-Disposition: form-data; name=\"f1\"; filename=\"a %22b%22  .png\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )));
        assert!(text.ends_with(&format!("\r\n--{boundary}--\r\n")));
        assert!(sent.windows(content.len()).any(|window| window == content));
        assert_eq!(body.missing().await, None);
    }

    #[tokio::test]
    async fn a_file_that_has_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("content");
        let part = |size| FilePart {
            field: "f".into(),
            name: "f".into(),
            content_type: String::new(),
            path: path.clone(),
            size,
            hash: [0; 32],
        };
        assert!(Multipart::new(&[], &[part(3)]).missing().await.is_some());
        std::fs::write(&path, "123").unwrap();
        assert!(Multipart::new(&[], &[part(4)]).missing().await.is_some());
        assert!(Multipart::new(&[], &[part(3)]).missing().await.is_none());
    }
}
