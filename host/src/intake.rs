//! Brings updates in: from Telegram's `getUpdates`, or through a webhook, into the inbox.
//!
//! An update counts as taken only when it is on disk; only then does a higher offset, or the webhook's 200, tell Telegram
//! to forget it. Intake reads no more of an update than its id, its kind and its lane, never waits for a handler, and
//! never stops for an update that it can't read. It does not decide who handles what. What goes wrong at Telegram is
//! reported in [`Status`] and tried again, in ever longer pauses; only a store that fails ends it.

mod accept;
mod backlog;
mod batch;
mod numbers;
mod poller;
mod seen;
mod status;
mod supervise;
#[cfg(test)]
mod tests;
mod wait;
mod way;
mod webhook;

pub use self::accept::Error;
pub use self::status::Status;
pub use self::supervise::{Access, Intake, Parts, SetNow, Settings};
pub use self::way::{Foreign, clear};
pub use self::webhook::{SetupError, set_once, test_tls};
