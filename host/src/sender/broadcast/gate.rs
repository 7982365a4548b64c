//! The last step before a broadcast's call: its rate, once more.
//!
//! Between its turn and the call itself lies the disk, which takes as long as it takes. Without this, calls that have
//! waited for one slow flush would go out together. Almost always it is open.

use std::sync::{Mutex, PoisonError};

use tokio::time::{self, Duration, Instant};

use super::super::SendSettings;
use crate::limit::{Pace, Quota};

#[derive(Default)]
pub(in super::super) struct Gate {
    bulk: Mutex<Passage>,
    paid: Mutex<Passage>,
}

#[derive(Default)]
struct Passage {
    quota: Option<Quota>,
    pace: Pace,
}

impl Gate {
    pub(in super::super) fn set(&self, settings: &SendSettings) {
        for (passage, rate) in [(&self.bulk, settings.bulk_per_second), (&self.paid, settings.paid_per_second)] {
            passage.lock().unwrap_or_else(PoisonError::into_inner).quota = quota(rate);
        }
    }

    pub(in super::super) async fn pass(&self, paid: bool) {
        let passage = if paid { &self.paid } else { &self.bulk };
        let take = || passage.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        while let Err(at) = take() {
            time::sleep_until(at).await;
        }
    }
}

impl Passage {
    fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let Some(quota) = self.quota else { return Ok(()) };
        let ready = self.pace.ready_at(&quota, 1, now);
        if ready > now {
            return Err(ready);
        }
        self.pace.take(&quota, 1, now);
        Ok(())
    }
}

/// The same rate as for turns, without their margin: so whatever has come together here drains.
fn quota(rate: f64) -> Option<Quota> {
    const SECOND: Duration = Duration::from_secs(1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and no rate is negative")]
    let (most, burst) = (rate.ceil() as u32, (rate / 10.0).ceil() as u32);
    Quota::new(rate, SECOND, burst.max(1)).map(|quota| quota.at_most(most, SECOND))
}
