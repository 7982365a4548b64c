//! What a plugin wants, as far as an operator can say no to it: Bot API methods, kinds of update, and interfaces of
//! the host. Pure; compared with what was approved, it says what is new, in words.

use serde::{Deserialize, Serialize};

use super::grants::covers;
use super::{Grants, Manifest, component};
use crate::domain::{PluginName, UPDATE_KINDS};

/// Every kind of update there is.
const ALL: &str = "*";
const BROADCASTS: &str = "botyard:broadcast/broadcasts";

/// What a plugin wants. All lists are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rights {
    /// Bot API methods that it calls; `*` at the end stands for any ending.
    pub methods: Vec<String>,
    /// Kinds of update that it is given; `*` for all.
    pub kinds: Vec<String>,
    /// Interfaces that it imports, without their versions.
    pub interfaces: Vec<String>,
}

impl Rights {
    /// What a manifest and these imports ask for.
    pub(super) fn of(manifest: &Manifest, interfaces: &[String]) -> Self {
        let sorted = |mut list: Vec<String>| {
            list.sort_unstable();
            list.dedup();
            list
        };
        let kinds: Vec<&str> = manifest.filters.iter().flat_map(super::Filter::wanted_kinds).collect();
        let kinds = if UPDATE_KINDS.iter().all(|kind| kinds.contains(kind)) { vec![ALL] } else { kinds };
        Self {
            methods: sorted(manifest.methods.clone()),
            kinds: sorted(kinds.into_iter().map(str::to_owned).collect()),
            interfaces: sorted(interfaces.iter().map(|name| component::base(name).to_owned()).collect()),
        }
    }

    /// Whether it sends to many chats at once.
    #[must_use]
    pub fn broadcasts(&self) -> bool {
        self.interfaces.iter().any(|interface| interface == BROADCASTS)
    }

    /// What of this is not part of `approved`.
    #[must_use]
    pub fn beyond(&self, approved: &Self) -> Self {
        let is_new = |list: &[String], item: &str| !list.iter().any(|known| covers(known, item));
        let new = |wanted: &[String], known: &[String]| {
            wanted.iter().filter(|item| is_new(known, item)).cloned().collect::<Vec<_>>()
        };
        Self {
            methods: new(&self.methods, &approved.methods),
            kinds: new(&self.kinds, &approved.kinds),
            interfaces: new(&self.interfaces, &approved.interfaces),
        }
    }

    /// True if nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.kinds.is_empty() && self.interfaces.is_empty()
    }

    /// A line for each sort of right, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |what: &str, list: &[String]| (!list.is_empty()).then(|| format!("{what} {}", list.join(", ")));
        let lines = [
            line("calls", &self.methods),
            line("is given", &self.kinds),
            line("uses", &self.interfaces.iter().map(|name| name.replace("botyard:", "")).collect::<Vec<_>>()),
        ];
        lines.into_iter().flatten().collect()
    }

    /// Kinds that it asks for by name and is not given.
    pub(super) fn kinds_left_out(&self, plugin: &PluginName, grants: &Grants) -> Vec<String> {
        let Some(granted) = &grants.kinds else { return Vec::new() };
        let left_out = self.kinds.iter().filter(|kind| *kind != ALL && !granted.contains(kind));
        left_out.map(|kind| format!("add \"{kind}\" to `grants.kinds` of [plugins.{plugin}] in bot.toml")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(methods: &[&str], kinds: &[&str], interfaces: &[&str]) -> Rights {
        let list = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
        Rights { methods: list(methods), kinds: list(kinds), interfaces: list(interfaces) }
    }

    #[test]
    fn what_goes_beyond_is_named() {
        let approved = rights(&["send*", "answerCallbackQuery"], &["message"], &["botyard:log/log"]);
        for (wanted, beyond) in [
            (rights(&["sendMessage", "SENDPHOTO"], &["message"], &[]), rights(&[], &[], &[])),
            (rights(&["send*"], &[], &[]), rights(&[], &[], &[])),
            (rights(&["sen*", "answer*", "*"], &[], &[]), rights(&["sen*", "answer*", "*"], &[], &[])),
            (rights(&[], &["callback_query", "message"], &[]), rights(&[], &["callback_query"], &[])),
            (rights(&[], &["*"], &[]), rights(&[], &["*"], &[])),
            (rights(&[], &[], &["botyard:log/log", BROADCASTS]), rights(&[], &[], &[BROADCASTS])),
        ] {
            assert_eq!(wanted.beyond(&approved), beyond);
            assert!(wanted.beyond(&wanted).is_empty());
        }
        let all = rights(&["*"], &["*"], &[]);
        assert!(rights(&["a*", "b"], &["message"], &[]).beyond(&all).is_empty());
    }

    #[test]
    fn is_said_in_words() {
        let lines = rights(&["sendMessage"], &["message", "poll"], &[BROADCASTS]).lines();
        assert_eq!(lines, ["calls sendMessage", "is given message, poll", "uses broadcast/broadcasts"]);
        assert!(Rights::default().lines().is_empty() && rights(&[], &[], &[BROADCASTS]).broadcasts());
    }
}
