//! Calls to the Bot API whose answer a run waits for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::domain::PluginName;
use crate::files::{Fetched, Files, Pin};
use crate::store::rows::file::Attached;
use crate::telegram::Refusal;

/// How a denial begins that is for a file that is too large to be fetched.
pub const TOO_LARGE: &str = "the file is larger than the plugin may fetch";

/// Makes API calls for plugins; the sender does.
pub trait Outbound: Send + Sync {
    /// Calls a method with parameters that are a JSON object, and answers with the `result`, JSON too. Must
    /// answer within `deadline`.
    fn call(
        &self,
        plugin: &PluginName,
        method: &str,
        params: String,
        deadline: Duration,
    ) -> BoxFuture<'_, Result<String, CallError>>;

    /// Shows a chat action with these parameters now and again, for as long as the future is kept; it ends by itself
    /// when that is of no use any more.
    fn keep_acting(&self, params: String) -> BoxFuture<'static, ()>;

    /// Where the files of calls are kept; none where calls can carry none.
    fn files(&self) -> Option<&Files> {
        None
    }

    /// As [`Outbound::call`], with files.
    fn call_with_files(
        &self,
        _plugin: &PluginName,
        _method: &str,
        _params: String,
        _files: Vec<Attachment>,
        _deadline: Duration,
    ) -> BoxFuture<'_, Result<String, CallError>> {
        Box::pin(std::future::ready(Err(CallError::Unreachable(NO_FILES.to_owned()))))
    }

    /// Fetches a file from Telegram, at most `limit` bytes. What is not there in time may be at the next attempt.
    fn fetch(
        &self,
        _file_id: String,
        _limit: u64,
        _deadline: Duration,
    ) -> BoxFuture<'_, Result<Arc<Fetched>, CallError>> {
        Box::pin(std::future::ready(Err(CallError::Unreachable(NO_FILES.to_owned()))))
    }
}

/// What those answer that carry no files.
pub(super) const NO_FILES: &str = "this host carries no files";

/// A file of a call, which is there as long as this lives.
#[derive(Clone)]
pub struct Attachment {
    /// What is sent.
    pub attached: Attached,
    /// Keeps its content.
    pub pin: Arc<Pin>,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallError {
    /// Telegram refused; the same call would fail the same way.
    #[error("refused: {description} [{code}]")]
    Refused {
        /// Telegram's code.
        code: u16,
        /// Telegram's description.
        description: String,
        /// What kind of a no it is.
        kind: Refusal,
    },
    /// Flood control: not before this time is over.
    #[error("flooded: not before {0:?}")]
    Flooded(Duration),
    /// It may or may not have taken effect.
    #[error("unknown outcome: {0}")]
    UnknownOutcome(String),
    /// It did not reach Telegram.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// It is not granted.
    #[error("denied: {0}")]
    Denied(String),
    /// The method or its parameters can't be right.
    #[error("invalid: {0}")]
    Invalid(String),
}

impl CallError {
    /// Whether the call may have taken effect, or was refused in a way that another call would be too.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::UnknownOutcome(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_effect_may_be_called_again() {
        for (error, is_final) in [
            (CallError::Refused { code: 400, description: "no".into(), kind: Refusal::Call }, true),
            (CallError::UnknownOutcome("cut".into()), true),
            (CallError::Flooded(Duration::from_secs(3)), false),
            (CallError::Unreachable("down".into()), false),
            (CallError::Denied("no".into()), false),
        ] {
            assert_eq!(error.is_final(), is_final, "{error}");
        }
    }
}
