//! What a button stands for, as a type.

use std::fmt::Write as _;
use std::str::Split;

/// What the buttons of a plugin stand for: derive it for an enum, and give its values to
/// [`Button::data`](crate::keyboard::Button::data). A handler marked `#[callback(Order)]` gets them back.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod tea {
///     #[derive(CallbackData)]
///     enum Order {
///         Pick { item: u32 },
///         Page(u16),
///         Close,
///     }
///
///     #[command("tea")]
///     fn list(ctx: &mut Ctx) {
///         ctx.reply("Which one?").keyboard(
///             InlineKeyboard::new()
///                 .row([Button::data("Green", Order::Pick { item: 3 }), Button::data("Black", Order::Pick { item: 4 })])
///                 .row([Button::data("More", Order::Page(1)), Button::data("Close", Order::Close)]),
///         );
///     }
///
///     #[callback(Order)]
///     fn pressed(ctx: &mut Ctx, order: Order) {
///         match order {
///             Order::Pick { item } => ctx.edit(format!("Number {item} it is.")),
///             Order::Page(page) => ctx.edit(format!("Page {page}")),
///             Order::Close => ctx.edit("Closed."),
///         };
///     }
/// }
/// # fn main() {}
/// ```
///
/// `Order::Pick { item: 3 }` travels as `order:pick:3`: the name of the type, that of the variant, and the fields, all in
/// snake case and with colons between. Fields are numbers, `bool`, `char`, `String`, an `Option` of those, or another type
/// that derives this. A struct will do in place of an enum.
///
/// Buttons live long, so names are what counts: variants may be added, moved and removed; the order of fields may not change. A
/// button that doesn't fit any more finds no handler, and the host tells the person that it is out of date. What the
/// names of a plugin should not change with is said with `#[callback(prefix = "o")]` at the type and
/// `#[callback(name = "p")]` at a variant; that makes the data shorter, too.
///
/// The host seals what goes out and opens what comes back: nobody else's button gets here, and none that somebody has made up.
/// Up to 55 bytes travel with the button; up to 1,024 are kept by the host, for 90 days.
pub trait CallbackData: Sized {
    /// What the data of all its values begins with, the colon included.
    const PREFIX: &'static str;

    #[doc(hidden)]
    fn write(&self, parts: &mut Parts);

    #[doc(hidden)]
    fn read(parts: &mut Reading<'_>) -> Option<Self>;

    /// As it travels.
    fn to_data(&self) -> String {
        let mut parts = Parts { written: Self::PREFIX.to_owned(), any: false };
        self.write(&mut parts);
        parts.written
    }

    /// From what a button brought back; none for what is no value of this type.
    #[must_use]
    fn from_data(data: &str) -> Option<Self> {
        let rest = data.strip_prefix(Self::PREFIX)?;
        // Nothing at all is no part, where none is wanted; where a text is, it is an empty one.
        let mut parts = Reading { parts: rest.split(':'), any: false, empty: rest.is_empty() };
        let value = Self::read(&mut parts)?;
        let is_over = parts.parts.next().is_none() || (parts.empty && !parts.any);
        is_over.then_some(value)
    }
}

/// What a field of [`CallbackData`] can be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be part of a button's data",
    label = "use a number, `bool`, `char`, `String`, an `Option` of those, or derive `CallbackData` for it"
)]
pub trait CallbackField: Sized {
    #[doc(hidden)]
    fn write(&self, parts: &mut Parts);
    #[doc(hidden)]
    fn read(parts: &mut Reading<'_>) -> Option<Self>;
}

/// Data that is being written.
#[doc(hidden)]
pub struct Parts {
    written: String,
    any: bool,
}

impl Parts {
    /// A part that holds no colon.
    pub fn push(&mut self, part: &str) {
        if std::mem::replace(&mut self.any, true) {
            self.written.push(':');
        }
        self.written.push_str(part);
    }
}

/// Data that is being read.
#[doc(hidden)]
pub struct Reading<'a> {
    parts: Split<'a, char>,
    any: bool,
    empty: bool,
}

impl<'a> Reading<'a> {
    /// The next part.
    pub fn part(&mut self) -> Option<&'a str> {
        self.any = true;
        self.parts.next()
    }
}

impl<T: CallbackData> CallbackField for T {
    fn write(&self, parts: &mut Parts) {
        CallbackData::write(self, parts);
    }

    fn read(parts: &mut Reading<'_>) -> Option<Self> {
        CallbackData::read(parts)
    }
}

macro_rules! plain_fields {
    ($($type:ty)*) => {$(
        impl CallbackField for $type {
            fn write(&self, parts: &mut Parts) {
                parts.push("");
                write!(parts.written, "{self}").expect("writing to a string never fails");
            }

            fn read(parts: &mut Reading<'_>) -> Option<Self> {
                parts.part()?.parse().ok()
            }
        }
    )*};
}

plain_fields!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

impl CallbackField for bool {
    fn write(&self, parts: &mut Parts) {
        parts.push(if *self { "1" } else { "0" });
    }

    fn read(parts: &mut Reading<'_>) -> Option<Self> {
        match parts.part()? {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }
}

impl CallbackField for String {
    fn write(&self, parts: &mut Parts) {
        parts.push("");
        for letter in self.chars() {
            match letter {
                ':' => parts.written.push_str("%3A"),
                '%' => parts.written.push_str("%25"),
                other => parts.written.push(other),
            }
        }
    }

    fn read(parts: &mut Reading<'_>) -> Option<Self> {
        let mut pieces = parts.part()?.split('%');
        let mut text = pieces.next()?.to_owned();
        for piece in pieces {
            let (letter, rest) = piece.split_at_checked(2)?;
            text.push(match letter {
                "3A" => ':',
                "25" => '%',
                _ => return None,
            });
            text.push_str(rest);
        }
        Some(text)
    }
}

impl CallbackField for char {
    fn write(&self, parts: &mut Parts) {
        CallbackField::write(&self.to_string(), parts);
    }

    fn read(parts: &mut Reading<'_>) -> Option<Self> {
        let text: String = CallbackField::read(parts)?;
        let mut letters = text.chars();
        letters.next().filter(|_| letters.next().is_none())
    }
}

impl<T: CallbackField> CallbackField for Option<T> {
    fn write(&self, parts: &mut Parts) {
        match self {
            None => parts.push("-"),
            Some(value) => {
                parts.push("+");
                value.write(parts);
            }
        }
    }

    fn read(parts: &mut Reading<'_>) -> Option<Self> {
        match parts.part()? {
            "-" => Some(None),
            "+" => T::read(parts).map(Some),
            _ => None,
        }
    }
}
