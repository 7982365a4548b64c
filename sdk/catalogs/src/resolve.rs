//! From a message and what it is given to a text. Total: what is not there stands in the text in its source form, which
//! tells more than no text at all; what is too long or too deep ends where it is.

use unic_langid::LanguageIdentifier;

use crate::message::{Key, Messages, Part, Variant};
use crate::number::{Form, Number};
use crate::plural::{self, Rule};
use crate::{Markup, Value};

/// Bytes of a translation; what comes after them is left out. Telegram takes 4,096 characters.
const LONGEST: usize = 64 << 10;
/// Patterns within each other.
const DEEPEST: usize = 60;
/// Parts that are looked at for one text, so that messages that say each other many times cost no more than that.
const MOST_PARTS: usize = 5_000;

/// How a language counts and writes numbers.
#[derive(Clone, Copy)]
pub(crate) struct Language {
    form: Form,
    cardinal: Rule,
    ordinal: Rule,
}

impl Language {
    pub(crate) fn of(locale: &LanguageIdentifier) -> Self {
        Self { form: Form::of(locale), cardinal: plural::cardinal(locale), ordinal: plural::ordinal(locale) }
    }
}

/// One text being made.
struct Writing<'a> {
    messages: &'a Messages,
    language: Language,
    markup: Markup,
    out: String,
    left: usize,
}

/// What a part stands for where something is chosen by it.
enum Chosen<'a> {
    Text(&'a str),
    Number(Number),
    Nothing,
}

/// The message `key`; none where there is none.
pub(crate) fn write(
    messages: &Messages,
    language: Language,
    key: &str,
    args: &[(String, Value)],
    markup: Markup,
) -> Option<String> {
    let message = messages.0.get(key).filter(|_| !key.starts_with('-'))?;
    let mut writing = Writing { messages, language, markup, out: String::new(), left: MOST_PARTS };
    let args: Vec<_> = args.iter().map(|(name, value)| (name.as_str(), value)).collect();
    writing.pattern(&message.pattern, &args, DEEPEST);
    Some(writing.out)
}

type Args<'a> = [(&'a str, &'a Value)];

impl<'a> Writing<'a> {
    fn pattern(&mut self, pattern: &'a [Part], args: &Args<'a>, deep: usize) {
        for part in pattern {
            if self.left == 0 || self.out.len() == LONGEST {
                return;
            }
            self.left -= 1;
            self.part(part, args, deep);
        }
    }

    fn part(&mut self, part: &'a Part, args: &Args<'a>, deep: usize) {
        match part {
            Part::Text(text) => self.push(text),
            Part::Variable(name) => match value(args, name) {
                Some(Value::Text(text)) => self.push_given(text),
                Some(value) => self.push_number(&Number::of(value)),
                None => self.push(&format!("{{${name}}}")),
            },
            Part::Number(number) => self.push_number(number),
            Part::Form(..) => match self.chosen(part, args) {
                Chosen::Number(number) => self.push_number(&number),
                Chosen::Text(text) => self.push_given(text),
                Chosen::Nothing => self.push("{NUMBER()}"),
            },
            Part::Unknown(name) => self.push(&format!("{{{name}}}")),
            Part::Message(key) => self.other(key, args, deep),
            Part::Term(key, given) => {
                let given: Vec<_> = given.iter().map(|(name, part)| (name.as_str(), literal(part))).collect();
                let given: Vec<_> = given.iter().map(|(name, value)| (*name, value)).collect();
                // What a term is given lives here, not as long as the arguments of the text.
                let mut writing = Writing {
                    messages: self.messages,
                    language: self.language,
                    markup: self.markup,
                    out: std::mem::take(&mut self.out),
                    left: self.left,
                };
                writing.other(key, &given, deep);
                (self.out, self.left) = (writing.out, writing.left);
            }
            Part::Select(selector, variants) => {
                if let Some(variant) = self.choose(selector, variants, args)
                    && deep > 0
                {
                    self.pattern(&variant.pattern, args, deep - 1);
                }
            }
        }
    }

    fn other(&mut self, key: &str, args: &Args<'a>, deep: usize) {
        match self.messages.0.get(key) {
            Some(message) if deep > 0 => self.pattern(&message.pattern, args, deep - 1),
            _ => self.push(&format!("{{{key}}}")),
        }
    }

    fn choose(&self, selector: &'a Part, variants: &'a [Variant], args: &Args<'a>) -> Option<&'a Variant> {
        let chosen = self.chosen(selector, args);
        let form = match &chosen {
            Chosen::Number(number) => {
                let rule = if number.style.is_ordinal { self.language.ordinal } else { self.language.cardinal };
                number.operands().map(|operands| rule(&operands))
            }
            _ => None,
        };
        let fits = |variant: &&Variant| match (&variant.key, &chosen) {
            (Key::Name(name), Chosen::Text(text)) => name == text,
            (Key::Name(name), Chosen::Number(_)) => form == Some(name.as_str()),
            #[expect(clippy::float_cmp, reason = "a number that a catalog names is meant exactly")]
            (Key::Number(wanted), Chosen::Number(number)) => *wanted == number.value(),
            _ => false,
        };
        variants.iter().find(fits).or_else(|| variants.iter().find(|variant| variant.is_default))
    }

    fn chosen(&self, part: &'a Part, args: &Args<'a>) -> Chosen<'a> {
        match part {
            Part::Text(text) => Chosen::Text(text),
            Part::Number(number) => Chosen::Number(number.clone()),
            Part::Variable(name) => match value(args, name) {
                Some(Value::Text(text)) => Chosen::Text(text),
                Some(value) => Chosen::Number(Number::of(value)),
                None => Chosen::Nothing,
            },
            Part::Form(inner, style) => match self.chosen(inner, args) {
                Chosen::Number(number) => Chosen::Number(number.styled(style)),
                other => other,
            },
            // An attribute of a term: `{ -firm.gender -> … }`. One text, or it chooses nothing.
            Part::Term(key, _) => match self.messages.0.get(key).map(|message| message.pattern.as_slice()) {
                Some([Part::Text(text)]) => Chosen::Text(text),
                _ => Chosen::Nothing,
            },
            Part::Message(_) | Part::Unknown(_) | Part::Select(..) => Chosen::Nothing,
        }
    }

    fn push_number(&mut self, number: &Number) {
        let text = number.write(self.language.form);
        self.push_given(&text);
    }

    /// What the catalog did not write itself.
    fn push_given(&mut self, text: &str) {
        let text = self.markup.escape(text);
        self.push(&text);
    }

    fn push(&mut self, text: &str) {
        let left = LONGEST - self.out.len();
        let end = text.floor_char_boundary(left);
        self.out.push_str(text.split_at(end).0);
        if end < text.len() {
            self.left = 0;
        }
    }
}

fn value<'a>(args: &Args<'a>, name: &str) -> Option<&'a Value> {
    args.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// What a term is given: only what stands there can be.
fn literal(part: &Part) -> Value {
    match part {
        Part::Text(text) => Value::Text(text.clone()),
        Part::Number(number) => Value::Number(number.value()),
        _ => Value::Text(String::new()),
    }
}
