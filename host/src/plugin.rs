//! Plugins: WebAssembly components that handle events, each run in a fresh instance of its own.
//!
//! [`Engine::load`] turns a file into a [`Plugin`]: compiled, checked against the interface, and described by
//! itself. [`Plugin::run`] gives one event to it. A run reads through the [`Tx`](crate::store::Tx) it is given
//! and leaves there what it wants to write; this part commits nothing and sends nothing. What a run may use is
//! bounded ([`Limits`]), what it may call is granted ([`Grants`]).
//!
//! A guest that traps, loops, eats memory or waits too long harms only its own run: the instance is thrown
//! away, its effects are rolled back, and the [`RunError`] says what happened. Versions are values: a reload
//! makes a new [`Plugin`], and the old one is gone when its last run ends.

mod allowance;
mod api;
mod bare;
mod bindings;
mod buttons;
mod cache;
mod clock;
mod component;
mod engine;
mod file;
mod grants;
mod http;
mod journal;
mod limits;
mod lock;
mod manifest;
mod meter;
mod outbound;
mod pace;
mod reach;
mod rights;
mod run;
mod tape;
#[cfg(test)]
mod tests;
mod turns;
mod version;

pub use allowance::Queued;
pub use bindings::botyard::types::types::{Album, Command, Event, Failure, Job, State, Timer, Update};
pub use buttons::Buttons;
pub use engine::{Engine, EngineSettings, Settings};
pub use file::{LARGEST, read_file};
pub use grants::{Broadcasting, Grants};
pub use http::HttpClient;
pub use journal::Journal;
pub use limits::{Budget, JobLimits, Limit, Limits, MEMORY_CAP};
pub use lock::{Approved, Lock, LockError};
pub use manifest::{CommandHelp, Filter, Manifest, Menu, Schedule};
pub use outbound::{Attachment, CallError, Outbound, TOO_LARGE};
pub use pace::Spent;
pub use rights::Rights;
pub use run::{Invocation, RunError, RunReport, Standing, Tried, Verdict};
pub use tape::{Answer, Asked, Content, Tape};
#[cfg(test)]
pub(crate) use tests::{keyed, keyed_as};
pub use version::{Plugin, Version, file_hash};

/// Why a file can't serve as a plugin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine itself can't start.
    #[error("the WebAssembly engine can't start: {0}")]
    Engine(String),
    /// The file has no content.
    #[error("the plugin file is empty")]
    Empty,
    /// The file is something else.
    #[error("the plugin file is not WebAssembly: {0} (build the plugin with `botyard build`)")]
    NotWasm(&'static str),
    /// The file ends too early.
    #[error("the plugin file is cut off: its section at byte {offset} goes on behind the end of the file")]
    Truncated {
        /// Where the section begins that is not whole.
        offset: usize,
    },
    /// A module that was not built with the SDK.
    #[error(
        "the file is a WebAssembly module without the plugin interface: either it was not built with the Botyard SDK, \
         or its end is missing"
    )]
    NoInterface,
    /// A component that plays another part.
    #[error("the component is not a plugin of this host: it exports {exports}, and not `botyard:plugin/handler`")]
    OtherWorld {
        /// What it does export.
        exports: String,
    },
    /// A plugin for another version of the interface.
    #[error("the plugin speaks `{wanted}`, this host `{offered}`: {cure}")]
    OtherVersion {
        /// What the plugin exports.
        wanted: String,
        /// What this host calls.
        offered: &'static str,
        /// What mends it.
        cure: &'static str,
    },
    /// The plugin needs what the host does not have.
    #[error("the plugin imports what this host does not offer: {0}")]
    Imports(String),
    /// The module can't become a component, or the component does not fit the interface.
    #[error("the plugin file does not fit this host: {0}")]
    Component(String),
    /// The file is so wrong that those who read it gave up.
    #[error("the plugin file is damaged: its description of the interface makes no sense")]
    Damaged,
    /// The code is not valid.
    #[error("the plugin can't be compiled: {0}")]
    Compile(String),
    /// The limits are not possible.
    #[error("{0}")]
    Limits(String),
    /// The plugin failed to describe itself.
    #[error("the plugin can't describe itself: {0}")]
    Describe(String),
    /// What it says of itself is wrong.
    #[error("the plugin's manifest: {0}")]
    Manifest(String),
    /// Its catalogs, or the operator's for it, are wrong.
    #[error(transparent)]
    Catalogs(#[from] crate::i18n::Error),
}
