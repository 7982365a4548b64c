//! Broadcasts: begun, looked at, held up and ended.
//!
//! Here is only written what is wanted; the sender does it, and tells of it in rows of its own. On a stopped store it
//! does so after the next start.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Error, Operator};
use crate::chats::known;
use crate::clock::unix_millis;
use crate::domain::PluginName;
use crate::domain::button::markup::{may_have_buttons, rewrite};
use crate::domain::button::{MOST_CARRIED, Owner};
use crate::store::rows::broadcast::{
    self as rows, Failure, FailureKind, HeadRow, PAGE, PIECE, ProgressRow, Recipient, State, To, Wanted, WishRow,
};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::rows::outbox::Delivery;
use crate::store::rows::{Unreadable, prefix_end, seal};
use crate::store::{Commit, CommitError, Op, Read, Tx};
use crate::telegram::cast;

/// Recipients that are handed over at a time: whole pieces.
pub const AT_A_TIME: usize = 10 * PIECE;
/// Puts of one commit.
const PUTS: usize = 32;
/// Bytes of a name.
const NAME_BYTES: usize = 100;

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// For people; may be empty.
    #[serde(default)]
    pub name: String,
    /// The Bot API method.
    pub method: String,
    /// Its parameters, without `chat_id`.
    pub params: Json,
    /// To every chat that the bot knows; else to those that are added.
    #[serde(default)]
    pub known_chats: bool,
    /// What may or may not have arrived is sent again.
    #[serde(default)]
    pub at_least_once: bool,
    /// Pay Telegram to take more messages in a second: this many Stars at most.
    #[serde(default)]
    pub max_stars: Option<u64>,
    /// The plugin whose buttons are on it, and which is given their presses. Empty: nobody's, which only
    /// `dispatch.unsealed_buttons` makes of use.
    #[serde(default)]
    pub buttons_of: Option<String>,
}

/// `{"id": …}`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// By which it is named.
    pub id: u64,
}

/// How a broadcast stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broadcast {
    /// By which it is named.
    pub id: u64,
    /// For people; may be empty.
    pub name: String,
    /// The plugin that began it; empty for an operator.
    pub plugin: String,
    /// What is sent.
    pub method: String,
    /// How it stands.
    pub state: State,
    /// Why the host has paused it.
    pub reason: Option<String>,
    /// To every chat that the bot knows.
    pub known_chats: bool,
    /// How many recipients there are. While known chats are still being counted, as many as are found.
    pub total: u64,
    /// Delivered.
    pub sent: u64,
    /// Skipped, since nothing can be sent there: blocked, deactivated, not found.
    pub gone: u64,
    /// Refused by Telegram, or given up without effect.
    pub refused: u64,
    /// May have been delivered; not tried again.
    pub unknown: u64,
    /// Still to come; of a cancelled one, those who never got it.
    pub waiting: u64,
    /// Done with in a second, over the time in which it was sending.
    pub per_second: f64,
    /// How many Stars it may cost; `None` where nothing is paid.
    pub max_stars: Option<u64>,
    /// How many it has cost at most, from what Telegram asks for a message.
    pub stars: f64,
    /// Unix milliseconds at which it was asked for.
    pub created: u64,
    /// Unix milliseconds of its first call; 0 before that.
    pub started: u64,
    /// Unix milliseconds of its end; 0 before that.
    pub ended: u64,
}

/// Somebody who did not get it, or may not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The chat's id, or its `@name`.
    pub chat: String,
    /// Which way.
    pub kind: FailureKind,
    /// Why.
    pub reason: String,
}

/// Some of those who did not get it, in the order in which it turned out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedPage {
    /// They.
    pub missed: Vec<Missed>,
    /// Where to go on, if there are more.
    pub next: Option<u32>,
}

/// Who would be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// Chats.
    pub chats: u64,
    /// Of these, those to which nothing can be sent as far as is known.
    pub gone: u64,
}

/// What an operator does to a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its recipients are all there.
    Run,
    /// It waits.
    Pause,
    /// It goes on.
    Resume,
    /// It ends.
    Cancel,
}

/// Why something can't be done about a broadcast.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is none.
    #[error("there is no broadcast {0}; `botyard broadcast list` shows those that are there")]
    Missing(u64),
    /// Something is wrong with what is asked.
    #[error("{0}")]
    Wrong(String),
    /// The rows can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<crate::store::Error> for Problem {
    fn from(error: crate::store::Error) -> Self {
        Self::Store(error.into())
    }
}

fn wrong<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Wrong(text.into()))
}

impl Draft {
    /// Checks it without doing anything.
    ///
    /// # Errors
    /// When it could never be sent; the text says what to change.
    pub fn check(&self) -> Result<HeadRow, String> {
        if self.name.len() > NAME_BYTES || self.name.chars().any(char::is_control) {
            return Err(format!("the name has control characters, or more than {NAME_BYTES} bytes"));
        }
        if self.max_stars == Some(0) {
            return Err("a paid broadcast that may cost nothing sends nothing: allow at least one Star".to_owned());
        }
        let paid = self.max_stars.is_some();
        let params = cast::for_many(&self.method, &self.params.to_string(), paid)?;
        rewrite(&params, &mut |data| self.check_button(data).map(|()| None))?;
        Ok(HeadRow {
            name: self.name.clone(),
            owner: String::new(),
            method: self.method.clone(),
            params,
            to: if self.known_chats { To::KnownChats } else { To::Listed { total: 0, pieces: 0 } },
            delivery: if self.at_least_once { Delivery::AtLeastOnce } else { Delivery::AtMostOnce },
            paid,
            created: unix_millis(),
        })
    }
}

impl Draft {
    fn check_button(&self, data: &str) -> Result<(), String> {
        if self.buttons_of.is_none() {
            return Err(
                "its buttons with `callback_data` need to be some plugin's, or their presses reach nobody: name it \
                        with --buttons-of NAME (`buttons_of` over HTTP)"
                    .to_owned(),
            );
        }
        if data.len() > MOST_CARRIED {
            let length = data.len();
            return Err(format!(
                "the callback data of a button has {length} bytes; in an operator's broadcast at most {MOST_CARRIED} are possible"
            ));
        }
        Ok(())
    }
}

impl Operator {
    /// The parameters with all buttons sealed for a plugin, in whatever chat they are.
    async fn sealed(&self, params: String, plugin: &PluginName) -> Result<String, Problem> {
        if !may_have_buttons(&params) {
            return Ok(params);
        }
        let seal = loop {
            let mut tx = Tx::new(&self.store);
            let seal = seal::of(&mut tx, self.bot)?;
            let commit: Commit = tx.into_commit();
            if commit.ops.is_empty() {
                break seal;
            }
            match self.store.commit(commit).await {
                Ok(receipt) => receipt.durable().await?,
                // Somebody else has made one.
                Err(CommitError::Conflict { .. }) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        };
        let owner = Owner { bot: self.bot, plugin, chat: None };
        let sealed = rewrite(&params, &mut |data| Ok(Some(seal.seal(&owner, data).wire)));
        Ok(sealed.map_err(Problem::Wrong)?.unwrap_or(params))
    }

    /// Writes down what is to be sent. Nothing is, before [`Change::Run`]. Answers with its id when it is on disk.
    ///
    /// # Errors
    /// When it could never be sent, or the store fails.
    pub async fn draft(&self, draft: &Draft) -> Result<Begun, Problem> {
        let mut head = draft.check().map_err(Problem::Wrong)?;
        if let Some(plugin) = draft.buttons_of.as_deref().filter(|plugin| !plugin.is_empty()) {
            head.params = self.sealed(head.params, &PluginName::new(plugin)).await?;
        }
        // The store's numbers are given once: this one is only for the id.
        let place = [rows::bot_prefix(self.bot), b"new".to_vec()].concat();
        let ops = vec![Op::Append { prefix: place.clone(), value: Vec::new() }];
        let number = self.write_all(ops).await?.first().copied().unwrap_or_default();
        let id = number * rows::IDS_EACH;
        let wish = WishRow { wanted: Wanted::Collect, number: 1, most: draft.max_stars.unwrap_or(0) * 10 };
        self.write_all(vec![
            Op::Delete { key: [place, number.to_be_bytes().to_vec()].concat() },
            Op::Put { key: rows::head_key(self.bot, id), value: head.encode() },
            Op::Put { key: rows::wish_key(self.bot, id), value: wish.encode() },
        ])
        .await?;
        Ok(Begun { id })
    }

    /// Adds recipients to a draft. All but the last lot must be whole pieces: [`AT_A_TIME`].
    ///
    /// # Errors
    /// When they can't be added, or the store fails.
    pub async fn add_recipients(&self, id: u64, recipients: &[Recipient]) -> Result<(), Problem> {
        let (head, wish, _) = self.rows(id)?;
        let To::Listed { total, pieces } = head.to else { return wrong("it goes to all known chats, not to a list") };
        if wish.wanted != Wanted::Collect {
            return wrong("it has begun, and takes no more recipients");
        }
        if total % PIECE as u64 != 0 || recipients.is_empty() || recipients.len() > AT_A_TIME {
            return wrong(format!("recipients come {AT_A_TIME} at a time, and fewer only in the end"));
        }
        let puts: Vec<Op> = rows::pieces(self.bot, id, pieces, recipients).collect();
        let more = u32::try_from(puts.len()).unwrap_or(u32::MAX);
        for lot in puts.chunks(PUTS) {
            self.write_all(lot.to_vec()).await?;
        }
        let to = To::Listed { total: total + recipients.len() as u64, pieces: pieces.saturating_add(more) };
        let head = HeadRow { to, ..head };
        self.write_all(vec![Op::Put { key: rows::head_key(self.bot, id), value: head.encode() }]).await?;
        Ok(())
    }

    /// Changes what is wanted of a broadcast, and how many Stars it may cost. Answers when it is on disk, with how it
    /// stands.
    ///
    /// # Errors
    /// When it can't be done, or the store fails.
    pub async fn change_broadcast(
        &self,
        id: u64,
        change: Change,
        max_stars: Option<u64>,
    ) -> Result<Broadcast, Problem> {
        let (head, wish, progress) = self.rows(id)?;
        let state = State::of(&wish, &progress);
        let wanted = match (change, state) {
            (_, State::Done | State::Cancelled) => return wrong(format!("broadcast {id} has ended")),
            (Change::Cancel, _) => Wanted::Cancel,
            (Change::Run, State::Incomplete) if matches!(head.to, To::Listed { total: 0, .. }) => {
                return wrong("there is nobody to send it to");
            }
            (Change::Run, State::Incomplete) => Wanted::Run,
            (_, State::Incomplete) => return wrong(format!("broadcast {id} was never begun: cancel it")),
            (Change::Run | Change::Resume, _) => Wanted::Run,
            (Change::Pause, _) => Wanted::Pause,
        };
        if max_stars.is_some() && !head.paid {
            return wrong(format!("broadcast {id} costs nothing"));
        }
        let most = max_stars.map_or(wish.most, |stars| stars.saturating_mul(10));
        let new = WishRow { wanted, number: wish.number + 1, most };
        let key = rows::wish_key(self.bot, id);
        let commit = Commit {
            reads: vec![Read::Value { key: key.clone(), seen: Some(wish.encode().into()) }],
            ops: vec![Op::Put { key, value: new.encode() }],
            on_durable: self.sender.clone().map(|sender| {
                // Here, and not after the wait: whoever asked may have gone away meanwhile.
                Box::new(move |_: &[u64]| sender.broadcasts_changed()) as crate::store::OnDurable
            }),
        };
        match self.store.commit(commit).await {
            Ok(receipt) => receipt.durable().await?,
            Err(CommitError::Conflict { .. }) => return wrong("somebody else has just changed it; look again"),
            Err(CommitError::Store(error)) => return Err(error.into()),
        }
        tracing::info!(broadcast = id, ?wanted, "an operator wants something of a broadcast");
        self.broadcast(id)
    }

    /// The newest `limit` broadcasts.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn broadcasts(&self, limit: usize) -> Result<Vec<Broadcast>, Problem> {
        let start = rows::bot_prefix(self.bot);
        let mut end = prefix_end(&start);
        let mut list = Vec::new();
        while list.len() < limit
            && let Some(key) = self.store.last_key(&start, &end)?
        {
            let Some(id) = rows::id_of(&key) else { break };
            end = rows::job_prefix(self.bot, id);
            match self.broadcast(id) {
                Ok(broadcast) => list.push(broadcast),
                // Being written down, or removed.
                Err(Problem::Missing(_)) => {}
                Err(error) => tracing::error!(broadcast = id, %error, "a broadcast can't be read"),
            }
        }
        Ok(list)
    }

    /// How a broadcast stands.
    ///
    /// # Errors
    /// When there is none, or the store can't be read.
    pub fn broadcast(&self, id: u64) -> Result<Broadcast, Problem> {
        let (head, wish, progress) = self.rows(id)?;
        let state = State::of(&wish, &progress);
        let done = progress.done();
        let known_chats = head.to == To::KnownChats;
        // Chats that the bot has met since they were counted count as well.
        let total = if known_chats { progress.total.max(progress.taken) } else { progress.total };
        let seconds = progress.ran as f64 / 1000.0;
        Ok(Broadcast {
            id,
            name: head.name,
            plugin: head.owner,
            method: head.method,
            state,
            reason: progress.stopped.filter(|_| state == State::Stopped).map(|(_, why)| why),
            known_chats,
            total,
            sent: progress.sent,
            gone: progress.gone,
            refused: progress.refused,
            unknown: progress.unknown,
            waiting: total.saturating_sub(done),
            per_second: if seconds > 0.0 { done as f64 / seconds } else { 0.0 },
            max_stars: head.paid.then_some(wish.most / 10),
            stars: progress.spent as f64 / 10.0,
            created: head.created,
            started: progress.started,
            ended: progress.ended,
        })
    }

    /// Those who did not get it, or may not have; `page` is where the last answer said to go on.
    ///
    /// # Errors
    /// When there is no such broadcast, or the store can't be read.
    pub fn missed(&self, id: u64, page: u32) -> Result<MissedPage, Problem> {
        self.rows(id)?;
        const PAGES: usize = 16;
        let end = prefix_end(&rows::failures_prefix(self.bot, id));
        let found = self.store.range(&rows::failures_key(self.bot, id, page), &end, PAGES)?;
        let mut missed = Vec::with_capacity(found.len() * PAGE);
        for (_, value) in &found {
            missed.extend(rows::decode_failures(value)?.into_iter().map(|Failure { to, kind, reason }| Missed {
                chat: match to {
                    Recipient::Chat(chat) => chat.to_string(),
                    Recipient::Name(name) => name,
                },
                kind,
                reason,
            }));
        }
        let more = u32::try_from(PAGES).ok().filter(|_| found.len() == PAGES);
        Ok(MissedPage { missed, next: more.map(|more| page.saturating_add(more)) })
    }

    /// Who would be reached by a broadcast to all known chats.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn reach_of_all(&self) -> Result<Audience, Problem> {
        let mut reach = Audience::default();
        for page in known(&self.store, self.bot) {
            let page = page?;
            reach.chats += page.len() as u64;
            reach.gone += page.iter().filter(|(_, row)| !row.is_reachable()).count() as u64;
        }
        Ok(reach)
    }

    /// Who would be reached by a broadcast to these.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn reach_of(&self, recipients: &[Recipient]) -> Result<Audience, Problem> {
        let mut reach = Audience { chats: recipients.len() as u64, gone: 0 };
        for recipient in recipients {
            if let Recipient::Chat(chat) = recipient {
                let row = self.store.get(&chat::key(self.bot, *chat))?;
                let is_gone = row.and_then(|row| ChatRow::decode(&row).ok()).is_some_and(|row| !row.is_reachable());
                reach.gone += u64::from(is_gone);
            }
        }
        Ok(reach)
    }

    fn rows(&self, id: u64) -> Result<(HeadRow, WishRow, ProgressRow), Problem> {
        let get = |key: Vec<u8>| self.store.get(&key);
        let (head, wish) = (get(rows::head_key(self.bot, id))?, get(rows::wish_key(self.bot, id))?);
        let (Some(head), Some(wish)) = (head, wish) else { return Err(Problem::Missing(id)) };
        let head = HeadRow::decode(&head)?;
        let progress = match get(rows::progress_key(self.bot, id))? {
            Some(progress) => ProgressRow::decode(&progress)?,
            None => ProgressRow::begun(head.to),
        };
        Ok((head, WishRow::decode(&wish)?, progress))
    }

    async fn write_all(&self, ops: Vec<Op>) -> Result<Vec<u64>, Problem> {
        match self.store.commit(Commit { ops, ..Commit::default() }).await {
            Ok(receipt) => {
                let numbers = receipt.numbers.clone();
                receipt.durable().await?;
                Ok(numbers)
            }
            Err(CommitError::Store(error)) => Err(error.into()),
            Err(CommitError::Conflict { .. }) => unreachable!("the commit reads nothing"),
        }
    }
}
