//! `[intake.webhook]`: where Telegram sends updates to, and where they are taken.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use super::reader::Reader;
use super::tree::Node;
use super::units;

/// The ports that Telegram's own servers call.
const PORTS: [u16; 4] = [443, 80, 88, 8443];
/// A Bot API server of one's own opens as many.
const MOST_CONNECTIONS: i64 = 100_000;

/// `[intake.webhook]`
#[derive(Debug, Clone)]
pub struct Webhook {
    /// `url`: the public address that Telegram calls.
    pub url: String,
    /// `listen`: where the calls arrive; `"127.0.0.1:8443"`.
    pub listen: SocketAddr,
    /// `secret`: what Telegram proves itself with. Without it, one is made and kept in the store.
    pub secret: Option<SecretString>,
    /// `max_connections`: how many updates Telegram may send at once; 40.
    pub max_connections: u32,
    /// `ip_address`: where to call instead of asking the DNS.
    pub ip_address: Option<IpAddr>,
    /// `certificate` and `key`: for TLS without a proxy.
    pub tls: Option<Tls>,
}

/// TLS of the host's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// `certificate`: a PEM file with the chain, one's own first.
    pub certificate: PathBuf,
    /// `key`: a PEM file.
    pub key: PathBuf,
    /// `self_signed`: Telegram is given the certificate, since nobody it trusts has signed it.
    pub self_signed: bool,
}

impl PartialEq for Webhook {
    fn eq(&self, other: &Self) -> bool {
        let secret = |webhook: &Self| webhook.secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        let Self { url, listen, secret: _, max_connections, ip_address, tls } = self;
        *url == other.url
            && *listen == other.listen
            && secret(self) == secret(other)
            && *max_connections == other.max_connections
            && *ip_address == other.ip_address
            && *tls == other.tls
    }
}

impl Eq for Webhook {}

impl Webhook {
    /// `needed`: whether updates come this way. `telegram`: whether Telegram itself calls, which is particular.
    pub(super) fn read(mut section: Reader<'_>, needed: bool, telegram: bool) -> Option<Self> {
        let has_url = section.has("url");
        if needed && !has_url {
            section
                .missing("url", "add the public address that Telegram is to call, `url = \"https://bot.example/…\"`");
        }
        let url = section.value("url", |node| public_url(&units::text(node)?, telegram));
        let listen = section.value("listen", units::address);
        let secret = match section.secret("secret", needed) {
            Some(secret) if !is_secret(secret.expose_secret()) => {
                let origin = section.origin().clone();
                section.wrong("secret", &origin, "Telegram takes 1 to 256 of A-Z, a-z, 0-9, `_` and `-`");
                None
            }
            secret => secret,
        };
        let max_connections = section.value("max_connections", |node| units::integer(node, 1..=most(telegram)));
        let ip_address = section.value("ip_address", ip_address);
        let (certificate, key) = (section.path("certificate"), section.path("key"));
        let self_signed = section.value("self_signed", units::boolean).unwrap_or(false);
        let tls = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Tls { certificate, key, self_signed }),
            (None, None) if !self_signed => None,
            _ => {
                let origin = section.origin().clone();
                section.problem(
                    &origin,
                    "[intake.webhook] needs both `certificate` and `key` for TLS of its own, or none of them and no \
                     `self_signed` behind a proxy",
                );
                None
            }
        };
        section.finish();
        Some(Self {
            url: url?,
            listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8443))),
            secret,
            max_connections: max_connections.and_then(|n| u32::try_from(n).ok()).unwrap_or(40),
            ip_address,
            tls,
        })
    }
}

fn most(telegram: bool) -> i64 {
    if telegram { 100 } else { MOST_CONNECTIONS }
}

fn is_secret(secret: &str) -> bool {
    (1..=256).contains(&secret.len())
        && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The text itself is never repeated: many people have their token in it.
fn public_url(text: &str, telegram: bool) -> Result<String, String> {
    let expected = "expected an address such as \"https://bot.example/telegram\"";
    let url = Url::parse(text.trim()).map_err(|error| format!("{expected}: {error}"))?;
    let is_plain = url.scheme() == "http" && !telegram;
    if url.scheme() != "https" && !is_plain {
        return Err(format!("{expected}: Telegram calls `https` only"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() || url.host().is_none() {
        return Err(format!("{expected}, without user and `#`"));
    }
    match url.port_or_known_default() {
        Some(port) if telegram && !PORTS.contains(&port) => {
            Err(format!("Telegram calls the ports 443, 80, 88 and 8443 only, not {port}"))
        }
        _ => Ok(url.into()),
    }
}

fn ip_address(node: &Node) -> Result<IpAddr, String> {
    match units::text(node)?.parse() {
        Ok(address) => Ok(address),
        Err(_) => units::expected("an IP address, such as \"203.0.113.7\"", node),
    }
}
