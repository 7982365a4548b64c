//! A chat action that is kept up while somebody works: made again before it fades, until there is no use in it.
//!
//! Each is made as any other chat action is, at once or not at all. One that is left out because the chat has something
//! else to send is no failure; one that Telegram refuses is the last, and so is the third in a row that fails.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time;

use super::Sender;
use crate::telegram::{Error, lane_of};

/// Telegram shows one for five seconds.
const AGAIN: Duration = Duration::from_millis(4_500);
const MOST_FAILURES: u32 = 3;

impl Sender {
    /// Shows a chat action with these parameters for as long as the future is kept.
    pub(super) async fn act_on(self, params: String) {
        let lane = lane_of(super::action::METHOD, &params);
        let params = Bytes::from(params);
        let mut failures = 0;
        while failures < MOST_FAILURES {
            let (reply, answer) = oneshot::channel();
            if !self.act_now(lane, params.clone(), Some(reply)) {
                return;
            }
            match answer.await {
                Ok(Ok(_)) => failures = 0,
                // It was left out.
                Err(_) => {}
                Ok(Err(Error::Refused { .. } | Error::Unauthorized { .. } | Error::Conflict { .. })) => return,
                Ok(Err(_)) => failures += 1,
            }
            time::sleep(AGAIN).await;
        }
        tracing::debug!(?lane, "a chat action fails again and again; it is given up");
    }
}
