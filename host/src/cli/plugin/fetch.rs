//! Gets a plugin's file, from here or over https. Nothing is written.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::StreamExt as _;
use reqwest::{Client, Url, redirect};

use crate::cli::check::size;
use crate::cli::exit::WrongArgument;
use crate::plugin::{self, LARGEST};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a byte for so long, nobody sends any more.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const REDIRECTS: usize = 5;

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    Url(Url),
}

impl Source {
    pub(super) fn parse(text: &str) -> Result<Self, WrongArgument> {
        match text.split_once("://") {
            None => Ok(Self::File(text.into())),
            Some(("https", _)) => {
                Url::parse(text).map(Self::Url).map_err(|error| WrongArgument(format!("{text}: {error}")))
            }
            Some((scheme, _)) => Err(WrongArgument(format!(
                "{text}: plugins are fetched over https, not {scheme}: whoever sits in between could change them"
            ))),
        }
    }

    /// What the file calls itself, without its ending.
    pub(super) fn stem(&self) -> String {
        let name = match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Url(url) => {
                url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default().to_owned()
            }
        };
        name.strip_suffix(".wasm").unwrap_or(&name).to_owned()
    }

    pub(super) async fn read(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::File(path) => plugin::read_file(path).with_context(|| format!("could not read {}", path.display())),
            Self::Url(url) => {
                // Fails only where one has been chosen already, which is as good.
                drop(rustls::crypto::ring::default_provider().install_default());
                let client = Client::builder()
                    .https_only(true)
                    .redirect(redirect::Policy::limited(REDIRECTS))
                    .connect_timeout(CONNECT_TIMEOUT)
                    .read_timeout(READ_TIMEOUT)
                    .user_agent(concat!("botyard/", env!("CARGO_PKG_VERSION")))
                    .build()?;
                download(&client, url, LARGEST).await.with_context(|| format!("could not fetch {url}"))
            }
        }
    }
}

async fn download(client: &Client, url: &Url, most: u64) -> anyhow::Result<Vec<u8>> {
    let answer = client.get(url.clone()).send().await?;
    ensure!(answer.status().is_success(), "the server answers with {}", answer.status());
    let length = answer.content_length();
    let too_long = || format!("it is larger than {}", size(most));
    if length.is_some_and(|length| length > most) {
        bail!(too_long());
    }
    let mut wasm = Vec::new();
    let mut progress = Progress::new(length);
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        wasm.extend_from_slice(&piece?);
        ensure!(wasm.len() as u64 <= most, too_long());
        progress.at(wasm.len() as u64);
    }
    progress.end();
    Ok(wasm)
}

/// One line that is written over, on a terminal only.
struct Progress {
    total: Option<u64>,
    shown: u64,
    is_terminal: bool,
}

impl Progress {
    fn new(total: Option<u64>) -> Self {
        Self { total, shown: 0, is_terminal: std::io::stderr().is_terminal() }
    }

    fn at(&mut self, bytes: u64) {
        if !self.is_terminal || bytes < self.shown + (256 << 10) {
            return;
        }
        self.shown = bytes;
        let of = self.total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
        eprint!("\r  fetched {}{of}    ", size(bytes));
    }

    fn end(&self) {
        if self.shown > 0 {
            eprintln!();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn only_files_and_https_are_sources() {
        assert_eq!(Source::parse("a/b.wasm").unwrap(), Source::File("a/b.wasm".into()));
        assert_eq!(Source::parse("https://a.example/x/shop.wasm?v=1").unwrap().stem(), "shop");
        for text in ["http://a.example/b.wasm", "ftp://a", "https://"] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
    }

    /// What becomes of a download from a server that answers so.
    async fn fetched(answer: &'static str) -> Result<Vec<u8>, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a.wasm", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder().no_proxy().tls_certs_only(std::iter::empty()).build().unwrap();
        let answer = download(&client, &Url::parse(&url).unwrap(), 10).await;
        serving.await.unwrap();
        answer.map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn a_download_is_whole_and_not_too_large_or_none() {
        assert_eq!(fetched("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwasm").await.unwrap(), b"wasm");
        for (answer, part) in [
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", "larger than"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n", "larger than"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwasm", ""),
        ] {
            let error = fetched(answer).await.unwrap_err();
            assert!(error.contains(part), "{answer}: {error}");
        }
    }
}
