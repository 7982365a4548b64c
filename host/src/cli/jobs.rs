//! `botyard jobs`: heavy work that plugins have queued.

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::hand::{self, Hand};
use super::table::{clean, table, utc};
use super::{BotConfig, say};
use crate::config::LoadOptions;
use crate::operate::{Job, JobList, JobRef, Outcome};

/// See the work that plugins have queued, take it back or hurry it
///
/// A job that fails is tried again, and after its last attempt set aside: see `botyard dead`.
///
/// Works through the host that runs with this configuration, and on the store itself when none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Jobs {
    #[command(flatten)]
    file: BotConfig,
    /// The simulator's bot, where no host runs that would know whose bot it is
    #[arg(long, global = true)]
    simulator: bool,
    /// The answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List them, plugin by plugin, the oldest first
    List {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Only this plugin's
        #[arg(long, value_name = "NAME")]
        plugin: Option<String>,
    },
    /// Take them back; what is worked on leaves nothing behind
    Cancel(Which),
    /// Let those go at once that wait for their time, or for another attempt; their attempts begin anew
    Retry(Which),
}

#[derive(Debug, Args)]
struct Which {
    /// The plugin
    plugin: String,
    /// Their ids, as `list` shows them
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<u64>,
    /// All of the plugin's
    #[arg(long)]
    all: bool,
}

impl Which {
    fn selection(self) -> JobRef {
        JobRef { plugin: self.plugin, ids: self.ids }
    }
}

impl Jobs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let config = self.file.load(LoadOptions { token_optional: true })?;
        hand::block_on(async {
            let hand = Hand::on(&config, self.simulator).await?;
            let done = act(&hand, self.action, self.json).await;
            hand.finish().await?;
            done
        })
    }
}

async fn act(hand: &Hand, action: Action, json: bool) -> anyhow::Result<Exit> {
    let (outcome, what) = match action {
        Action::List { limit, plugin } => {
            let list = hand.jobs(limit, plugin.as_deref()).await?;
            say(&if json { format!("{}\n", serde_json::to_string_pretty(&list)?) } else { clean(&listed(&list)) });
            return Ok(Exit::Done);
        }
        Action::Cancel(which) => (hand.cancel_jobs(&which.selection()).await?, "cancelled"),
        Action::Retry(which) => (hand.retry_jobs(&which.selection()).await?, "hurried"),
    };
    say(&if json { format!("{}\n", serde_json::to_string_pretty(&outcome)?) } else { clean(&done(&outcome, what)) });
    Ok(if outcome.refused.is_empty() { Exit::Done } else { Exit::Failed })
}

fn listed(list: &JobList) -> String {
    if list.jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let state = |job: &Job| match (job.running, job.due) {
        (true, _) => "running".to_owned(),
        (false, 0) => "waiting".to_owned(),
        (false, due) => format!("from {} on", utc(due)),
    };
    let row = |job: &Job| {
        let reason = job.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or("-");
        let (plugin, name, lane) = (job.plugin.clone(), job.name.clone(), job.lane.clone());
        let (id, tries) = (job.id.to_string(), job.attempts.to_string());
        [plugin, id, name, utc(job.queued), state(job), tries, lane, reason.to_owned()]
    };
    let rows: Vec<[String; 8]> = list.jobs.iter().map(row).collect();
    let more = if list.more { "… and more; --limit shows them\n" } else { "" };
    table(["PLUGIN", "ID", "NAME", "QUEUED (UTC)", "STATE", "FAILED", "LANE", "REASON"], &rows) + more
}

fn done(outcome: &Outcome, what: &str) -> String {
    let mut text = format!("{} {what}\n", outcome.done.len());
    for refusal in &outcome.refused {
        text.push_str(&format!("{}: {}\n", refusal.number, refusal.reason));
    }
    text
}
