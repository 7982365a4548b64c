//! How many chats have to wait for flood control, for whoever watches.

use std::collections::HashMap;

use metrics::gauge;
use tokio::time::Instant;

use crate::domain::Lane;

#[derive(Default)]
pub(super) struct Floods {
    until: HashMap<Lane, Instant>,
    /// When the first of them is over.
    next: Option<Instant>,
}

impl Floods {
    pub(super) fn note(&mut self, lane: Lane, until: Instant, now: Instant) {
        self.until.insert(lane, until);
        self.next = Some(self.next.map_or(until, |next| next.min(until)));
        self.forget_past(now);
        gauge!("botyard_send_flooded_chats").set(self.until.len() as f64);
    }

    pub(super) fn forget_past(&mut self, now: Instant) {
        if self.next.is_some_and(|next| next <= now) {
            self.until.retain(|_, until| *until > now);
            self.next = self.until.values().min().copied();
            gauge!("botyard_send_flooded_chats").set(self.until.len() as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn those_that_wait_are_counted_until_their_time_is_over() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut floods = Floods::default();
        floods.note(Lane::Other, now + 5 * second, now);
        floods.note(Lane::Chat(crate::domain::ChatId(1)), now + second, now);
        floods.forget_past(now);
        assert_eq!(floods.until.len(), 2);
        floods.forget_past(now + second);
        assert_eq!((floods.until.len(), floods.next), (1, Some(now + 5 * second)));
        floods.note(Lane::Other, now + 9 * second, now + 2 * second);
        floods.forget_past(now + 8 * second);
        assert_eq!(floods.until.len(), 1, "it was flooded again");
        floods.forget_past(now + 9 * second);
        assert_eq!((floods.until.len(), floods.next), (0, None));
    }
}
