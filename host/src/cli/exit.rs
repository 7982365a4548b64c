//! Exit codes, a promise to scripts, and the words for what went wrong.

use std::process::ExitCode;

use crate::{app, config, store};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    /// It failed while at it.
    Failed = 1,
    /// Wrong configuration or arguments; clap's own code too.
    Usage = 2,
    /// The store can't be used.
    Store = 3,
    /// Asked twice to stop.
    Interrupted = 130,
}

impl Exit {
    /// By the first cause that has a code of its own.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        let code = error.chain().find_map(|cause| {
            if cause.is::<config::Error>() || cause.is::<WrongArgument>() {
                Some(Self::Usage)
            } else if cause.is::<store::Error>() || cause.is::<app::LeaseError>() {
                Some(Self::Store)
            } else {
                None
            }
        });
        code.unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An argument that only looking at the world shows to be wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WrongArgument(pub(super) String);

/// The error and its causes, without those that the text before them tells already.
pub(super) fn explain(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        if text.is_empty() {
            cause
        } else if text.contains(&cause) {
            text
        } else {
            format!("{text}: {cause}")
        }
    })
}
