//! What a plugin wants, as far as an operator can say no to it: Bot API methods, kinds of update, servers, and interfaces
//! of the host. Pure; compared with what was approved, it says what is new, in words.

use serde::{Deserialize, Serialize};

use super::grants::covers;
use super::{Grants, Manifest, component};
use crate::domain::{OriginPattern, PluginName, UPDATE_KINDS};

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
    /// Servers that it sends HTTP requests to.
    pub http: Vec<String>,
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
            http: sorted(manifest.http.iter().map(ToString::to_string).collect()),
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
            http: self.http.iter().filter(|origin| !reaches(&approved.http, origin)).cloned().collect(),
            interfaces: new(&self.interfaces, &approved.interfaces),
        }
    }

    /// True if nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.kinds.is_empty() && self.http.is_empty() && self.interfaces.is_empty()
    }

    /// A line for each sort of right, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |what: &str, list: &[String]| (!list.is_empty()).then(|| format!("{what} {}", list.join(", ")));
        let lines = [
            line("calls", &self.methods),
            line("is given", &self.kinds),
            line("sends requests to", &self.http),
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

/// Whether one of these patterns stands for all that the origin does. Somebody may have changed them by hand, and what is
/// no pattern stands for nothing.
fn reaches(known: &[String], origin: &str) -> bool {
    let Ok(origin) = origin.parse::<OriginPattern>() else { return false };
    known.iter().any(|known| known.parse::<OriginPattern>().is_ok_and(|known| known.covers(&origin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(methods: &[&str], kinds: &[&str], interfaces: &[&str]) -> Rights {
        let list = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
        Rights { methods: list(methods), kinds: list(kinds), interfaces: list(interfaces), ..Rights::default() }
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
        let to = |http: &[&str]| Rights { http: http.iter().map(ToString::to_string).collect(), ..Rights::default() };
        for (known, wanted, beyond) in [
            (
                &["https://*.pay.example"][..],
                &["https://api.pay.example", "https://pay.example"][..],
                &["https://pay.example"][..],
            ),
            (&["https://a.example"], &["https://a.example:8443"], &["https://a.example:8443"]),
            (&["https://*"], &["https://a.example", "http://a.example"], &["http://a.example"]),
            (&["nonsense"], &["https://a.example"], &["https://a.example"]),
        ] {
            assert_eq!(to(wanted).beyond(&to(known)), to(beyond));
        }
        let all = rights(&["*"], &["*"], &[]);
        assert!(rights(&["a*", "b"], &["message"], &[]).beyond(&all).is_empty());
    }

    #[test]
    fn is_said_in_words() {
        let wanted = rights(&["sendMessage"], &["message", "poll"], &[BROADCASTS]);
        let lines = Rights { http: vec!["https://a.example".to_owned()], ..wanted }.lines();
        let expected = ["calls sendMessage", "is given message, poll", "sends requests to https://a.example"];
        assert_eq!(lines, [&expected[..], &["uses broadcast/broadcasts"]].concat());
        assert!(Rights::default().lines().is_empty() && rights(&[], &[], &[BROADCASTS]).broadcasts());
    }
}
