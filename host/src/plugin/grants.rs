//! What a plugin may do: it must have asked for it in its manifest, and the operator must not have kept it back.
//!
//! Pure; a refusal says what to change, and where. Telegram takes method names in any case, so they are
//! compared without it.

use crate::domain::{ChatGrant, Origin, OriginPattern, PluginName};

/// These belong to the host: with them a plugin could take the bot's updates or end its session.
const NEVER: [&str; 5] = ["getUpdates", "setWebhook", "deleteWebhook", "logOut", "close"];

/// The rights that the operator gave to a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Bot API methods, with `*` at the end for any ending; none for all that the plugin declares.
    pub methods: Option<Vec<String>>,
    /// Kinds of update that it is offered; none for all that it asks for.
    pub kinds: Option<Vec<String>>,
    /// Chats that it has to do with; none for all.
    pub chats: Option<Vec<ChatGrant>>,
    /// Broadcasts.
    pub broadcast: Broadcasting,
    /// Servers that it may send HTTP requests to, as far as it declares them too.
    pub http: Vec<OriginPattern>,
}

/// Whether a plugin may send one call to many chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Broadcasting {
    /// Not at all.
    #[default]
    Denied,
    /// At the usual rate.
    Free,
    /// Also for the bot's Stars.
    Paid,
}

/// Where a plugin may send HTTP requests to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach<'a> {
    pub(super) plugin: &'a PluginName,
    /// By its manifest.
    pub(super) declared: &'a [OriginPattern],
    /// By the operator.
    pub(super) granted: &'a [OriginPattern],
}

impl Reach<'_> {
    /// Decides about one server; the error is for the plugin's author and the operator.
    pub(super) fn check(&self, origin: &Origin) -> Result<(), String> {
        if !self.declared.iter().any(|pattern| pattern.matches(origin)) {
            return Err(format!("the plugin does not declare {origin}: add \"{origin}\" to `http` of its manifest"));
        }
        if !self.granted.iter().any(|pattern| pattern.matches(origin)) {
            return Err(self.mend(origin));
        }
        Ok(())
    }

    /// Whether the operator has granted this very server, and not only many at once.
    pub(super) fn is_named(&self, origin: &Origin) -> bool {
        self.granted.iter().any(|pattern| pattern.names(origin))
    }

    /// What the operator must do to allow it.
    pub(super) fn mend(&self, origin: &impl std::fmt::Display) -> String {
        format!("add \"{origin}\" to `grants.http` of [plugins.{}] in bot.toml", self.plugin)
    }

    /// What is declared and will not be allowed.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let missing = |declared: &&OriginPattern| !self.granted.iter().any(|granted| granted.covers(declared));
        self.declared.iter().filter(missing).map(|declared| self.mend(declared))
    }
}

/// True for what can be the name of a method: nothing that could change the address of a call.
pub(super) fn is_method_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// True for a method's name, or its beginning and `*`.
pub(super) fn is_method_pattern(pattern: &str) -> bool {
    pattern == "*" || is_method_name(pattern.strip_suffix('*').unwrap_or(pattern))
}

/// Decides about one call; the error is for the plugin's author and the operator.
pub(super) fn check(plugin: &PluginName, declared: &[String], grants: &Grants, method: &str) -> Result<(), String> {
    if NEVER.iter().any(|never| never.eq_ignore_ascii_case(method)) {
        return Err(format!("`{method}` is the host's own: no plugin may call it"));
    }
    if !declared.iter().any(|pattern| matches(pattern, method)) {
        return Err(format!("the plugin does not declare `{method}`: add \"{method}\" to `methods` of its manifest"));
    }
    match &grants.methods {
        Some(granted) if !granted.iter().any(|pattern| matches(pattern, method)) => {
            Err(format!("add \"{method}\" to `grants.methods` of [plugins.{plugin}] in bot.toml"))
        }
        _ => Ok(()),
    }
}

/// Decides about a broadcast; the error is for the plugin's author and the operator.
pub(super) fn check_broadcast(plugin: &PluginName, grants: &Grants, paid: bool) -> Result<(), String> {
    let (needed, line) = if paid { (Broadcasting::Paid, "\"paid\"") } else { (Broadcasting::Free, "true") };
    if grants.broadcast >= needed {
        return Ok(());
    }
    Err(format!("add `grants.broadcast = {line}` to [plugins.{plugin}] in bot.toml"))
}

/// True if the pattern allows all that the other one does.
pub(super) fn covers(pattern: &str, other: &str) -> bool {
    match other.strip_suffix('*') {
        Some(beginning) => pattern.ends_with('*') && matches(pattern, beginning),
        None => matches(pattern, other),
    }
}

fn matches(pattern: &str, method: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => method.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning)),
        None => pattern.eq_ignore_ascii_case(method),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_the_manifest_and_the_operator() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (declared, granted, method, expect) in [
            (&["sendMessage"][..], None, "sendMessage", None),
            (&["sendMessage"], None, "SENDMESSAGE", None),
            (&["send*"], None, "sendPhoto", None),
            (&["*"], None, "sendPhoto", None),
            (&["answer*"], Some(&["answerCallbackQuery"][..]), "answerCallbackQuery", None),
            (&["answer*"], Some(&["answer*", "send*"]), "answerInlineQuery", None),
            (
                &["*"],
                Some(&["send*"]),
                "banChatMember",
                Some("add \"banChatMember\" to `grants.methods` of [plugins.shop]"),
            ),
            (&["*"], Some(&[]), "sendMessage", Some("`grants.methods` of [plugins.shop] in bot.toml")),
            (&["sendMessage"], None, "sendPhoto", Some("does not declare `sendPhoto`")),
            (&["sendMessage"], Some(&["*"]), "sendPhoto", Some("does not declare `sendPhoto`")),
            (&["send*"], None, "sen", Some("does not declare")),
            (&[], None, "sendMessage", Some("does not declare")),
            (&["*"], Some(&["*"]), "getUpdates", Some("the host's own")),
            (&["*"], None, "GETUPDATES", Some("the host's own")),
            (&["setWebhook"], Some(&["setWebhook"]), "setWebhook", Some("the host's own")),
            (&["*"], None, "deletewebhook", Some("the host's own")),
            (&["*"], None, "logout", Some("the host's own")),
            (&["*"], None, "Close", Some("the host's own")),
            (&["*"], None, "closeForumTopic", None),
        ] {
            let grants = Grants { methods: granted.map(texts), ..Grants::default() };
            let answer = check(&PluginName::new("shop"), &texts(declared), &grants, method);
            match expect {
                None => assert_eq!(answer, Ok(()), "{declared:?} {granted:?} {method}"),
                Some(part) => assert!(answer.clone().is_err_and(|text| text.contains(part)), "{method}: {answer:?}"),
            }
        }
    }

    #[test]
    fn broadcasts_and_paying_for_them_are_granted_each() {
        let denied = |broadcast, paid| {
            check_broadcast(&PluginName::new("news"), &Grants { broadcast, ..Grants::default() }, paid).err()
        };
        let says = |line: &str| Some(format!("add `grants.broadcast = {line}` to [plugins.news] in bot.toml"));
        assert_eq!(denied(Broadcasting::Denied, false), says("true"));
        assert_eq!(denied(Broadcasting::Denied, true), says("\"paid\""));
        assert_eq!(denied(Broadcasting::Free, true), says("\"paid\""));
        assert_eq!((denied(Broadcasting::Free, false), denied(Broadcasting::Paid, false)), (None, None));
        assert_eq!(denied(Broadcasting::Paid, true), None);
    }

    #[test]
    fn names_hold_nothing_that_could_change_an_address() {
        for (name, valid) in [
            ("sendMessage", true),
            ("", false),
            ("../getMe", false),
            ("send/Message", false),
            ("getMe?x=1", false),
            ("sendé", false),
            ("send*", false),
        ] {
            assert_eq!(is_method_name(name), valid, "{name}");
        }
        assert!(is_method_pattern("*") && is_method_pattern("send*") && !is_method_pattern("*send"));
    }
}
