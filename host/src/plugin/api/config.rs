//! `botyard:config/config`: what the operator wrote for this plugin.

use secrecy::ExposeSecret;

use super::Host;
use crate::plugin::bindings::botyard::config::config as wit;

impl wit::Host for Host {
    fn get(&mut self) -> wasmtime::Result<String> {
        Ok(if self.run.is_some() { self.context.config.clone() } else { "{}".to_owned() })
    }

    fn secret(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        let secret = self.run.as_ref().and_then(|_| self.context.secrets.get(&name));
        Ok(secret.map(|secret| secret.expose_secret().to_owned()))
    }
}
