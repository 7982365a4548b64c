//! `[admin]`: health and metrics over HTTP.

use std::net::SocketAddr;

use super::reader::Reader;
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
        let listen = section.value("listen", units::address);
        section.finish();
        listen.map_or_else(Self::default, |listen| Self { listen })
    }
}
