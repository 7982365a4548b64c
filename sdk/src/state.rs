//! Conversation states: a serde enum whose value the host keeps between events.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::botyard::types::types::State as Stored;
use crate::{Error, host, json};

/// The states a conversation can be in. Derive it, together with serde's traits and `Default`; the variant marked
/// `#[default]` means that there is no conversation, and is what [`Ctx::exit`](crate::Ctx::exit) goes back to.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[derive(State, Serialize, Deserialize, Default)]
/// #[serde(crate = "botyard_sdk::__private::serde")] // not needed inside of a `#[plugin] mod`
/// #[state(version = 2, key = "user_in_chat", ttl = "2h")]
/// enum Order {
///     #[default]
///     Idle,
///     AskSize,
///     Confirm { size: u8 },
/// }
///
/// assert_eq!(Order::Confirm { size: 30 }.name(), "confirm");
/// assert_eq!(Order::NAMES, ["idle", "ask_size", "confirm"]);
/// assert_eq!((Order::VERSION, Order::KEY, Order::TTL), (2, "user_in_chat", Some(Duration::from_secs(7200))));
/// ```
///
/// The arguments of `#[state(…)]`, each with its default:
/// - `version = 1`: raise it when the enum changes so that stored values no longer fit, and add a `#[migrate]`
///   function to the plugin;
/// - `key = "user_in_chat"`: what one conversation is: `chat`, `user`, `user_in_chat`, `topic` or `user_in_topic`;
/// - `ttl`: after this time without a change the state reads as the default one: `"90s"`, `"15m"`, `"2h"`, `"7d"`.
///   Without it a state never expires. A handler marked `#[expired]` hears of it, with the state that ended.
pub trait State: Default + Serialize + DeserializeOwned + 'static {
    /// The version that values are written with.
    const VERSION: u32;
    /// What one conversation is.
    const KEY: &'static str;
    /// How long a state lasts without a change.
    const TTL: Option<Duration>;
    /// The name of every state, in the order of the variants.
    const NAMES: &'static [&'static str];
    /// False only for [`NoState`], whose plugins never ask the host for a state.
    #[doc(hidden)]
    const KEPT: bool = true;

    /// The name of this state: the variant's name in snake case. Filters and the host's pages use it.
    fn name(&self) -> &'static str;
}

/// The state of plugins that have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct NoState;

impl State for NoState {
    const VERSION: u32 = 0;
    const KEY: &'static str = "chat";
    const TTL: Option<Duration> = None;
    const NAMES: &'static [&'static str] = &[];
    const KEPT: bool = false;

    fn name(&self) -> &'static str {
        ""
    }
}

/// A state that another version of the plugin wrote: what a `#[migrate]` function is given.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod order {
///     #[derive(State, Serialize, Deserialize, Default)]
///     #[state(version = 2)]
///     enum Order {
///         #[default]
///         Idle,
///         Confirm { size: u8, pieces: u8 },
///     }
///
///     #[derive(Deserialize)]
///     enum OrderV1 {
///         Idle,
///         Confirm { size: u8 },
///     }
///
///     #[migrate]
///     fn migrate(old: OldState) -> Result<Order, Error> {
///         Ok(match old.read()? {
///             OrderV1::Idle => Order::Idle,
///             OrderV1::Confirm { size } => Order::Confirm { size, pieces: 1 },
///         })
///     }
///
///     #[command("order")]
///     fn order(ctx: &mut Ctx<Order>) -> Handled {
///         ctx.goto(Order::Confirm { size: 30, pieces: 2 })
///     }
/// }
/// # fn main() {}
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldState {
    /// The name it was written under.
    pub name: String,
    /// The version that wrote it.
    pub version: u32,
    /// The value, as JSON.
    pub bytes: Vec<u8>,
}

impl OldState {
    /// Reads the value as a type of that version.
    ///
    /// # Errors
    /// Permanently, when the value is not one of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_slice(&self.bytes).map_err(|error| unreadable(&self.name, self.version, &error.to_string()))
    }
}

impl From<Stored> for OldState {
    fn from(Stored { name, version, bytes }: Stored) -> Self {
        Self { name, version, bytes }
    }
}

pub(crate) fn encode<S: State>(state: &S) -> Result<Stored, Error> {
    let name = state.name();
    let text = json::to_string(state)
        .map_err(|error| Error::permanent(format!("the state `{name}` can't be written as JSON: {error}")))?;
    Ok(Stored { name: name.to_owned(), version: S::VERSION, bytes: text.into_bytes() })
}

/// The state of this run's conversation; the default one where there is none.
pub(crate) fn load<S: State>() -> Result<S, Error> {
    if !S::KEPT {
        return Ok(S::default());
    }
    match host::state_get() {
        None => Ok(S::default()),
        Some(stored) if stored.version != S::VERSION => {
            let Stored { name, version, .. } = stored;
            Err(unreadable(&name, version, &format!("this plugin reads version {} only", S::VERSION)))
        }
        Some(stored) => own(stored),
    }
}

/// Reads a state of this version. Where that fails, the host sets it aside and the event comes again without it.
pub(crate) fn own<S: State>(stored: Stored) -> Result<S, Error> {
    OldState::from(stored).read().inspect_err(|error: &Error| host::state_unreadable(&error.to_string()))
}

/// Makes `state` the conversation's; the default one ends the conversation.
pub(crate) fn store<S: State>(state: &S) -> Result<(), Error> {
    if state.name() == S::default().name() {
        host::state_clear();
        return Ok(());
    }
    host::state_set(&encode(state)?, S::TTL.map(|ttl| ttl.as_secs())).map_err(Error::permanent)
}

fn unreadable(name: &str, version: u32, why: &str) -> Error {
    Error::permanent(format!("the state `{name}` of version {version} can't be read: {why}"))
}
