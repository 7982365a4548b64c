//! One row per bot: what the host has to know about its webhook that Telegram does not tell: `w bot`.

use super::{BotId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'w';

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WebhookRow {
    /// The secret that was made because the configuration has none.
    pub made_secret: Option<String>,
    /// What Telegram was asked for last, whether or not the answer came: a webhook with this address is ours.
    pub asked: Option<String>,
    /// What Telegram was asked for last and has confirmed.
    pub confirmed: Option<ConfirmedWebhook>,
}

/// A webhook that is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmedWebhook {
    /// The address.
    pub url: String,
    /// SHA-256 of the secret, which Telegram sends until it is told another one.
    pub secret: [u8; 32],
    /// SHA-256 of everything that was asked for and that Telegram does not tell.
    pub digest: [u8; 32],
}

impl WebhookRow {
    /// Whether a webhook with this address was set by us.
    #[must_use]
    pub fn is_ours(&self, url: &str) -> bool {
        self.asked.as_deref() == Some(url) || self.confirmed.as_ref().is_some_and(|confirmed| confirmed.url == url)
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When the bytes are not a row of this kind.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        decode("webhook", bytes)
    }
}

/// The one key of this kind.
#[must_use]
pub fn key(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}
