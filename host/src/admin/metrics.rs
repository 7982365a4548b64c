//! The recorder behind every `metrics` macro of the host, and the list of what is recorded.
//!
//! The parts name their metrics where they record them; a test keeps this list complete. There is one recorder in a
//! process: several hosts in one (tests) share it. What is recorded for one bot has its name as the label `bot`.

mod by_bot;

use std::sync::OnceLock;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use Kind::{Counter, Gauge, Histogram};

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// From a run of a small plugin to a call that nearly gave up.
const SECONDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// Name, kind and meaning. Histograms are in seconds.
const ALL: &[(&str, Kind, &str)] = &[
    ("botyard_api_call_seconds", Histogram, "Time that a call to the Bot API took, by method; not for getUpdates"),
    ("botyard_api_calls_total", Counter, "Calls to the Bot API, by method and outcome"),
    ("botyard_bot_ready", Gauge, "1 while the bot is ready, else 0; by bot"),
    ("botyard_broadcast_calls_total", Counter, "Calls of broadcasts, by outcome"),
    (
        "botyard_broadcast_tenth_stars_total",
        Counter,
        "Tenths of a Star that paid broadcasts have spent, counted when a call begins: refusals are not given back here",
    ),
    ("botyard_broadcast_waiting", Gauge, "Recipients of broadcasts that are still to be sent to"),
    ("botyard_broadcasts", Gauge, "Broadcasts that have not ended, by state"),
    ("botyard_build_info", Gauge, "Always 1; the version is a label"),
    ("botyard_buttons_refused_total", Counter, "Pressed buttons that led nowhere, by reason"),
    (
        "botyard_callbacks_acknowledged_total",
        Counter,
        "Pressed buttons that the host has answered for the plugins, early or at the end of their handling",
    ),
    ("botyard_commit_conflicts_total", Counter, "Runs done again because what they had read has changed meanwhile"),
    (
        "botyard_crowd",
        Gauge,
        "Conversations whose events wait until their plugin may have another run under way, by plugin",
    ),
    ("botyard_downloads_total", Counter, "Files that plugins asked for, by outcome"),
    ("botyard_events_total", Counter, "Events whose turn came, by outcome"),
    ("botyard_inbox_events", Gauge, "Events that wait to be handled, counted once a minute, up to 100,000"),
    ("botyard_dead_letters_dropped_total", Counter, "Old dead letters that were dropped, by plugin and reason"),
    (
        "botyard_intake_alarms_total",
        Counter,
        "Times that something kept updates from coming, or was about to, by reason: stalled, token, webhook, delivery, \
         inbox, pending",
    ),
    ("botyard_expired_total", Counter, "Values and states that have lived out their time, by what they were"),
    ("botyard_http_requests_total", Counter, "HTTP requests of plugins, by plugin and outcome"),
    ("botyard_http_seconds", Histogram, "Time that an HTTP request of a plugin took, redirections included, by plugin"),
    ("botyard_job_cpu_seconds", Histogram, "Processor time of one attempt at a job, by plugin"),
    ("botyard_jobs", Gauge, "Jobs that plugins have queued, by plugin and whether they wait or run"),
    (
        "botyard_jobs_total",
        Counter,
        "Attempts at jobs, and jobs that were cancelled or found no room, by plugin and outcome",
    ),
    ("botyard_lanes", Gauge, "Conversations with events that wait or are being handled"),
    (
        "botyard_chat_cache_total",
        Counter,
        "Questions for a chat or a member that a kept answer might answer, by result",
    ),
    ("botyard_chats_moved_total", Counter, "Groups that have become supergroups and took along what belongs to them"),
    (
        "botyard_plugin_limits_total",
        Counter,
        "Times that a plugin ran into one of its limits, by plugin and limit, named as in [plugins.NAME.limits]; dropped \
         log lines each count",
    ),
    (
        "botyard_plugin_stored_bytes",
        Gauge,
        "Bytes of the states, values, timers and jobs that a plugin keeps, keys included, by plugin; the most is `limits.stored`",
    ),
    ("botyard_plugin_dead_letters", Gauge, "Dead letters that are kept, by plugin"),
    (
        "botyard_plugin_queued_bytes",
        Gauge,
        "Bytes of calls that wait to be sent, and of their files, by plugin; the most is `limits.queued`",
    ),
    (
        "botyard_plugin_timers",
        Gauge,
        "Timers that are set, or have rung and are not handled, by plugin; the most is `limits.timers`",
    ),
    ("botyard_plugin_rests_total", Counter, "Times that a plugin failed one event after another and was given a rest"),
    ("botyard_reloads_total", Counter, "New versions of plugins that were to be loaded, by plugin and outcome"),
    ("botyard_rollbacks_total", Counter, "Versions on trial that were sent back, by plugin"),
    ("botyard_run_cpu_seconds", Histogram, "Processor time of one run, by plugin"),
    ("botyard_send_dropped_total", Counter, "Queued calls that were not delivered, by reason"),
    ("botyard_send_flood_waits_total", Counter, "Times that Telegram told a chat's calls to wait"),
    ("botyard_send_flooded_chats", Gauge, "Chats that have to wait for flood control"),
    ("botyard_send_long_floods_total", Counter, "Times that Telegram told a chat to wait for more than five minutes"),
    (
        "botyard_send_pauses_total",
        Counter,
        "Times that bulk, or replies too, were paused because of floods in several chats",
    ),
    (
        "botyard_send_plain_total",
        Counter,
        "Messages sent once more without markup, because Telegram could not read it, by method",
    ),
    ("botyard_send_unknown_total", Counter, "Calls with an unknown outcome and calls given up, by method"),
    ("botyard_send_queue", Gauge, "Committed calls that wait to be sent"),
    (
        "botyard_store_commits_total",
        Counter,
        "Commits since the start, by how far they are: applied, and of these durable",
    ),
    (
        "botyard_upload_bytes_total",
        Counter,
        "Bytes of calls with files that have gone out, those of broken attempts too",
    ),
    ("botyard_uploads_total", Counter, "Attempts at calls with files, by outcome; `known` needed no upload"),
    ("botyard_telegram_pending_updates", Gauge, "Updates that wait at Telegram, asked once a minute"),
    ("botyard_timers_total", Counter, "Times of timers that came, by outcome: fired, or missed and not made up for"),
    ("botyard_updates_far_total", Counter, "Updates whose number was far from those around it"),
    ("botyard_updates_total", Counter, "Updates that Telegram has handed over, by outcome and kind"),
    (
        "botyard_webhook_last_error_timestamp_seconds",
        Gauge,
        "When Telegram last failed to deliver to the webhook, by its own word; 0 when it did not",
    ),
    ("botyard_webhook_requests_total", Counter, "Requests to the webhook, by outcome"),
    (
        "botyard_webhook_seconds",
        Histogram,
        "Time from a request to the webhook to its 200, by when the update is on disk",
    ),
    ("botyard_webhook_sets_total", Counter, "Times that the webhook was set at Telegram"),
    (
        "botyard_recovered_total",
        Counter,
        "Failed runs whose plugin has settled the event all the same, in its `#[on_error]`",
    ),
    ("botyard_watchdog_total", Counter, "Runs that hung far beyond their time limit, by outcome: ended, or given up"),
];

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to record, once in a process, and answers with what has been recorded.
pub fn install() -> &'static PrometheusHandle {
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new().set_buckets(&SECONDS).expect("there are buckets").build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(by_bot::ByBot(recorder)).is_err() {
            tracing::warn!("another metrics recorder is installed already: /metrics stays empty");
        }
        describe();
        metrics::gauge!("botyard_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        handle
    })
}

fn describe() {
    for (name, kind, meaning) in ALL {
        match kind {
            Counter => describe_counter!(*name, *meaning),
            Gauge => describe_gauge!(*name, *meaning),
            Histogram => describe_histogram!(*name, Unit::Seconds, *meaning),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::ALL;

    /// Every `"botyard_…"` in a source that has to do with metrics.
    fn names_in(folder: &Path, names: &mut Vec<String>) {
        let name = regex::Regex::new(r#""(botyard_[a-z_]+)""#).unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names_in(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("admin/metrics.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = Some(text).filter(|text| text.contains("metrics")).unwrap_or_default();
                names.extend(name.captures_iter(&text).map(|captures| captures[1].to_owned()));
            }
        }
    }

    #[test]
    fn every_metric_is_listed_with_its_meaning() {
        let mut names = Vec::new();
        names_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
        let unlisted: Vec<&String> = names.iter().filter(|name| !ALL.iter().any(|(known, ..)| known == name)).collect();
        assert!(unlisted.is_empty(), "add to the list in admin/metrics.rs: {unlisted:?}");
        for (name, kind, meaning) in ALL {
            let is_counter = matches!(kind, super::Kind::Counter);
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(name.starts_with("botyard_") && !meaning.is_empty(), "{name}");
        }
    }
}
