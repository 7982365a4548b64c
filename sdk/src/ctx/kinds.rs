//! Events that are no single update: albums, timers and jobs.

use serde::de::DeserializeOwned;

use super::Run;
use crate::{Album, Error, Event, Timer, json};

impl Run {
    /// The album, if this is one: its messages in order. What else a run tells of the event, its chat and user say, is
    /// that of the first of them.
    ///
    /// ```
    /// use botyard_sdk::prelude::*;
    ///
    /// #[plugin]
    /// mod gallery {
    ///     #[album]
    ///     fn keep(ctx: &mut Ctx) -> Handled {
    ///         let Some(album) = ctx.album() else { return Pass };
    ///         if !album.late {
    ///             ctx.reply(format!("{} pictures of {}", album.updates.len(), ctx.text()));
    ///         }
    ///         Done
    ///     }
    /// }
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn album(&self) -> Option<&Album> {
        match self.event() {
            Event::Album(album) => Some(album),
            _ => None,
        }
    }

    /// The timer, if this is one.
    #[must_use]
    pub fn timer(&self) -> Option<&Timer> {
        match self.event() {
            Event::Timer(timer) => Some(timer),
            _ => None,
        }
    }

    /// What the timer or the job was given when it was asked for.
    ///
    /// # Errors
    /// Permanently, when this is neither or its payload is no `T`.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let (name, payload) = match self.event() {
            Event::Timer(timer) => (&timer.name, &timer.payload),
            Event::Job(job) => (&job.name, &job.payload),
            _ => return Err(Error::permanent("this event is neither timer nor job, and has no payload")),
        };
        json::from_slice(payload)
            .map_err(|error| Error::permanent(format!("the payload of `{name}` can't be read: {error}")))
    }
}
