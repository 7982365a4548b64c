//! What happened inside, for the page: updates, what plugins made of them, calls with their answers; and the clock.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Sim;
use crate::simulator::hub::Hub;

#[derive(Deserialize)]
pub(super) struct After {
    #[serde(default)]
    updates: i64,
    #[serde(default)]
    runs: u64,
    #[serde(default)]
    calls: u64,
}

/// At most this many of the newest calls are told at once.
const CALLS: usize = 500;

/// What is new after the numbers that are given. `runs` is null where the host is another process.
pub(super) async fn activity(State(hub): Sim, Query(after): Query<After>) -> Json<Value> {
    let runs = hub.insight().map(|insight| insight.runs(after.runs));
    let world = hub.look();
    let updates = world.recent.iter().filter(|recent| recent.id > after.updates).map(|recent| {
        // As a text, which keeps the order that the bot sees.
        json!({ "id": recent.id, "at": recent.at, "json": format!("{{\"update_id\":{},{}", recent.id, recent.rest) })
    });
    let updates: Vec<Value> = updates.collect();
    let mut calls = world.calls.since(after.calls);
    calls.retain(|call| !call.method.eq_ignore_ascii_case("getUpdates"));
    calls.drain(..calls.len().saturating_sub(CALLS));
    Json(json!({ "updates": updates, "runs": runs, "calls": calls }))
}

/// The clock, whether the bot's goes with it, and when the next timer is due on it (Unix milliseconds).
pub(super) async fn clock(State(hub): Sim) -> Json<Value> {
    Json(tell(&hub))
}

fn tell(hub: &Arc<Hub>) -> Value {
    let next = hub.insight().and_then(|insight| insight.next_timer());
    let world = hub.look();
    json!({ "now": world.now(), "ahead": world.clock_ahead, "moves_host": hub.moves_clock(), "next_timer": next })
}

#[derive(Deserialize)]
pub(super) struct Advance {
    #[serde(default)]
    advance_seconds: i64,
    /// To the moment when the next timer is due.
    #[serde(default)]
    to_next_timer: bool,
}

pub(super) async fn advance(State(hub): Sim, Json(by): Json<Advance>) -> Json<Value> {
    let mut seconds = by.advance_seconds.max(0);
    if by.to_next_timer
        && let Some(due) = hub.insight().and_then(|insight| insight.next_timer())
    {
        let due = i64::try_from(due.div_ceil(1000)).unwrap_or(i64::MAX);
        seconds = due.saturating_sub(hub.look().now()).max(0);
    }
    hub.advance_clock(seconds);
    hub.look().emit(&json!({ "event": "clock" }));
    Json(tell(&hub))
}
