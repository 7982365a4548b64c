//! Long lists, a page at a time.

use std::ops::Range;

use crate::CallbackData;
use crate::keyboard::Button;

/// One page of a list, and the buttons that lead to the others.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod shop {
///     const TEAS: [&str; 30] = ["Assam"; 30];
///
///     #[derive(CallbackData)]
///     enum List {
///         Page(u32),
///         Pick(u32),
///     }
///
///     #[command("teas")]
///     fn teas(ctx: &mut Ctx) {
///         show(ctx, 0);
///     }
///
///     #[callback(List)]
///     fn pressed(ctx: &mut Ctx, list: List) {
///         match list {
///             List::Page(page) => show(ctx, page),
///             List::Pick(tea) => {
///                 ctx.edit(TEAS[tea as usize % TEAS.len()]);
///             }
///         }
///     }
///
///     fn show(ctx: &Run, page: u32) {
///         let pager = Pager::new(TEAS.len(), 8).at(page);
///         let teas = pager.range().map(|tea| [Button::data(TEAS[tea], List::Pick(tea as u32))]);
///         ctx.show("Which tea?").keyboard(InlineKeyboard::new().rows(teas).row(pager.buttons(List::Page)));
///     }
/// }
/// # fn main() {}
/// ```
///
/// It keeps nothing: which page is shown stands on the buttons. A list that has become shorter since is no trouble; beyond
/// its end is the last page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pager {
    total: usize,
    per_page: usize,
    page: u32,
}

impl Pager {
    /// The first page of so many things, `per_page` on each.
    #[must_use]
    pub fn new(total: usize, per_page: usize) -> Self {
        Self { total, per_page: per_page.max(1), page: 0 }
    }

    /// Another page, counted from 0; the last one for everything beyond it.
    #[must_use]
    pub fn at(self, page: u32) -> Self {
        Self { page: page.min(self.last()), ..self }
    }

    /// The page, counted from 0.
    #[must_use]
    pub fn page(&self) -> u32 {
        self.page
    }

    /// How many there are: 1 also where there is nothing.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.last().saturating_add(1)
    }

    fn last(&self) -> u32 {
        let pages = self.total.div_ceil(self.per_page).max(1);
        u32::try_from(pages - 1).unwrap_or(u32::MAX)
    }

    /// Which things are on the page.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        let from = (self.page as usize).saturating_mul(self.per_page).min(self.total);
        from..from.saturating_add(self.per_page).min(self.total)
    }

    /// The things on the page, out of all.
    #[must_use]
    pub fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        all.get(self.range()).unwrap_or_default()
    }

    /// A row of buttons: to the first page, the one before, this one, the next and the last; `« 1`, `‹ 3`, `4 / 9`, `5 ›`
    /// and `9 »`. Those that lead nowhere are left out, all of them if there is one page only.
    pub fn buttons<T: CallbackData>(&self, to: impl Fn(u32) -> T) -> Vec<Button> {
        let (page, last) = (self.page, self.last());
        if last == 0 {
            return Vec::new();
        }
        let mut buttons = Vec::with_capacity(5);
        let mut add = |label: String, page| buttons.push(Button::data(label, to(page)));
        if page > 1 {
            add("« 1".to_owned(), 0);
        }
        if page > 0 {
            add(format!("‹ {page}"), page - 1);
        }
        add(format!("{} / {}", page + 1, self.pages()), page);
        if page < last {
            add(format!("{} ›", page + 2), page + 1);
        }
        if page + 1 < last {
            add(format!("{} »", self.pages()), last);
        }
        buttons
    }

    /// A row of buttons that go further, `by` pages to either side: `‹‹ 3` and `23 ››`. They end at the first and the last
    /// page; where these are nearer than two pages, there is none to that side.
    pub fn jumps<T: CallbackData>(&self, by: u32, to: impl Fn(u32) -> T) -> Vec<Button> {
        let back = self.page.saturating_sub(by);
        let on = self.page.saturating_add(by).min(self.last());
        let mut buttons = Vec::with_capacity(2);
        if back + 1 < self.page {
            buttons.push(Button::data(format!("‹‹ {}", back + 1), to(back)));
        }
        if on > self.page + 1 {
            buttons.push(Button::data(format!("{} ››", on + 1), to(on)));
        }
        buttons
    }
}
