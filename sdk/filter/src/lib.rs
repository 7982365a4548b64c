//! Conditions on updates: the language in which manifests hold them, and what they mean.
//!
//! `private & (has("photo") | has("document")) & !has("forward_origin")` is a condition: tests, put together with `&`,
//! `|`, `!` and parentheses. The SDK writes them, the host reads and evaluates them, and the SDK's test driver does so with
//! this same code.
//!
//! Whoever wrote a condition is not trusted: its length, its depth, the number of its tests and the size of its regular
//! expressions are bounded. What can't be read is an error that says why; evaluating one never fails.

mod parse;
mod subject;

use std::fmt;

use regex::Regex;

pub use parse::Error;
pub use subject::{Fields, Subject};

/// Bytes of one condition.
pub const MOST_BYTES: usize = 4 << 10;
/// Tests in one condition.
pub const MOST_TESTS: usize = 64;
/// Parentheses and `!` within each other.
pub const MOST_DEPTH: usize = 16;
/// The test that has a regular expression.
pub const REGEX_TEST: &str = "text_matches";

/// A condition, ready to be evaluated.
#[derive(Debug, Clone)]
pub struct Condition(Node);

#[derive(Debug, Clone)]
enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Is(Test),
}

/// Where a test has several values, one of them is enough.
#[derive(Debug, Clone)]
enum Test {
    Private,
    /// A basic group or a supergroup.
    Group,
    Channel,
    Chat(Vec<i64>),
    Topic(Vec<i64>),
    User(Vec<i64>),
    /// The language, or any of its variants: `pt` is `pt-br`, too.
    Language(Vec<String>),
    /// Fields of the message, or of what else the update holds.
    Has(Vec<String>),
    Text(Vec<String>),
    TextBegins(Vec<String>),
    TextMatches(Regex),
    /// What follows a command: there is something, and it begins like this.
    ArgsBegin(Vec<String>),
}

impl Condition {
    /// Reads a condition. A regular expression in it may be compiled to no more than `regex_bytes`.
    ///
    /// # Errors
    /// When it can't be read, or is beyond a bound.
    pub fn parse(text: &str, regex_bytes: usize) -> Result<Self, Error> {
        parse::parse(text, regex_bytes).map(Self)
    }

    /// Whether it is true of an update.
    #[must_use]
    pub fn holds(&self, subject: &Subject<'_>) -> bool {
        self.0.holds(subject)
    }
}

impl Node {
    fn holds(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.holds(subject)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(subject)),
            Self::Not(node) => !node.holds(subject),
            Self::Is(test) => test.holds(subject),
        }
    }
}

impl Test {
    fn holds(&self, subject: &Subject<'_>) -> bool {
        let is_in = |ids: &[i64], id: Option<i64>| id.is_some_and(|id| ids.contains(&id));
        match self {
            Self::Private => subject.chat_type == Some("private"),
            Self::Group => matches!(subject.chat_type, Some("group" | "supergroup")),
            Self::Channel => subject.chat_type == Some("channel"),
            Self::Chat(ids) => is_in(ids, subject.chat),
            Self::Topic(ids) => is_in(ids, subject.topic),
            Self::User(ids) => is_in(ids, subject.user),
            Self::Language(tags) => {
                subject.language.is_some_and(|language| tags.iter().any(|tag| is_variant(language, tag)))
            }
            Self::Has(fields) => fields.iter().any(|field| subject.has(field)),
            Self::Text(texts) => subject.text.is_some_and(|text| texts.iter().any(|wanted| text == wanted)),
            Self::TextBegins(beginnings) => {
                subject.text.is_some_and(|text| beginnings.iter().any(|begins| text.starts_with(begins.as_str())))
            }
            Self::TextMatches(regex) => subject.text.is_some_and(|text| regex.is_match(text)),
            Self::ArgsBegin(beginnings) => subject
                .args
                .filter(|args| !args.is_empty())
                .is_some_and(|args| beginnings.iter().any(|begins| args.starts_with(begins.as_str()))),
        }
    }
}

/// Whether `language` is `tag`, or a more particular one.
fn is_variant(language: &str, tag: &str) -> bool {
    let (language, tag) = (language.as_bytes(), tag.as_bytes());
    language.len() >= tag.len()
        && language.iter().zip(tag).all(|(a, b)| a.eq_ignore_ascii_case(b))
        && matches!(language.get(tag.len()), None | Some(b'-' | b'_'))
}

/// As it is written: reading this again gives the same condition.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, Place::Top)
    }
}

/// Around a node: what decides about its parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    InAll,
    InAny,
    InNot,
}

impl Node {
    fn write(&self, f: &mut fmt::Formatter<'_>, place: Place) -> fmt::Result {
        let (nodes, between, own, bare) = match self {
            Self::Is(test) => return write!(f, "{test}"),
            Self::Not(node) => {
                f.write_str("!")?;
                return node.write(f, Place::InNot);
            }
            Self::All(nodes) => (nodes, " & ", Place::InAll, place == Place::Top || place == Place::InAny),
            Self::Any(nodes) => (nodes, " | ", Place::InAny, place == Place::Top),
        };
        if !bare {
            f.write_str("(")?;
        }
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                f.write_str(between)?;
            }
            node.write(f, own)?;
        }
        if bare { Ok(()) } else { f.write_str(")") }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = |texts: &[String]| texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ");
        let ids = |ids: &[i64]| ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Private => f.write_str("private"),
            Self::Group => f.write_str("group"),
            Self::Channel => f.write_str("channel"),
            Self::Chat(of) => write!(f, "chat({})", ids(of)),
            Self::Topic(of) => write!(f, "topic({})", ids(of)),
            Self::User(of) => write!(f, "user({})", ids(of)),
            Self::Language(of) => write!(f, "language({})", texts(of)),
            Self::Has(of) => write!(f, "has({})", texts(of)),
            Self::Text(of) => write!(f, "text({})", texts(of)),
            Self::TextBegins(of) => write!(f, "text_begins({})", texts(of)),
            Self::TextMatches(regex) => write!(f, "{REGEX_TEST}({})", quoted(regex.as_str())),
            Self::ArgsBegin(of) => write!(f, "args_begin({})", texts(of)),
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
