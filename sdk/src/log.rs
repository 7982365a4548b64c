//! Lines in the host's log, under the plugin's name and with the event's ids.
//!
//! A message is fixed or formatted; what varies is better given as fields, which the operator can search by:
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! fn paid(order: u64, sum: u64) {
//!     info!("order paid", order = order, sum = sum);
//!     debug!("order {order} took a while");
//! }
//! ```

pub use crate::bindings::botyard::log::log::Level;
use crate::host;

/// Writes a line with fields. The macros ([`info!`](crate::info!), …) are shorter.
///
/// ```
/// # use botyard_sdk::log::{Level, emit};
/// emit(Level::Info, "order paid", &[("order".to_owned(), "17".to_owned())]);
/// ```
pub fn emit(level: Level, message: &str, fields: &[(String, String)]) {
    host::emit(level, message, fields);
}

/// What the macros below share.
#[doc(hidden)]
#[macro_export]
macro_rules! log_line {
    ($level:ident, $message:literal $(, $field:ident = $value:expr)* $(,)?) => {
        $crate::log::emit(
            $crate::log::Level::$level,
            &::std::format!($message),
            &[$((::std::string::String::from(::std::stringify!($field)), ::std::string::ToString::to_string(&$value))),*],
        )
    };
}

/// Logs what only somebody who debugs wants to see. See [`log`](crate::log).
#[macro_export]
macro_rules! trace {
    ($($line:tt)*) => { $crate::log_line!(Trace, $($line)*) };
}

/// Logs a detail. See [`log`](crate::log).
#[macro_export]
macro_rules! debug {
    ($($line:tt)*) => { $crate::log_line!(Debug, $($line)*) };
}

/// Logs something that happened. See [`log`](crate::log).
#[macro_export]
macro_rules! info {
    ($($line:tt)*) => { $crate::log_line!(Info, $($line)*) };
}

/// Logs something that the operator should look at. See [`log`](crate::log).
#[macro_export]
macro_rules! warn {
    ($($line:tt)*) => { $crate::log_line!(Warn, $($line)*) };
}

/// Logs something that went wrong. See [`log`](crate::log).
#[macro_export]
macro_rules! error {
    ($($line:tt)*) => { $crate::log_line!(Error, $($line)*) };
}
