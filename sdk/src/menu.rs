//! Menus of several levels, in one message.

use crate::keyboard::{Button, InlineKeyboard};
use crate::{Handled, Run};

/// A menu: a text, buttons, and further menus behind some of them. It is shown in one message, which changes as people go
/// through it, with a way back on every page but the first.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod cafe {
///     #[derive(CallbackData)]
///     enum Pick {
///         Tea,
///         Samsa,
///     }
///
///     fn menu() -> Menu {
///         Menu::new("menu", "What would you like?")
///             .sub("Drinks", Menu::new("drinks", "Drinks:").button(Button::data("Tea", Pick::Tea)))
///             .sub("Food", Menu::new("food", "Food:").button(Button::data("Samsa", Pick::Samsa)))
///             .close("Close", "Closed.")
///     }
///
///     #[command("menu")]
///     fn open(ctx: &mut Ctx) {
///         menu().open(ctx);
///     }
///
///     #[callback("menu:")]
///     fn turn(ctx: &mut Ctx) -> Handled {
///         menu().pressed(ctx)
///     }
///
///     #[callback(Pick)]
///     fn picked(ctx: &mut Ctx, pick: Pick) {
///         let what = if matches!(pick, Pick::Tea) { "Tea" } else { "Samsa" };
///         ctx.edit(format!("{what}, a good choice.")).keyboard(InlineKeyboard::new().row(menu().ways_out("")));
///     }
/// }
/// # fn main() {}
/// ```
///
/// Nothing is remembered: each button says which page it leads to, by the keys of the menus on the way. So an old menu
/// still works after a restart, several can be open at once, and what stands on the pages may depend on anything, the
/// person's language for example. A button to a page that is gone finds no handler, and the host says that it is out of date.
#[derive(Debug, Clone)]
pub struct Menu {
    key: String,
    text: String,
    columns: usize,
    entries: Vec<Entry>,
    back: String,
    close: Option<(String, String)>,
}

#[derive(Debug, Clone)]
enum Entry {
    Button(Button),
    Menu(String, Menu),
}

/// Where the button to close leads, in place of a page.
const CLOSED: &str = "-";

impl Menu {
    /// A menu without buttons. The key of the first one is what the callback data of all begins with, followed by a
    /// colon; those of the others need to be different within their menu only. They are not shown, and hold no dots.
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        let (key, text) = (key.into(), text.into());
        Self { key, text, columns: 2, entries: Vec::new(), back: "‹ Back".to_owned(), close: None }
    }

    /// Adds a button that leads to another menu.
    #[must_use]
    pub fn sub(mut self, label: impl Into<String>, menu: Menu) -> Self {
        self.entries.push(Entry::Menu(label.into(), menu));
        self
    }

    /// Adds any button. What pressing it does is for a handler of its own.
    #[must_use]
    pub fn button(mut self, button: Button) -> Self {
        self.entries.push(Entry::Button(button));
        self
    }

    /// Adds several.
    #[must_use]
    pub fn buttons(mut self, buttons: impl IntoIterator<Item = Button>) -> Self {
        self.entries.extend(buttons.into_iter().map(Entry::Button));
        self
    }

    /// How many buttons stand in a row of this menu; 2, where not said.
    #[must_use]
    pub fn columns(self, columns: usize) -> Self {
        Self { columns: columns.max(1), ..self }
    }

    /// What the buttons say that lead back. To be said of the first menu.
    #[must_use]
    pub fn back(self, label: impl Into<String>) -> Self {
        Self { back: label.into(), ..self }
    }

    /// A button on every page that puts a text in the menu's place. To be said of the first menu.
    #[must_use]
    pub fn close(self, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { close: Some((label.into(), text.into())), ..self }
    }

    /// Shows the first page: in the message whose button was pressed, or in a new one.
    pub fn open(&self, run: &Run) {
        self.show(run, "");
    }

    /// Turns to the page whose button was pressed: for the handler of `#[callback("menu:")]`, with the key of the first
    /// menu. `Pass` for what is not this menu's, or is its no longer.
    pub fn pressed(&self, run: &Run) -> Handled {
        let data = run.callback_data().strip_prefix(&*self.key).and_then(|rest| rest.strip_prefix(':'));
        match (data, &self.close) {
            (Some(CLOSED), Some((_, text))) => {
                run.edit(text);
                Handled::Done
            }
            (Some(path), _) if self.show(run, path) => Handled::Done,
            _ => Handled::Pass,
        }
    }

    /// The buttons that lead back to a page, and close the menu: for what a plugin shows in its place. A page is named by
    /// the keys on the way to it, with dots between: `"drinks.hot"`; the first one by `""`.
    #[must_use]
    pub fn ways_out(&self, path: &str) -> Vec<Button> {
        let back = Button::callback(&self.back, self.data(path));
        std::iter::once(back).chain(self.closing()).collect()
    }

    fn show(&self, run: &Run, path: &str) -> bool {
        let keys = path.split('.').filter(|key| !key.is_empty());
        let mut menu = self;
        for key in keys {
            let found = menu.entries.iter().find_map(|entry| match entry {
                Entry::Menu(_, menu) if menu.key == key => Some(menu),
                _ => None,
            });
            let Some(found) = found else { return false };
            menu = found;
        }
        run.show(&menu.text).keyboard(self.keyboard(menu, path));
        true
    }

    fn keyboard(&self, menu: &Menu, path: &str) -> InlineKeyboard {
        let buttons: Vec<_> = menu
            .entries
            .iter()
            .map(|entry| match entry {
                Entry::Button(button) => button.clone(),
                Entry::Menu(label, menu) if path.is_empty() => Button::callback(label, self.data(&menu.key)),
                Entry::Menu(label, menu) => Button::callback(label, self.data(&format!("{path}.{}", menu.key))),
            })
            .collect();
        let rows = buttons.chunks(menu.columns).map(<[Button]>::to_vec);
        let back = (!path.is_empty()).then(|| {
            let above = path.rsplit_once('.').map_or("", |(above, _)| above);
            Button::callback(&self.back, self.data(above))
        });
        InlineKeyboard::new().rows(rows).row(back.into_iter().chain(self.closing()))
    }

    fn closing(&self) -> Option<Button> {
        self.close.as_ref().map(|(label, _)| Button::callback(label, self.data(CLOSED)))
    }

    fn data(&self, path: &str) -> String {
        format!("{}:{path}", self.key)
    }
}
