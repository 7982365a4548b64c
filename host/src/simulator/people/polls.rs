//! Voting. The counts stand in the message; what each person chose is kept beside them.

use serde_json::{Value, json};

use super::payments::user_json;
use super::{Done, chat_of};
use crate::simulator::error::Error;
use crate::simulator::model::Message;
use crate::simulator::world::{Enqueued, World};

/// Votes in the poll of a message; no options take a vote back. The bot hears of the poll, and of the person if the poll
/// is not anonymous.
pub(in crate::simulator) fn vote(
    world: &mut World,
    chat: i64,
    user: i64,
    id: i64,
    options: &[usize],
) -> Result<Done, Error> {
    close_due(world);
    chat_of(world, chat, user)?;
    let found = world.chats.get_mut(&chat).and_then(|chat| chat.message_mut(id));
    let message = found.ok_or(Error::UnknownMessage { chat, message: id })?;
    let poll = poll_of(message).ok_or(Error::Cannot("that message is no poll"))?.clone();
    let n_options = poll["options"].as_array().map_or(0, Vec::len);
    let has_voted = message.votes.contains_key(&user);
    if poll["is_closed"] == json!(true) {
        return Err(Error::Cannot("the poll is closed"));
    }
    if options.len() > 1 && poll["allows_multiple_answers"] != json!(true) {
        return Err(Error::Cannot("the poll takes one answer"));
    }
    if options.iter().any(|&option| option >= n_options) {
        return Err(Error::Cannot("the poll has no such option"));
    }
    if has_voted && poll["allows_revoting"] == json!(false) {
        return Err(Error::Cannot("a vote in this poll is final"));
    }
    if options.is_empty() {
        message.votes.remove(&user);
    } else {
        message.votes.insert(user, options.to_vec());
    }
    count(message);
    let (poll, message) = (poll_of(message).cloned().unwrap_or_default(), message.clone());
    world.emit_message("edit", chat, &message);
    let told = tell_of_poll(world, &message, &poll);
    if poll["is_anonymous"] == json!(true) || !message.is_from_bot() {
        return Ok(Done { message_id: Some(id), ..Done::new(told)? });
    }
    let chosen: Vec<&Value> = options.iter().map(|&option| &poll["options"][option]["persistent_id"]).collect();
    let answer = json!({
        "poll_id": poll["id"], "user": user_json(world, user), "option_ids": options, "option_persistent_ids": chosen,
    });
    let done = Done::new(world.enqueue("poll_answer", answer.to_string().as_bytes()))?;
    Ok(Done { message_id: Some(id), ..done })
}

/// The same, by the text of an option: in the newest poll that has it.
pub(in crate::simulator) fn vote_for(world: &mut World, chat: i64, user: i64, option: &str) -> Result<Done, Error> {
    let known = world.chats.get(&chat).ok_or(Error::UnknownChat(chat))?;
    let at = |poll: &Value| poll["options"].as_array()?.iter().position(|known| known["text"] == option);
    let found = known.messages.iter().rev().find_map(|message| Some((message.id, at(poll_of(message)?)?)));
    let (id, option) = found.ok_or(Error::Cannot("no poll there has that option"))?;
    vote(world, chat, user, id, &[option])
}

/// A bot hears only of polls that it has sent.
fn tell_of_poll(world: &mut World, message: &Message, poll: &Value) -> Enqueued {
    if message.is_from_bot() { world.enqueue("poll", poll.to_string().as_bytes()) } else { Enqueued::Unwanted }
}

pub(in crate::simulator) fn poll_of(message: &Message) -> Option<&Value> {
    message.content.as_deref()?.get("poll")
}

fn count(message: &mut Message) {
    let votes = message.votes.clone();
    let Some(poll) = message.content.as_deref_mut().and_then(|content| content.get_mut("poll")) else { return };
    poll["total_voter_count"] = json!(votes.len());
    for (at, option) in poll["options"].as_array_mut().into_iter().flatten().enumerate() {
        option["voter_count"] = json!(votes.values().filter(|chosen| chosen.contains(&at)).count());
    }
}

/// Ends a poll: what it comes to, unless there is none or it has ended.
pub(in crate::simulator) fn close(world: &mut World, chat: i64, id: i64) -> Option<Value> {
    let message = world.chats.get_mut(&chat)?.message_mut(id)?;
    let poll = message.content.as_deref_mut()?.get_mut("poll")?;
    poll["is_closed"] = json!(true);
    let (poll, message) = (poll.clone(), message.clone());
    world.emit_message("edit", chat, &message);
    Some(poll)
}

/// Closes the polls whose time is over, and tells the bot of them.
pub(in crate::simulator) fn close_due(world: &mut World) {
    let now = world.now();
    let is_due = |message: &Message| {
        poll_of(message).is_some_and(|poll| {
            poll["is_closed"] != json!(true) && poll["close_date"].as_i64().is_some_and(|date| date <= now)
        })
    };
    let chats = world.chats.values();
    let due: Vec<(i64, i64)> = chats
        .flat_map(|chat| chat.messages.iter().filter(|message| is_due(message)).map(|message| (chat.id, message.id)))
        .collect();
    for (chat, id) in due {
        if let Some(poll) = close(world, chat, id)
            && let Some(message) = world.chats[&chat].message(id).cloned()
        {
            tell_of_poll(world, &message, &poll);
        }
    }
}
