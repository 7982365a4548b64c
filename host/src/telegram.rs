//! The Bot API client: one call is one attempt, and its answer is told apart from every other kind of answer.
//!
//! - [`Token`] can't be printed; [`Transport`] carries bytes and knows nothing of what they mean;
//!   [`classify`] makes a result or an [`Error`] of an answer, purely; [`Client`] joins them.
//! - Nothing here waits or tries again: that is the business of the callers, which own a clock and a queue.
//! - No error text, `Display` or `Debug`, holds the URL or the token.

pub mod cast;
mod classify;
mod client;
mod error;
mod http;
mod lane;
mod meter;
mod refusal;
#[cfg(test)]
mod tests;
mod token;
mod transport;

pub use classify::classify;
pub use client::Client;
pub use error::{Error, SetupError};
pub use lane::lane_of;
pub use refusal::Refusal;
pub use token::Token;
pub use transport::{Response, Transport, TransportError};
