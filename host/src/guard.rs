//! Keeps foreign web pages out: a page that a person has open must not be able to talk to an address of ours.
//!
//! A page of another site sends its `Origin`; one that had its own name resolve to our address (DNS rebinding)
//! sends that name as `Host`. So `Host` must be `localhost` or a bare IP address, and `Origin`, where there is
//! one, must be the same host.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, ORIGIN};

/// Why a request is refused, for whoever made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It was sent to a name which anybody could own.
    #[error("only localhost or an IP address is answered here, like http://127.0.0.1{port}/")]
    Host {
        /// The port that was asked for, with its colon; may be empty.
        port: String,
    },
    /// A page of another site makes it.
    #[error("pages of other sites are not answered here")]
    Origin,
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Refuses requests that were sent to a name which anybody could own.
///
/// # Errors
/// [`Refused::Host`]
pub fn check_host(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(host) = text(headers, HOST) else { return Ok(()) };
    let (name, port) = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).unwrap_or((host, ""));
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    Err(Refused::Host { port })
}

/// Refuses requests that a page of another site makes.
///
/// # Errors
/// [`Refused::Origin`]
pub fn check_origin(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(origin) = text(headers, ORIGIN) else { return Ok(()) };
    let ours = text(headers, HOST).is_some_and(|host| origin.strip_prefix("http://") == Some(host));
    if ours { Ok(()) } else { Err(Refused::Origin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_page_gets_in() {
        for (host, origin, host_ok, origin_ok) in [
            ("127.0.0.1:8090", None, true, true),
            ("localhost:8090", Some("http://localhost:8090"), true, true),
            ("LOCALHOST", None, true, true),
            ("[::1]:80", Some("http://[::1]:80"), true, true),
            ("192.168.1.5:8090", None, true, true),
            ("evil.example:8090", Some("http://evil.example:8090"), false, true),
            ("localhost.evil.example", None, false, true),
            ("127.0.0.1.evil.example:1", None, false, true),
            ("127.0.0.1:8090", Some("http://evil.example"), true, false),
            ("127.0.0.1:8090", Some("https://127.0.0.1:8090"), true, false),
            ("127.0.0.1:8090", Some("http://127.0.0.1:1"), true, false),
            ("127.0.0.1:8090", Some("null"), true, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(check_host(&headers).is_ok(), host_ok, "{host}");
            assert_eq!(check_origin(&headers).is_ok(), origin_ok, "{host} {origin:?}");
        }
    }
}
