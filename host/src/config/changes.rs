//! What differs between two configurations, and which of it can be applied while the bot runs.

use secrecy::ExposeSecret as _;

use super::{Config, Plugin};
use crate::domain::PluginName;

/// The difference between the configuration that runs and a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Plugins to load. One that is enabled again counts as added.
    pub added: Vec<PluginName>,
    /// Plugins to stop. One that is no longer enabled counts as removed.
    pub removed: Vec<PluginName>,
    /// Plugins to load again, with another path, config, secret, grant, limit or priority.
    pub changed: Vec<PluginName>,
    /// Token or server of `[bot]` differ.
    pub bot: bool,
    /// `[intake]` differs.
    pub intake: bool,
    /// `[send]` differs.
    pub send: bool,
    /// `dispatch.acknowledge_callbacks` differs.
    pub acknowledge: bool,
    /// `[i18n]` differs: every plugin's catalogs.
    pub i18n: bool,
    /// Keys whose change has no effect before the next start, such as `admin.listen`.
    pub needs_restart: Vec<&'static str>,
}

impl Changes {
    /// Nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) fn between(old: &Config, new: &Config) -> Changes {
    let names = |config: &Config, keep: &dyn Fn(&PluginName, &Plugin) -> bool| -> Vec<PluginName> {
        config.enabled().filter(|(name, plugin)| keep(name, plugin)).map(|(name, _)| name.clone()).collect()
    };
    let in_old = |name: &PluginName| old.plugins.get(name).filter(|plugin| plugin.enabled);
    let in_new = |name: &PluginName| new.plugins.get(name).filter(|plugin| plugin.enabled);
    Changes {
        added: names(new, &|name, _| in_old(name).is_none()),
        removed: names(old, &|name, _| in_new(name).is_none()),
        changed: names(new, &|name, plugin| in_old(name).is_some_and(|old| !same(old, plugin))),
        bot: token(old) != token(new) || old.bot.api_base != new.bot.api_base,
        intake: old.intake != new.intake,
        send: old.send != new.send,
        acknowledge: old.dispatch.acknowledge_callbacks != new.dispatch.acknowledge_callbacks,
        i18n: old.i18n != new.i18n,
        needs_restart: needs_restart(old, new),
    }
}

fn token(config: &Config) -> Option<&str> {
    config.bot.token.as_ref().map(|token| token.expose_secret())
}

fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let differing = [
        ("bot.local_server", old.bot.local_server != new.bot.local_server),
        ("bot.commands", old.bot.commands != new.bot.commands),
        ("bot.local_files", old.bot.local_files != new.bot.local_files),
        ("dispatch.concurrency", old.dispatch.concurrency != new.dispatch.concurrency),
        ("dispatch.jobs", old.dispatch.jobs != new.dispatch.jobs),
        ("dispatch.max_attempts", old.dispatch.max_attempts != new.dispatch.max_attempts),
        ("dispatch.dead_letters", old.dispatch.dead_letters != new.dispatch.dead_letters),
        ("dispatch.dead_letter_bytes", old.dispatch.dead_letter_bytes != new.dispatch.dead_letter_bytes),
        ("dispatch.dead_letter_age", old.dispatch.dead_letter_age != new.dispatch.dead_letter_age),
        ("dispatch.cancel_command", old.dispatch.cancel_command != new.dispatch.cancel_command),
        ("dispatch.cancel_reply", old.dispatch.cancel_reply != new.dispatch.cancel_reply),
        ("dispatch.stale_button_reply", old.dispatch.stale_button_reply != new.dispatch.stale_button_reply),
        ("dispatch.unsealed_buttons", old.dispatch.unsealed_buttons != new.dispatch.unsealed_buttons),
        ("dispatch.album_quiet", old.dispatch.album_quiet != new.dispatch.album_quiet),
        ("dispatch.album_wait", old.dispatch.album_wait != new.dispatch.album_wait),
        ("store.path", old.store.path != new.store.path),
        ("admin.listen", old.admin.listen != new.admin.listen),
    ];
    differing.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// All fields are named, so that a new one can't be forgotten.
fn same(old: &Plugin, new: &Plugin) -> bool {
    // Whose it is makes it come or go, and changes nothing about it.
    let Plugin {
        path,
        enabled,
        bots: _,
        priority,
        config,
        secrets,
        on_crash,
        probation,
        canary,
        pin,
        grants,
        limits,
        jobs,
    } = new;
    let secrets_are_same = old.secrets.len() == secrets.len()
        && old
            .secrets
            .iter()
            .zip(secrets)
            .all(|((old_name, old), (name, new))| old_name == name && old.expose_secret() == new.expose_secret());
    old.path == *path
        && old.enabled == *enabled
        && old.priority == *priority
        && old.config == *config
        && (old.on_crash, old.probation, old.canary, old.pin) == (*on_crash, *probation, *canary, *pin)
        && old.grants == *grants
        && old.limits == *limits
        && old.jobs == *jobs
        && secrets_are_same
}
