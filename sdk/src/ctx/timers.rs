//! Timers: those that come once, those that recur, and looking through them.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Run, millis, payload_bytes};
use crate::bindings::botyard::schedule::timers::{Misfire, Owner, Rule};
use crate::{Error, host, json};

/// A recurring timer that is about to be set: see [`Run::cron`] and [`Run::every`].
#[derive(Debug)]
#[must_use = "a timer is set by `set`"]
pub struct Recurring<'a> {
    name: &'a str,
    rule: Rule,
    misfire: Misfire,
    owner: Owner,
    payload: Result<Vec<u8>, Error>,
}

/// A timer that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetTimer {
    /// For [`Run::cancel`].
    pub id: u64,
    /// Its name.
    pub name: String,
    /// When it comes next.
    pub due: SystemTime,
    /// Its payload, as JSON.
    pub payload: Vec<u8>,
    /// Whether it recurs.
    pub recurs: bool,
}

impl SetTimer {
    /// The payload, as what it was before it was written.
    ///
    /// # Errors
    /// Permanently, when it is no `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_slice(&self.payload)
            .map_err(|error| Error::permanent(format!("the payload of `{}` can't be read: {error}", self.name)))
    }
}

impl<'a> Recurring<'a> {
    fn new(name: &'a str, rule: Rule) -> Self {
        Self { name, rule, misfire: Misfire::Once, owner: Owner::Conversation, payload: Ok(b"null".to_vec()) }
    }

    /// Times that passed while the host did not run are dropped. Otherwise one event makes up for all of them.
    pub fn skip_missed(self) -> Self {
        Self { misfire: Misfire::Skip, ..self }
    }

    /// It belongs to the plugin: there is one of its name in all, and its events come without a chat or a user.
    pub fn of_plugin(self) -> Self {
        Self { owner: Owner::Plugin, ..self }
    }

    /// What its events carry.
    pub fn payload(self, payload: impl Serialize) -> Self {
        Self { payload: payload_bytes(self.name, &payload), ..self }
    }

    /// Sets it, in the place of a recurring timer of the same name. Answers with its id.
    ///
    /// # Errors
    /// Permanently, when the expression or the time zone is none, or the payload can't be written as JSON.
    pub fn set(self) -> Result<u64, Error> {
        let payload = self.payload?;
        let set = match &self.rule {
            Rule::Cron((expression, zone)) => {
                host::timer_cron(self.name, expression, zone, self.misfire, self.owner, &payload)
            }
            Rule::EveryMs(interval) => host::timer_every(self.name, *interval, self.misfire, self.owner, &payload),
            Rule::Once => unreachable!("what comes once is set by `after` and `at`"),
        };
        set.map_err(Error::permanent)
    }
}

impl Run {
    /// Sets a durable timer: after `delay` the `#[timer("name")]` handler runs in this conversation. Answers with the
    /// timer's id.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn remind(ctx: &Run) -> Result<u64, Error> {
    ///     ctx.after("reminder", Duration::from_secs(600), &ctx.args())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the payload can't be written as JSON, or the host refuses the timer.
    pub fn after(&self, name: &str, delay: Duration, payload: impl Serialize) -> Result<u64, Error> {
        host::timer_after(name, millis(delay), &payload_bytes(name, &payload)?).map_err(Error::permanent)
    }

    /// As [`after`](Self::after), at a moment.
    ///
    /// # Errors
    /// As [`after`](Self::after).
    pub fn at(&self, name: &str, when: SystemTime, payload: impl Serialize) -> Result<u64, Error> {
        let due = when.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        host::timer_at(name, millis(due), &payload_bytes(name, &payload)?).map_err(Error::permanent)
    }

    /// Cancels a timer of this plugin; false if there is none with this id any more.
    pub fn cancel(&self, timer: u64) -> bool {
        host::timer_cancel(timer)
    }

    /// A timer that recurs at the times of a cron expression (minute, hour, day of the month, month, day of the week)
    /// in a time zone. Its events come to the `#[timer("name")]` handler, in this conversation.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn subscribe(ctx: &Run) -> Result<u64, Error> {
    ///     ctx.cron("news", "0 9 * * mon-fri", "Asia/Tashkent").set()
    /// }
    /// ```
    ///
    /// Where the clock is set forward over such a time, it comes right after that; of a time that comes twice, the first
    /// counts. An expression with every hour in it (`*`) goes on in real time instead. What should recur for the whole
    /// plugin from its first day on is better declared: `#[cron("0 9 * * *", tz = "Asia/Tashkent")]`.
    pub fn cron<'a>(&self, name: &'a str, expression: &str, zone: &str) -> Recurring<'a> {
        Recurring::new(name, Rule::Cron((expression.to_owned(), zone.to_owned())))
    }

    /// A timer that recurs after this time, again and again; at least a second.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn watch(ctx: &Run) -> Result<u64, Error> {
    ///     ctx.every("look", Duration::from_secs(900)).payload(ctx.args()).set()
    /// }
    /// ```
    pub fn every<'a>(&self, name: &'a str, interval: Duration) -> Recurring<'a> {
        Recurring::new(name, Rule::EveryMs(millis(interval)))
    }

    /// Cancels the timers of this name, in this conversation; answers with how many there were.
    pub fn cancel_named(&self, name: &str) -> u32 {
        host::timer_cancel_by_name(name, Owner::Conversation)
    }

    /// As [`cancel_named`](Self::cancel_named), for timers of the plugin.
    pub fn cancel_plugin_timers(&self, name: &str) -> u32 {
        host::timer_cancel_by_name(name, Owner::Plugin)
    }

    /// The timers of this conversation.
    #[must_use]
    pub fn timers(&self) -> Vec<SetTimer> {
        listed(Owner::Conversation)
    }

    /// The timers of the plugin. Those that its manifest declares are not among them.
    #[must_use]
    pub fn plugin_timers(&self) -> Vec<SetTimer> {
        listed(Owner::Plugin)
    }
}

fn listed(owner: Owner) -> Vec<SetTimer> {
    let timer = |entry: crate::bindings::botyard::schedule::timers::Entry| SetTimer {
        id: entry.id,
        name: entry.name,
        due: SystemTime::UNIX_EPOCH + Duration::from_millis(entry.due),
        payload: entry.payload,
        recurs: !matches!(entry.rule, Rule::Once),
    };
    host::timer_list(owner).into_iter().map(timer).collect()
}
