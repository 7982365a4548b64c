//! Plays one conversation, turn by turn, until the bot does something else than the script says.

use anyhow::Context as _;
use serde_json::Value as Json;

use super::compare::{Deed, Diff, Done, compare, fits};
use super::known::Known;
use super::script::{Act, Conversation, Joining, Setup, Turn, What};
use super::stage::Stage;
use crate::cli::capture::{Capture, Line};
use crate::simulator::{self, Call, Chat, ChatKind, Say, Simulator, User};

/// A turn after which the bot did something else.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) line: usize,
    pub(super) diff: Vec<Diff>,
    pub(super) notes: Vec<String>,
    pub(super) log: Vec<Line>,
}

/// Where something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    chat: i64,
    thread: Option<i64>,
}

struct Player<'a> {
    stage: &'a mut Stage,
    simulator: Simulator,
    /// The newest call that was looked at.
    last_call: u64,
    here: Place,
    known: Known,
}

/// `None` when all went as it is written.
pub(super) async fn play(
    stage: &mut Stage,
    setup: impl Iterator<Item = &(usize, Setup)>,
    conversation: &Conversation,
    capture: &Capture,
) -> anyhow::Result<Option<Failure>> {
    let simulator = stage.simulator.clone();
    for (line, setup) in setup {
        set_up(&simulator, setup).with_context(|| format!("line {line}"))?;
    }
    let here = Place { chat: simulator::ALICE, thread: None };
    let mut player = Player { stage, simulator, last_call: 0, here, known: Known::default() };
    player.deeds();
    capture.take();
    for turn in &conversation.turns {
        let failure = player.turn(turn).await.with_context(|| format!("line {}", turn.line))?;
        let log = capture.take();
        if let Some((diff, notes)) = failure {
            return Ok(Some(Failure { line: turn.line, diff, notes, log }));
        }
    }
    Ok(None)
}

fn set_up(simulator: &Simulator, setup: &Setup) -> anyhow::Result<()> {
    match setup {
        // Was in force before the host started.
        Setup::Set { .. } => {}
        Setup::Person { name, language } => {
            let users = simulator.users();
            anyhow::ensure!(
                users.iter().all(|user| user.first_name != *name),
                "there is somebody called {name} already"
            );
            let id = 1 + users.iter().map(|user| user.id).max().unwrap_or(0);
            simulator.add_user(User::new(id, name, language.as_deref()));
        }
        Setup::Group { title, members } => {
            let members: Vec<i64> = members.iter().map(|name| person(simulator, name)).collect::<Result<_, _>>()?;
            let id = simulator.chats().iter().map(|chat| chat.id).filter(|id| *id > -1_000_000).min().unwrap_or(0) - 1;
            simulator.add_chat(Chat::new(id.min(-2_001), ChatKind::Group, title, &members));
        }
    }
    Ok(())
}

fn person(simulator: &Simulator, name: &str) -> anyhow::Result<i64> {
    let users = simulator.users();
    let found = users.iter().find(|user| user.first_name == name);
    let known = || users.iter().map(|user| user.first_name.as_str()).collect::<Vec<_>>().join(", ");
    let unknown = || format!("there is nobody called {name}; there are {}, and whoever `person NAME` adds", known());
    Ok(found.with_context(unknown)?.id)
}

impl Player<'_> {
    async fn turn(&mut self, turn: &Turn) -> anyhow::Result<Option<(Vec<Diff>, Vec<String>)>> {
        let mut notes = Vec::new();
        let act = self.known.act(&turn.act).map_err(anyhow::Error::msg)?;
        match act {
            Act::Restarts => self.stage.restart().await?,
            act => self.act(&act, &mut notes)?,
        }
        let settled = self.stage.settle().await?;
        let mut deeds = self.deeds();
        let mut wrong = !settled;
        if !settled {
            notes.push("the bot was still busy when patience ended (--timeout)".to_owned());
        }
        for failure in self.stage.failures()? {
            wrong = true;
            notes.push(failure);
        }
        // What is only seen by the script that asks for it.
        let asked_for = |method: &str| {
            turn.expected.iter().any(|expected| {
                matches!(&expected.what, What::Calls { method: asked, .. } if asked.eq_ignore_ascii_case(method))
            })
        };
        deeds.retain(|deed| match &deed.what {
            Done::Calls { method, .. } => deed.refused.is_some() || !is_quiet(method) || asked_for(method),
            Done::Answers(text) => deed.refused.is_some() || !text.is_empty() || asked_for("answerCallbackQuery"),
            _ => true,
        });
        for deed in &mut deeds {
            if let Done::Answers(text) = &deed.what
                && asked_for("answerCallbackQuery")
            {
                let params = serde_json::json!({ "text": text });
                deed.what = Done::Calls { method: "answerCallbackQuery".to_owned(), params };
            }
        }
        let here = self.title(self.here.chat);
        let expected = turn.expected.iter().map(|expected| {
            let chat = match &expected.place {
                Some(place) => self.title(self.place(place)?.chat),
                // What has no chat of its own counts as being here.
                None => here.clone(),
            };
            Ok((chat, self.known.what(&expected.what)))
        });
        let expected = expected.collect::<anyhow::Result<Vec<_>>>()?;
        match compare(&expected, &deeds, &here) {
            Some(diff) => Ok(Some((diff, notes))),
            None if wrong => Ok(Some((Vec::new(), notes))),
            None => {
                for (_, what) in &expected {
                    if let Some(deed) = deeds.iter().find(|deed| fits(what, deed)) {
                        self.known.learn(what, deed);
                    }
                }
                Ok(None)
            }
        }
    }

    /// Does it.
    fn act(&mut self, act: &Act, notes: &mut Vec<String>) -> anyhow::Result<()> {
        let simulator = self.simulator.clone();
        let done = match act {
            Act::Says { who, place, to, text } => {
                let (user, place) = self.who_and_where(who, place.as_deref())?;
                let reply_to = to.as_deref().map(|to| self.newest_of(place.chat, to)).transpose()?;
                let say = Say { chat: place.chat, user, text: text.clone(), thread: place.thread, reply_to };
                simulator.say(&say)?
            }
            Act::Presses { who, place, button } => {
                let (user, place) = self.who_and_where(who, place.as_deref())?;
                match simulator.user_presses(place.chat, user, None, button) {
                    // A button of a reply keyboard says its label.
                    Err(simulator::Error::NoSuchButton { .. }) if self.has_reply_button(place.chat, button) => {
                        let (text, thread) = (button.clone(), place.thread);
                        simulator.say(&Say { chat: place.chat, user, text, thread, reply_to: None })?
                    }
                    pressed => pressed?,
                }
            }
            Act::Edits { who, place, text } => {
                let (user, place) = self.who_and_where(who, place.as_deref())?;
                let messages = simulator.messages(place.chat);
                let own = messages.iter().rev().find(|message| message.from == simulator::Sender::User(user));
                let own = own.with_context(|| format!("{who} has written nothing there that could be edited"))?;
                return match simulator.edit_message(place.chat, user, own.id, text) {
                    Ok(_) | Err(simulator::Error::Unwanted) => Ok(()),
                    Err(error) => Err(error.into()),
                };
            }
            Act::Votes { who, place, option } => {
                let (user, place) = self.who_and_where(who, place.as_deref())?;
                simulator.user_votes(place.chat, user, option)?
            }
            Act::Asks { who, query } => simulator.user_asks_inline(person(&simulator, who)?, query)?,
            Act::Blocks { who, blocked } => {
                let user = person(&simulator, who)?;
                simulator.set_blocked(user, user, *blocked)?;
                return Ok(());
            }
            Act::Joins { who, place, how } => {
                let user = person(&simulator, who)?;
                self.here = self.place(place)?;
                match how {
                    Joining::AsksTo => simulator.user_asks_to_join(self.here.chat, user)?,
                    Joining::Joins => simulator.user_joins(self.here.chat, user, true)?,
                    Joining::Leaves => simulator.user_joins(self.here.chat, user, false)?,
                }
            }
            Act::Update(update) => {
                simulator.raw_update(update.clone())?;
                return Ok(());
            }
            Act::Waits(time) => {
                simulator.advance_clock(*time);
                return Ok(());
            }
            Act::Restarts => return Ok(()),
        };
        if done.update_id.is_none() {
            notes.push("the bot did not hear of this: no plugin asks for updates of this kind".to_owned());
        }
        Ok(())
    }

    fn who_and_where(&mut self, who: &str, place: Option<&str>) -> anyhow::Result<(i64, Place)> {
        let user = person(&self.simulator, who)?;
        self.here = match place {
            Some(place) => self.place(place)?,
            None => Place { chat: user, thread: None },
        };
        Ok((user, self.here))
    }

    /// A chat by its title, a private one by the person's name, a topic as `CHAT/TOPIC`.
    fn place(&self, name: &str) -> anyhow::Result<Place> {
        let chats = self.simulator.chats();
        let find = |title: &str| chats.iter().find(|chat| chat.title == title && chat.kind != ChatKind::Private);
        if let Some(chat) = find(name) {
            return Ok(Place { chat: chat.id, thread: None });
        }
        if let Some((title, topic)) = name.split_once('/')
            && let Some(chat) = find(title)
        {
            let found = chat.topics.iter().find(|known| known.name == topic);
            let topics = || chat.topics.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>().join(", ");
            let topic = found.with_context(|| format!("{title} has no topic {topic}; it has {}", topics()))?;
            return Ok(Place { chat: chat.id, thread: Some(topic.id) });
        }
        let titles =
            || chats.iter().map(|chat| chat.title.as_str()).filter(|title| !title.is_empty()).collect::<Vec<_>>();
        let unknown = || format!("there is no chat {name}; there are {}, and the people's own", titles().join(", "));
        Ok(Place { chat: person(&self.simulator, name).ok().with_context(unknown)?, thread: None })
    }

    fn title(&self, chat: i64) -> String {
        let users = self.simulator.users();
        match users.iter().find(|user| user.id == chat) {
            Some(user) => user.first_name.clone(),
            None => self
                .simulator
                .chats()
                .iter()
                .find(|known| known.id == chat)
                .map_or_else(|| chat.to_string(), |known| known.title.clone()),
        }
    }

    /// The newest message there of a person, or of the bot.
    fn newest_of(&self, chat: i64, who: &str) -> anyhow::Result<i64> {
        let from = match who {
            "Bot" => simulator::Sender::Bot,
            who => simulator::Sender::User(person(&self.simulator, who)?),
        };
        let messages = self.simulator.messages(chat);
        let newest = messages.iter().rev().find(|message| message.from == from);
        Ok(newest.with_context(|| format!("{who} has written nothing there that could be replied to"))?.id)
    }

    fn has_reply_button(&self, chat: i64, label: &str) -> bool {
        let messages = self.simulator.bot_messages(chat);
        let markup = messages.iter().rev().find_map(|message| message.markup.as_deref());
        markup.is_some_and(|markup| rows(markup).iter().flatten().any(|button| button == label))
    }

    /// What the bot did since the last time.
    fn deeds(&mut self) -> Vec<Deed> {
        let mut calls = self.simulator.calls();
        calls.retain(|call| call.number > self.last_call && call.method != "getUpdates");
        self.last_call = calls.last().map_or(self.last_call, |call| call.number);
        calls.iter().map(|call| self.deed(call)).collect()
    }

    fn deed(&self, call: &Call) -> Deed {
        let text = |name: &str| call.text(name).unwrap_or_default().to_owned();
        let buttons = || call.params.get("reply_markup").map(rows).unwrap_or_default();
        let (chat, what) = match call.method.as_str() {
            "sendMessage" => (call.chat(), Done::Says { text: text("text"), buttons: buttons() }),
            "editMessageText" => (call.chat(), Done::Edits { text: text("text"), buttons: buttons() }),
            "editMessageCaption" => (call.chat(), Done::Edits { text: text("caption"), buttons: buttons() }),
            "answerCallbackQuery" => {
                let query = call.text("callback_query_id").and_then(|id| self.simulator.query(id));
                (query.and_then(|query| query.chat), Done::Answers(text("text")))
            }
            method => {
                let params = Json::Object(call.params.as_ref().clone());
                (call.chat(), Done::Calls { method: method.to_owned(), params })
            }
        };
        // A call names its chat itself; the script's line for it does not.
        let chat = chat.filter(|_| !matches!(what, Done::Calls { .. })).map(|chat| self.title(chat));
        Deed { chat, what, refused: call.refused.clone() }
    }
}

/// Calls that nobody in a chat notices.
fn is_quiet(method: &str) -> bool {
    let quiet = ["get", "setMy", "deleteMy", "deleteWebhook", "setWebhook", "sendChatAction"];
    quiet.iter().any(|start| method.starts_with(start))
}

/// The labels of a keyboard, inline or not; parameters may come as JSON in a text.
fn rows(markup: &Json) -> Vec<Vec<String>> {
    let parsed = markup.as_str().and_then(|text| serde_json::from_str::<Json>(text).ok());
    let markup = parsed.as_ref().unwrap_or(markup);
    let rows = ["inline_keyboard", "keyboard"].iter().find_map(|name| markup[*name].as_array());
    let label = |button: &Json| button.as_str().or_else(|| button["text"].as_str()).unwrap_or_default().to_owned();
    let row = |row: &Json| row.as_array().into_iter().flatten().map(label).collect();
    rows.into_iter().flatten().map(row).collect()
}
