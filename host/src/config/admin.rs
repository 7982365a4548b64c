//! `[admin]`: health and metrics over HTTP.

use std::net::SocketAddr;

use super::reader::Reader;
use super::tree::Node;
use super::units;

/// `[admin]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// `listen`: `"127.0.0.1:8088"`. There is no login: think before opening it to others. Port 0 takes a free one.
    pub listen: SocketAddr,
}

impl Default for Admin {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8088)) }
    }
}

impl Admin {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let listen = section.value("listen", address);
        section.finish();
        listen.map_or_else(Self::default, |listen| Self { listen })
    }
}

fn address(node: &Node) -> Result<SocketAddr, String> {
    let text = units::text(node)?;
    // The one host name that everybody uses for an address.
    let text = text.strip_prefix("localhost:").map_or(text.clone(), |port| format!("127.0.0.1:{port}"));
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) => units::expected("an IP address and a port, such as \"127.0.0.1:8088\" or \"[::]:8088\"", node),
    }
}
