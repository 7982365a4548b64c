//! A TOML document as a tree that remembers where each value came from.
//!
//! It owns its text, so that values from the environment can be put into it beside those of the file.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::problem::{Origin, Problem};

/// More syntax errors than this are echoes of the first ones.
const MAX_SYNTAX_ERRORS: usize = 5;

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) origin: Origin,
    /// The text of the variable that this is the whole value of: `5` is a text too where a text is wanted.
    pub(super) raw: Option<String>,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A table's entries by key, each with the place of its key.
pub(super) type Table = BTreeMap<String, (Origin, Node)>;

impl Node {
    /// What was found, for a message: the kind and, where it is short, the value. Not for secrets.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) if text.chars().count() <= 40 => format!("the text {text:?}"),
            Value::Text(_) => "a long text".to_owned(),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Boolean(value) => value.to_string(),
            Value::Datetime(_) => "a date".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// The kind alone: for values that may be secret.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a text",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Parses a file. With problems, the answer is not to be used.
pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Table {
    // Some editors put a byte order mark first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let place = |span: std::ops::Range<usize>| position(text, span.start);
    for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
        let origin = error.span().map_or(Origin::Whole, place);
        problems.push(Problem::new(&origin, format!("not valid TOML: {}", error.message())));
    }
    convert_table(document.get_ref(), &place, problems)
}

/// Reads a variable's value as a TOML value where it is one, else as text.
pub(super) fn parse_variable(text: &str, origin: &Origin) -> Node {
    let parsed = DeValue::parse(text).ok().and_then(|value| {
        let mut problems = Vec::new();
        let node = convert(value.get_ref(), origin.clone(), &|_| origin.clone(), &mut problems);
        problems.is_empty().then_some(node)
    });
    let value = parsed.map_or_else(|| Value::Text(text.to_owned()), |node| node.value);
    Node { origin: origin.clone(), raw: Some(text.to_owned()), value }
}

type Place<'a> = dyn Fn(std::ops::Range<usize>) -> Origin + 'a;

fn convert_table(table: &DeTable<'_>, place: &Place<'_>, problems: &mut Vec<Problem>) -> Table {
    table
        .iter()
        .map(|(key, value)| {
            let node = convert(value.get_ref(), place(value.span()), place, problems);
            (key.get_ref().to_string(), (place(key.span()), node))
        })
        .collect()
}

fn convert(value: &DeValue<'_>, origin: Origin, place: &Place<'_>, problems: &mut Vec<Problem>) -> Node {
    let mut too_large =
        |digits: &str| problems.push(Problem::new(&origin, format!("the number {digits} is too large")));
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(parsed.unwrap_or_else(|_| {
                too_large(number.as_str());
                0
            }))
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or_else(|_| {
            too_large(number.as_str());
            0.0
        })),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| convert(item.get_ref(), place(item.span()), place, problems)).collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, place, problems)),
    };
    Node { origin, raw: None, value }
}

fn position(text: &str, offset: usize) -> Origin {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).map_or(0, |line| line.chars().count());
    Origin::At { line: before.matches('\n').count() + 1, column: column + 1 }
}
