//! The Bot API client: one call is one attempt, and its answer is told apart from every other kind of answer.
//!
//! - [`Token`] can't be printed; [`Transport`] carries bytes and knows nothing of what they mean;
//!   [`classify`] makes a result or an [`Error`] of an answer, purely; [`Client`] joins them.
//! - Nothing here waits or tries again: that is the business of the callers, which own a clock and a queue.
//! - No error text, `Display` or `Debug`, holds the URL or the token.

pub mod cast;
mod classify;
mod client;
mod download;
mod error;
mod http;
mod lane;
mod meter;
mod multipart;
mod patience;
mod plain;
mod redirect;
mod refusal;
pub(crate) mod split;
#[cfg(test)]
mod tests;
mod token;
mod transport;
mod webhook;

pub use classify::classify;
pub use client::Client;
pub use download::DownloadError;
pub use error::{Error, SetupError};
pub use lane::{is_of_name, lane_of, lane_of_name};
pub use multipart::{FilePart, Multipart};
pub use patience::Progress;
pub use plain::plain;
pub use redirect::{chats_of, redirect};
pub use refusal::Refusal;
pub use split::split;
pub use token::Token;
pub use transport::{Download, Response, Transport, TransportError};
pub use webhook::{SetWebhook, WebhookInfo, host};
