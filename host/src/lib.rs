//! Botyard: a host for Telegram bots whose handlers are sandboxed WebAssembly plugins.
//!
//! An update's way through the parts, each a module of its own:
//!
//! ```text
//! Telegram ─▶ intake ─▶ store (inbox) ─▶ dispatch: lanes, router, run ─▶ commit
//! Telegram ◀─ telegram ◀─ sender ◀─ store (outbox) ◀───────────────────────┘
//! ```
//!
//! `use crate::…` points downward in this list; parts on one line do not know each other:
//!
//! - [`cli`]
//! - [`app`]
//! - [`admin`] · [`simulator`] · [`reload`]
//! - [`dispatch`] · [`intake`] · [`operate`]
//! - [`sender`]
//! - [`chats`] · [`plugin`]
//! - [`telegram`] · [`files`]
//! - [`i18n`] · [`store`]
//! - [`config`]
//! - [`whose`]
//! - [`limit`] · [`backoff`] · [`clock`] · [`domain`] · [`guard`] · [`recurrence`]

pub mod admin;
pub mod app;
pub mod backoff;
pub mod chats;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dispatch;
pub mod domain;
pub mod files;
pub mod guard;
pub mod i18n;
pub mod intake;
pub mod limit;
pub mod operate;
pub mod plugin;
pub mod recurrence;
pub mod reload;
pub mod sender;
pub mod simulator;
pub mod store;
pub mod telegram;
pub mod whose;
