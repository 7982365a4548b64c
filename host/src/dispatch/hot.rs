//! Locks for keys that several runs fight over.
//!
//! Runs of different lanes are optimistic: one whose reads have changed before its commit is made again. Where many
//! of them read and write one key, all but one would run in vain each time; so a run that lost once makes its next
//! try while holding the key's lock, and they queue up instead. Nothing rests on the lock: whoever has waited for long goes
//! on without it, so that no event waits for a job that takes minutes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

/// For so long a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

type KeyLock = tokio::sync::Mutex<()>;

#[derive(Default)]
pub(super) struct HotKeys {
    locks: Mutex<HashMap<Vec<u8>, Weak<KeyLock>>>,
}

impl HotKeys {
    /// Waits for all of the keys, a while. They are taken in their order, so that two runs can't wait for each other.
    pub(super) async fn lock(&self, keys: &BTreeSet<Vec<u8>>) -> Vec<OwnedMutexGuard<()>> {
        let mut guards = Vec::with_capacity(keys.len());
        for key in keys {
            guards.extend(tokio::time::timeout(PATIENCE, self.of(key).lock_owned()).await);
        }
        guards
    }

    fn of(&self, key: &[u8]) -> Arc<KeyLock> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        if locks.len() > 1024 {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::new(KeyLock::default());
        locks.insert(key.to_vec(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_holds_on_for_long_is_not_waited_for() {
        let hot = HotKeys::default();
        let keys = BTreeSet::from([b"a".to_vec()]);
        let _job = hot.lock(&keys).await;
        assert!(hot.lock(&keys).await.is_empty());
    }

    #[tokio::test]
    async fn one_holder_at_a_time_and_forgotten_afterwards() {
        let hot = HotKeys::default();
        let keys = BTreeSet::from([b"a".to_vec(), b"b".to_vec()]);
        let held = hot.lock(&keys).await;
        assert!(hot.of(b"b").try_lock().is_err());
        drop(held);
        assert!(hot.of(b"b").try_lock().is_ok());
        for n in 0..3000u32 {
            hot.of(&n.to_be_bytes());
        }
        assert!(hot.locks.lock().unwrap().len() <= 1025);
    }
}
