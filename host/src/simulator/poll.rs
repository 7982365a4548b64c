//! `getUpdates`: reads the queue, waits for it to fill, and gives way to a newer poll.

use std::time::Duration;

use tokio::time::Instant;

use super::api::{ApiError, bot};
use super::hub::Hub;
use super::params::Params;

const MAX_TIMEOUT: i64 = 50;
const WEBHOOK_SET: &str =
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const OTHER_POLL: &str = "terminated by other getUpdates request; make sure that only one bot instance is running";

/// Answers the JSON array of updates.
pub(super) async fn get_updates(hub: &Hub, params: &Params, out: &mut Vec<u8>) -> Result<(), ApiError> {
    let offset = params.int("offset").unwrap_or(0);
    let (ticket, limit, timeout) = begin(hub, params, offset)?;
    let deadline = Instant::now() + timeout;
    let mut in_time = !timeout.is_zero();
    out.push(b'[');
    loop {
        let changed = hub.signals.polls.notified();
        tokio::pin!(changed);
        // From here on no signal is missed, although the queue is looked at first.
        changed.as_mut().enable();
        {
            let mut world = hub.world();
            if world.poll.newest != ticket {
                return Err(ApiError::conflict(OTHER_POLL));
            }
            if world.webhook.is_some() {
                return Err(ApiError::conflict("terminated by setWebhook request"));
            }
            world.queue.confirm(offset);
            let now = world.now();
            if world.queue.write(limit, now, out) > 0 || !in_time {
                out.push(b']');
                return Ok(());
            }
        }
        in_time = tokio::time::timeout_at(deadline, changed).await.is_ok();
    }
}

/// Makes this poll the newest one, which ends the one that is parked; answers its number, limit and timeout.
fn begin(hub: &Hub, params: &Params, offset: i64) -> Result<(u64, usize, Duration), ApiError> {
    let mut world = hub.world();
    if world.webhook.is_some() {
        return Err(ApiError::conflict(WEBHOOK_SET));
    }
    let mut limit = params.int("limit").unwrap_or(100).clamp(1, 100) as usize;
    let mut timeout = Duration::from_secs(params.int("timeout").unwrap_or(0).clamp(0, MAX_TIMEOUT) as u64);
    bot::take_allowed_updates(&mut world, params);
    if world.limits.throttle_polls {
        let since = world.poll.last_start.map(|start| start.elapsed());
        let again =
            |within: Duration| world.poll.last_offset == Some(offset) && since.is_some_and(|since| since < within);
        if again(Duration::from_secs(3)) {
            timeout = timeout.max(Duration::from_secs(3));
        }
        if again(Duration::from_millis(500)) {
            limit = 1;
        }
        world.poll.last_offset = Some(offset);
        world.poll.last_start = Some(Instant::now());
    }
    world.poll.newest += 1;
    world.signals.polls.notify_waiters();
    Ok((world.poll.newest, limit, timeout))
}
