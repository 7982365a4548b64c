//! How many of the places for runs each plugin has, so that one whose runs wait for something does not have them all.
//!
//! A plugin may have several times as many places as are free, and the last one only if it has none. So whoever has many
//! leaves some for the others, and however many plugins wait for their servers, one that has nothing under way is
//! seldom kept waiting. Where one plugin serves alone, all places are its own. What finds no place gives its turn back, and
//! has the next place that its plugin may have. A place is held in the name of a lane, which has one turn at a time, until that turn ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::{EventLane, PluginName};

/// So many times as many places as are free may be one plugin's: four of five where it alone has much to do.
const MOST: usize = 4;

/// Who has which places.
#[derive(Debug)]
pub(super) struct Shares {
    total: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// In whose name, mostly one plugin.
    of: HashMap<EventLane, Vec<PluginName>>,
    each: HashMap<PluginName, usize>,
    /// Only one plugin serves.
    alone: bool,
}

/// Whether one that has so many places may have one of these free ones too; pure.
fn may_have(has: usize, free: usize) -> bool {
    has == 0 || (free > 1 && has < MOST * free)
}

impl Shares {
    pub(super) fn new(total: usize) -> Self {
        Self { total, taken: Mutex::default() }
    }

    /// So many plugins serve.
    pub(super) fn set_plugins(&self, count: usize) {
        self.taken().alone = count <= 1;
    }

    /// A place for a run of the plugin in this lane; the same one where it is taken already. False when the plugin has its
    /// share.
    pub(super) fn take(&self, lane: EventLane, plugin: &PluginName) -> bool {
        let taken = &mut *self.taken();
        let held = taken.of.get(&lane);
        if held.is_some_and(|held| held.contains(plugin)) {
            return true;
        }
        let others = taken.of.len() - usize::from(held.is_some());
        let has = taken.each.get(plugin).copied().unwrap_or(0);
        if !taken.alone && !may_have(has, self.total.saturating_sub(others)) {
            return false;
        }
        taken.of.entry(lane).or_default().push(plugin.clone());
        taken.each.insert(plugin.clone(), has + 1);
        true
    }

    /// The lane's turn is over.
    pub(super) fn release(&self, lane: EventLane) {
        let taken = &mut *self.taken();
        for plugin in taken.of.remove(&lane).unwrap_or_default() {
            if let Some(has) = taken.each.get_mut(&plugin) {
                *has -= 1;
                if *has == 0 {
                    taken.each.remove(&plugin);
                }
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ChatId, Lane};

    fn lane(id: i64) -> EventLane {
        EventLane::whole(Lane::Chat(ChatId(id)))
    }

    fn names<const N: usize>() -> [PluginName; N] {
        std::array::from_fn(|n| PluginName::new(&format!("p{n}")))
    }

    /// How many places the plugins get that take as many as they can, one after the other.
    fn greedy(total: usize, plugins: &[PluginName], plugins_in_all: usize) -> Vec<usize> {
        let shares = Shares::new(total);
        shares.set_plugins(plugins_in_all);
        let mut lanes = (0..).map(lane);
        let mut left = total;
        let mut take = |plugin| {
            let n = (0..left).take_while(|_| shares.take(lanes.next().unwrap(), plugin)).count();
            left -= n;
            n
        };
        plugins.iter().map(&mut take).collect()
    }

    #[test]
    fn whoever_wants_all_leaves_some() {
        let plugins = names::<3>();
        assert_eq!(greedy(256, &plugins, 4), [205, 41, 8]);
        assert_eq!(greedy(4, &plugins, 4), [3, 1, 0]);
        assert_eq!(greedy(2, &plugins, 4), [1, 1, 0]);
        assert_eq!(greedy(1, &plugins, 4), [1, 0, 0]);
        assert_eq!(greedy(256, &plugins[..1], 1), [256], "there is nobody to leave them to");
    }

    #[test]
    fn a_place_is_held_until_the_turn_ends_whatever_runs_in_it() {
        let ([a, b], shares) = (names::<2>(), Shares::new(2));
        assert!(shares.take(lane(1), &a) && shares.take(lane(1), &a), "the same place");
        assert!(!shares.take(lane(2), &a), "the last one is kept for whoever has none");
        assert!(shares.take(lane(1), &b), "a second plugin in the same turn");
        shares.release(lane(1));
        assert!(shares.take(lane(2), &a));
        shares.release(lane(2));
        shares.release(lane(3));
        assert!(shares.taken().of.is_empty() && shares.taken().each.is_empty());
    }

    proptest! {
        /// One that has nothing under way gets a place whenever there is one, and nobody's place is lost.
        #[test]
        fn the_first_place_is_never_refused(
            total in 1_usize..40,
            steps in prop::collection::vec((0_usize..4, 0_i64..60, any::<bool>()), 0..300),
        ) {
            let (plugins, shares) = (names::<4>(), Shares::new(total));
            let mut held = HashMap::new();
            for (plugin, id, ends) in steps {
                if ends {
                    shares.release(lane(id));
                    held.remove(&id);
                } else if !held.contains_key(&id) && held.len() < total {
                    let has = held.values().filter(|other| **other == plugin).count();
                    let taken = shares.take(lane(id), &plugins[plugin]);
                    prop_assert!(taken || has > 0);
                    if taken {
                        held.insert(id, plugin);
                    }
                }
                prop_assert_eq!(shares.taken().of.len(), held.len());
                prop_assert_eq!(shares.taken().each.values().sum::<usize>(), held.len());
            }
        }
    }
}
