//! What the end-to-end tests and the benchmarks share: a real host process, real plugins, and Telegram played by
//! the simulator over HTTP.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes take real time")]

mod build;
pub mod chaos;
mod host;
mod metrics;
mod module;
pub mod process;
pub mod soak;
pub mod updates;

pub use build::{guest, host as host_program, plugin};
pub use host::{Host, HostBuilder, Stopped, WEBHOOK_SECRET};
pub use metrics::Metrics;
pub use module::Module;
