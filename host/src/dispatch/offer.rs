//! Offers one event to the plugins: by the manifests' filters, one after the other, until one takes it.
//!
//! All runs of an event write into one transaction, with the end of the event itself; what a run wrote that passed, or
//! that only looked on and failed, is rolled back. Nothing is committed here.

use std::borrow::Cow;

use super::album::Album;
use super::buttons::{Press, UNWANTED};
use super::failure::Failure;
use super::open::conversation;
use super::routes::{Candidate, Facts, Version};
use super::run::{Context, Head, seed, take_event};
use crate::domain::{Conversation, UpdateView};
use crate::plugin::{self, Invocation, Journal, Standing, Verdict};
use crate::store::rows::inbox::{InboxRow, StoredEvent};
use crate::store::rows::language::Listener;
use crate::store::{self, Tx};

/// What came of the plugins.
pub(super) enum Offered {
    /// To be committed.
    Settled(Tx),
    /// The album is to be handled message by message.
    Split,
    /// Somebody else has settled the event.
    Superseded,
    /// The user's order to end the conversation is being looked at first.
    Ordered,
}

impl Context {
    /// Offers the event to the plugins until one takes it. The transaction holds the effects of all runs, and the
    /// end of the event itself.
    pub(super) async fn run_plugins(
        &self,
        head: &Head,
        row: &InboxRow,
        album: Option<&Album>,
        now: u64,
    ) -> Result<Result<Offered, Failure>, store::Error> {
        let mut tx = self.begin_tx();
        if !take_event(&mut tx, head)? {
            return Ok(Ok(Offered::Superseded));
        }
        let mut invocation = Invocation {
            id: head.number,
            attempt: row.attempts + 1,
            now,
            seed: seed(self.bot, head.number),
            conversation: Conversation::default(),
            lane: self.current_lane(&mut tx, head.lane)?,
            bot: self.bot,
            journal: self.journal(head.number, false),
            standing: Standing::default(),
            tape: None,
            failed: None,
            matched: Vec::new(),
            event: plugin::Event::Other((String::new(), String::new())),
            listener: Listener::default(),
        };
        let routes = self.routes.load_full();
        let raw = match &row.event {
            StoredEvent::Update(raw) => raw,
            // Looked at before any plugin is.
            StoredEvent::Cancel { .. } => return Ok(Ok(Offered::Superseded)),
            StoredEvent::Job { plugin, .. } => {
                return Ok(Err(Failure::of_host(format!(
                    "a job of plugin `{plugin}` stands in the inbox, and not in its queue"
                ))));
            }
            own => {
                let ran = self.run_own(own, head.lane, row.attempts, &routes, invocation, tx).await?;
                return Ok(ran.map(Offered::Settled));
            }
        };
        let all = std::iter::once(raw).chain(head.rest.iter().map(|member| &member.raw));
        let raws: Vec<Cow<'_, str>> = all.map(|raw| String::from_utf8_lossy(raw)).collect();
        let views: Result<Vec<_>, _> = raws.iter().map(|raw| UpdateView::parse(raw)).collect();
        let mut views = match views {
            Ok(views) => views.into_iter().zip(&raws).collect::<Vec<_>>(),
            Err(error) => return Ok(Err(Failure::of_host(format!("the update can't be read: {error}")))),
        };
        // They need not have come in order.
        views.sort_by_key(|(view, _)| view.message_id);
        for (view, _) in &mut views {
            self.look_at_chat(&mut tx, view, now)?;
        }
        let Some((view, _)) = views.first() else { return Ok(Ok(Offered::Superseded)) };
        if self.is_being_ordered(head, view)? {
            return Ok(Ok(Offered::Ordered));
        }
        // Albums come from people, and have no buttons.
        let shows = match &views[..] {
            [(view, raw)] => self.shows(&mut tx, view, raw)?,
            _ => None,
        };
        let press = match &shows {
            Some(shows) => self.press(&tx, &routes, shows, view)?,
            None => Press::Open,
        };
        match &press {
            Press::Nobodys(why) => {
                if let Some((view, raw)) = views.first() {
                    self.turn_away(&mut tx, &routes, (view, raw), None, why, head.number)?;
                }
                metrics::counter!("botyard_events_total", "outcome" => "refused").increment(1);
                return Ok(Ok(Offered::Settled(tx)));
            }
            Press::Of { data, .. } => views.iter_mut().for_each(|(view, _)| view.callback_data = Some(data.into())),
            Press::Open => {}
        }
        let Some((view, _)) = views.first() else { return Ok(Ok(Offered::Superseded)) };
        let username = self.username.load();
        let username = username.as_deref().map(String::as_str);
        let whole = album.map(|_| whole_of(&views));
        let mut single: Vec<_> = views.iter().map(|(view, _)| Facts::of(view, username, row.attempts)).collect();
        single.iter_mut().for_each(|facts| facts.owner = press.owner().cloned());
        let facts = whole.as_ref().map(|whole| Facts::of_album(whole, username, row.attempts));
        let (after, candidates) = self.candidates(&routes, (&single, facts.as_ref()), view, &invocation, tx).await?;
        tx = after;
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(failure) => return Ok(Err(failure)),
        };
        let candidates = self.granted(candidates, view, &mut tx)?;
        let is_whole = |candidate: &Candidate| candidate.album || album.is_none();
        let first = candidates.iter().find(|candidate| !candidate.observes);
        if album.is_some() && !first.is_some_and(is_whole) {
            return Ok(Ok(Offered::Split));
        }
        if candidates.is_empty() {
            metrics::counter!("botyard_events_total", "outcome" => "unrouted").increment(1);
            if let (Some(owner), Some((view, raw))) = (press.owner(), views.first()) {
                self.turn_away(&mut tx, &routes, (view, raw), Some(owner), UNWANTED, head.number)?;
            }
            return Ok(Ok(Offered::Settled(tx)));
        }
        // Whoever would be asked first; so that waiting costs no run, of an observer say.
        if let Some(first) = first
            && self.must_wait(&first.version.plugin.name, head.number)
        {
            return Ok(Err(Failure::paused(&first.version.plugin.name)));
        }
        // Taken here already, and kept while those before it look on.
        if let Some(first) = first
            && !self.shares.take(head.lane, &first.version.plugin.name)
        {
            return Ok(Err(Failure::crowded(&first.version.plugin.name)));
        }
        invocation.listener = self.listener(view);
        let mut updates = views.iter().zip(&single).map(|((view, raw), facts)| self.wire(view, facts, raw));
        invocation.event = match album {
            Some(album) => plugin::Event::Album(plugin::Album {
                id: album.id.clone(),
                text: whole.as_ref().and_then(|whole| whole.text.as_deref()).map(str::to_owned),
                late: self.is_late(&mut tx, album)?,
                updates: updates.collect(),
            }),
            None => match updates.next() {
                Some(update) => plugin::Event::Update(update),
                None => return Ok(Ok(Offered::Superseded)),
            },
        };
        // As it came, where each is shown its own.
        let event = shows.as_ref().map(|_| invocation.event.clone());
        for candidate in candidates {
            let (whole, Candidate { version, observes, matched, .. }) = (is_whole(&candidate), candidate);
            let plugin = &version.plugin;
            if !whole && !observes {
                // Those who wanted it whole did not take it.
                return Ok(Ok(Offered::Split));
            }
            if self.must_wait(&plugin.name, head.number) {
                if observes {
                    // As with one that fails: who only looks on must not keep the event from those that handle it.
                    continue;
                }
                return Ok(Err(Failure::paused(&plugin.name)));
            }
            if !self.shares.take(head.lane, &plugin.name) {
                return Ok(Err(Failure::crowded(&plugin.name)));
            }
            invocation.conversation = conversation(plugin, view);
            if let Some((shows, event)) = shows.as_ref().zip(event.as_ref()) {
                invocation.event = self.show(&tx, shows, &press, &plugin.name, event)?;
            }
            if !whole {
                for ((view, raw), facts) in views.iter().zip(&single) {
                    let open = |version: &Version| Ok(self.open_state(&mut tx, version, view, now)?.name());
                    let matched = routes.observed_by(&version, facts, open)?;
                    if !matched.is_empty() {
                        // Each message has calls of its own, and whoever only looks on is not tried again.
                        let (event, journal) = (plugin::Event::Update(self.wire(view, facts, raw)), Journal::default());
                        let mut message = Invocation { matched, event, journal, ..invocation.clone() };
                        tx = self.observe(&version, &mut message, tx).await;
                    }
                }
                continue;
            }
            (invocation.matched, invocation.journal) = (matched, self.journal(head.number, observes));
            if observes {
                tx = self.observe(&version, &mut invocation, tx).await;
                continue;
            }
            let (after, result) = self.run(&version, &mut invocation, tx, false).await;
            tx = after;
            match result {
                Ok(Verdict::Done) => {
                    if let Some(album) = album {
                        self.remember_album(&mut tx, album)?;
                    }
                    metrics::counter!("botyard_events_total", "outcome" => "handled").increment(1);
                    return Ok(Ok(Offered::Settled(tx)));
                }
                // A run that passes leaves no more behind than a state that was taken over.
                Ok(Verdict::Pass) => {}
                Err(failure) => return Ok(Err(failure)),
            }
        }
        if album.is_some() {
            return Ok(Ok(Offered::Split));
        }
        metrics::counter!("botyard_events_total", "outcome" => "passed").increment(1);
        if let (Some(owner), Some((view, raw))) = (press.owner(), views.first()) {
            self.turn_away(&mut tx, &routes, (view, raw), Some(owner), UNWANTED, head.number)?;
        }
        Ok(Ok(Offered::Settled(tx)))
    }

    /// Who only looks on must not keep the event from those that handle it: a failure is told, and rolled back.
    async fn observe(&self, version: &Version, invocation: &mut Invocation, tx: Tx) -> Tx {
        let before = tx.savepoint();
        let (mut tx, result) = self.run(version, invocation, tx, true).await;
        match result {
            Ok(Verdict::Done | Verdict::Pass) => {}
            Err(failure) => {
                let (plugin, event, reason) = (&failure.plugin, invocation.id, &failure.reason);
                tracing::warn!(
                    %plugin, version = failure.version, event, reason,
                    backtrace = failure.backtrace_once(invocation.attempt), "an observer failed"
                );
                tx.roll_back(before);
            }
        }
        tx
    }

    pub(super) fn listener(&self, view: &UpdateView<'_>) -> Listener {
        let told = view.language.as_deref().map(str::to_owned);
        Listener { user: view.user, chat: view.chat, told, default: self.default_locale.clone() }
    }

    fn wire(&self, view: &UpdateView<'_>, facts: &Facts<'_>, raw: &str) -> plugin::Update {
        plugin::Update {
            id: view.id.map_or(0, |id| id.0),
            kind: view.kind.clone().into_owned(),
            chat_id: view.chat.map(|id| id.0),
            chat_type: view.chat_type.as_deref().map(str::to_owned),
            thread_id: view.thread.map(|id| id.0),
            message_id: view.message_id,
            user_id: view.user.map(|id| id.0),
            locale: view.language.as_deref().unwrap_or(&self.default_locale).to_owned(),
            text: view.text.as_deref().map(str::to_owned),
            command: view
                .command()
                .zip(facts.command.clone())
                .map(|(command, name)| plugin::Command { name, args: command.args.to_owned() }),
            callback_data: view.callback_data.as_deref().map(str::to_owned),
            raw: raw.to_owned(),
        }
    }
}

/// An album as one: its first message, with the caption of whichever has one.
fn whole_of<'a>(views: &[(UpdateView<'a>, &Cow<'a, str>)]) -> UpdateView<'a> {
    let mut whole = views.first().map(|(view, _)| view.clone()).unwrap_or_default();
    whole.text = views.iter().find_map(|(view, _)| view.text.clone());
    whole
}
