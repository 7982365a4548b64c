//! Which bots there are, how they stand, and how orders reach them. A request says which one it means with `?bot=NAME`,
//! and need not where there is only one.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::api::{Api, Refusal, Shared};
use super::plugins::Order;
use super::readiness::{Readiness, Reason, Report};
use crate::dispatch::Recorder;
use crate::domain::{BotId, BotName, PluginName};
use crate::operate::Operator;
use crate::store::rows::counted::Ledger;

/// The bots of a host. Clones share them.
#[derive(Clone, Default)]
pub struct Bots(Arc<RwLock<BTreeMap<BotName, Entry>>>);

#[derive(Clone, Default)]
struct Entry {
    readiness: Readiness,
    served: Option<Served>,
    was_served: bool,
}

/// How orders reach a bot.
#[derive(Clone)]
pub struct Served {
    /// The bot's part of the store.
    pub operator: Operator,
    /// To whoever owns its plugins.
    pub orders: mpsc::Sender<Order>,
    /// Takes notes of its plugins.
    pub recorder: Recorder,
}

/// What `/readyz` answers for several bots: the host is ready when one of them is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reports {
    /// At least one bot is ready.
    pub ready: bool,
    /// Why none is; each part has the bot's name in front.
    pub reasons: Vec<Reason>,
    /// What should be looked at, bots that are not ready among it.
    pub notes: Vec<Reason>,
    /// Each by itself.
    pub bots: BTreeMap<BotName, Report>,
}

/// A bot in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BotStatus {
    /// As it stands in `bot.toml`; `bot` for the one in `[bot]`.
    pub name: BotName,
    /// Its id, while it runs.
    pub id: Option<BotId>,
    /// Whether it is ready.
    pub ready: bool,
}

impl Bots {
    /// The bot is to run from now on; answers where its parts report how they do.
    #[allow(clippy::must_use_candidate, reason = "that it is expected is an effect too")]
    pub fn expect(&self, name: &BotName) -> Readiness {
        let readiness = Readiness::default();
        let mut bots = self.write();
        let was_served = bots.get(name).is_some_and(|entry| entry.was_served);
        bots.insert(name.clone(), Entry { readiness: readiness.clone(), served: None, was_served });
        readiness
    }

    /// The bot takes orders.
    pub fn serves(&self, name: &BotName, served: Served) {
        if let Some(entry) = self.write().get_mut(name) {
            (entry.served, entry.was_served) = (Some(served), true);
        }
    }

    /// The bot does not run, for this reason.
    pub fn failed(&self, name: &BotName, why: &str) {
        if let Some(entry) = self.write().get_mut(name) {
            entry.served = None;
            entry.readiness.bot_failed(why);
        }
    }

    /// There is no such bot any more.
    pub fn gone(&self, name: &BotName) {
        self.write().remove(name);
    }

    /// Whether it has run at all.
    #[must_use]
    pub fn was_served(&self, name: &BotName) -> bool {
        self.read().get(name).is_some_and(|entry| entry.was_served)
    }

    /// Tells something to all of them.
    pub fn tell(&self, what: impl Fn(&Readiness)) {
        self.read().values().for_each(|entry| what(&entry.readiness));
    }

    /// How each stands.
    #[must_use]
    pub fn list(&self) -> Vec<BotStatus> {
        let status = |(name, entry): (&BotName, &Entry)| BotStatus {
            name: name.clone(),
            id: entry.served.as_ref().map(|served| served.operator.bot()),
            ready: entry.readiness.report().ready,
        };
        self.read().iter().map(status).collect()
    }

    /// How much the plugins of each bot have of something.
    pub(super) fn used(&self, of: Ledger) -> Vec<(BotName, Vec<(PluginName, u64)>)> {
        let used = |(name, entry): (&BotName, &Entry)| Some((name.clone(), entry.served.as_ref()?.operator.used(of)));
        self.read().iter().filter_map(used).collect()
    }

    /// The report of the only bot, or of all.
    pub(super) fn report(&self) -> Result<Report, Reports> {
        let mut bots: BTreeMap<BotName, Report> =
            self.read().iter().map(|(name, entry)| (name.clone(), entry.readiness.report())).collect();
        match bots.len() {
            0 => Ok(Readiness::default().report()),
            1 => Ok(bots.pop_first().map(|(_, report)| report).unwrap_or_else(|| Readiness::default().report())),
            _ => Err(Reports::of(bots)),
        }
    }

    /// The report of one.
    pub(super) fn report_of(&self, name: &str) -> Result<Report, Refusal> {
        let bots = self.read();
        let entry = bots.get(&BotName::new(name)).ok_or_else(|| unknown(name, &bots))?;
        Ok(entry.readiness.report())
    }

    /// Whom a request means.
    pub(super) fn chosen(&self, name: Option<&str>) -> Result<Served, Refusal> {
        let bots = self.read();
        let (name, entry) = match name {
            Some(name) => bots.get_key_value(&BotName::new(name)).ok_or_else(|| unknown(name, &bots))?,
            None if bots.len() > 1 => {
                let error = format!("there are several bots, {}: say which one is meant", names(&bots));
                return Err(Refusal(StatusCode::BAD_REQUEST, error));
            }
            None => bots.first_key_value().ok_or_else(starting)?,
        };
        let why = || {
            let report = entry.readiness.report();
            let failure = report.reasons.iter().find(|reason| reason.part == "bot");
            failure.map_or_else(starting, |Reason { reason, .. }| {
                Refusal(StatusCode::SERVICE_UNAVAILABLE, format!("the bot `{name}` does not run: {reason}"))
            })
        };
        entry.served.clone().ok_or_else(why)
    }

    /// A panic elsewhere leaves nothing half done in here.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<BotName, Entry>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<BotName, Entry>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn starting() -> Refusal {
    Refusal(StatusCode::SERVICE_UNAVAILABLE, "the host is just starting".to_owned())
}

fn names(bots: &BTreeMap<BotName, Entry>) -> String {
    bots.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn unknown(name: &str, bots: &BTreeMap<BotName, Entry>) -> Refusal {
    let are = if bots.len() == 1 { "is" } else { "are" };
    Refusal(StatusCode::NOT_FOUND, format!("there is no bot `{name}`; there {are} {}", names(bots)))
}

impl Reports {
    fn of(bots: BTreeMap<BotName, Report>) -> Self {
        let ready = bots.values().any(|report| report.ready);
        let named = |name: &BotName, list: &[Reason]| -> Vec<Reason> {
            let of = |Reason { part, reason }: &Reason| Reason {
                part: format!("bots.{name}.{part}"),
                reason: reason.clone(),
            };
            list.iter().map(of).collect()
        };
        let all = |list: fn(&Report) -> &Vec<Reason>| {
            bots.iter().flat_map(|(name, report)| named(name, list(report))).collect::<Vec<_>>()
        };
        let (troubles, mut notes) = (all(|report| &report.reasons), all(|report| &report.notes));
        let reasons = if ready { Vec::new() } else { troubles.clone() };
        if ready {
            notes.splice(0..0, troubles);
        }
        Self { ready, reasons, notes, bots }
    }
}

/// The query of every request to one bot.
#[derive(Deserialize)]
pub(super) struct Which {
    pub(super) bot: Option<String>,
}

impl FromRequestParts<Shared> for Api {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Refusal> {
        let which: Result<Query<Which>, _> = Query::try_from_uri(&parts.uri);
        let which = which.map_err(|error| Refusal(StatusCode::BAD_REQUEST, error.body_text()))?;
        let Served { operator, orders, recorder } = shared.bots.chosen(which.0.bot.as_deref())?;
        Ok(Self { operator, orders, recorder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bot_that_is_down_is_a_note_and_all_are_a_reason() {
        let bots = Bots::default();
        let [shop, desk] = ["shop", "desk"].map(|name| bots.expect(&BotName::new(name)));
        desk.intake(crate::intake::Status {
            last_good: Some(tokio::time::Instant::now()),
            patience: std::time::Duration::from_secs(90),
            ..Default::default()
        });
        bots.failed(&BotName::new("shop"), "the token is refused");
        let Err(report) = bots.report() else { panic!("there are two") };
        assert!(report.ready && report.reasons.is_empty(), "{report:?}");
        let note = report.notes.iter().find(|note| note.part == "bots.shop.bot").unwrap();
        assert_eq!(note.reason, "the token is refused");
        assert!(!report.bots[&BotName::new("shop")].ready && report.bots[&BotName::new("desk")].ready);
        assert!(!bots.report_of("shop").ok().unwrap().ready);

        desk.store_failed("the disk is full");
        shop.store_failed("the disk is full");
        let Err(report) = bots.report() else { panic!("there are two") };
        assert!(!report.ready && report.reasons.iter().any(|reason| reason.part == "bots.desk.store"), "{report:?}");

        let said = |name| bots.chosen(name).err().unwrap().1;
        assert_eq!(said(None), "there are several bots, `desk`, `shop`: say which one is meant");
        assert_eq!(said(Some("shap")), "there is no bot `shap`; there are `desk`, `shop`");
        assert!(said(Some("shop")).contains("does not run"), "{}", said(Some("shop")));
        bots.gone(&BotName::new("desk"));
        assert!(bots.report().is_ok(), "one bot's report is its own");
    }
}
