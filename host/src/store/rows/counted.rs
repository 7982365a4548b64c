//! What is counted of each plugin, and of each row: so that all of it has a bound.
//!
//! Whose a row is stands in its key, or at the beginning of its value.

use super::{BotId, PluginName, dead, fsm, inbox, job, kv, outbox, parked, prefix, timer};

/// A count that every plugin has, for each bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ledger {
    /// Bytes of all that it keeps: states, those set aside or kept from before a trial among them, values, timers and jobs,
    /// keys included. A timer counts until its event is handled.
    Kept,
    /// Timers that are set, or have rung and are not handled.
    Timers,
    /// Bytes of the calls that wait to be sent, and of the files that they carry.
    Queued,
    /// Dead letters.
    Dead,
    /// Bytes of them.
    DeadBytes,
}

impl Ledger {
    fn byte(self) -> u8 {
        match self {
            Self::Kept => b'k',
            Self::Timers => b't',
            Self::Queued => b'o',
            Self::Dead => b'd',
            Self::DeadBytes => b'D',
        }
    }
}

/// Bytes at the beginning of a value in which it stands whose it is.
pub(in crate::store) const START: usize = 128;

/// The beginning of a value.
pub(in crate::store) fn start(value: &[u8]) -> &[u8] {
    value.get(..START).unwrap_or(value)
}

/// What one row adds to the counts.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct Counted {
    /// Bot and plugin.
    owner: Vec<u8>,
    amounts: [Option<(Ledger, u64)>; 2],
}

impl Counted {
    /// The counts, each by its key.
    pub(in crate::store) fn amounts(&self) -> impl Iterator<Item = (Vec<u8>, u64)> {
        let key = |ledger: Ledger| [&[ledger.byte()], &self.owner[..]].concat();
        self.amounts.into_iter().flatten().map(move |(ledger, amount)| (key(ledger), amount))
    }
}

/// Whether rows of this kind are counted, and by their values.
pub(in crate::store) fn is_counted(kind: Option<&u8>) -> Option<bool> {
    match *kind? {
        fsm::KIND | fsm::KIND_ASIDE | fsm::KIND_BEFORE | kv::KIND | job::KIND | timer::KIND | parked::KIND => {
            Some(false)
        }
        inbox::KIND | outbox::KIND | dead::KIND => Some(true),
        _ => None,
    }
}

/// The kinds that are counted.
pub(in crate::store) const KINDS: [u8; 10] = [
    fsm::KIND,
    fsm::KIND_ASIDE,
    fsm::KIND_BEFORE,
    kv::KIND,
    job::KIND,
    timer::KIND,
    parked::KIND,
    inbox::KIND,
    outbox::KIND,
    dead::KIND,
];

/// What a row counts, whose value has so many bytes and begins so; the beginning is only needed for some kinds.
pub(in crate::store) fn of(key: &[u8], length: u64, start: &[u8]) -> Option<Counted> {
    let by_value = is_counted(key.first())?;
    let bytes = key.len() as u64 + length;
    let (kind, bot) = (*key.first()?, key.get(1..9)?);
    if !by_value {
        let name = key.get(9..)?.iter().position(|&byte| byte == 0)?;
        let timer = (kind == timer::KIND).then_some((Ledger::Timers, 1));
        return Some(Counted { owner: key.get(1..9 + name)?.to_vec(), amounts: [Some((Ledger::Kept, bytes)), timer] });
    }
    let (plugin, amounts) = match kind {
        inbox::KIND => {
            let (plugin, rang) = inbox::owner(start)?;
            (plugin, [Some((Ledger::Kept, bytes)), rang.then_some((Ledger::Timers, 1))])
        }
        outbox::KIND => {
            let (plugin, carries) = outbox::owner(start)?;
            // An answer of the host's own.
            (!plugin.is_empty()).then_some(())?;
            (plugin, [Some((Ledger::Queued, bytes.saturating_add(carries))), None])
        }
        _ => (dead::owner(start)?, [Some((Ledger::Dead, 1)), Some((Ledger::DeadBytes, bytes))]),
    };
    Some(Counted { owner: [bot, plugin.as_bytes()].concat(), amounts })
}

/// The key of one count.
pub(in crate::store) fn key(ledger: Ledger, bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let bot = prefix(kv::KIND, bot);
    [&[ledger.byte()], &bot[1..], plugin.as_str().as_bytes()].concat()
}

/// The plugin of a count, if it is of this kind and bot.
pub(in crate::store) fn plugin_of(key: &[u8], ledger: Ledger, bot: BotId) -> Option<PluginName> {
    let name = key.strip_prefix(&[ledger.byte()])?.strip_prefix(&prefix(kv::KIND, bot)[1..])?;
    std::str::from_utf8(name).ok().map(PluginName::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Conversation, EventLane, Lane};
    use crate::store::rows::fsm::StateRow;
    use crate::store::rows::inbox::{InboxRow, StoredEvent};

    const ALL: [Ledger; 5] = [Ledger::Kept, Ledger::Timers, Ledger::Queued, Ledger::Dead, Ledger::DeadBytes];

    #[test]
    fn every_count_has_a_key_of_its_own_and_every_kind_that_is_counted_is_looked_through() {
        let (bot, shop) = (BotId(7), PluginName::new("shop"));
        for ledger in ALL {
            let key = key(ledger, bot, &shop);
            for other in ALL {
                assert_eq!(plugin_of(&key, other, bot), (other == ledger).then(|| shop.clone()));
            }
            assert_eq!(plugin_of(&key, ledger, BotId(8)), None);
        }
        let counted: Vec<u8> = (0..=u8::MAX).filter(|kind| is_counted(Some(kind)).is_some()).collect();
        let mut kinds = KINDS.to_vec();
        kinds.sort_unstable();
        assert_eq!(kinds, counted);
    }

    #[test]
    fn an_event_is_its_plugins_where_the_host_has_made_it() {
        let (bot, shop) =
            (BotId(7), PluginName::new("a-name-of-64-letters-0123456789012345678901234567890123456789012345"));
        let lane = EventLane::whole(Lane::Other);
        let timer = StoredEvent::Timer {
            plugin: shop.clone(),
            conversation: Conversation::default(),
            id: 1,
            name: "t".into(),
            payload: vec![7; 500],
            due: 9,
        };
        let state = StateRow { name: "s".into(), version: 1, expires: 0, bytes: vec![] };
        let expired = StoredEvent::Expired { plugin: shop.clone(), conversation: Conversation::default(), state };
        for (event, expect) in [
            (timer, Some(vec![Ledger::Kept, Ledger::Timers])),
            (expired, Some(vec![Ledger::Kept])),
            (StoredEvent::Update(b"{}".to_vec()), None),
            (StoredEvent::Cancel { lane, ended: None }, None),
        ] {
            let row = InboxRow { attempts: u32::MAX, not_before: u64::MAX, ..InboxRow::new(event, u64::MAX) }.encode();
            let start = &row[..row.len().min(START)];
            let counted = of(&inbox::key(bot, lane, 5), row.len() as u64, start);
            let keys = counted.map(|counted| counted.amounts().map(|(key, _)| key).collect::<Vec<_>>());
            assert_eq!(keys, expect.map(|ledgers| ledgers.into_iter().map(|ledger| key(ledger, bot, &shop)).collect()));
        }
        assert_eq!(of(&inbox::key(bot, lane, 5), 3, b"???"), None, "what can't be read is nobody's");
    }
}
