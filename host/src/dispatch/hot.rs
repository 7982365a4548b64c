//! Locks for keys that several runs fight over.
//!
//! Runs of different lanes are optimistic: one whose reads have changed before its commit is made again. Where many
//! of them read and write one key, all but one would run in vain each time; so a run that lost once makes its next
//! try while holding the key's lock, and they queue up instead.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

type KeyLock = tokio::sync::Mutex<()>;

#[derive(Default)]
pub(super) struct HotKeys {
    locks: Mutex<HashMap<Vec<u8>, Weak<KeyLock>>>,
}

impl HotKeys {
    /// Waits for all of the keys. They are taken in their order, so that two runs can't wait for each other.
    pub(super) async fn lock(&self, keys: &BTreeSet<Vec<u8>>) -> Vec<OwnedMutexGuard<()>> {
        let mut guards = Vec::with_capacity(keys.len());
        for key in keys {
            guards.push(self.of(key).lock_owned().await);
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
