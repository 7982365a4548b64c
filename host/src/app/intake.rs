//! From the configuration to how intake goes, at the start and whenever it changes.

use secrecy::ExposeSecret as _;

use crate::config::{Config, Mode};
use crate::intake::{self, Access, Settings};
use crate::store::Store;
use crate::telegram::{Client, Token};

/// What the host was started with.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// Which bot, and where.
    pub(super) access: Access,
    /// Whether Telegram is played here; then neither token nor server are those of the configuration.
    pub(super) is_simulated: bool,
    pub(super) take_over: bool,
}

impl Origin {
    /// Refuses to start polling while somebody else's webhook is set.
    pub(super) async fn look_for_webhook(&self, config: &Config, client: &Client, store: &Store) -> anyhow::Result<()> {
        match config.intake.mode {
            Mode::Polling => Ok(intake::clear(client, store, self.access.token.bot_id(), self.take_over).await?),
            Mode::Webhook => Ok(()),
        }
    }

    pub(super) fn settings(&self, config: &Config) -> Settings {
        let webhook = match config.intake.mode {
            Mode::Polling => None,
            Mode::Webhook => config.intake.webhook.clone(),
        };
        Settings {
            fingerprint: self.access.token.fingerprint(&self.access.api_base),
            access: Some(self.access.clone()),
            poll_timeout: config.intake.poll_timeout,
            take_over: self.take_over,
            webhook: webhook.map(|mut webhook| {
                if self.is_simulated {
                    webhook.url = near(&webhook.url, webhook.listen, webhook.tls.is_some());
                }
                webhook
            }),
        }
    }

    /// Takes over the configuration's token and server, if it is the same bot. Says so if it is not.
    pub(super) fn follow(&mut self, config: &Config) {
        let Some(token) = config.bot.token.as_ref().filter(|_| !self.is_simulated) else { return };
        match Token::parse(token.expose_secret()) {
            Ok(token) if token.bot_id() == self.access.token.bot_id() => {
                self.access = Access { api_base: config.bot.api_base.clone(), token };
            }
            Ok(other) => tracing::error!(
                bot = %other.bot_id(),
                "the new token belongs to another bot, which takes effect at the next start"
            ),
            Err(error) => tracing::error!(%error, "the new token can't be used; the old one stays"),
        }
    }
}

/// The simulator calls nobody outside: it is told where the host listens instead of the public address.
fn near(url: &str, mut listen: std::net::SocketAddr, tls: bool) -> String {
    if listen.ip().is_unspecified() {
        listen.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    format!("{}://{listen}/{path}", if tls { "https" } else { "http" })
}
