//! Which secrets a request may come with.
//!
//! During a change there are two: Telegram sends the old one until it has confirmed the new one, and a little longer what
//! was under way. Hashes are kept and compared, all of them and each in constant time, so that neither a secret's length
//! nor its beginning can be found out by asking.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use subtle::{Choice, ConstantTimeEq as _};
use tokio::time::Instant;

use super::sha256;

/// How long the old secret is good after Telegram has confirmed the new one. A request takes a minute at most.
const GRACE: Duration = Duration::from_secs(300);

pub(super) struct Secrets {
    current: [u8; 32],
    /// And until when, once that is known.
    old: Mutex<Option<([u8; 32], Option<Instant>)>>,
}

impl Secrets {
    pub(super) fn new(current: &str, confirmed: Option<[u8; 32]>) -> Self {
        let current = sha256(current.as_bytes());
        let old = confirmed.filter(|confirmed| *confirmed != current).map(|confirmed| (confirmed, None));
        Self { current, old: Mutex::new(old) }
    }

    /// Telegram sends the current one from now on.
    pub(super) fn confirmed(&self) {
        let mut old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, until @ None)) = old.as_mut() {
            *until = Some(Instant::now() + GRACE);
        }
    }

    pub(super) fn accept(&self, given: &[u8]) -> bool {
        let given = sha256(given);
        let old = *self.old.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = match old {
            Some((old, until)) if until.is_none_or(|until| Instant::now() < until) => old.ct_eq(&given),
            _ => Choice::from(0),
        };
        (self.current.ct_eq(&given) | is_old).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_old_secret_is_good_until_some_time_after_the_new_one_is_confirmed() {
        let secrets = Secrets::new("new", Some(sha256(b"old")));
        let accepted =
            |secrets: &Secrets| ["new", "old", "", "ne", "newer"].map(|given| secrets.accept(given.as_bytes()));
        assert_eq!(accepted(&secrets), [true, true, false, false, false]);
        tokio::time::advance(GRACE * 10).await;
        assert_eq!(accepted(&secrets), [true, true, false, false, false], "Telegram knows no other");
        secrets.confirmed();
        tokio::time::advance(GRACE - Duration::from_secs(1)).await;
        assert!(accepted(&secrets)[1]);
        secrets.confirmed();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(accepted(&secrets), [true, false, false, false, false], "however often it is confirmed");
        assert!(!Secrets::new("new", None).accept(b"old"));
    }
}
