//! Origins: which server a URL leads to, and patterns for those that a plugin may reach.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// The server that a URL leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Whether it is reached over TLS.
    pub tls: bool,
    /// Its name or address.
    pub server: Server,
    /// Its port.
    pub port: u16,
}

/// A server's name or address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// Lower case, without a dot at the end.
    Name(String),
    /// Written as one.
    Address(IpAddr),
}

/// Origins that a manifest declares or an operator grants: `https://api.pay.example`, `http://localhost:8080`,
/// `https://*.pay.example`, and `https://*` for any; `:*` for any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPattern {
    tls: bool,
    server: ServerPattern,
    /// `None` for any.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ServerPattern {
    Exactly(Server),
    /// Every name that ends like this, behind a dot.
    Below(String),
    Any,
}

/// A text that is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0:.100}` is no origin; expected scheme, host and perhaps a port only, such as `https://api.pay.example`")]
pub struct NoOrigin(String);

impl Origin {
    /// The origin of a URL; `None` for schemes other than `http` and `https`.
    #[must_use]
    pub fn of(url: &Url) -> Option<Self> {
        let tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        Some(Self { tls, server: Server::of(url.host_str()?), port: url.port_or_known_default()? })
    }
}

impl Server {
    fn of(host: &str) -> Self {
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => Self::Address(address),
            Err(_) => Self::Name(host.trim_end_matches('.').to_ascii_lowercase()),
        }
    }

    /// True for names that nobody can have on the internet: they mean this machine, or one of its own network.
    #[must_use]
    pub fn is_local_name(&self) -> bool {
        const LOCAL: [&str; 5] = [".localhost", ".local", ".internal", ".home.arpa", ".lan"];
        match self {
            Self::Name(name) => !name.contains('.') || LOCAL.iter().any(|ending| name.ends_with(ending)),
            Self::Address(_) => false,
        }
    }
}

impl OriginPattern {
    /// Whether it stands for this origin, among others.
    #[must_use]
    pub fn matches(&self, origin: &Origin) -> bool {
        let is_it = match (&self.server, &origin.server) {
            (ServerPattern::Any, _) => true,
            (ServerPattern::Exactly(server), other) => server == other,
            (ServerPattern::Below(ending), Server::Name(name)) => {
                name.strip_suffix(ending.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (ServerPattern::Below(_), Server::Address(_)) => false,
        };
        is_it && self.tls == origin.tls && self.port.is_none_or(|port| port == origin.port)
    }

    /// Whether it stands for this origin and no other.
    #[must_use]
    pub fn names(&self, origin: &Origin) -> bool {
        matches!(self.server, ServerPattern::Exactly(_)) && self.matches(origin)
    }

    /// Whether whatever `other` stands for, this does too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_it = match (&self.server, &other.server) {
            (ServerPattern::Any, _) => true,
            (ServerPattern::Below(wide), ServerPattern::Below(narrow)) => {
                narrow == wide || narrow.strip_suffix(wide.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (ServerPattern::Below(ending), ServerPattern::Exactly(Server::Name(name))) => {
                name.strip_suffix(ending.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (mine, theirs) => mine == theirs,
        };
        is_it && self.tls == other.tls && (self.port.is_none() || self.port == other.port)
    }
}

impl FromStr for OriginPattern {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        Self::read(text).ok_or_else(|| NoOrigin(text.to_owned()))
    }
}

impl OriginPattern {
    fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (rest, any_port) = rest.strip_suffix(":*").map_or((rest, false), |rest| (rest, true));
        let (rest, wild) = match rest.strip_prefix('*') {
            Some(rest) if rest.is_empty() || rest.starts_with(':') => (format!("any{rest}"), "*"),
            Some(rest) => (rest.strip_prefix('.')?.to_owned(), "*."),
            None => (rest.to_owned(), ""),
        };
        // Whatever the URL parser would forgive must not be in a configuration.
        if rest.is_empty() || rest.contains(|c: char| c.is_whitespace() || "*/\\?#@".contains(c)) {
            return None;
        }
        let url = Url::parse(&format!("{scheme}://{rest}")).ok()?;
        let Origin { tls, server, port } = Origin::of(&url)?;
        let server = match (wild, server) {
            ("", server) => ServerPattern::Exactly(server),
            ("*", _) => ServerPattern::Any,
            // `*.com` would be everybody.
            (_, Server::Name(name)) if name.contains('.') => ServerPattern::Below(name),
            _ => return None,
        };
        Some(Self { tls, server, port: (!any_port).then_some(port) })
    }
}

fn write(f: &mut fmt::Formatter<'_>, tls: bool, server: &dyn fmt::Display, port: Option<u16>) -> fmt::Result {
    let (scheme, default) = if tls { ("https", 443) } else { ("http", 80) };
    write!(f, "{scheme}://{server}")?;
    match port {
        None => f.write_str(":*"),
        Some(port) if port == default => Ok(()),
        Some(port) => write!(f, ":{port}"),
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.tls, &self.server, Some(self.port))
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            ServerPattern::Exactly(server) => write(f, self.tls, server, self.port),
            ServerPattern::Below(ending) => write(f, self.tls, &format_args!("*.{ending}"), self.port),
            ServerPattern::Any => write(f, self.tls, &"*", self.port),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        let origin = Origin::of(&Url::parse(url).unwrap()).unwrap();
        pattern.parse::<OriginPattern>().unwrap().matches(&origin)
    }

    #[test]
    fn a_pattern_stands_for_its_origins_and_no_others() {
        for (pattern, url, expect) in [
            ("https://api.pay.example", "https://api.pay.example/v1?x=1", true),
            ("https://api.pay.example", "https://API.pay.example.:443/", true),
            ("https://api.pay.example", "http://api.pay.example/", false),
            ("https://api.pay.example", "https://api.pay.example:8443/", false),
            ("https://api.pay.example", "https://api.pay.example.evil.example/", false),
            ("https://api.pay.example", "https://evil.example/https://api.pay.example", false),
            ("https://api.pay.example", "https://api.pay.example@evil.example/", false),
            ("https://pay.example:8443", "https://pay.example:8443/", true),
            ("https://*.pay.example", "https://api.pay.example/", true),
            ("https://*.pay.example", "https://a.b.pay.example/", true),
            ("https://*.pay.example", "https://pay.example/", false),
            ("https://*.pay.example", "https://xpay.example/", false),
            ("https://*", "https://anything.example/", true),
            ("https://*", "http://anything.example/", false),
            ("https://a.example:*", "https://a.example:8443/", true),
            ("https://a.example:*", "https://b.example/", false),
            ("https://*:8443", "https://anything.example:8443/", true),
            ("http://localhost:8080", "http://localhost:8080/", true),
            ("http://127.0.0.1:8080", "http://127.1:8080/", true),
            ("http://127.0.0.1:8080", "http://0x7f000001:8080/", true),
            ("http://[::1]:8080", "http://[0:0::1]:8080/", true),
            ("https://*.pay.example", "https://10.0.0.1/", false),
            ("https://bücher.example", "https://xn--bcher-kva.example/", true),
        ] {
            assert_eq!(matches(pattern, url), expect, "{pattern} {url}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in [
            "",
            "api.pay.example",
            "https://",
            "ftp://a.example",
            "https://a.example/",
            "https://a.example/v1",
            "https://a.example?x",
            "https://u:p@a.example",
            "https://*.com",
            "https://*.",
            "https://*a.example",
            "https://a.*.example",
            "https://a b.example",
            "https://a.example:99999",
            "https://*.10.0.0.1",
            "//a.example",
        ] {
            assert!(text.parse::<OriginPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_are_shown_as_they_are_written() {
        for text in [
            "https://a.example",
            "http://localhost:8080",
            "https://*.a.example:1",
            "https://*",
            "http://*:*",
            "http://[::1]:80",
        ] {
            let shown = text.parse::<OriginPattern>().unwrap().to_string();
            assert_eq!(shown, text.trim_end_matches(":80"), "{text}");
        }
    }

    #[test]
    fn a_wide_pattern_covers_narrow_ones() {
        for (wide, narrow, expect) in [
            ("https://*", "https://*.a.example", true),
            ("https://*.example.org", "https://*.a.example.org", true),
            ("https://*.example.org", "https://a.example.org", true),
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://*.a.example", false),
            ("https://*.a.example", "https://a.example", false),
            ("https://*", "http://a.example", false),
        ] {
            let parse = |text: &str| text.parse::<OriginPattern>().unwrap();
            assert_eq!(parse(wide).covers(&parse(narrow)), expect, "{wide} {narrow}");
        }
    }
}
