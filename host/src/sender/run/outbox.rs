//! Calls that an operator takes out of the outbox.

use metrics::counter;
use tokio::time::Instant;

use super::{Done, Loop, chat_of};
use crate::domain::Lane;
use crate::sender::backlog;
use crate::sender::outbox::{Cancelled, Question, Reply};
use crate::store::rows::file;
use crate::store::rows::outbox::{self, OutboxRow, Priority};
use crate::store::{Commit, CommitError, Op};
use crate::whose;

impl Loop<'_> {
    pub(super) fn answer(&mut self, question: Question, now: Instant) {
        match question {
            Question::Look { lanes, answer } => {
                let views = lanes.into_iter().map(|lane| self.schedule.view(lane, now)).collect();
                // Whoever went away needs no answer.
                answer.send(views).ok();
            }
            Question::Cancel { rows, answer } => self.cancel(rows, answer, now),
        }
    }

    fn cancel(&mut self, rows: Vec<(Lane, u64)>, answer: Reply, now: Instant) {
        // In the store's one order: what is told of them already comes first.
        self.write();
        let mut commit = Commit::default();
        let (mut let_go, mut gone, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        let mut under_way = None;
        for (lane, number) in rows {
            let key = outbox::key(self.shared.bot, lane, number);
            let row = self.shared.store.get(&key).ok().flatten();
            let row = row.map(|value| OutboxRow::decode(&value).ok());
            let follows = row.as_ref().and_then(Option::as_ref).is_some_and(|row| row.follows);
            let goes_on = under_way == Some(lane) && follows;
            let cancelled = match &row {
                None => Cancelled::Gone,
                Some(_) if goes_on || self.schedule.view(lane, now).in_flight == Some(number) => Cancelled::UnderWay,
                Some(_) => Cancelled::Done,
            };
            under_way = (cancelled == Cancelled::UnderWay).then_some(lane);
            answers.push(cancelled);
            if cancelled != Cancelled::Done {
                continue;
            }
            commit.ops.push(Op::Delete { key });
            gone.push((lane, number));
            // What can't be read is taken out as well.
            let Some(row) = row.flatten() else { continue };
            for attached in &row.files {
                commit.ops.push(Op::Delete { key: file::reference(self.shared.bot, attached) });
                let_go.push(attached.hash);
            }
            let is_head = self.schedule.head(lane) == Some(number);
            if row.begun != 0 || (is_head && self.schedule.is_ambiguous(lane)) {
                let reason = "cancelled by an operator after an attempt";
                self.row_lost((lane, number), &row, row.params.as_bytes(), true, reason);
            }
            let (plugin, event, method) = (&row.plugin, row.event, &row.method);
            tracing::info!(%plugin, chat_id = chat_of(lane), event, method, number, "a queued call was cancelled by an operator");
        }
        if let Some(uploads) = &self.shared.uploads {
            let files = uploads.files.clone();
            commit.on_durable = Some(Box::new(move |_| files.let_go(let_go)));
        }
        counter!("botyard_send_dropped_total", "reason" => "cancelled").increment(gone.len() as u64);
        self.cancelled.extend(&gone);
        for &(lane, number) in &gone {
            if number <= self.schedule.last_row(lane) {
                self.row_left(number);
            }
            if self.schedule.head(lane) == Some(number) {
                let next = self.next_row(lane, number);
                self.schedule.skip(lane, next, now);
            }
        }
        let committed = self.shared.store.commit(commit);
        self.calls.spawn(whose::same(async move {
            let durable = match committed.await {
                Ok(receipt) => receipt.durable().await.is_ok(),
                Err(CommitError::Store(_)) => false,
                Err(CommitError::Conflict { .. }) => unreachable!("a commit that has read nothing"),
            };
            // With a store that fails the host is about to end, and nobody is told that it is done.
            Done::Cancelled { rows: gone, answer: durable.then_some((answer, answers)) }
        }));
    }

    pub(super) fn finish_cancelled(&mut self, rows: &[(Lane, u64)], answer: Option<(Reply, Vec<Cancelled>)>) {
        for row in rows {
            self.cancelled.remove(row);
        }
        if let Some((answer, answers)) = answer {
            answer.send(answers).ok();
        }
    }

    /// The first row of the lane behind `number`, without those that are on their way out.
    pub(super) fn next_row(&self, lane: Lane, number: u64) -> Option<(u64, Priority)> {
        let last = self.schedule.last_row(lane);
        let mut after = number;
        loop {
            let next = backlog::next(&self.shared.store, self.shared.bot, lane, after, last).unwrap_or_else(|error| {
                tracing::error!(%error, "the outbox can't be read, its rows wait for the next start");
                None
            });
            match next {
                Some((number, _)) if self.cancelled.contains(&(lane, number)) => after = number,
                next => return next,
            }
        }
    }
}
