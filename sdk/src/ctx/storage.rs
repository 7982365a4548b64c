//! Values that a plugin keeps beside its conversations.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Run;
use crate::bindings::botyard::storage::key_value::Scope as Place;
use crate::{Error, host, json};

/// The plugin's values: for the whole plugin, for each chat and for each user.
///
/// ```
/// # use botyard_sdk::prelude::*;
/// fn visit(ctx: &Run) -> Result<i64, Error> {
///     ctx.storage().user().set("seen", &ctx.message_id())?;
///     ctx.storage().chat().increment("visits", 1)
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Storage<'run> {
    run: &'run Run,
}

impl<'run> Storage<'run> {
    pub(super) fn new(run: &'run Run) -> Self {
        Self { run }
    }

    /// One space for all chats and users.
    #[must_use]
    pub fn plugin(self) -> Scope {
        Scope(Ok(Place::Plugin))
    }

    /// The space of the event's chat.
    #[must_use]
    pub fn chat(self) -> Scope {
        Scope(self.run.chat_id().map(Place::Chat).ok_or("chat"))
    }

    /// The space of the event's user.
    #[must_use]
    pub fn user(self) -> Scope {
        Scope(self.run.user_id().map(Place::User).ok_or("user"))
    }

    /// The space of any chat.
    #[must_use]
    pub fn of_chat(self, id: i64) -> Scope {
        Scope(Ok(Place::Chat(id)))
    }

    /// The space of any user.
    #[must_use]
    pub fn of_user(self, id: i64) -> Scope {
        Scope(Ok(Place::User(id)))
    }
}

/// One space of values. They are kept as JSON.
///
/// A run reads one consistent picture, and is made again if something it read has changed before it commits: reading a
/// value, changing it and writing it back loses nothing, however many chats do so at once.
#[derive(Clone, Copy)]
pub struct Scope(Result<Place, &'static str>);

impl Scope {
    /// The value under `key`, or none.
    ///
    /// # Errors
    /// Permanently, when the value is no `T`, or the event has no such chat or user.
    pub fn get<T: DeserializeOwned>(self, key: &str) -> Result<Option<T>, Error> {
        host::get(self.place()?, key).map(|bytes| read(key, &bytes)).transpose()
    }

    /// Keeps a value until it is overwritten or deleted.
    ///
    /// # Errors
    /// Permanently, when it is too large for the plugin's limit, or can't be written as JSON.
    pub fn set<T: Serialize + ?Sized>(self, key: &str, value: &T) -> Result<(), Error> {
        self.write(key, value, None)
    }

    /// Keeps a value for a while.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn block(ctx: &Run) -> Result<(), Error> {
    ///     ctx.storage().user().set_for("blocked", &true, Duration::from_secs(3600))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_for<T: Serialize + ?Sized>(self, key: &str, value: &T, time: Duration) -> Result<(), Error> {
        self.write(key, value, Some(time.as_secs()))
    }

    /// Removes a value.
    ///
    /// # Errors
    /// Permanently, when the event has no such chat or user.
    pub fn delete(self, key: &str) -> Result<(), Error> {
        host::delete(self.place()?, key);
        Ok(())
    }

    /// Adds to a whole number and gives the sum; an absent value counts as 0.
    ///
    /// # Errors
    /// Permanently, when the value is no whole number or the sum would overflow.
    pub fn increment(self, key: &str, by: i64) -> Result<i64, Error> {
        host::increment(self.place()?, key, by).map_err(|why| Error::permanent(format!("`{key}`: {why}")))
    }

    /// Puts `new` in the place of `expected`, `None` standing for no value; false, and nothing changes, where another
    /// value is there. Values are compared by their JSON.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn claim(ctx: &Run) -> Result<bool, Error> {
    ///     ctx.storage().chat().compare_and_set("owner", None, ctx.user_id().as_ref())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn compare_and_set<T: Serialize + ?Sized>(
        self,
        key: &str,
        expected: Option<&T>,
        new: Option<&T>,
    ) -> Result<bool, Error> {
        let bytes = |value: Option<&T>| value.map(|value| write_json(key, value)).transpose();
        let (expected, new) = (bytes(expected)?, bytes(new)?);
        host::compare_and_set(self.place()?, key, expected.as_deref(), new.as_deref())
            .map_err(|why| Error::permanent(format!("`{key}`: {why}")))
    }

    /// At most `limit` values whose keys begin with `prefix`, in byte order of the keys, after the key `after`.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn notes(ctx: &Run) -> Result<Vec<String>, Error> {
    ///     let rows = ctx.storage().user().scan::<String>("note/", None, 100)?;
    ///     Ok(rows.into_iter().map(|(_, note)| note).collect())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn scan<T: DeserializeOwned>(
        self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, T)>, Error> {
        let rows = host::scan(self.place()?, prefix, after, limit);
        rows.into_iter().map(|(key, bytes)| read(&key, &bytes).map(|value| (key, value))).collect()
    }

    fn write<T: Serialize + ?Sized>(self, key: &str, value: &T, ttl: Option<u64>) -> Result<(), Error> {
        let bytes = write_json(key, value)?;
        host::set(self.place()?, key, &bytes, ttl).map_err(|why| Error::permanent(format!("`{key}`: {why}")))
    }

    fn place(self) -> Result<Place, Error> {
        self.0.map_err(|what| Error::permanent(format!("this event has no {what} to keep values for")))
    }
}

fn write_json<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Vec<u8>, Error> {
    json::to_string(value)
        .map(String::into_bytes)
        .map_err(|error| Error::permanent(format!("`{key}` can't be written as JSON: {error}")))
}

fn read<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, Error> {
    json::from_slice(bytes).map_err(|error| Error::permanent(format!("the value `{key}` can't be read: {error}")))
}
