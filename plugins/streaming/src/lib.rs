//! An answer that grows while it is written, as those of language models do.
//!
//! `/ask` sends an empty answer and sets a timer; each time it comes due, the message is edited to what is there by now, until all of it
//! is. `/stop` ends that. What to look at here:
//!
//! - **The timer carries everything**: which message, which question, how far. So nothing is kept beside it, several answers
//!   grow at once, and a restart in the middle costs a moment.
//! - **Edits are only queued.** When a chat gets them faster than Telegram takes them, the host lets a newer edit stand for the one
//!   that still waits. No pace has to be found out here, and the last edit always arrives.
//! - **`#[on_error]`** answers where an answer can't be finished.
//!
//! `words_by` is where a model would be asked: replace it with a request to a server of yours (`botyard_sdk::http`) that is
//! told what there is already and gives the next piece.

use botyard_sdk::extract::{Config, Payload};
use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage, api::EditMessageText])]
mod streaming {
    /// What the operator decides, in `bot.toml`.
    #[derive(Deserialize)]
    #[serde(default)]
    struct Pace {
        seconds: u64,
        words: usize,
    }

    impl Default for Pace {
        fn default() -> Self {
            Self { seconds: 1, words: 8 }
        }
    }

    /// An answer that is not finished.
    #[derive(Serialize, Deserialize)]
    struct Growing {
        message: i64,
        question: String,
        words: usize,
    }

    /// Ask something
    #[command("ask {question...}")]
    fn ask(ctx: &mut Ctx, question: String, Config(pace): Config<Pace>) -> Result<(), Error> {
        // At once, not when the run has committed: the edits have to name the message.
        let message = ctx.ask(api::SendMessage::new(ctx.here(), CURSOR))?.message_id();
        ctx.after("grow", Duration::from_secs(pace.seconds), Growing { message, question, words: 0 })?;
        Ok(())
    }

    /// Stop writing
    #[command("stop")]
    fn stop(ctx: &mut Ctx) {
        match ctx.cancel_named("grow") {
            0 => ctx.reply("Nothing is being written."),
            _ => ctx.reply("Stopped."),
        };
    }

    #[timer("grow")]
    fn grow(ctx: &mut Ctx, Payload(mut growing): Payload<Growing>, Config(pace): Config<Pace>) -> Result<(), Error> {
        growing.words += pace.words.max(1);
        let (text, is_whole) = words_by(&growing.question, growing.words);
        let text = if is_whole { text } else { format!("{text} {CURSOR}") };
        if let Some(chat) = ctx.chat_id() {
            ctx.queue(api::EditMessageText::new().text(text).chat_id(chat).message_id(growing.message));
        }
        if !is_whole {
            ctx.after("grow", Duration::from_secs(pace.seconds), growing)?;
        }
        Ok(())
    }

    #[on_error]
    fn broken_off(ctx: &mut Ctx, error: Error) -> Handled {
        if error.retries() {
            return Pass;
        }
        error!("an answer has broken off", reason = error);
        ctx.reply("That did not work out, sorry. Please ask once more.");
        Done
    }
}

/// Stands where the text goes on.
const CURSOR: &str = "▌";

/// The first words of the answer, and whether that is all of it.
fn words_by(question: &str, words: usize) -> (String, bool) {
    let answer = format!(
        "You ask about “{question}”. There is more than one way to look at it. On the one hand it is simple, on the other hand \
         nobody agrees. My advice: make some tea, and ask somebody who knows."
    );
    let mut all = answer.split(' ');
    let first: Vec<&str> = all.by_ref().take(words).collect();
    (first.join(" "), all.next().is_none())
}

#[cfg(test)]
mod tests {
    use botyard_sdk::json;
    use botyard_sdk::test::Bot;

    use super::streaming::Plugin;
    use super::{CURSOR, words_by};

    #[test]
    fn every_piece_begins_as_the_one_before_and_the_last_is_whole() {
        let (whole, _) = words_by("tea, and зелёный 🍵", usize::MAX);
        let mut before = String::new();
        for words in 1.. {
            let (text, is_whole) = words_by("tea, and зелёный 🍵", words);
            assert!(text.starts_with(&before) && text.len() > before.len(), "{text}");
            if is_whole {
                assert_eq!(text, whole);
                break;
            }
            before = text;
        }
    }

    #[test]
    fn an_answer_grows_by_edits_of_one_message() {
        let mut bot = Bot::<Plugin>::new().answer(&json!({ "message_id": 42 }));
        assert_eq!(bot.text("/ask tea").texts(), [CURSOR]);
        let mut lengths = Vec::new();
        while let Some(grown) = bot.timer() {
            let (method, params) = &grown.calls[0];
            assert_eq!((method.as_str(), &params["message_id"]), ("editMessageText", &json!(42)));
            lengths.push(params["text"].as_str().unwrap().len());
        }
        assert!(lengths.is_sorted() && lengths.len() > 2, "{lengths:?}");
    }

    #[test]
    fn what_can_never_go_well_is_said() {
        let mut bot = Bot::<Plugin>::new().config(&json!({ "seconds": "soon" }));
        let said = bot.text("/ask tea");
        assert!(said.recovered.is_some());
        assert_eq!(said.texts(), ["That did not work out, sorry. Please ask once more."]);
    }
}
