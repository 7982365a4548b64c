//! The inline keyboards that the user sees, and pressing their buttons.

use super::{Bot, Outcome};
use crate::{Plugin, Value};

impl<P: Plugin> Bot<P> {
    /// The user presses the button with this label: the newest one that there is.
    ///
    /// ```
    /// use botyard_sdk::prelude::*;
    ///
    /// #[plugin]
    /// mod tea {
    ///     #[command("tea")]
    ///     fn tea(ctx: &mut Ctx) {
    ///         ctx.reply("Which one?").keyboard(InlineKeyboard::new().row([Button::callback("Green", "tea:green")]));
    ///     }
    ///
    ///     #[callback("tea:")]
    ///     fn pressed(ctx: &mut Ctx) {
    ///         ctx.edit(ctx.callback_data());
    ///     }
    /// }
    ///
    /// # fn main() {
    /// let mut bot = botyard_sdk::test::Bot::<tea::Plugin>::new();
    /// bot.text("/tea");
    /// assert_eq!(bot.press_button("Green").texts(), ["tea:green"]);
    /// # }
    /// ```
    ///
    /// # Panics
    /// When the user sees no such button, or one that tells the bot nothing.
    pub fn press_button(&mut self, label: &str) -> Outcome {
        let is_it = |keyboard: &Value| buttons(keyboard).find(|button| button["text"] == label).cloned();
        let found = self.keyboards.iter().enumerate().rev().find_map(|(at, keyboard)| Some((at, is_it(keyboard)?)));
        let Some((at, button)) = found else {
            let labels = self.keyboards.iter().flat_map(buttons).filter_map(|button| button["text"].as_str());
            panic!("there is no button `{label}`: there are {:?}", labels.collect::<Vec<_>>());
        };
        let Some(data) = button["callback_data"].as_str() else {
            panic!("pressing the button `{label}` tells the bot nothing: {button}");
        };
        self.pressed = at;
        self.press(data)
    }

    /// The labels of the buttons that the user sees, the oldest message first.
    #[must_use]
    pub fn labels(&self) -> Vec<&str> {
        self.keyboards.iter().flat_map(buttons).filter_map(|button| button["text"].as_str()).collect()
    }

    /// What the calls of a run do to the keyboards that the user sees.
    pub(super) fn look_at_keyboards(&mut self, outcome: &Outcome) {
        for (method, params) in &outcome.calls {
            let markup = &params["reply_markup"];
            // As JSON in a string, which Telegram takes as well.
            let read = markup.as_str().and_then(|json| serde_json::from_str::<Value>(json).ok());
            let keyboard = read.as_ref().unwrap_or(markup)["inline_keyboard"].clone();
            if method.starts_with("edit") {
                if let Some(edited) = self.keyboards.get_mut(self.pressed) {
                    *edited = keyboard;
                }
            } else if keyboard.is_array() {
                self.keyboards.push(keyboard);
                self.pressed = self.keyboards.len() - 1;
            }
        }
    }
}

fn buttons(keyboard: &Value) -> impl Iterator<Item = &Value> {
    keyboard.as_array().into_iter().flatten().filter_map(Value::as_array).flatten()
}
