//! Why a run fails, and why a direct call did not succeed.

use std::any::Any;
use std::fmt;

use crate::JobError;
use crate::bindings::botyard::broadcast::broadcasts::BroadcastError;
use crate::bindings::botyard::telegram::bot_api as wit;
use crate::http::HttpError;

/// Why a handler failed. The host drops everything that the run asked for and tries the event again, unless the error
/// is [permanent](Error::permanent).
///
/// `?` turns any [`std::error::Error`] into one:
///
/// ```
/// use botyard_sdk::Error;
///
/// fn parse(text: &str) -> Result<u32, Error> {
///     if text.is_empty() {
///         return Err(Error::permanent("nothing to read"));
///     }
///     Ok(text.parse::<u32>()?)
/// }
/// assert_eq!(parse("30").unwrap(), 30);
/// assert_eq!(parse("").unwrap_err().to_string(), "nothing to read");
/// assert!(parse("x").unwrap_err().retries());
/// ```
// It is no `std::error::Error` itself: that would forbid the `From` for all of them below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    retry: bool,
}

impl Error {
    /// An error that another attempt may mend.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: true }
    }

    /// An error that every attempt would meet again: the event is set aside at once.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: false }
    }

    /// True if the host will try the event again.
    ///
    /// ```
    /// assert!(botyard_sdk::Error::new("try later").retries());
    /// ```
    #[must_use]
    pub fn retries(&self) -> bool {
        self.retry
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let any = &error as &dyn Any;
        let call = any.downcast_ref().map(CallError::may_pass);
        let http = || any.downcast_ref().map(HttpError::may_pass);
        let job = || any.downcast_ref().map(|error| !matches!(error, JobError::Invalid(_)));
        let retry = call.or_else(http).or_else(job).unwrap_or(true);
        Self { message: error.to_string(), retry }
    }
}

impl From<Error> for crate::bindings::exports::botyard::plugin::handler::Failure {
    fn from(error: Error) -> Self {
        Self { message: error.message, retry: error.retry }
    }
}

impl Error {
    /// As the host tells of it.
    pub(crate) fn told(failure: crate::bindings::exports::botyard::plugin::handler::Failure) -> Self {
        Self { message: failure.message, retry: failure.retry }
    }
}

/// Why a call of the Bot API did not succeed.
///
/// ```
/// use botyard_sdk::{Refusal, prelude::*};
///
/// fn roll(ctx: &Run) -> Result<(), Error> {
///     match ctx.call("sendDice", json!({ "chat_id": ctx.chat_id() })) {
///         Ok(message) => info!("rolled", value = message["dice"]["value"]),
///         Err(CallError::Refused { kind: Refusal::ChatGone, .. }) => info!("the user has blocked the bot"),
///         Err(error) => return Err(error.into()),
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// Telegram refused: the same call would be refused again.
    #[non_exhaustive]
    Refused {
        /// Telegram's `error_code`.
        code: u16,
        /// Telegram's `description`.
        description: String,
        /// What kind of a no it is.
        kind: Refusal,
    },
    /// Flood control, Telegram's or the operator's for this plugin (`limits.calls_per_minute`): not before this many seconds.
    Flooded(u32),
    /// The answer was lost: the call may or may not have taken effect.
    UnknownOutcome(String),
    /// The call did not reach Telegram.
    Unreachable(String),
    /// The operator has not granted this method; the text says what to add, and where.
    Denied(String),
    /// The parameters are not a JSON object.
    Invalid(String),
}

/// Kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Something is wrong with the call itself.
    Call,
    /// What was asked for is so already, or can't matter any more: an edit that changes nothing, the answer to an
    /// expired query, the deletion of a message that is not there.
    NoOp,
    /// Nothing can be sent to this chat: it is not there, or has shut the bot out.
    ChatGone,
    /// The group has become this supergroup.
    Migrated(i64),
}

impl CallError {
    /// True if the same call may succeed later.
    ///
    /// ```
    /// use botyard_sdk::CallError;
    /// assert!(CallError::Flooded(3).may_pass());
    /// assert!(!CallError::Denied("not granted".into()).may_pass());
    /// ```
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Flooded(_) | Self::UnknownOutcome(_) | Self::Unreachable(_))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, description, .. } => write!(f, "Telegram API error [{code}]: {description}"),
            Self::Flooded(seconds) => write!(f, "flood control: not before {seconds} s"),
            Self::UnknownOutcome(text) | Self::Unreachable(text) | Self::Denied(text) | Self::Invalid(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for CallError {}

impl From<BroadcastError> for CallError {
    fn from(error: BroadcastError) -> Self {
        match error {
            BroadcastError::Denied(text) => Self::Denied(text),
            BroadcastError::Invalid(text) => Self::Invalid(text),
        }
    }
}

impl From<wit::CallError> for CallError {
    fn from(error: wit::CallError) -> Self {
        match error {
            wit::CallError::Refused(wit::Refusal { code, description, kind }) => {
                let kind = match kind {
                    wit::RefusalKind::Call => Refusal::Call,
                    wit::RefusalKind::NoOp => Refusal::NoOp,
                    wit::RefusalKind::ChatGone => Refusal::ChatGone,
                    wit::RefusalKind::Migrated(chat) => Refusal::Migrated(chat),
                };
                Self::Refused { code, description, kind }
            }
            wit::CallError::Flooded(seconds) => Self::Flooded(seconds),
            wit::CallError::UnknownOutcome(text) => Self::UnknownOutcome(text),
            wit::CallError::Unreachable(text) => Self::Unreachable(text),
            wit::CallError::Denied(text) => Self::Denied(text),
            wit::CallError::Invalid(text) => Self::Invalid(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_fail_again_is_not_retried() {
        let refused = CallError::Refused { code: 400, description: "chat not found".into(), kind: Refusal::ChatGone };
        assert!(!Error::from(refused).retries());
        assert!(Error::from(CallError::Unreachable("no route".into())).retries());
        assert!(
            !Error::from(HttpError::Denied("no".into())).retries() && Error::from(HttpError::Status(502)).retries()
        );
        assert!(Error::from("x".parse::<i32>().unwrap_err()).retries());
    }
}
