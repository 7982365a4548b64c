//! A conversation in three steps: a name, an age, a summary.
//!
//! `/form` begins it, `/back` goes a step back, `/cancel` ends it at any step. Where the conversation is, and what has been said so far, is the
//! `Form` enum: the host keeps its value between the messages, through restarts and new versions of the
//! plugin. `key = "user_in_chat"` gives every member of a group a form of their own.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage"])]
mod form {
    /// The step that waits for an answer.
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 1, key = "user_in_chat", ttl = "7d")]
    enum Form {
        #[default]
        Idle,
        Name,
        Age {
            name: String,
        },
    }

    impl Dialog for Form {
        fn question(&self, _: &Run) -> Question {
            match self {
                Self::Idle | Self::Name => "What is your name?".into(),
                Self::Age { .. } => "How old are you?".into(),
            }
        }

        fn before(&self) -> Option<Self> {
            matches!(self, Self::Age { .. }).then_some(Self::Name)
        }
    }

    /// Fill in the form.
    #[command("form")]
    fn begin(ctx: &mut Ctx<Form>) -> Handled {
        ctx.step(Form::Name)
    }

    /// Answer the question before once more.
    #[command("back")]
    fn back(ctx: &mut Ctx<Form>) -> Handled {
        ctx.back()
    }

    /// Forget what I have said.
    #[command("cancel")]
    fn cancel(ctx: &mut Ctx<Form>) {
        if ctx.cancel("Cancelled.") == Pass {
            ctx.reply("There is nothing to cancel.");
        }
    }

    #[state(Form::Name)]
    fn name(ctx: &mut Ctx<Form>) -> Handled {
        match ctx.text().trim() {
            "" => ctx.again("Please write your name."),
            name => {
                let name = name.to_owned();
                ctx.step(Form::Age { name })
            }
        }
    }

    #[state(Form::Age { name })]
    fn age(ctx: &mut Ctx<Form>, name: String) -> Handled {
        let Some(age) = parse_age(ctx.text()) else {
            return ctx.again("Please write your age as a whole number from 1 to 150.");
        };
        ctx.reply(format!("{name}, {age}. Thank you!"));
        ctx.exit()
    }

    /// A whole number of years that somebody can have lived.
    pub(crate) fn parse_age(text: &str) -> Option<u8> {
        text.trim().parse().ok().filter(|age| (1..=150).contains(age))
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::form::{Plugin, parse_age};

    #[test]
    fn ages_are_whole_numbers_from_1_to_150() {
        for (text, age) in [("1", Some(1)), (" 30\n", Some(30)), ("150", Some(150))] {
            assert_eq!(parse_age(text), age, "{text}");
        }
        for text in ["", "0", "151", "-3", "3.5", "thirty", "30 years", "99999999999999999999", "३०"] {
            assert_eq!(parse_age(text), None, "{text}");
        }
    }

    #[test]
    fn asks_until_the_answer_fits() {
        let mut bot = Bot::<Plugin>::new();
        assert_eq!(bot.text("/form").texts(), ["What is your name?"]);
        assert_eq!(bot.text("Anna 👩‍👩‍👧").texts(), ["How old are you?"]);
        assert_eq!(bot.state(), Some("age"));
        assert_eq!(bot.text("old").texts(), ["Please write your age as a whole number from 1 to 150."]);
        assert_eq!(bot.text("30").texts(), ["Anna 👩‍👩‍👧, 30. Thank you!"]);
        assert_eq!(bot.state(), None);
    }

    #[test]
    fn goes_back_to_the_question_before() {
        let mut bot = Bot::<Plugin>::new();
        assert!(bot.text("/back").calls.is_empty(), "there is no form");
        bot.text("/form");
        bot.text("Ana");
        assert_eq!(bot.text("/back").texts(), ["What is your name?"]);
        assert_eq!(bot.text("/back").texts(), ["What is your name?"]);
        bot.text("Anna");
        assert_eq!(bot.text("30").texts(), ["Anna, 30. Thank you!"]);
    }

    #[test]
    fn ends_when_told_to() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/form");
        assert_eq!(bot.text("/cancel").texts(), ["Cancelled."]);
        assert_eq!(bot.text("/cancel").texts(), ["There is nothing to cancel."]);
        assert!(bot.text("Anna").texts().is_empty());
    }
}
