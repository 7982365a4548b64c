//! One event, handled as always, whose commit is handed out instead of made: to see what plugins would do, or to compare
//! what two of their versions do. Nothing is written that stays, and nothing queued is sent; direct calls are made.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::Dispatcher;
use super::offer::Offered;
use super::run::{Context, Head};
use crate::domain::{Conversation, EventLane, PluginName};
use crate::plugin::{Invocation, Plugin, RunError, RunReport, Verdict};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::{self, Commit, Op};

/// An event that is to be rehearsed.
pub struct Scene {
    /// What happened.
    pub event: StoredEvent,
    /// In which lane it would lie.
    pub lane: EventLane,
    /// The number that it would have there: what a plugin draws at random follows from it.
    pub number: u64,
    /// What time it is, in Unix milliseconds.
    pub now: u64,
}

/// What came of it.
pub struct Rehearsal {
    /// The plugins that were given the event, in order.
    pub asked: Vec<Asked>,
    /// What would be committed, the event's own removal left out; or why it would be tried again or set aside.
    pub outcome: Result<Commit, String>,
}

/// A plugin that was given the event.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its name.
    pub plugin: PluginName,
    /// Its version.
    pub version: String,
    /// It only looked on.
    pub observes: bool,
    /// The places of the filters that let the event through.
    pub matched: Vec<u32>,
    /// Its conversation, by its own strategy.
    pub conversation: Conversation,
    /// What it said, or why it could not.
    pub verdict: Result<Verdict, RunError>,
    /// Time on a processor.
    pub cpu: Duration,
}

/// Notes what plugins are asked; only a rehearsal has one.
pub(super) type Witness = OnceLock<Mutex<Vec<Asked>>>;

/// Adds to the notes, if anybody takes any.
pub(super) fn note(witness: &Witness, plugin: &Plugin, invocation: &Invocation, report: &RunReport, observes: bool) {
    let Some(asked) = witness.get() else { return };
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(Asked {
        plugin: plugin.name.clone(),
        version: plugin.version.to_string(),
        observes,
        matched: invocation.matched.clone(),
        conversation: invocation.conversation,
        verdict: report.result.clone(),
        cpu: report.cpu,
    });
}

impl Dispatcher {
    /// Handles an event that is in the inbox for as long as this takes. Not for a dispatcher that runs. An album can't be
    /// rehearsed: its messages are events of their own.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rehearse(&self, scene: Scene) -> Result<Rehearsal, store::Error> {
        let context: &Context = &self.context;
        let asked = context.witness.get_or_init(Mutex::default);
        asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let Scene { event, lane, number, now } = scene;
        let row = InboxRow { alone: true, ..InboxRow::new(event, now) };
        let key = inbox::key(context.bot, lane, number);
        let head = Head { key, lane, number, value: row.encode().into(), more: false, rest: Vec::new() };
        let only = |op| Commit { ops: vec![op], ..Commit::default() };
        context.must_commit(only(Op::Put { key: head.key.clone(), value: row.encode() })).await?;
        let outcome = match context.run_plugins(&head, &row, None, now).await? {
            Ok(Offered::Settled(tx)) => {
                let mut commit = tx.into_commit();
                commit.ops.retain(|op| !matches!(op, Op::Delete { key } if *key == head.key));
                Ok(commit)
            }
            Ok(Offered::Split | Offered::Superseded | Offered::Ordered) => {
                Err("it is no plugin's to handle".to_owned())
            }
            Err(failure) => Err(failure.reason),
        };
        context.must_commit(only(Op::Delete { key: head.key.clone() })).await?;
        context.forget_journal(number);
        let asked = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Rehearsal { asked, outcome })
    }
}
