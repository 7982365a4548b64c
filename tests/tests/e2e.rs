//! The whole path, from a Telegram update to a plugin's reply: a real host process, real plugins, real HTTP.
//! What is asserted is what people would see, and what is in the store; never a log line, unless the log is the point.

#![allow(clippy::disallowed_types, reason = "real processes take real time")]

mod e2e {
    mod authors;
    mod conversations;
    mod crash;
    mod load;
    mod misbehaviour;
    mod operator;
    mod reload;
    mod sending;
    mod start;
    mod support;
}
