//! Broadcasts, one call made to many chats: `b bot id part`, and behind the part a number where there are many.
//!
//! - The *head* says what is sent; it does not change once the broadcast has begun.
//! - The *wish* is what operators and plugins want of it. They write it, the sender only reads it.
//! - The *progress* is how far it is. The sender alone writes it, together with what it tells of.
//! - *Recipients* stand in pieces of many, and are read where the progress says. Whoever has been taken from there and
//!   is not done with has an *open* row: few at any time.
//! - *Failures* stand in pages.

use super::{BotId, ChatId, Deserialize, Serialize, Unreadable, decode, encode, prefix};
use crate::store::Op;
use crate::store::rows::outbox::Delivery;

const KIND: u8 = b'b';
const HEAD: u8 = 1;
const WISH: u8 = 2;
const PROGRESS: u8 = 3;
const RECIPIENTS: u8 = 4;
const OPEN: u8 = 5;
const FAILURES: u8 = 6;

/// How many broadcasts one event can begin. Their ids are made of its number, which no other event and no order of an
/// operator has.
pub const IDS_EACH: u64 = 4;
/// Recipients in a piece.
pub const PIECE: usize = 1_000;
/// Failures in a page.
pub const PAGE: usize = 64;
/// Tenths of a Star that a paid message costs.
pub const PRICE: u64 = 1;

/// Somebody to send to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Recipient {
    /// By id.
    Chat(ChatId),
    /// A public `@name`.
    Name(String),
}

/// To whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum To {
    /// To those in the recipients' rows.
    Listed {
        /// How many they are.
        total: u64,
        /// In how many pieces.
        pieces: u32,
    },
    /// To every chat that the bot knows when its turn comes.
    KnownChats,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadRow {
    /// For people; may be empty.
    pub name: String,
    /// The plugin that began it; empty for an operator.
    pub owner: String,
    /// The Bot API method.
    pub method: String,
    /// Its parameters, a JSON object without `chat_id`.
    pub params: String,
    /// To whom.
    pub to: To,
    /// What becomes of a call that may or may not have taken effect.
    pub delivery: Delivery,
    /// Telegram is paid for sending faster.
    pub paid: bool,
    /// Unix milliseconds.
    pub created: u64,
}

/// What is wanted of a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// Nothing yet: its recipients are still being written down.
    Collect,
    /// To send.
    Run,
    /// To wait.
    Pause,
    /// To end.
    Cancel,
}

/// What is wanted, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WishRow {
    /// What.
    pub wanted: Wanted,
    /// Rises with every wish, so that two are never the same.
    pub number: u64,
    /// How many tenths of a Star it may cost.
    pub most: u64,
}

/// Where the next recipient is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// In the list: the piece, and the place in it.
    Listed(u32, u32),
    /// Among the known chats: behind this one, or at the first.
    Known(Option<ChatId>),
    /// There is none.
    End,
}

/// How far a broadcast is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressRow {
    /// Where to go on.
    pub next: Cursor,
    /// The number that the next one to be taken gets.
    pub taken: u64,
    /// How many there are in all. For known chats, as many as were counted when it began.
    pub total: u64,
    /// Delivered.
    pub sent: u64,
    /// Skipped: nothing can be sent there (any more).
    pub gone: u64,
    /// Refused, or given up without effect.
    pub refused: u64,
    /// Delivered or not: nobody knows.
    pub unknown: u64,
    /// Tenths of a Star: what it has cost, and what is under way may cost.
    pub spent: u64,
    /// Unix milliseconds of its first call; 0 before that.
    pub started: u64,
    /// Unix milliseconds of its end; 0 before that.
    pub ended: u64,
    /// Milliseconds in which it was sending.
    pub ran: u64,
    /// Failures written down.
    pub failures: u64,
    /// Why the host has paused it, in spite of the wish with this number.
    pub stopped: Option<(u64, String)>,
}

impl ProgressRow {
    /// Before anything is sent.
    #[must_use]
    pub fn begun(to: To) -> Self {
        let (next, total) = match to {
            To::Listed { total: 0, .. } => (Cursor::End, 0),
            To::Listed { total, .. } => (Cursor::Listed(0, 0), total),
            To::KnownChats => (Cursor::Known(None), 0),
        };
        Self {
            next,
            taken: 0,
            total,
            sent: 0,
            gone: 0,
            refused: 0,
            unknown: 0,
            spent: 0,
            started: 0,
            ended: 0,
            ran: 0,
            failures: 0,
            stopped: None,
        }
    }

    /// How many are done with, one way or another.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.sent + self.gone + self.refused + self.unknown
    }
}

/// Somebody who has been taken from the list and is not done with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRow {
    /// Who.
    pub to: Recipient,
    /// Which process has begun a call that may still take effect; 0 for none.
    pub begun: u64,
    /// Unix milliseconds before which it must not be tried; 0 for at once.
    pub not_before: u64,
}

/// Why somebody did not get it, or may not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nothing can be sent there.
    Gone,
    /// Telegram refused, or it was given up.
    Refused,
    /// It may have arrived.
    Unknown,
}

/// Somebody who did not get it, or may not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Who.
    pub to: Recipient,
    /// Which way.
    pub kind: FailureKind,
    /// Telegram's words, or the host's.
    pub reason: String,
}

/// How a broadcast stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its recipients are not all written down yet.
    Incomplete,
    /// It sends, or will when a host runs.
    Running,
    /// Somebody has paused it.
    Paused,
    /// The host has paused it, and says why.
    Stopped,
    /// It has come to its end.
    Done,
    /// Somebody has ended it.
    Cancelled,
}

impl State {
    /// What wish and progress make together.
    #[must_use]
    pub fn of(wish: &WishRow, progress: &ProgressRow) -> Self {
        let is_stopped = progress.stopped.as_ref().is_some_and(|(number, _)| *number == wish.number);
        match (progress.ended, wish.wanted) {
            (_, Wanted::Cancel) => Self::Cancelled,
            (1.., _) => Self::Done,
            (0, Wanted::Collect) => Self::Incomplete,
            (0, Wanted::Pause) => Self::Paused,
            (0, Wanted::Run) if is_stopped => Self::Stopped,
            (0, Wanted::Run) => Self::Running,
        }
    }
}

macro_rules! row {
    ($row:ty, $what:literal) => {
        impl $row {
            /// The stored form.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                encode(self)
            }

            /// Reads the stored form.
            ///
            /// # Errors
            /// When the bytes are not a row of this kind.
            pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
                decode($what, bytes)
            }
        }
    };
}

row!(HeadRow, "broadcast");
row!(WishRow, "broadcast's wish");
row!(ProgressRow, "broadcast's progress");
row!(OpenRow, "broadcast's open recipient");

/// A piece of the list, in its stored form.
#[must_use]
pub fn encode_piece(recipients: &[Recipient]) -> Vec<u8> {
    encode(&recipients)
}

/// Reads a piece of the list.
///
/// # Errors
/// When the bytes are not a row of this kind.
pub fn decode_piece(bytes: &[u8]) -> Result<Vec<Recipient>, Unreadable> {
    decode("broadcast's recipients", bytes)
}

/// A page of failures, in its stored form.
#[must_use]
pub fn encode_failures(failures: &[Failure]) -> Vec<u8> {
    encode(&failures)
}

/// Reads a page of failures.
///
/// # Errors
/// When the bytes are not a row of this kind.
pub fn decode_failures(bytes: &[u8]) -> Result<Vec<Failure>, Unreadable> {
    decode("broadcast's failures", bytes)
}

/// What writes down the recipients, of which `first` pieces are written already. But for the last, pieces are full.
pub fn pieces(bot: BotId, id: u64, first: u32, recipients: &[Recipient]) -> impl Iterator<Item = Op> + '_ {
    recipients
        .chunks(PIECE)
        .zip(first..)
        .map(move |(piece, number)| Op::Put { key: piece_key(bot, id, number), value: encode_piece(piece) })
}

/// All broadcasts of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Everything of one broadcast.
#[must_use]
pub fn job_prefix(bot: BotId, id: u64) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// The broadcast of a key of this kind.
#[must_use]
pub fn id_of(key: &[u8]) -> Option<u64> {
    (key.first() == Some(&KIND)).then(|| Some(u64::from_be_bytes(key.get(9..17)?.try_into().ok()?))).flatten()
}

/// True for the key of a head.
#[must_use]
pub fn is_head(key: &[u8]) -> bool {
    is_part(key, HEAD)
}

/// True for the key of a wish.
#[must_use]
pub fn is_wish(key: &[u8]) -> bool {
    is_part(key, WISH)
}

fn is_part(key: &[u8], part: u8) -> bool {
    key.len() == 18 && key.first() == Some(&KIND) && key.last() == Some(&part)
}

fn part(bot: BotId, id: u64, part: u8) -> Vec<u8> {
    let mut key = job_prefix(bot, id);
    key.push(part);
    key
}

/// What is sent.
#[must_use]
pub fn head_key(bot: BotId, id: u64) -> Vec<u8> {
    part(bot, id, HEAD)
}

/// What is wanted.
#[must_use]
pub fn wish_key(bot: BotId, id: u64) -> Vec<u8> {
    part(bot, id, WISH)
}

/// How far it is.
#[must_use]
pub fn progress_key(bot: BotId, id: u64) -> Vec<u8> {
    part(bot, id, PROGRESS)
}

/// A piece of the list.
#[must_use]
pub fn piece_key(bot: BotId, id: u64, piece: u32) -> Vec<u8> {
    let mut key = part(bot, id, RECIPIENTS);
    key.extend_from_slice(&piece.to_be_bytes());
    key
}

/// All that is left of the list.
#[must_use]
pub fn pieces_prefix(bot: BotId, id: u64) -> Vec<u8> {
    part(bot, id, RECIPIENTS)
}

/// Somebody who is not done with, by the number at which he was taken.
#[must_use]
pub fn open_key(bot: BotId, id: u64, taken: u64) -> Vec<u8> {
    let mut key = part(bot, id, OPEN);
    key.extend_from_slice(&taken.to_be_bytes());
    key
}

/// All who are not done with; [`super::number_of`] their keys is the number at which they were taken.
#[must_use]
pub fn open_prefix(bot: BotId, id: u64) -> Vec<u8> {
    part(bot, id, OPEN)
}

/// A page of failures.
#[must_use]
pub fn failures_key(bot: BotId, id: u64, page: u32) -> Vec<u8> {
    let mut key = part(bot, id, FAILURES);
    key.extend_from_slice(&page.to_be_bytes());
    key
}

/// All pages of failures.
#[must_use]
pub fn failures_prefix(bot: BotId, id: u64) -> Vec<u8> {
    part(bot, id, FAILURES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_what_they_are_of_and_bots_and_broadcasts_are_kept_apart() {
        let (bot, id) = (BotId(-7), 0x0102_0304_0506_0708);
        for key in [head_key(bot, id), progress_key(bot, id), piece_key(bot, id, 9), open_key(bot, id, 1)] {
            assert!(key.starts_with(&job_prefix(bot, id)) && key.starts_with(&bot_prefix(bot)));
            assert_eq!((id_of(&key), is_wish(&key)), (Some(id), false));
        }
        assert!(is_wish(&wish_key(bot, id)));
        assert!(!wish_key(bot, id + 1).starts_with(&job_prefix(bot, id)));
        assert_eq!((id_of(b"b"), id_of(b"x"), is_wish(b"b")), (None, None, false));
        // A piece's number could end like a wish.
        assert!(!is_wish(&piece_key(bot, id, 2)));
    }

    #[test]
    fn a_stop_by_the_host_lasts_until_the_next_wish() {
        let mut progress = ProgressRow::begun(To::KnownChats);
        let wish = |wanted, number| WishRow { wanted, number, most: 0 };
        for (wanted, state) in
            [(Wanted::Collect, State::Incomplete), (Wanted::Run, State::Running), (Wanted::Pause, State::Paused)]
        {
            assert_eq!(State::of(&wish(wanted, 1), &progress), state);
        }
        progress.stopped = Some((1, String::new()));
        assert_eq!(State::of(&wish(Wanted::Run, 1), &progress), State::Stopped);
        assert_eq!(State::of(&wish(Wanted::Run, 2), &progress), State::Running);
        progress.ended = 5;
        assert_eq!(State::of(&wish(Wanted::Run, 1), &progress), State::Done);
        assert_eq!(State::of(&wish(Wanted::Cancel, 2), &progress), State::Cancelled);
    }

    #[test]
    fn a_thousand_recipients_are_a_few_bytes_each() {
        let piece: Vec<_> = (0..1_000).map(|n| Recipient::Chat(ChatId(7_000_000_000 + n))).collect();
        let stored = encode_piece(&piece);
        assert!(stored.len() < 7_100, "{}", stored.len());
        assert_eq!(decode_piece(&stored).unwrap(), piece);
    }
}
