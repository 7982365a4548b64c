//! Lanes that are of one chat, though they have different names: its `@name` and its id, the id of a group and that of
//! the supergroup that it has become.
//!
//! Calls stay in the lane that they were queued in. What waits under another name (the elder) goes before what waits
//! under the chat's own (the heir): it is older, since calls go to the heir from the moment on that it is known. One call
//! of all of them is in flight at a time, and all of them keep to the heir's pace and its floods.

use std::collections::HashMap;

use tokio::time::Instant;

use super::Schedule;
use super::lane::{LaneState, Phase};
use crate::domain::{ChatId, Lane};

#[derive(Default)]
pub(super) struct Kin {
    heirs: HashMap<Lane, Lane>,
    elders: HashMap<Lane, Vec<Lane>>,
}

impl Kin {
    pub(super) fn heir(&self, lane: Lane) -> Option<Lane> {
        self.heirs.get(&lane).copied()
    }

    fn elders(&self, lane: Lane) -> &[Lane] {
        self.elders.get(&lane).map_or(&[], Vec::as_slice)
    }

    fn is_known(&self, elder: Lane, heir: Lane) -> bool {
        self.heir(elder) == Some(heir)
    }

    /// All lanes of the same chat.
    fn of(&self, lane: Lane) -> Vec<Lane> {
        let Some(heir) = self.heir(lane).or_else(|| self.elders.contains_key(&lane).then_some(lane)) else {
            return Vec::new();
        };
        let all = self.elders(heir).iter().copied().chain([heir]);
        all.filter(|kin| *kin != lane).collect()
    }

    fn join(&mut self, elder: Lane, heir: Lane) {
        if let Some(before) = self.heirs.insert(elder, heir)
            && let Some(elders) = self.elders.get_mut(&before)
        {
            elders.retain(|lane| *lane != elder);
        }
        self.elders.entry(heir).or_default().push(elder);
        // Whose names these were has a new one itself.
        for lane in self.elders.remove(&elder).unwrap_or_default() {
            self.heirs.insert(lane, heir);
            self.elders.entry(heir).or_default().push(lane);
        }
    }
}

impl Schedule {
    /// The two lanes are of one chat, whose own is the heir.
    pub(in super::super) fn join(&mut self, elder: Lane, heir: Lane, now: Instant) {
        if self.kin.is_known(elder, heir) || elder == heir {
            return;
        }
        self.kin.join(elder, heir);
        if let Some(old) = self.lanes.get(&elder) {
            let mut new = LaneState::new();
            new.inherit(old);
            let is_new = !self.lanes.contains_key(&heir);
            let state = self.lanes.entry(heir).or_insert_with(LaneState::new);
            if is_new {
                *state = new;
            } else {
                state.blocked_until = state.blocked_until.max(new.blocked_until);
            }
        }
        self.settle(elder, now);
        self.settle(heir, now);
    }

    /// Lanes that may turn out to be of a chat with another name.
    pub(in super::super) fn lanes_with_other_names(&self) -> Vec<Lane> {
        let may = |lane: &&Lane| matches!(lane, Lane::Chat(ChatId(..0)));
        self.lanes.keys().filter(may).copied().collect()
    }

    /// True while other lanes of the same chat go first.
    pub(super) fn is_held(&self, id: Lane) -> bool {
        let is_in_flight = |lane: &Lane| self.lanes.get(lane).is_some_and(|state| state.phase == Phase::InFlight);
        match self.kin.heir(id) {
            Some(_) => self.kin.of(id).iter().any(is_in_flight),
            None => self.kin.elders(id).iter().any(|elder| {
                let has_work = self.lanes.get(elder).is_some_and(|state| state.class(*elder).is_some());
                has_work || is_in_flight(elder)
            }),
        }
    }

    pub(super) fn heir_free_at(&self, id: Lane, now: Instant) -> Instant {
        let heir = self.kin.heir(id).and_then(|heir| Some((heir, self.lanes.get(&heir)?)));
        heir.map_or(now, |(heir, state)| state.free_at(self.quotas.of(heir), now))
    }

    /// What an elder sends counts for the chat.
    pub(super) fn charge_heir(&mut self, id: Lane, weight: u32, now: Instant) {
        let Some(heir) = self.kin.heir(id).filter(|_| weight > 0) else { return };
        let state = self.lanes.entry(heir).or_insert_with(LaneState::new);
        state.take(self.quotas.of(heir), weight, now);
        self.settle(heir, now);
    }

    /// Lets those go on that this lane has held.
    pub(super) fn release(&mut self, id: Lane, now: Instant) {
        for lane in self.kin.of(id) {
            if self.lanes.get(&lane).is_some_and(|state| state.phase == Phase::Held) {
                self.settle(lane, now);
            }
        }
    }
}
