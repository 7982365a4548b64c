//! `[bot]` and `[bots.NAME]`: which bots there are, and what is particular to each.
//!
//! `[bots.NAME.intake]` and `[bots.NAME.send]` go over `[intake]` and `[send]`, key by key. What is wrong in a general
//! section is found once for each bot that is read with it, and told once.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;

use super::problem::{Origin, Problem};
use super::reader::Reader;
use super::{Bot, Intake, Send, bot, plugin};
use crate::domain::BotName;

/// What belongs to one bot.
#[derive(Debug, Clone)]
pub struct OneBot {
    /// Who it is.
    pub bot: Bot,
    /// How its updates are fetched.
    pub intake: Intake,
    /// How fast its calls go out.
    pub send: Send,
}

impl OneBot {
    fn read(bot: Reader<'_>, intake: Reader<'_>, send: Reader<'_>) -> Self {
        let bot = Bot::read(bot);
        let is_telegram = bot.api_base == bot::TELEGRAM;
        Self { bot, intake: Intake::read(intake, is_telegram), send: Send::read(send) }
    }
}

/// Never empty: without any section it is the bot of an empty `[bot]`.
pub(super) fn read_all(root: &mut Reader<'_>) -> BTreeMap<BotName, OneBot> {
    let has_one = root.has(BotName::OF_THE_ONE);
    let one = root.table("bot");
    let (intake, send) = (root.table("intake"), root.table("send"));
    let mut section = root.table("bots");
    let entries = section.entries();
    let mut bots = BTreeMap::new();
    let mut origins = BTreeMap::new();
    if has_one || entries.is_empty() {
        let name = BotName::new(BotName::OF_THE_ONE);
        origins.insert(name.clone(), one.origin().clone());
        bots.insert(name, OneBot::read(one, intake.clone(), send.clone()));
    }
    for (name, origin, node) in entries {
        if !plugin::is_name(&name) {
            section.problem(&origin, format!("bot name {name:?}: use 1 to 64 of a-z, 0-9, `_` and `-`"));
        } else if name == BotName::OF_THE_ONE {
            section.problem(&origin, "`bot` is the name of the bot in [bot]; choose another one for this bot");
        }
        let mut bot = section.child(&name, origin.clone(), node);
        let (own_intake, own_send) = (bot.table("intake"), bot.table("send"));
        let read = OneBot::read(bot, intake.clone().under(own_intake), send.clone().under(own_send));
        origins.insert(BotName::new(&name), origin);
        bots.insert(BotName::new(&name), read);
    }
    for (name, problem) in clashes(&bots) {
        section.problem(origins.get(name).unwrap_or(&Origin::Whole), problem);
    }
    bots
}

/// What no two bots can share.
fn clashes(bots: &BTreeMap<BotName, OneBot>) -> Vec<(&BotName, String)> {
    let mut found = Vec::new();
    for (at, (name, bot)) in bots.iter().enumerate() {
        for (other, before) in bots.iter().take(at) {
            let id = |bot: &OneBot| bot.bot.token.as_ref().map(|token| id_of(token.expose_secret()).to_owned());
            if id(bot).is_some_and(|own| Some(own) == id(before)) {
                let message = format!("the bots `{other}` and `{name}` have the same token: each needs one of its own");
                found.push((name, message));
            }
            let (Some(own), Some(its)) = (&bot.intake.webhook, &before.intake.webhook) else { continue };
            if own.listen == its.listen {
                let message = format!(
                    "the bots `{other}` and `{name}` both take their webhook's calls at {}; set another `listen` in \
                     [bots.{name}.intake.webhook]",
                    own.listen
                );
                found.push((name, message));
            }
            if own.url == its.url {
                let message = format!(
                    "the webhooks of the bots `{other}` and `{name}` have the same address; set another `url` in \
                     [bots.{name}.intake.webhook]"
                );
                found.push((name, message));
            }
        }
    }
    found
}

/// The bot's number. A token of no form is told of later, and is its own.
fn id_of(token: &str) -> &str {
    token.split_once(':').map_or(token, |(id, _)| id)
}

/// What is wrong in a general section, told once. The place is the same, and so are the words but for the bot's name.
pub(super) fn once(problems: &mut Vec<Problem>) {
    let mut told = std::collections::BTreeSet::new();
    problems.retain(|problem| told.insert((problem.origin.clone(), general(&problem.message))));
}

/// `[bots.shop.send]` as `[send]`.
fn general(message: &str) -> String {
    let Some((before, rest)) = message.split_once("[bots.") else { return message.to_owned() };
    match rest.split_once('.') {
        Some((name, after)) if plugin::is_name(name) => format!("{before}[{after}"),
        _ => message.to_owned(),
    }
}
