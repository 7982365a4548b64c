//! A pressed button: whose it is, what its plugin gets to see of it, and what the person is told where it is nobody's.
//!
//! Only the plugin that has made a button is given its press, and only where its seal holds. Everything else (a forged
//! press, a button from elsewhere, one whose data is not kept any more, one that its plugin has no use for now) is
//! answered here in a sentence and counted; of the first three, no plugin hears at all.

use std::borrow::Cow;

use super::routes::Routes;
use super::run::Context;
use crate::clock::unix_millis;
use crate::domain::button::markup::rewrite_update;
use crate::domain::button::{self, Seal, Wire};
use crate::domain::{ChatId, PluginName, UpdateView, callback_query_id};
use crate::plugin::{self, Event};
use crate::sender::acknowledgement;
use crate::store::rows::{outbox, seal};
use crate::store::{self, Commit, CommitError, Tx};

/// What the answer to a pressed button can say.
const MOST_LETTERS: usize = 200;
/// What a plugin may say in its own words.
const MESSAGE: &str = "stale-button";

/// What a pressed button is.
pub(super) enum Press {
    /// No pressed button; or one from elsewhere, where the operator wants plugins to have those.
    Open,
    /// A plugin's.
    Of {
        /// Whose.
        plugin: PluginName,
        /// As the plugin made it.
        data: String,
    },
    /// Nobody's, and why.
    Nobodys(&'static str),
}

impl Press {
    pub(super) fn owner(&self) -> Option<&PluginName> {
        match self {
            Self::Of { plugin, .. } => Some(plugin),
            Self::Open | Self::Nobodys(_) => None,
        }
    }
}

/// Why a button of a plugin's was of no use: it has no handler for it, or none that would have it now.
pub(super) const UNWANTED: &str = "unwanted";

/// What it takes to show an update to plugins.
pub(super) struct Shows {
    seal: Seal,
    places: Vec<ChatId>,
}

impl Context {
    /// Makes the secret of the bot's buttons, if there is none yet.
    pub(super) async fn have_seal(&self) -> Result<(), store::Error> {
        let mut tx = Tx::new(&self.store);
        seal::of(&mut tx, self.bot)?;
        let commit: Commit = tx.into_commit();
        if commit.ops.is_empty() {
            return Ok(());
        }
        match self.store.commit(commit).await {
            // Another one has made it.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    /// What is needed for [`Context::press`] and [`Context::show`]; none for the many updates that have no buttons.
    pub(super) fn shows(&self, tx: &mut Tx, view: &UpdateView<'_>, raw: &str) -> Result<Option<Shows>, store::Error> {
        if view.kind != "callback_query" && !raw.contains("callback_data") {
            return Ok(None);
        }
        let places = view.chat.map(|chat| self.sender.chats().all_ids(chat)).unwrap_or_default();
        Ok(Some(Shows { seal: seal::of(tx, self.bot)?, places }))
    }

    /// Whose button was pressed.
    pub(super) fn press(
        &self,
        tx: &Tx,
        routes: &Routes,
        shows: &Shows,
        view: &UpdateView<'_>,
    ) -> Result<Press, store::Error> {
        let Some(wire) = view.callback_data.as_deref().filter(|_| view.kind == "callback_query") else {
            return Ok(Press::Open);
        };
        for entry in routes.entries() {
            let plugin = &entry.plugin.name;
            let found = seal::open(&shows.seal, tx, (self.bot, plugin), &shows.places, wire, unix_millis())?;
            if let Some(data) = found {
                return Ok(Press::Of { plugin: plugin.clone(), data });
            }
        }
        Ok(match button::read(wire) {
            Wire::Foreign if self.unsealed_buttons => Press::Open,
            Wire::Foreign => Press::Nobodys("unsealed"),
            Wire::Carried { .. } => Press::Nobodys("broken"),
            Wire::Kept { .. } => Press::Nobodys("gone"),
        })
    }

    /// The event as one plugin may see it: its own buttons as it has made them, those of others without their data.
    pub(super) fn show(
        &self,
        tx: &Tx,
        shows: &Shows,
        press: &Press,
        plugin: &PluginName,
        event: &Event,
    ) -> Result<Event, store::Error> {
        let Event::Update(update) = event else { return Ok(event.clone()) };
        let data = match press {
            Press::Of { plugin: owner, data } => Some(if owner == plugin { data } else { "" }),
            Press::Open | Press::Nobodys(_) => None,
        };
        let raw = rewrite_update(&update.raw, data, &mut |wire| {
            let own = seal::open(&shows.seal, tx, (self.bot, plugin), &shows.places, wire, unix_millis())?;
            Ok::<_, store::Error>(own.or_else(|| (button::read(wire) != Wire::Foreign).then(String::new)))
        })?;
        let callback_data = match data {
            Some(data) => Some(data.to_owned()).filter(|data| !data.is_empty()),
            None => update.callback_data.clone(),
        };
        let raw = raw.unwrap_or_else(|| update.raw.clone());
        Ok(Event::Update(plugin::Update { raw, callback_data, ..update.clone() }))
    }

    /// Tells the person that the button leads nowhere: in its plugin's words, if it has some for it.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(super) fn turn_away(
        &self,
        tx: &mut Tx,
        routes: &Routes,
        (view, raw): (&UpdateView<'_>, &str),
        owner: Option<&PluginName>,
        why: &'static str,
        event: u64,
    ) -> Result<(), store::Error> {
        metrics::counter!("botyard_buttons_refused_total", "reason" => why).increment(1);
        let plugin = owner.map_or("", PluginName::as_str);
        tracing::debug!(event, plugin, why, "a button that was pressed is out of date, or nobody's");
        let Some(query) = callback_query_id(raw) else { return Ok(()) };
        let locale = self.listener(view).language(tx, self.bot)?;
        let own = owner.and_then(|owner| {
            let mut versions = routes.entry(owner)?.versions();
            versions.find_map(|version| version.translate(&locale, MESSAGE, &[]))
        });
        let text = own.map_or(Cow::Borrowed(&*self.stale_button_reply), Cow::Owned);
        let text: String = text.chars().take(MOST_LETTERS).collect();
        let (lane, _) = acknowledgement(&query);
        let params = serde_json::json!({ "callback_query_id": query, "text": text }).to_string();
        tx.append(outbox::lane_prefix(self.bot, lane), Self::answer_row(event, params).encode());
        Ok(())
    }
}
