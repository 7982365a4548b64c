//! Calls the bot's webhook, as Telegram does.
//!
//! - Updates wait in lanes: messages, edits and posts by chat, pressed buttons and queries by user, everything else by
//!   kind and chat. Of a lane one is on its way at a time, in order; over all lanes at most `max_connections`. A lane whose
//!   head fails waits behind it, and of lanes that are under way or waiting so there are twice `max_connections` at most.
//! - Any 2xx within 60 s confirms. The first failure is repeated at once, later ones after 2, 4, 8 … s, or after what
//!   `Retry-After` says. What would be too old at its next try is dropped.
//! - Only this machine is called, whatever certificate it shows; to every other address deliveries fail.
//!
//! [`Lanes`] decides, without clock and socket; [`deliver`] does it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::RETRY_AFTER;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::faults::Action;
use super::http::stopped;
use super::hub::Hub;
use super::updates::Queue;
use super::world::World;
use crate::domain::UpdateView;

const DEADLINE: Duration = Duration::from_secs(60);
const LONGEST_RETRY_AFTER: u64 = 3600;
/// The name under which faults hit deliveries.
const METHOD: &str = "webhook";

/// What `setWebhook` left, and how it goes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Webhook {
    pub(super) url: String,
    pub(super) max_connections: i64,
    pub(super) secret: Option<String>,
    pub(super) ip_address: Option<String>,
    pub(super) has_certificate: bool,
    pub(super) last_error_date: Option<i64>,
    pub(super) last_error_message: Option<String>,
}

/// Kind of lane, and whose.
pub(super) type Key = (String, i64);

/// Which lane an update waits in.
pub(super) fn key_of(update: &str) -> Key {
    let view = UpdateView::parse(update).unwrap_or_default();
    let (chat, user) = (view.chat.map(|chat| chat.0), view.user.map(|user| user.0));
    match &*view.kind {
        "message" | "edited_message" | "channel_post" | "edited_channel_post" => {
            (String::new(), chat.unwrap_or_default())
        }
        kind @ ("callback_query"
        | "inline_query"
        | "chosen_inline_result"
        | "shipping_query"
        | "pre_checkout_query") => (kind.to_owned(), user.unwrap_or_default()),
        kind => (kind.to_owned(), chat.or(user).unwrap_or_default()),
    }
}

#[derive(Debug, Default)]
struct Lane {
    ids: VecDeque<i64>,
    failures: u32,
}

/// Which update goes next.
#[derive(Debug, Default)]
struct Lanes {
    lanes: HashMap<Key, Lane>,
    ready: VecDeque<Key>,
    /// Lanes whose head has failed, by when it is tried again.
    resting: BTreeSet<(Instant, Key)>,
    in_flight: usize,
}

impl Lanes {
    fn add(&mut self, id: i64, key: Key) {
        let lane = self.lanes.entry(key.clone()).or_default();
        lane.ids.push_back(id);
        if lane.ids.len() == 1 {
            self.ready.push_back(key);
        }
    }

    /// The next update to send, if there is one and room for it.
    fn next(&mut self, max_connections: usize, now: Instant) -> Option<(Key, i64)> {
        while let Some((at, _)) = self.resting.first()
            && *at <= now
        {
            // Before lanes that have not begun: those that are open stay the same few.
            self.resting.pop_first().into_iter().for_each(|(_, key)| self.ready.push_front(key));
        }
        let is_open = self.in_flight + self.resting.len() < 2 * max_connections;
        if self.in_flight >= max_connections {
            return None;
        }
        let place =
            self.ready.iter().position(|key| is_open || self.lanes.get(key).is_some_and(|lane| lane.failures > 0))?;
        let key = self.ready.remove(place)?;
        let id = *self.lanes.get(&key)?.ids.front()?;
        self.in_flight += 1;
        Some((key, id))
    }

    /// The head of a lane is done with, or is to be tried again at that time.
    fn ended(&mut self, key: Key, again: Option<Instant>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        match again {
            Some(at) => {
                lane.failures += 1;
                self.resting.insert((at, key));
            }
            None => {
                lane.failures = 0;
                lane.ids.pop_front();
                if lane.ids.is_empty() {
                    self.lanes.remove(&key);
                } else {
                    self.ready.push_back(key);
                }
            }
        }
    }

    fn failures(&self, key: &Key) -> u32 {
        self.lanes.get(key).map_or(0, |lane| lane.failures)
    }
}

/// How long to wait after so many failures in a row, this one included.
fn pause(failures: u32, retry_after: Option<u64>, second: Duration, dice: f64) -> Duration {
    let seconds = match (retry_after, failures) {
        (Some(seconds), _) => seconds.min(LONGEST_RETRY_AFTER) as f64,
        (None, 0 | 1) => 0.0,
        (None, n) => f64::from(2_u32.saturating_pow(n - 1)).min(60.0 + 60.0 * dice),
    };
    second.mul_f64(seconds)
}

struct Delivery {
    key: Key,
    id: i64,
    generation: u64,
    expires: i64,
    webhook: Webhook,
    body: Vec<u8>,
}

struct Failure {
    message: String,
    retry_after: Option<u64>,
}

/// Delivers until told to stop.
pub(super) async fn deliver(hub: Arc<Hub>, mut stop: watch::Receiver<bool>) {
    let mut lanes = Lanes::default();
    let mut generation = 0;
    let mut under_way = JoinSet::new();
    let client = std::sync::OnceLock::new();
    loop {
        let changed = hub.signals.polls.notified();
        tokio::pin!(changed);
        // From here on no signal is missed, although the queue is looked at first.
        changed.as_mut().enable();
        for delivery in due(&mut hub.look(), &mut lanes, &mut generation) {
            let (hub, client) = (hub.clone(), client.get_or_init(client_of).clone());
            under_way.spawn(async move {
                let outcome = post(&hub, &client, &delivery).await;
                (delivery, outcome)
            });
        }
        let wake = lanes.resting.first().map(|(at, _)| *at);
        let rested = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = rested => {}
            Some(Ok((delivery, outcome))) = under_way.join_next() => {
                ended(&mut hub.world(), &mut lanes, generation, delivery, outcome);
            }
            () = stopped(&mut stop) => return,
        }
    }
}

fn client_of() -> reqwest::Client {
    // Fails only where somebody has chosen a provider already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    builder.tls_danger_accept_invalid_certs(true).build().expect("these settings are always possible")
}

fn due(world: &mut World, lanes: &mut Lanes, generation: &mut u64) -> Vec<Delivery> {
    if *generation != world.webhook_generation {
        *generation = world.webhook_generation;
        *lanes = Lanes::default();
        world.queue.take_back();
    }
    let Some(webhook) = world.webhook.clone() else { return Vec::new() };
    for (id, key) in world.queue.hand_out() {
        lanes.add(id, key);
    }
    let (now, clock) = (Instant::now(), world.now());
    let max_connections = usize::try_from(webhook.max_connections).unwrap_or(1).max(1);
    let mut due = Vec::new();
    while let Some((key, id)) = lanes.next(max_connections, now) {
        match world.queue.read(id).filter(|(_, expires)| *expires > clock) {
            Some((body, expires)) => {
                due.push(Delivery { key, id, generation: *generation, expires, webhook: webhook.clone(), body });
            }
            None => {
                world.queue.remove(id);
                lanes.ended(key, None);
            }
        }
    }
    due
}

fn ended(world: &mut World, lanes: &mut Lanes, generation: u64, delivery: Delivery, outcome: Result<(), Failure>) {
    let Delivery { key, id, .. } = delivery;
    let is_current = delivery.generation == generation && generation == world.webhook_generation;
    let Err(Failure { message, retry_after }) = outcome else {
        world.queue.remove(id);
        if is_current {
            lanes.ended(key, None);
        }
        return;
    };
    let clock = world.now();
    if let Some(webhook) = &mut world.webhook {
        (webhook.last_error_date, webhook.last_error_message) = (Some(clock), Some(message));
    }
    if !is_current {
        return;
    }
    let pause = pause(lanes.failures(&key) + 1, retry_after, world.limits.webhook_second, rand::random());
    if delivery.expires <= clock + i64::try_from(pause.as_secs()).unwrap_or(i64::MAX) {
        world.queue.remove(id);
        lanes.ended(key, None);
    } else {
        lanes.ended(key, Some(Instant::now() + pause));
    }
}

async fn post(hub: &Hub, client: &reqwest::Client, delivery: &Delivery) -> Result<(), Failure> {
    let fail = |message: &str| Failure { message: message.to_owned(), retry_after: None };
    let chat = delivery.key.0.is_empty().then_some(delivery.key.1);
    let mut is_lost = false;
    match hub.fault(METHOD, chat) {
        None => {}
        Some(Action::Stall { time, .. }) => tokio::time::sleep(time).await,
        Some(Action::Reset { applied: true } | Action::Cut { .. } | Action::Silence { applied: true }) => {
            is_lost = true
        }
        Some(_) => return Err(fail("Connection failed")),
    }
    let url = Url::parse(&delivery.webhook.url).map_err(|_| fail("Bad webhook: invalid URL"))?;
    if !is_near(&url) {
        return Err(fail("the simulator calls nobody but this machine"));
    }
    let mut request = client.post(url).timeout(DEADLINE).header("content-type", "application/json");
    if let Some(secret) = &delivery.webhook.secret {
        request = request.header("X-Telegram-Bot-Api-Secret-Token", secret);
    }
    let response = request
        .body(delivery.body.clone())
        .send()
        .await
        .map_err(|error| fail(if error.is_timeout() { "Read timeout expired" } else { "Connection refused" }))?;
    let status = response.status();
    if is_lost {
        return Err(fail("Read timeout expired"));
    }
    if status.is_success() {
        return Ok(());
    }
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Err(Failure { message: format!("Wrong response from the webhook: {status}"), retry_after })
}

/// Whether an address is on this machine.
pub(super) fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// For the queue, which knows its updates.
impl Queue {
    /// What has not been given to lanes yet.
    fn hand_out(&mut self) -> Vec<(i64, Key)> {
        self.fresh().into_iter().map(|(id, update)| (id, key_of(&update))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn lanes_are_those_of_telegram() {
        let of = |update: &str| key_of(&format!("{{\"update_id\":1,{update}}}"));
        let chat = r#""chat":{"id":-5},"from":{"id":7}"#;
        assert_eq!(of(&format!("\"message\":{{{chat}}}")), (String::new(), -5));
        assert_eq!(of(&format!("\"edited_message\":{{{chat}}}")), (String::new(), -5));
        let button = format!(r#""callback_query":{{"from":{{"id":7}},"message":{{{chat}}}}}"#);
        assert_eq!(of(&button), ("callback_query".to_owned(), 7));
        assert_eq!(of(&format!("\"my_chat_member\":{{{chat}}}")), ("my_chat_member".to_owned(), -5));
        assert_eq!(of("\"poll\":{}"), ("poll".to_owned(), 0));
    }

    #[test]
    fn the_ladder_is_that_of_telegram() {
        let seconds = |failures| pause(failures, None, SECOND, 0.0).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 30].map(seconds), [0, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(30, None, SECOND, 1.0).as_secs(), 120);
        assert_eq!(pause(1, Some(30), SECOND, 0.0).as_secs(), 30);
        assert_eq!(pause(9, Some(9_999), SECOND, 0.0).as_secs(), 3_600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_waits_behind_its_head_and_few_lanes_are_open_at_once() {
        let mut lanes = Lanes::default();
        let key = |chat: i64| (String::new(), chat);
        for chat in 1..=5 {
            lanes.add(chat * 10, key(chat));
            lanes.add(chat * 10 + 1, key(chat));
        }
        let now = Instant::now();
        let first: Vec<_> = std::iter::from_fn(|| lanes.next(2, now)).map(|(_, id)| id).collect();
        assert_eq!(first, [10, 20], "two connections");
        let later = now + SECOND;
        for chat in [1, 2] {
            lanes.ended(key(chat), Some(later));
        }
        let second: Vec<_> = std::iter::from_fn(|| lanes.next(2, now)).map(|(_, id)| id).collect();
        assert_eq!(second, [30, 40]);
        for chat in [3, 4] {
            lanes.ended(key(chat), Some(later));
        }
        assert_eq!(lanes.next(2, now), None, "four lanes are open, and the fifth has to wait");
        let (again, id) = lanes.next(2, later).unwrap();
        assert!(id < 50 && id % 10 == 0, "a head again, not the fifth lane: {id}");
        lanes.ended(again, None);
        let third: Vec<_> = std::iter::from_fn(|| lanes.next(2, later)).map(|(_, id)| id).collect();
        assert_eq!(third.len(), 2);
    }
}
