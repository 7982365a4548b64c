//! Messages as they are kept: what a catalog's text was read into, and what each message wants to be given.

use std::collections::{BTreeMap, BTreeSet};

use fluent_syntax::ast;
use fluent_syntax::unicode::unescape_unicode_to_string;

use crate::number::{MOST_DIGITS, Number, Style};

/// The messages of a locale, by key. Attributes are messages of their own, named `message.attribute`; terms begin with `-`.
#[derive(Debug, Default)]
pub(crate) struct Messages(pub(crate) BTreeMap<String, Message>);

/// One message.
#[derive(Debug, Default, Clone)]
pub(crate) struct Message {
    /// The catalog that it stands in.
    pub(crate) catalog: String,
    /// Its line, from 1.
    pub(crate) line: usize,
    pub(crate) pattern: Pattern,
    /// The variables, and the messages, terms and functions that stand in it.
    pub(crate) variables: BTreeSet<String>,
    pub(crate) references: BTreeSet<String>,
    /// Its choices.
    pub(crate) choices: Vec<Choice>,
}

/// Texts and what stands between them.
pub(crate) type Pattern = Vec<Part>;

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    Variable(String),
    Number(Number),
    /// A message, or one of its attributes.
    Message(String),
    /// A term with what it is given.
    Term(String, Vec<(String, Part)>),
    /// `NUMBER`, with what is said there about its form.
    Form(Box<Part>, Style),
    /// Something that there is not.
    Unknown(String),
    Select(Box<Part>, Vec<Variant>),
}

#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) key: Key,
    pub(crate) is_default: bool,
    pub(crate) pattern: Pattern,
}

#[derive(Debug, Clone)]
pub(crate) enum Key {
    Name(String),
    Number(f64),
}

/// A choice between variants, for those who check it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Choice {
    /// It says that it counts.
    pub(crate) is_number: bool,
    pub(crate) is_ordinal: bool,
    /// The names of its variants that are no numbers, and the one that is for all the rest.
    pub(crate) names: Vec<String>,
    pub(crate) default: String,
}

/// A number with more digits than can be counted with.
pub(crate) struct TooManyDigits;

impl Messages {
    /// The messages, without the terms.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|key| !key.starts_with('-'))
    }

    /// The variables that a message wants, in what it refers to as well, and where. Terms have none but their own.
    pub(crate) fn wanted<'a>(&'a self, key: &'a str) -> BTreeMap<&'a str, &'a Message> {
        let (mut wanted, mut seen, mut ahead) = (BTreeMap::new(), BTreeSet::new(), vec![key]);
        while let Some(key) = ahead.pop() {
            let Some(message) = self.0.get(key).filter(|_| !key.starts_with('-') && seen.insert(key)) else {
                continue;
            };
            wanted.extend(message.variables.iter().map(|variable| (variable.as_str(), message)));
            ahead.extend(message.references.iter().map(String::as_str));
        }
        wanted
    }
}

impl Message {
    /// Reads a pattern. Not deeper than the reader of catalogs lets through.
    pub(crate) fn read(catalog: &str, line: usize, pattern: &ast::Pattern<&str>) -> Result<Self, TooManyDigits> {
        let mut message = Self { catalog: catalog.to_owned(), line, ..Self::default() };
        message.pattern = message.pattern_of(pattern)?;
        Ok(message)
    }

    fn pattern_of(&mut self, pattern: &ast::Pattern<&str>) -> Result<Pattern, TooManyDigits> {
        let part = |element: &ast::PatternElement<&str>| match element {
            ast::PatternElement::TextElement { value } => Ok(Part::Text((*value).to_owned())),
            ast::PatternElement::Placeable { expression } => self.part(expression),
        };
        pattern.elements.iter().map(part).collect()
    }

    fn part(&mut self, expression: &ast::Expression<&str>) -> Result<Part, TooManyDigits> {
        let (selector, variants) = match expression {
            ast::Expression::Inline(inline) => return self.inline(inline),
            ast::Expression::Select { selector, variants } => (selector, variants),
        };
        let selector = self.inline(selector)?;
        let (is_number, is_ordinal) = match &selector {
            Part::Form(_, style) => (true, style.is_ordinal),
            _ => (false, false),
        };
        let (mut choice, mut read) = (Choice { is_number, is_ordinal, ..Choice::default() }, Vec::new());
        for variant in variants {
            let (key, name) = match variant.key {
                ast::VariantKey::Identifier { name } => {
                    choice.names.push(name.to_owned());
                    (Key::Name(name.to_owned()), name)
                }
                ast::VariantKey::NumberLiteral { value } => (Key::Number(literal(value)?.value()), value),
            };
            if variant.default {
                choice.default = name.to_owned();
            }
            read.push(Variant { key, is_default: variant.default, pattern: self.pattern_of(&variant.value)? });
        }
        self.choices.push(choice);
        Ok(Part::Select(Box::new(selector), read))
    }

    fn inline(&mut self, inline: &ast::InlineExpression<&str>) -> Result<Part, TooManyDigits> {
        use ast::InlineExpression as Inline;
        Ok(match inline {
            Inline::StringLiteral { value } => Part::Text(unescape_unicode_to_string(value).into_owned()),
            Inline::NumberLiteral { value } => Part::Number(literal(value)?),
            Inline::VariableReference { id } => {
                self.variables.insert(id.name.to_owned());
                Part::Variable(id.name.to_owned())
            }
            Inline::MessageReference { id, attribute } => {
                let key = key("", id.name, attribute.as_ref());
                self.references.insert(key.clone());
                Part::Message(key)
            }
            Inline::TermReference { id, attribute, arguments } => {
                let key = key("-", id.name, attribute.as_ref());
                self.references.insert(key.clone());
                let mut given = Vec::new();
                for argument in arguments.iter().flat_map(|arguments| &arguments.named) {
                    given.push((argument.name.name.to_owned(), self.inline(&argument.value)?));
                }
                Part::Term(key, given)
            }
            Inline::FunctionReference { id, arguments } => match arguments.positional.first() {
                Some(first) if id.name == "NUMBER" => {
                    let mut style = Style::form();
                    for ast::NamedArgument { name, value } in &arguments.named {
                        match value {
                            Inline::StringLiteral { value } => style.say(name.name, value),
                            Inline::NumberLiteral { value } => style.set(name.name, literal(value)?.value()),
                            _ => {}
                        }
                    }
                    Part::Form(Box::new(self.inline(first)?), style)
                }
                _ => {
                    let name = format!("{}()", id.name);
                    self.references.insert(name.clone());
                    Part::Unknown(name)
                }
            },
            Inline::Placeable { expression } => self.part(expression)?,
        })
    }
}

fn key(dash: &str, id: &str, attribute: Option<&ast::Identifier<&str>>) -> String {
    let attribute = attribute.map(|attribute| format!(".{}", attribute.name)).unwrap_or_default();
    format!("{dash}{id}{attribute}")
}

/// Plural rules count with so many digits, and Telegram's readers with fewer.
fn literal(text: &str) -> Result<Number, TooManyDigits> {
    if text.bytes().filter(u8::is_ascii_digit).count() > MOST_DIGITS {
        return Err(TooManyDigits);
    }
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Ok(Number::new(text.parse().map_err(|_| TooManyDigits)?, Style::with_fraction(fraction)))
}
