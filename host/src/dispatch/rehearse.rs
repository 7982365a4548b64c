//! One event, handled as always, whose commit is handed out instead of made: to see what plugins would do, or to compare
//! what two of their versions do. Nothing is written and nothing queued is sent; direct calls are made.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::Dispatcher;
use super::run::{Context, Head};
use crate::clock::unix_millis;
use crate::domain::{Conversation, Lane, PluginName, UpdateView};
use crate::plugin::{Invocation, Plugin, RunError, RunReport, Verdict};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::{self, Commit};

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
    /// Handles an event that is not in the inbox. `number` is what it would have there: what a plugin draws at random
    /// follows from it. Not for a dispatcher that runs.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rehearse(&self, event: StoredEvent, number: u64) -> Result<Rehearsal, store::Error> {
        let context: &Context = &self.context;
        let asked = context.witness.get_or_init(Mutex::default);
        asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let lane = match &event {
            StoredEvent::Update(raw) => {
                UpdateView::parse(&String::from_utf8_lossy(raw)).map_or(Lane::Other, |v| v.lane())
            }
            StoredEvent::Timer { conversation, .. } => conversation.chat.map_or(Lane::Other, Lane::Chat),
        };
        let row = InboxRow { attempts: 0, not_before: 0, received: unix_millis(), event };
        let head = Head {
            key: [inbox::lane_prefix(context.bot, lane), number.to_be_bytes().to_vec()].concat(),
            lane,
            number,
            value: row.encode().into(),
            more: false,
        };
        let outcome = match context.run_plugins(&head, &row).await? {
            Ok(tx) => {
                let mut commit = tx.into_commit();
                commit.ops.retain(|op| !matches!(op, store::Op::Delete { key } if *key == head.key));
                Ok(commit)
            }
            Err(failure) => Err(failure.reason()),
        };
        context.forget_journal(number);
        let asked = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Rehearsal { asked, outcome })
    }
}
