//! The whole path, from a Telegram update to a plugin's reply: a real host process, real plugins, real HTTP.
//! What is asserted is what people would see, and what is in the store; never a log line, unless the log is the point.

#![allow(clippy::disallowed_types, reason = "real processes take real time")]

mod e2e {
    mod admission;
    mod albums;
    mod answers;
    mod authors;
    mod bots;
    mod broadcast;
    mod buttons;
    mod capabilities;
    mod chats;
    mod commands;
    mod control;
    mod conversations;
    mod crash;
    mod files;
    mod floods;
    mod jobs;
    mod languages;
    mod limits;
    mod load;
    mod misbehaviour;
    mod operator;
    mod playground;
    mod reload;
    mod replace;
    mod replays;
    mod routes;
    mod sending;
    mod start;
    mod state;
    mod support;
    mod texts;
    mod timers;
    mod trials;
    mod trust;
    mod typed;
    mod versions;
    mod webhook;
}
