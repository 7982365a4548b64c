//! A quiz for groups: Telegram's own quiz polls, a score for everybody, and `/top`, the best of the chat.
//!
//! Who has answered comes as a `poll_answer`, which says of a poll only its id: neither the chat nor what was right. So
//! sending a quiz asks for its id at once (`ctx.ask` makes the call now, `ctx.queue` would make it later and answer
//! nothing), and what the answers will need is kept under this id, for as long as the quiz is open.
//!
//! Many answer in the same second. `increment` adds to what is there when the run commits, so no point is lost, and
//! Telegram lets everybody answer a quiz once.

use botyard_sdk::format::Text;
use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage, api::SendPoll])]
mod quiz {
    struct Asked {
        question: &'static str,
        options: [&'static str; 4],
        /// Which of them is right.
        right: i64,
        why: &'static str,
    }

    const QUESTIONS: [Asked; 4] = [
        Asked {
            question: "How many moons has Mars?",
            options: ["None", "One", "Two", "Twelve"],
            right: 2,
            why: "Phobos and Deimos",
        },
        Asked {
            question: "Which is the longest river of Asia?",
            options: ["Yangtze", "Mekong", "Amu Darya", "Ganges"],
            right: 0,
            why: "6,300 km",
        },
        Asked {
            question: "What do bees make honey of?",
            options: ["Pollen", "Nectar", "Dew", "Wax"],
            right: 1,
            why: "Pollen feeds their young",
        },
        Asked {
            question: "Who wrote the Canon of Medicine?",
            options: ["Al-Khwarizmi", "Ulugh Beg", "Beruni", "Ibn Sina"],
            right: 3,
            why: "In 1025, and it was taught for six centuries",
        },
    ];
    /// How long a quiz takes answers.
    const OPEN: Duration = Duration::from_secs(600);
    const BEST: usize = 5;

    /// What an answer needs to know of its poll.
    #[derive(Serialize, Deserialize)]
    struct Open {
        chat: i64,
        right: i64,
    }

    /// How somebody stands, in their chat.
    #[derive(Serialize, Deserialize)]
    pub(crate) struct Player {
        pub(crate) name: String,
        pub(crate) score: i64,
    }

    /// Ask a question.
    #[command("quiz")]
    fn ask(ctx: &mut Ctx, chat: api::Chat) -> Result<(), Error> {
        // Every chat goes through the questions in order, from the first to the last and over again.
        let number = ctx.storage().chat().increment("asked", 1)? - 1;
        let asked = &QUESTIONS[number.rem_euclid(QUESTIONS.len() as i64) as usize];
        let poll = api::SendPoll::new(ctx.here(), asked.question, asked.options)
            .kind(api::PollType::Quiz)
            .correct_option_ids([asked.right])
            .explanation(asked.why)
            .open_period(OPEN.as_secs() as i64)
            // Of an anonymous poll nobody hears who has answered.
            .is_anonymous(false);
        let Some(poll) = ctx.ask(poll)?.poll() else { return Err(Error::permanent("Telegram has sent no poll")) };
        let open = Open { chat: chat.id(), right: asked.right };
        // A little longer than the poll: an answer of the last second is on its way for a while.
        ctx.storage().plugin().set_for(&format!("poll/{}", poll.id()), &open, OPEN + Duration::from_secs(60))
    }

    #[on("poll_answer")]
    fn answered(ctx: &mut Ctx, answer: api::PollAnswer) -> Result<Handled, Error> {
        // Others may send polls as well; and a channel that votes has no user.
        let Some(open) = ctx.storage().plugin().get::<Open>(&format!("poll/{}", answer.poll_id()))? else {
            return Ok(Pass);
        };
        let Some(user) = answer.user() else { return Ok(Pass) };
        if answer.option_ids().contains(&open.right) {
            let chat = ctx.storage().of_chat(open.chat);
            chat.increment(&format!("score/{}", user.id()), 1)?;
            chat.set(&format!("name/{}", user.id()), &user.first_name())?;
        }
        Ok(Done)
    }

    /// Who knows most.
    #[command("top")]
    fn top(ctx: &mut Ctx) -> Result<(), Error> {
        let chat = ctx.storage().chat();
        let mut players = Vec::new();
        for (key, score) in chat.scan::<i64>("score/", None, 1000)? {
            let name = chat.get(&key.replace("score/", "name/"))?.unwrap_or_default();
            players.push(Player { name, score });
        }
        ctx.reply(leaderboard(players));
        Ok(())
    }

    /// The best ones. Who has as much as the one above has the same place.
    pub(crate) fn leaderboard(mut players: Vec<Player>) -> Text {
        if players.is_empty() {
            return Text::new().plain("Nobody has a point yet. Try /quiz");
        }
        players.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.name.cmp(&b.name)));
        let place = |player: &Player| 1 + players.iter().filter(|other| other.score > player.score).count();
        players.iter().take(BEST).fold(Text::new().bold("The best here"), |text, player| {
            text.plain(format!("\n{}. {}: {}", place(player), player.name, player.score))
        })
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::prelude::*;
    use botyard_sdk::test::Bot;

    use super::quiz::{Player, Plugin, leaderboard};

    #[test]
    fn who_has_as_many_points_has_the_same_place() {
        let player = |(name, score): (&str, i64)| Player { name: name.to_owned(), score };
        let all = [("Zoë", 1), ("Ali", 3), ("Bob", 3), ("Eve", 2), ("Kim", 1), ("Lou", 1)];
        let text = leaderboard(all.map(player).into());
        assert_eq!(text.as_str(), "The best here\n1. Ali: 3\n1. Bob: 3\n3. Eve: 2\n4. Kim: 1\n4. Lou: 1");
    }

    #[test]
    fn only_right_answers_to_our_polls_count() {
        let mut bot = Bot::<Plugin>::new().answer(&json!({ "message_id": 5, "poll": { "id": "p1" } }));
        let group = json!({ "id": 7, "type": "private" });
        let from = json!({ "id": 7, "first_name": "Alice" });
        bot.receive("message", json!({ "message_id": 1, "chat": group, "from": from, "text": "/quiz" }));
        let mut answers = |poll: &str, user: i64, name: &str, option: i64| {
            let user = json!({ "id": user, "first_name": name });
            bot.receive("poll_answer", json!({ "poll_id": poll, "user": user, "option_ids": [option] })).result
        };
        assert_eq!(answers("p1", 8, "Bob", 2), Ok(Done));
        assert_eq!(answers("p1", 9, "Eve", 0), Ok(Done));
        assert_eq!(answers("p2", 9, "Eve", 2), Ok(Pass), "somebody else's poll");
        assert_eq!(bot.text("/top").texts(), ["The best here\n1. Bob: 1"]);
    }
}
