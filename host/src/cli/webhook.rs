//! `botyard webhook`: how the bot's webhook stands at Telegram, and orders about it.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use secrecy::ExposeSecret as _;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand, Running};
use super::table::{clean, utc};
use super::{BotConfig, say, tell};
use crate::config::{Config, LoadOptions, Mode};
use crate::intake;
use crate::telegram::{Client, Token, WebhookInfo};

/// See, set or delete the bot's webhook
///
/// A host with `mode = "webhook"` sets it by itself and looks after it; these are for looking at it, and
/// for the moves around it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Webhook {
    #[command(flatten)]
    file: BotConfig,
    /// The answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Tell what Telegram says: where it leads, what waits, why the last delivery failed
    Info,
    /// Set what the configuration says, whether or not it differs
    ///
    /// Telegram looks the host's address up anew, which is worth it after a move.
    Set,
    /// Remove it, so that the bot can poll
    Delete {
        /// Throw away what waits at Telegram; without it, all of it is kept
        #[arg(long)]
        drop_pending: bool,
        /// Don't ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl Webhook {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let config = self.file.load(LoadOptions::default())?;
        hand::block_on(async {
            match self.action {
                Action::Info => print(self.json, &client(&config)?.webhook_info().await?),
                Action::Set => print(self.json, &set(&config).await?),
                Action::Delete { drop_pending, yes } => delete(&config, drop_pending, yes).await,
            }
        })
    }
}

fn client(config: &Config) -> anyhow::Result<Client> {
    Ok(Client::new(&config.bot.api_base, token(config)?)?)
}

fn token(config: &Config) -> anyhow::Result<Token> {
    let token = config.bot.token.as_ref().with_context(|| format!("there is no token in {}", config.section()))?;
    Ok(Token::parse(token.expose_secret())?)
}

/// Through the host that runs, which is then not surprised; else with the store, which keeps what has to be remembered.
async fn set(config: &Config) -> anyhow::Result<WebhookInfo> {
    let webhook = match (config.intake.mode, &config.intake.webhook) {
        (Mode::Webhook, Some(webhook)) => webhook,
        _ => {
            let message = "the configuration says that the bot polls; set `mode = \"webhook\"` in [intake] first";
            return Err(WrongArgument(message.to_owned()).into());
        }
    };
    if let Ok(running) = Running::on(config).await {
        return running.set_webhook().await;
    }
    if !config.store.path.exists() {
        // Unlike other commands, this one may be the first.
        std::fs::create_dir_all(&config.store.path)?;
    }
    match Hand::on(config, false).await? {
        Hand::Running(running) => running.set_webhook().await,
        Hand::Stopped { store, .. } => {
            let set = intake::set_once(&client(config)?, &store, token(config)?.bot_id(), webhook).await;
            store.close().await?;
            set
        }
    }
}

async fn delete(config: &Config, drop_pending: bool, yes: bool) -> anyhow::Result<Exit> {
    if config.intake.mode == Mode::Webhook && Running::on(config).await.is_ok() {
        let message = "the host of this configuration runs and would set it again at once; stop it, or change its \
                       `mode` in [intake] to \"polling\", which removes the webhook too";
        return Err(WrongArgument(message.to_owned()).into());
    }
    let client = client(config)?;
    let info = client.webhook_info().await?;
    if info.url.is_empty() {
        tell("no webhook is set");
        return Ok(Exit::Done);
    }
    if !yes && !is_confirmed(&info, drop_pending)? {
        tell("nothing was deleted");
        return Ok(Exit::Failed);
    }
    client.delete_webhook(drop_pending).await?;
    let pending = info.pending_update_count;
    let fate = if drop_pending { "are thrown away" } else { "still wait there" };
    tell(&format!("the webhook to {} is deleted; {pending} updates {fate}", info.host()));
    Ok(Exit::Done)
}

fn is_confirmed(info: &WebhookInfo, drop_pending: bool) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        let message = format!("a webhook to {} is set; deleting it needs --yes where nobody can be asked", info.host());
        return Err(WrongArgument(message).into());
    }
    let also = if drop_pending {
        format!(" and throw away the {} updates that wait", info.pending_update_count)
    } else {
        String::new()
    };
    tell(&format!(
        "Delete the webhook to {}{also}? Whoever is served there hears nothing any more. [y/N]",
        info.host()
    ));
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn print(json: bool, info: &WebhookInfo) -> anyhow::Result<Exit> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(info)?) } else { clean(&shown(info)) });
    Ok(Exit::Done)
}

fn shown(info: &WebhookInfo) -> String {
    let waiting = format!("waiting      {} updates at Telegram\n", info.pending_update_count);
    if info.url.is_empty() {
        return format!("no webhook is set\n{waiting}");
    }
    let kinds = info.allowed_updates.as_ref().map_or_else(|| "Telegram's default".to_owned(), |kinds| kinds.join(", "));
    let mut text = format!("url          {}\n{waiting}", info.url);
    if let Some(address) = &info.ip_address {
        text += &format!("address      {address}\n");
    }
    if let Some(connections) = info.max_connections {
        text += &format!("connections  {connections} at most\n");
    }
    text += &format!("kinds        {kinds}\n");
    text += &format!("certificate  {}\n", if info.has_custom_certificate { "one of its own" } else { "signed" });
    if let (Some(date), Some(message)) = (info.last_error_date, &info.last_error_message) {
        text += &format!("last error   {} UTC: {message}\n", utc(date * 1000));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_shown() {
        let none = WebhookInfo { pending_update_count: 3, ..WebhookInfo::default() };
        assert_eq!(shown(&none), "no webhook is set\nwaiting      3 updates at Telegram\n");
        let info = WebhookInfo {
            url: "https://bot.example/hook".to_owned(),
            max_connections: Some(40),
            last_error_date: Some(1_796_012_568),
            last_error_message: Some("Connection refused".to_owned()),
            ..WebhookInfo::default()
        };
        assert_eq!(
            shown(&info),
            "url          https://bot.example/hook\nwaiting      0 updates at Telegram\nconnections  40 at most\n\
             kinds        Telegram's default\ncertificate  signed\n\
             last error   2026-11-30 04:22:48 UTC: Connection refused\n"
        );
    }
}
