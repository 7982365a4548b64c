//! Brings updates in: from Telegram's `getUpdates` into the inbox.
//!
//! An update counts as taken only when it is on disk; only then does a higher offset tell Telegram to forget it.
//! Intake reads no more of an update than its id and its lane, never waits for a handler, and never stops for an
//! update that it can't read. It does not decide who handles what.

mod accept;
mod batch;
mod poller;
mod seen;
mod wait;

pub use self::accept::Error;
pub use self::poller::{PollStatus, Poller};
