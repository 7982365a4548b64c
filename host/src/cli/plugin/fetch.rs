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
                Url::parse(text).map(Self::Url).map_err(|error| WrongArgument(format!("{}: {error}", bare(text))))
            }
            Some((scheme, _)) => Err(WrongArgument(format!(
                "{}: plugins are fetched over https, not {scheme}: whoever sits in between could change them",
                bare(text)
            ))),
        }
    }

    /// As it may be kept and shown: an address without user, password and query, which may hold what opens the door.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Url(url) => bare(url.as_str()),
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
                download(&client, url, LARGEST).await.with_context(|| format!("could not fetch {}", self.shown()))
            }
        }
    }
}

/// What stands before and behind the host and path of an address, as far as it is one, is left out.
fn bare(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

async fn download(client: &Client, url: &Url, most: u64) -> anyhow::Result<Vec<u8>> {
    // Its errors name the address, and where that led to.
    let answer = client.get(url.clone()).send().await.map_err(reqwest::Error::without_url)?;
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
        wasm.extend_from_slice(&piece.map_err(reqwest::Error::without_url)?);
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

    #[test]
    fn an_address_is_shown_without_what_opens_the_door() {
        for (text, shown) in [
            ("https://a.example/x/shop.wasm", "https://a.example/x/shop.wasm"),
            ("https://ci:glpat-s3cret@a.example/x/shop.wasm", "https://a.example/x/shop.wasm"),
            ("https://glpat-s3cret@a.example/x/shop.wasm#s3cret", "https://a.example/x/shop.wasm"),
            ("https://a.example/shop.wasm?X-Amz-Signature=s3cret&b=@", "https://a.example/shop.wasm"),
            ("a/b@c.wasm", "a/b@c.wasm"),
        ] {
            assert_eq!(Source::parse(text).unwrap().shown(), shown);
        }
        for text in ["http://u:s3cret@a.example/?s3cret", "https://u:s3cret@[", "https://:s3cret@", "ftp://a?t=s3cret"]
        {
            let error = Source::parse(text).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_failed_download_does_not_tell_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let source = Source::parse(&format!("https://u:s3cret@{address}/a.wasm?sig=s3cret")).unwrap();
        let error = format!("{:#}", source.read().await.unwrap_err());
        assert!(error.contains(&format!("could not fetch https://{address}/a.wasm")), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
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
