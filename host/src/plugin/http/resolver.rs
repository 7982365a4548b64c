//! Names to addresses, of which only those are used that a plugin may reach. What is looked at is what is connected to,
//! so a name that means one thing when it is checked and another when it is used gains nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::{Class, class};
use crate::domain::Server;

/// Looks a name up. Tests have their own.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

pub(super) struct Resolver(pub(super) Lookup);

/// A name has addresses, and none of them may be reached.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{name}` leads to {address}, which is no address of the internet: to allow that, grant the address itself, with \
     its port, in `grants.http`"
)]
pub(super) struct NotPublic {
    name: String,
    address: IpAddr,
}

/// As the system does it.
pub(super) fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = self.0.clone();
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let server = Server::Name(name.trim_end_matches('.').to_owned());
            let own_too = server.is_local_name();
            let found = lookup(name.clone()).await?;
            let may = |address: &IpAddr| match class(*address) {
                Class::Public => true,
                // Whether such a name is granted was looked at before: it must be named as a whole.
                Class::Own => own_too,
                Class::Special => false,
            };
            let usable: Vec<SocketAddr> =
                found.iter().filter(|address| may(address)).map(|address| SocketAddr::new(*address, 0)).collect();
            match found.first() {
                Some(&address) if usable.is_empty() => Err(NotPublic { name, address }.into()),
                _ => Ok(Box::new(usable.into_iter()) as Addrs),
            }
        })
    }
}
