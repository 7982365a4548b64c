//! Questions one after the other: what a form of several steps needs besides its [`State`].

use std::borrow::Cow;

use crate::format::IntoText;
use crate::keyboard::Markup;
use crate::{Ctx, Error, Handled, Run, State};

/// A conversation that asks: each of its states has a question, and may have a state before it.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod form {
///     #[derive(State, Serialize, Deserialize, Default)]
///     enum Form {
///         #[default]
///         Idle,
///         Name { before: Option<String> },
///         Age { name: String },
///     }
///
///     impl Dialog for Form {
///         fn question(&self, _: &Run) -> Question {
///             match self {
///                 Form::Name { before: Some(name) } => format!("What is your name? You said {name}.").into(),
///                 Form::Age { name } => format!("How old are you, {name}?").into(),
///                 _ => "What is your name?".into(),
///             }
///         }
///
///         fn before(&self) -> Option<Self> {
///             match self {
///                 Form::Age { name } => Some(Form::Name { before: Some(name.clone()) }),
///                 _ => None,
///             }
///         }
///     }
///
///     #[command("form")]
///     fn begin(ctx: &mut Ctx<Form>) -> Handled {
///         ctx.step(Form::Name { before: None })
///     }
///
///     #[state(Form::Name)]
///     fn name(ctx: &mut Ctx<Form>) -> Handled {
///         let name = ctx.text().to_owned();
///         ctx.step(Form::Age { name })
///     }
///
///     #[state(Form::Age)]
///     fn age(ctx: &mut Ctx<Form>) -> Handled {
///         let Ok(age) = ctx.text().parse::<u8>() else { return ctx.again("A whole number, please.") };
///         ctx.reply(format!("{age}. Thank you!"));
///         ctx.exit()
///     }
///
///     #[command("back")]
///     fn back(ctx: &mut Ctx<Form>) -> Handled {
///         ctx.back()
///     }
///
///     #[command("cancel")]
///     fn cancel(ctx: &mut Ctx<Form>) -> Handled {
///         ctx.cancel("Cancelled.")
///     }
/// }
/// # fn main() {}
/// ```
///
/// What has been said so far stands in the state and nowhere else. So a dialog goes on after a restart, and in a new version of the
/// plugin as any state does.
pub trait Dialog: State {
    /// What this state waits for an answer to.
    fn question(&self, run: &Run) -> Question;

    /// The state to go back to, with as much of what has been said as should still stand. None for the first one.
    fn before(&self) -> Option<Self> {
        None
    }
}

/// What is asked: a text, and buttons for likely answers.
#[derive(Debug, Clone)]
pub struct Question {
    text: String,
    entities: Option<String>,
    markup: Option<Result<String, Error>>,
}

impl Question {
    /// A text alone.
    pub fn new(text: impl IntoText) -> Self {
        let (text, entities) = text.text_and_entities();
        Self { text: text.into_owned(), entities, markup: None }
    }

    /// With buttons.
    #[must_use]
    pub fn keyboard(self, keyboard: impl Markup) -> Self {
        Self { markup: Some(keyboard.into_json()), ..self }
    }

    fn ask(mut self, run: &Run) {
        match self.markup.take() {
            None => drop(run.show(self)),
            Some(Ok(json)) => drop(run.show(self).markup(&json)),
            Some(Err(error)) => run.fail(error),
        }
    }
}

/// One that can't be asked: the run fails.
impl<Q: Into<Self>> From<Result<Q, Error>> for Question {
    fn from(question: Result<Q, Error>) -> Self {
        match question {
            Ok(question) => question.into(),
            Err(error) => Self { text: String::new(), entities: None, markup: Some(Err(error)) },
        }
    }
}

impl From<&str> for Question {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Question {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl IntoText for Question {
    fn text_and_entities(&self) -> (Cow<'_, str>, Option<String>) {
        (self.text.as_str().into(), self.entities.clone())
    }
}

/// Going through a [`Dialog`]. Where a button was pressed, its message becomes the next question.
impl<S: Dialog> Ctx<S> {
    /// Goes on to a state, and asks its question.
    pub fn step(&mut self, state: S) -> Handled {
        state.question(self).ask(self);
        self.goto(state)
    }

    /// Says what is wrong with an answer. The state stays, and waits for another.
    pub fn again(&mut self, problem: impl IntoText) -> Handled {
        self.reply(problem);
        Handled::Done
    }

    /// Goes back to the state before, and asks its question again; in the first one, asks that once more. `Pass` where no
    /// dialog is open.
    pub fn back(&mut self) -> Handled {
        if !self.is_open() {
            return Handled::Pass;
        }
        match self.state().before() {
            Some(before) => self.step(before),
            None => {
                self.state().question(self).ask(self);
                Handled::Done
            }
        }
    }

    /// Ends the dialog with a word. `Pass` where none is open.
    pub fn cancel(&mut self, word: impl IntoText) -> Handled {
        if !self.is_open() {
            return Handled::Pass;
        }
        self.show(word);
        self.exit()
    }

    fn is_open(&self) -> bool {
        self.state().name() != S::default().name()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::test::Bot;

    #[plugin]
    mod form {
        #[derive(State, Serialize, Deserialize, Default)]
        enum Form {
            #[default]
            Idle,
            Asked,
        }

        impl Dialog for Form {
            fn question(&self, run: &Run) -> Question {
                run.storage().plugin().get::<i64>("question").map(|n| format!("Question {n:?}?")).into()
            }
        }

        #[command("begin")]
        fn begin(ctx: &mut Ctx<Form>) -> Result<Handled, Error> {
            ctx.storage().plugin().set("question", ctx.text().trim_start_matches("/begin "))?;
            Ok(ctx.step(Form::Asked))
        }
    }

    #[test]
    fn a_question_that_cannot_be_asked_fails_the_run() {
        let asked = Bot::<form::Plugin>::new().text("/begin x");
        assert!(asked.calls.is_empty());
        assert!(asked.result.unwrap_err().to_string().starts_with("the value `question` can't be read"));
    }
}
