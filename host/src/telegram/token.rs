//! The bot's token: read once, never shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::SetupError;
use crate::domain::BotId;

/// From this length on, the secret half alone is worth hiding; shorter ones (tests') would hide half the text.
const TELLING_LENGTH: usize = 16;

/// A bot token that has the right form. Neither `Debug` nor `Display` shows it.
#[derive(Clone)]
pub struct Token {
    bot: BotId,
    text: SecretString,
}

impl Token {
    /// Checks the form, digits, a colon and the secret; space around it (a file's last newline) is ignored.
    ///
    /// # Errors
    /// Says what is wrong with the form, without the token's text.
    pub fn parse(text: &str) -> Result<Self, SetupError> {
        let text = text.trim();
        let problem = |what| Err(SetupError::Token(what));
        if text.is_empty() {
            return problem("it is empty");
        }
        if text.starts_with("bot") {
            return problem("it begins with `bot`, which belongs to the URL");
        }
        let Some((id, secret)) = text.split_once(':') else {
            return problem("there is no colon in it");
        };
        let bot = match id.parse::<i64>() {
            Ok(bot) if bot > 0 && id.bytes().all(|byte| byte.is_ascii_digit()) => BotId(bot),
            _ => return problem("what stands before the colon is not a bot's id"),
        };
        if secret.is_empty() {
            return problem("nothing stands after the colon");
        }
        if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            return problem("after the colon only letters, digits, `_` and `-` can stand");
        }
        Ok(Self { bot, text: text.into() })
    }

    /// The bot's user id.
    #[must_use]
    pub fn bot_id(&self) -> BotId {
        self.bot
    }

    /// Tells this token on this server from every other, and gives nothing away: for noticing in the store
    /// that the numbering of updates has begun anew.
    #[must_use]
    pub fn fingerprint(&self, api_base: &str) -> [u8; 8] {
        let mut hash = Sha256::new();
        hash.update(api_base.trim_end_matches('/'));
        hash.update([0]);
        hash.update(self.text.expose_secret());
        let mut print = [0; 8];
        print.copy_from_slice(&hash.finalize()[..8]);
        print
    }

    /// The text itself: for building the URL only.
    pub(super) fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// Takes the token out of a text that somebody else wrote.
    pub(super) fn redact(&self, text: &mut String) {
        let token = self.expose();
        let secret = token.split_once(':').map_or(token, |(_, secret)| secret);
        let needle = if secret.len() >= TELLING_LENGTH { secret } else { token };
        if text.contains(needle) {
            *text = text.replace(needle, "[token]");
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}:…)", self.bot)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:…", self.bot)
    }
}
