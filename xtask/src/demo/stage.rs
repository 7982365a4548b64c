//! People in front of a running host: what they say and what they must hear.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::host::Host;
use super::http;
use crate::process;

/// Far more than any answer takes, even on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(30);

/// One of the people whom the simulator begins with. The private chat with the bot has the same id.
pub(super) struct Person {
    pub(super) id: i64,
    pub(super) name: &'static str,
}

pub(super) struct Stage<'a> {
    host: Host,
    folder: &'a Path,
    slow: Duration,
    /// The last message of the bot that each person has heard.
    heard: HashMap<i64, i64>,
}

impl<'a> Stage<'a> {
    /// Starts the host, with its store and log in `folder`.
    pub(super) fn open(folder: &'a Path, slow: Duration) -> Result<Self> {
        let host = Host::for_a_check(folder, slow)?;
        Ok(Self { host, folder, slow, heard: HashMap::new() })
    }

    /// Stops the host as Ctrl-C does and starts another one with the same store.
    pub(super) fn restart(self) -> Result<Self> {
        println!("    -- the host is stopped and started again --");
        self.host.stop()?;
        let host = Host::for_a_check(self.folder, self.slow)?;
        Ok(Self { host, ..self })
    }

    pub(super) fn close(self) -> Result<()> {
        self.host.stop()
    }

    #[expect(clippy::unused_self, reason = "notes belong to the performance")]
    pub(super) fn note(&self, what: &str) {
        println!("\n    {what}");
    }

    /// A person writes.
    pub(super) fn says(&self, person: &Person, text: &str) -> Result<()> {
        println!("      {} says    {text}", person.name);
        let body = json!({ "chat": person.id, "user": person.id, "text": text });
        http::post(&self.host.address, "/sim/say", &body)?;
        Ok(())
    }

    /// The bot's next message to a person must have this text.
    pub(super) fn hears(&mut self, person: &Person, expected: &str) -> Result<()> {
        let last = self.heard.get(&person.id).copied().unwrap_or_default();
        let message = self.wait(person, |message| message.id > last)?;
        self.heard.insert(person.id, message.id);
        println!("      {} hears   {}", person.name, message.text);
        message.must_be(expected)
    }

    /// A person presses a button of the message heard last, which must then have this text.
    pub(super) fn presses(&self, person: &Person, button: &str, expected: &str) -> Result<()> {
        println!("      {} presses [{button}]", person.name);
        let last = self.heard.get(&person.id).copied().context("nothing was heard that has buttons")?;
        let before = self.wait(person, |message| message.id == last)?.text;
        let body = json!({ "chat": person.id, "user": person.id, "message_id": last, "button": button });
        http::post(&self.host.address, "/sim/press", &body)?;
        let message = self.wait(person, |message| message.id == last && message.text != before)?;
        println!("      {} sees    {}", person.name, message.text);
        message.must_be(expected)
    }

    /// The first message of the bot in a person's chat that is `wanted`, as soon as it is there.
    fn wait(&self, person: &Person, wanted: impl Fn(&Message) -> bool) -> Result<Message> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE && !process::interrupted() {
            if let Some(message) = self.messages(person)?.into_iter().find(|message| wanted(message)) {
                return Ok(message);
            }
            thread::sleep(Duration::from_millis(30));
        }
        bail!("{} got no answer within {} seconds", person.name, PATIENCE.as_secs())
    }

    /// What the bot has written to a person, oldest first.
    fn messages(&self, person: &Person) -> Result<Vec<Message>> {
        let answer = http::get(&self.host.address, &format!("/sim/messages?chat={}", person.id))?;
        let answer: Value = serde_json::from_str(&answer).context("the simulator's answer is no JSON")?;
        let messages = answer["messages"].as_array().context("the simulator's answer lists no messages")?;
        Ok(messages.iter().filter_map(Message::read).collect())
    }
}

struct Message {
    id: i64,
    text: String,
}

impl Message {
    /// None for what is not the bot's.
    fn read(message: &Value) -> Option<Self> {
        let from_bot = message["from_bot"].as_bool()?;
        let text = message["text"].as_str().unwrap_or_default().to_owned();
        from_bot.then_some(Self { id: message["message_id"].as_i64()?, text })
    }

    fn must_be(&self, expected: &str) -> Result<()> {
        if self.text != expected {
            bail!("wrong answer: expected {expected:?}, heard {:?}", self.text);
        }
        Ok(())
    }
}
