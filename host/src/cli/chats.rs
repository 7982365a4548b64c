//! `botyard chats`: whom the bot has met.

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::hand::{self, Hand};
use super::table::{clean, table, utc};
use super::{BotConfig, say};
use crate::config::LoadOptions;
use crate::operate::{ChatList, Reach};

/// Chats that are asked for at once.
const PAGE: usize = 1_000;

/// See the chats that the bot has met, and which of them it can't reach any more
///
/// A chat is known from the first update that the bot gets of it. It counts as gone from the moment on that
/// the bot is blocked or removed, or that Telegram refuses to send there, until the next sign of life.
///
/// Works through the host that runs with this configuration, and on the store itself when none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Chats {
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
    /// List them in the order of their ids: groups and channels, then people
    List {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
        limit: usize,
        /// All of them
        #[arg(long)]
        all: bool,
        /// Only those behind the chat with this id
        #[arg(long, value_name = "ID", allow_hyphen_values = true)]
        after: Option<i64>,
        /// Only those that can be reached, as far as is known
        #[arg(long, conflicts_with = "gone")]
        reachable: bool,
        /// Only those that can't be reached any more
        #[arg(long)]
        gone: bool,
    },
}

impl Chats {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let config = self.file.load(LoadOptions { token_optional: true })?;
        let Action::List { limit, all, after, reachable, gone } = self.action;
        let reach = match (reachable, gone) {
            (true, _) => Reach::Reachable,
            (_, true) => Reach::Gone,
            _ => Reach::Any,
        };
        hand::block_on(async {
            let hand = Hand::on(&config, self.simulator).await?;
            let list = fetch(&hand, after, if all { usize::MAX } else { limit }, reach).await;
            hand.finish().await?;
            let list = list?;
            say(&if self.json { format!("{}\n", serde_json::to_string_pretty(&list)?) } else { clean(&listed(&list)) });
            Ok(Exit::Done)
        })
    }
}

async fn fetch(hand: &Hand, after: Option<i64>, limit: usize, reach: Reach) -> anyhow::Result<ChatList> {
    let mut list = ChatList { chats: Vec::new(), next: after };
    loop {
        let left = limit - list.chats.len();
        let page = hand.chats(list.next, left.min(PAGE), reach).await?;
        list.chats.extend(page.chats);
        list.next = page.next;
        if list.next.is_none() || list.chats.len() >= limit {
            return Ok(list);
        }
    }
}

fn listed(list: &ChatList) -> String {
    if list.chats.is_empty() {
        return "no chats\n".to_owned();
    }
    let rows: Vec<[String; 6]> = list
        .chats
        .iter()
        .map(|chat| {
            let kind = if chat.kind.is_empty() { "-" } else { &chat.kind };
            let username = chat.username.as_ref().map_or_else(|| "-".to_owned(), |name| format!("@{name}"));
            // A title is one line here, whatever it holds.
            let title = chat.title.replace(['\n', '\t'], " ");
            let gone =
                chat.gone.as_ref().map_or_else(String::new, |why| format!("{} UTC: {why}", utc(chat.gone_since)));
            [chat.id.to_string(), kind.to_owned(), utc(chat.seen).chars().take(10).collect(), username, title, gone]
        })
        .collect();
    let more = if list.next.is_some() { "… and more; --limit shows more, --all every one\n" } else { "" };
    table(["CHAT", "TYPE", "SEEN", "NAME", "TITLE", "GONE SINCE"], &rows) + more
}
