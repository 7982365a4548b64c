//! The live stream for chat pages: server-sent events, one JSON object each.
//!
//! A page that falls behind is told so (`reset`) and reads everything anew. Nothing waits for a page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;

use super::hub::Hub;

pub(super) async fn stream(State(hub): State<Arc<Hub>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = stream::unfold(hub.signals.events.subscribe(), |mut events| async {
        let data = match events.recv().await {
            Ok(json) => Event::default().data(&*json),
            Err(RecvError::Lagged(_)) => Event::default().data(r#"{"event":"reset"}"#),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(data), events))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}
