//! Why the simulator could not start or do what a test or a person asked.

use std::net::SocketAddr;
use std::path::PathBuf;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken or not ours.
    #[error("could not listen on {addr} for the simulator ({source}); choose another address or stop what uses it")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The state file is not what the simulator wrote.
    #[error(
        "the simulator's state file {} is not readable ({why}); move it away to begin with empty chats",
        path.display()
    )]
    StateFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The state could not be written.
    #[error("could not save the simulator's state to {} ({source}); the folder must exist and be writable", path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The token of the settings.
    #[error("the simulator's token is not of the form `123456:letters_and_digits`")]
    Token,
    /// No such chat.
    #[error("there is no chat {0} in the simulator")]
    UnknownChat(i64),
    /// No such user.
    #[error("there is no user {0} in the simulator")]
    UnknownUser(i64),
    /// The user is not in that chat.
    #[error("user {user} is not in chat {chat}")]
    NotAMember {
        /// The chat.
        chat: i64,
        /// The user.
        user: i64,
    },
    /// No such message, or not any more.
    #[error("there is no message {message} in chat {chat}")]
    UnknownMessage {
        /// The chat.
        chat: i64,
        /// The message.
        message: i64,
    },
    /// No message there has such a button.
    #[error("no message in chat {chat} has a button `{button}`")]
    NoSuchButton {
        /// The chat.
        chat: i64,
        /// The wanted data or label.
        button: String,
    },
    /// The button opens a link, say.
    #[error("pressing `{0}` tells the bot nothing: it has no callback data")]
    NotACallback(String),
    /// Nobody can send that.
    #[error("a message needs some text")]
    EmptyText,
    /// Telegram's own clients would not offer it.
    #[error("{0}")]
    Cannot(&'static str),
    /// Not a JSON object with one field beside `update_id`.
    #[error("an update is a JSON object with the event under its kind, like {{\"message\":{{…}}}}")]
    NotAnUpdate,
    /// `allowed_updates` leaves this kind out.
    #[error("the bot has not asked for this kind of update; see the `allowed_updates` of its polls")]
    Unwanted,
    /// As at Telegram, what comes now is lost.
    #[error("the queue of updates is full; let the bot read it")]
    QueueFull,
    /// Update ids can only jump while nothing waits.
    #[error("update ids can only jump while no update waits")]
    UpdatesWaiting,
    /// Waiting was in vain.
    #[error("the bot sent {got} of {wanted} messages to chat {chat} in time")]
    TooFew {
        /// The chat.
        chat: i64,
        /// How many there are.
        got: u64,
        /// How many were waited for.
        wanted: u64,
    },
}
