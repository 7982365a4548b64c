//! What can come of a call that did not succeed.
//!
//! Texts are owned strings, cleaned of the token; there is no source error that could bring the URL back.

use std::time::Duration;

use super::Refusal;
use crate::domain::ChatId;

/// Why a Bot API call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Telegram refused: the same call would fail the same way.
    #[error("Telegram API error [{code}] on {method}: {description}")]
    Refused {
        /// What was called.
        method: String,
        /// Telegram's `error_code`.
        code: u16,
        /// Telegram's text, without the name of the code before it.
        description: String,
        /// The supergroup that the group has become.
        migrate_to: Option<ChatId>,
    },
    /// Flood control: not before this time is over.
    #[error("Telegram API error [429] on {method}: too many requests, retry after {} s", retry_after.as_secs())]
    Flooded {
        /// What was called.
        method: String,
        /// How long to wait, at least.
        retry_after: Duration,
    },
    /// The token is wrong, was revoked, or is not at home at this server: nothing is said of the call itself.
    #[error("Telegram API error [{code}] on {method}: {description}")]
    Unauthorized {
        /// What was called.
        method: String,
        /// Telegram's `error_code`: mostly 401.
        code: u16,
        /// Telegram's text.
        description: String,
    },
    /// Another receiver of the bot's updates is in the way.
    #[error("Telegram API error [409] on {method}: {description}")]
    Conflict {
        /// What was called.
        method: String,
        /// True when it is a webhook, false when it is another poll.
        webhook: bool,
        /// Telegram's text.
        description: String,
    },
    /// Telegram, or a gateway before it, has trouble of its own.
    #[error("Telegram API error [{status}] on {method}: {description}")]
    ServerError {
        /// What was called.
        method: String,
        /// The 5xx code.
        status: u16,
        /// Telegram's text, or the usual name of the code.
        description: String,
    },
    /// The answer is none that the Bot API gives: HTML, nothing, half of it.
    #[error("{method}: the answer (status {status}) can't be read: {reason}")]
    BadAnswer {
        /// What was called.
        method: String,
        /// The HTTP status.
        status: u16,
        /// True when the answer broke off.
        cut: bool,
        /// What is wrong with it.
        reason: String,
    },
    /// The call has succeeded, but what it gave is lost: the answer broke off after its beginning said so, or holds
    /// no result. Repeating it would do it twice.
    #[error("{method} has succeeded, but its result is lost: {reason}")]
    ResultLost {
        /// What was called.
        method: String,
        /// What became of the result.
        reason: String,
    },
    /// The call certainly did not reach Telegram.
    #[error("{method} did not reach Telegram: {reason}")]
    Unreachable {
        /// What was called.
        method: String,
        /// What stood in the way.
        reason: String,
    },
    /// The call may have taken effect: it was sent, and no answer came.
    #[error("{method} may or may not have taken effect: {reason}")]
    UnknownOutcome {
        /// What was called.
        method: String,
        /// What happened instead of an answer.
        reason: String,
        /// Nothing has: nobody said anything until the time was over. Else the connection broke.
        silent: bool,
    },
}

impl Error {
    /// True where trying again can help and nobody has said when: trouble of the network or of the server.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::ServerError { .. } | Self::BadAnswer { .. } | Self::Unreachable { .. } | Self::UnknownOutcome { .. }
        )
    }

    /// True where nothing tells whether the call has taken effect. A server that fails may have done its work before;
    /// who sends elsewhere, or turns away what he does not know, has not passed it on.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::BadAnswer { status, .. } => !(300..500).contains(status),
            Self::ServerError { .. } | Self::UnknownOutcome { .. } => true,
            _ => false,
        }
    }

    /// True for a 404 without a word: what a token without a server gets, and from some servers a method that they do
    /// not know.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Unauthorized { code: 404, .. })
    }

    /// What kind of refusal it is, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { method, code, description, migrate_to } => {
                Some(Refusal::of(method, *code, description, *migrate_to))
            }
            _ => None,
        }
    }

    /// True where Telegram refused a text because it can't read its markup.
    #[must_use]
    pub fn is_bad_markup(&self) -> bool {
        matches!(self, Self::Refused { code: 400, description, .. } if description.contains("can't parse entities"))
    }

    /// One word for metrics.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Refused { method, code, description, migrate_to } => {
                Refusal::of(method, *code, description, *migrate_to).outcome()
            }
            Self::Flooded { .. } => "flooded",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Conflict { .. } => "conflict",
            Self::ServerError { .. } => "server_error",
            Self::BadAnswer { .. } => "bad_answer",
            Self::ResultLost { .. } => "result_lost",
            Self::Unreachable { .. } => "unreachable",
            Self::UnknownOutcome { .. } => "unknown",
        }
    }

    /// The text that came from outside, for redaction.
    pub(super) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Refused { description, .. }
            | Self::Unauthorized { description, .. }
            | Self::Conflict { description, .. }
            | Self::ServerError { description, .. } => Some(description),
            Self::BadAnswer { reason, .. }
            | Self::ResultLost { reason, .. }
            | Self::Unreachable { reason, .. }
            | Self::UnknownOutcome { reason, .. } => Some(reason),
            Self::Flooded { .. } => None,
        }
    }
}

/// Why a client can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The token is none.
    #[error("the bot's token has a wrong form: {0} (BotFather gives it as `123456789:AAE…`)")]
    Token(&'static str),
    /// The server's address is none.
    #[error("`api_base` is not the address of a Bot API server: {0} (the usual one is https://api.telegram.org)")]
    ApiBase(String),
    /// TLS can't be set up.
    #[error("TLS can't be set up: {0} (on a bare machine, install its package of root certificates)")]
    Tls(String),
}
