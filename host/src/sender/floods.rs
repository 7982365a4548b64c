//! Which chats have to wait for flood control, and until when.

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
    /// The lane waits until then, or longer if that was said before. Answers with when its wait is over.
    pub(super) fn note(&mut self, lane: Lane, until: Instant) -> Instant {
        let longest = self.until.entry(lane).or_insert(until);
        *longest = until.max(*longest);
        self.next = Some(self.next.map_or(until, |next| next.min(until)));
        let longest = *longest;
        gauge!("botyard_send_flooded_chats").set(self.until.len() as f64);
        longest
    }

    /// Those whose wait is over, who are not counted any more.
    pub(super) fn forget_past(&mut self, now: Instant) -> Vec<Lane> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let past = self.until.extract_if(|_, until| *until <= now).map(|(lane, _)| lane).collect();
        self.next = self.until.values().min().copied();
        gauge!("botyard_send_flooded_chats").set(self.until.len() as f64);
        past
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
        let chat = Lane::Chat(crate::domain::ChatId(1));
        floods.note(Lane::Other, now + 5 * second);
        floods.note(chat, now + second);
        assert_eq!((floods.forget_past(now), floods.until.len()), (vec![], 2));
        assert_eq!((floods.forget_past(now + second), floods.next), (vec![chat], Some(now + 5 * second)));
        assert_eq!(floods.note(Lane::Other, now + 9 * second), now + 9 * second);
        assert_eq!(floods.note(Lane::Other, now + 3 * second), now + 9 * second, "no wait is shortened");
        assert_eq!((floods.forget_past(now + 8 * second), floods.until.len()), (vec![], 1));
        assert_eq!(floods.forget_past(now + 9 * second), [Lane::Other]);
        assert_eq!((floods.until.len(), floods.next), (0, None));
    }
}
