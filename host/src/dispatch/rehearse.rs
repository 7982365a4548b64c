//! One event, handled as always, of which notes are handed out instead of a commit made: to see what plugins would do, or
//! to compare what two of their versions do. Nothing is written that stays, and nothing queued is sent. Direct calls are
//! made, unless the answers are given.

use std::sync::{Arc, PoisonError};

use super::Dispatcher;
use super::failure::Failure;
use super::note::Note;
use super::offer::Offered;
use super::run::{Context, Head, seed};
use crate::domain::EventLane;
use crate::plugin::{self, Asked, Invocation, Journal, Standing};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::language::Listener;
use crate::store::{self, Commit, Op};

/// An event that is to be rehearsed.
pub struct Scene {
    /// What happened.
    pub event: StoredEvent,
    /// The other messages, where it is an album.
    pub rest: Vec<Vec<u8>>,
    /// In which lane it would lie.
    pub lane: EventLane,
    /// The number that it would have there: what a plugin draws at random follows from it.
    pub number: u64,
    /// Which attempt at it this is, from 1.
    pub attempt: u32,
    /// What time it is, in Unix milliseconds.
    pub now: u64,
    /// What plugins are answered that ask outside; where it is given, nobody is really asked.
    pub played: Option<Played>,
}

/// Answers for those plugins that observe, or for the others.
pub struct Played {
    /// For which.
    pub observes: bool,
    /// The answers.
    pub asked: Vec<Asked>,
}

/// What came of it.
pub struct Rehearsal {
    /// Of each run, in order.
    pub notes: Vec<Note>,
    /// Why nothing would come of it, so that it would be tried again or set aside.
    pub failed: Option<String>,
}

impl Dispatcher {
    /// Handles an event that is in the inbox for as long as this takes. Not for a dispatcher that runs.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rehearse(&self, scene: Scene) -> Result<Rehearsal, store::Error> {
        let context: &Context = &self.context;
        let Scene { event, rest, lane, number, attempt, now, played } = scene;
        let alone = rest.is_empty();
        let row = InboxRow { attempts: attempt.saturating_sub(1), not_before: 0, received: now, alone, event };
        let others = rest.into_iter().map(|raw| InboxRow::new(StoredEvent::Update(raw), now));
        let rows: Vec<(Vec<u8>, Vec<u8>)> = (number..)
            .map(|number| inbox::key(context.bot, lane, number))
            .zip(std::iter::once(row.encode()).chain(others.map(|row| row.encode())))
            .collect();
        let head = Head {
            key: inbox::key(context.bot, lane, number),
            lane,
            number,
            value: row.encode().into(),
            more: false,
            rest: Vec::new(),
        };
        // What failed before is no reason to wait here.
        context.breakers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        context.played.store(played.map(Arc::new));
        let listening = context.recorder.listen(None);

        let puts = rows.iter().cloned().map(|(key, value)| Op::Put { key, value });
        context.must_commit(Commit { ops: puts.collect(), ..Commit::default() }).await?;
        let album = context.album_at(&head, &row)?;
        let head = Head { rest: album.as_ref().map(|album| album.rest.clone()).unwrap_or_default(), ..head };
        let offered = if matches!(row.event, StoredEvent::Job { .. }) {
            context.run_job(&head, &row, now).await?
        } else {
            context.run_plugins(&head, &row, album.as_ref(), now).await?
        };
        let failed = match offered {
            Ok(Offered::Settled(_)) => None,
            Ok(Offered::Split) => Some("the album is not taken whole".to_owned()),
            Ok(Offered::Superseded | Offered::Ordered) => Some("it is no plugin's to handle".to_owned()),
            Err(failure) => Some(failure.reason),
        };
        context.shares.release(lane);
        let deletes = rows.into_iter().map(|(key, _)| Op::Delete { key });
        context.must_commit(Commit { ops: deletes.collect(), ..Commit::default() }).await?;

        drop(listening);
        context.recorder.close();
        context.forget_journal(number);
        Ok(Rehearsal { notes: context.recorder.take(number), failed })
    }
}

impl Context {
    /// As a worker does, but for the job's own end.
    async fn run_job(&self, head: &Head, row: &InboxRow, now: u64) -> Result<Result<Offered, Failure>, store::Error> {
        let StoredEvent::Job { plugin, conversation, id, name, payload, queued, key: _ } = &row.event else {
            return Ok(Ok(Offered::Superseded));
        };
        let Some(version) = self.routes.load().find(plugin, conversation, row.attempts) else {
            return Ok(Err(Failure::of_host(format!("plugin `{plugin}`, which queued this job, is not configured"))));
        };
        let mut invocation = Invocation {
            id: head.number,
            attempt: row.attempts + 1,
            now,
            seed: seed(self.bot, head.number),
            conversation: *conversation,
            lane: head.lane,
            bot: self.bot,
            journal: Journal::default(),
            standing: Standing::default(),
            tape: None,
            failed: None,
            listener: Listener::of_conversation(conversation.user, conversation.chat, self.default_locale.clone()),
            matched: Vec::new(),
            event: plugin::Event::Job(plugin::Job {
                id: *id,
                name: name.clone(),
                payload: payload.clone(),
                queued: *queued,
            }),
        };
        let (tx, result) = self.run(&version, &mut invocation, self.begin_tx(), false).await;
        Ok(result.map(|_| Offered::Settled(tx)))
    }
}
