//! Heavy work, queued for later, and states that were set aside.

use std::time::Duration;

use serde::Serialize;

use super::{Run, millis, payload_bytes};
use crate::bindings::botyard::jobs::jobs::{self as wit, Options};
use crate::{Error, Event, Job, OldState, host};

pub use crate::bindings::botyard::jobs::jobs::Report as JobStatus;

/// Why a job was not queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// As many jobs wait as the operator lets the plugin have: time to say that the bot is busy.
    Full(String),
    /// It could never be queued like this: the payload is too large, or no JSON.
    Invalid(String),
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(why) => write!(f, "the queue of jobs is full: {why}"),
            Self::Invalid(why) => write!(f, "the job can't be queued: {why}"),
        }
    }
}

impl std::error::Error for JobError {}

/// A job that is about to be queued: see [`Run::job`].
#[must_use = "nothing is queued before `enqueue`"]
#[derive(Debug)]
pub struct QueuedJob {
    name: String,
    payload: Result<Vec<u8>, Error>,
    options: Options,
}

impl QueuedJob {
    /// It is not begun before this time is over.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.delay_ms = millis(delay);
        self
    }

    /// While a job with this key waits or is worked on, another one is not queued, and the id is that of the one there.
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        self.options.unique_key = Some(key.into());
        self
    }

    /// Queues it when this run commits; answers with its id.
    ///
    /// # Errors
    /// [`JobError::Full`], which a plugin can answer, or [`JobError::Invalid`].
    pub fn enqueue(self) -> Result<u64, JobError> {
        let payload = self.payload.map_err(|error| JobError::Invalid(error.to_string()))?;
        host::job_enqueue(&self.name, &payload, &self.options).map_err(|error| match error {
            wit::JobError::Full(why) => JobError::Full(why),
            wit::JobError::Invalid(why) => JobError::Invalid(why),
        })
    }
}

impl Run {
    /// Heavy work for the `#[job("name")]` handler, in this conversation: durable, worked on beside the chats' events
    /// with limits of its own, tried again when it fails, and bounded.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn convert(ctx: &Run) -> Result<(), Error> {
    ///     match ctx.job("convert", ctx.args()).enqueue() {
    ///         Ok(_) => ctx.reply("You get it when it is done."),
    ///         Err(JobError::Full(_)) => ctx.reply("Busy right now, try again in a minute."),
    ///         Err(error) => return Err(error.into()),
    ///     };
    ///     Ok(())
    /// }
    /// ```
    pub fn job(&self, name: &str, payload: impl Serialize) -> QueuedJob {
        let options = Options { delay_ms: 0, unique_key: None };
        QueuedJob { name: name.to_owned(), payload: payload_bytes(name, &payload), options }
    }

    /// The job, if this is one.
    #[must_use]
    pub fn as_job(&self) -> Option<&Job> {
        match self.event() {
            Event::Job(job) => Some(job),
            _ => None,
        }
    }

    /// How a job of this plugin stands; `None` once it is done, cancelled or set aside.
    #[must_use]
    pub fn job_status(&self, id: u64) -> Option<JobStatus> {
        host::job_status(id)
    }

    /// Takes a job back; false if there is none with this id any more. One that is worked on leaves nothing behind.
    pub fn cancel_job(&self, id: u64) -> bool {
        host::job_cancel(id)
    }

    /// A state of this conversation that no version since could take over, kept as it was: in this run, or an earlier
    /// one. It stays until [`Run::drop_lost_state`].
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn apologise(ctx: &Run) {
    ///     if ctx.lost_state().is_some() {
    ///         ctx.reply("I have been changed, and can't go on with your order. Please begin again.");
    ///         ctx.drop_lost_state();
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn lost_state(&self) -> Option<OldState> {
        host::lost().map(OldState::from)
    }

    /// Lets go of what [`Run::lost_state`] answers with, for good.
    pub fn drop_lost_state(&self) {
        host::drop_lost();
    }
}
