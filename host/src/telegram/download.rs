//! Fetching a file: streamed to disk, bounded, watched for progress, without a trace of the URL.

use std::fs::File;
use std::io::{Seek as _, Write as _};

use futures_util::StreamExt as _;

use super::patience::{self, Ended};
use super::{Progress, Transport, TransportError};

/// For files whose length nobody tells.
const UNKNOWN_LENGTH: u64 = 20 << 20;

/// Why a file was not fetched. No text holds the URL or the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// Another attempt may go better.
    #[error("the file could not be fetched: {0}")]
    Transient(String),
    /// There is no such file, or not any more.
    #[error("the server does not give the file (status {0}); ask for it anew")]
    Gone(u16),
    /// It is larger than allowed.
    #[error("the file has more than {0} bytes")]
    TooLarge(u64),
    /// It could not be written.
    #[error("the file could not be written: {0}")]
    Disk(String),
}

pub(super) async fn fetch(
    transport: &dyn Transport,
    path: &str,
    mut into: &File,
    limit: u64,
) -> Result<u64, DownloadError> {
    if !is_path(path) {
        return Err(DownloadError::Gone(404));
    }
    let disk = |error: std::io::Error| DownloadError::Disk(error.to_string());
    into.set_len(0).and_then(|()| into.rewind()).map_err(disk)?;
    let progress = Progress::of(u64::MAX);
    let begun = patience::watch(transport.download(path), &progress).await.map_err(ended)?;
    let mut download = begun.map_err(|error| match error {
        TransportError::BeforeSend(reason) | TransportError::Unknown(reason) | TransportError::Silence(reason) => {
            DownloadError::Transient(reason)
        }
    })?;
    match download.status {
        200 => {}
        404 | 410 | 400 | 403 => return Err(DownloadError::Gone(download.status)),
        status => return Err(DownloadError::Transient(format!("status {status}"))),
    }
    if download.length.is_some_and(|length| length > limit) {
        return Err(DownloadError::TooLarge(limit));
    }
    let progress = Progress::of(download.length.unwrap_or(UNKNOWN_LENGTH).saturating_add(1));
    let mut fetched = 0;
    let copying = async {
        while let Some(piece) = download.body.next().await {
            let piece = piece.map_err(DownloadError::Transient)?;
            fetched += piece.len() as u64;
            if fetched > limit {
                return Err(DownloadError::TooLarge(limit));
            }
            // A piece at a time, into the system's memory: no disk is waited for.
            into.write_all(&piece).map_err(disk)?;
            progress.advance(piece.len() as u64);
        }
        Ok(())
    };
    patience::watch(copying, &progress).await.map_err(ended)??;
    match download.length {
        Some(length) if length != fetched => {
            Err(DownloadError::Transient(format!("it broke off after {fetched} of {length} bytes")))
        }
        _ => Ok(fetched),
    }
}

/// Nothing that leads elsewhere.
fn is_path(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+=~ ()".contains(&byte);
    path.split('/').all(plain) && path.bytes().all(allowed)
}

fn ended(ended: Ended) -> DownloadError {
    DownloadError::Transient(match ended {
        Ended::Stalled(time) => format!("nothing came for {time:?}"),
        Ended::TooSlow(time) | Ended::NoAnswer(time) => format!("it was not whole after {time:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_nowhere_else() {
        for path in ["photos/file_1.jpg", "documents/file_22", "a b/c(1).tar.gz"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../getMe", "a/../b", "a//b", "a?b", "a#b", "a\\b", "a%2e%2e/b", "ä", "a@b"] {
            assert!(!is_path(path), "{path}");
        }
    }
}
