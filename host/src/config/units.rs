//! Values as people write them: `"30s"`, `"32MiB"`.
//!
//! Each reader answers with the value or with what was expected and what was found.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::tree::{Node, Value};

const DURATIONS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

pub(super) fn expected<T>(what: &str, node: &Node) -> Result<T, String> {
    Err(format!("expected {what}, found {}", node.describe()))
}

pub(super) fn text(node: &Node) -> Result<String, String> {
    let text = match (&node.value, &node.raw) {
        (Value::Text(text), _) => text,
        (Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_), Some(raw)) => raw,
        _ => return expected("a text in quotes", node),
    };
    if text.trim().is_empty() {
        return Err("the text is empty".to_owned());
    }
    Ok(text.clone())
}

pub(super) fn address(node: &Node) -> Result<SocketAddr, String> {
    let given = text(node)?;
    // The one host name that everybody uses for an address.
    let given = given.strip_prefix("localhost:").map_or(given.clone(), |port| format!("127.0.0.1:{port}"));
    match given.parse() {
        Ok(address) => Ok(address),
        Err(_) => expected("an IP address and a port, such as \"127.0.0.1:8088\" or \"[::]:8088\"", node),
    }
}

pub(super) fn texts(node: &Node) -> Result<Vec<String>, String> {
    match &node.value {
        Value::Array(items) => items.iter().map(text).collect(),
        _ => expected("a list of texts, such as [\"a\", \"b\"]", node),
    }
}

pub(super) fn boolean(node: &Node) -> Result<bool, String> {
    match node.value {
        Value::Boolean(value) => Ok(value),
        _ => expected("true or false", node),
    }
}

pub(super) fn integer(node: &Node, range: RangeInclusive<i64>) -> Result<i64, String> {
    match node.value {
        Value::Integer(number) => within(number, &range, |number| number.to_string()),
        _ => expected("a whole number", node),
    }
}

pub(super) fn number(node: &Node, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number = match node.value {
        // Exact: the ranges here end far below 2^53.
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => return expected("a number", node),
    };
    within(number, &range, |number| number.to_string())
}

pub(super) fn duration(node: &Node, range: RangeInclusive<Duration>) -> Result<Duration, String> {
    let what = "a duration such as \"500ms\", \"30s\" or \"2h\"";
    let Value::Text(text) = &node.value else { return expected(what, node) };
    match amount(text, &DURATIONS) {
        Some(millis) => within(Duration::from_millis(millis), &range, |&duration| show_duration(duration)),
        None => expected(what, node),
    }
}

pub(super) fn bytes(node: &Node, range: RangeInclusive<u64>) -> Result<u64, String> {
    let what = "a size such as \"64KiB\", \"32MiB\" or \"1GiB\"";
    let Value::Text(text) = &node.value else { return expected(what, node) };
    match amount(text, &SIZES) {
        Some(bytes) => within(bytes, &range, |&bytes| show_bytes(bytes)),
        None => expected(what, node),
    }
}

fn within<T: PartialOrd>(value: T, range: &RangeInclusive<T>, show: impl Fn(&T) -> String) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!("{} is out of range: it must be from {} to {}", show(&value), show(range.start()), show(range.end())))
}

/// A whole number and its unit.
fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn show(amount: u64, units: &[(&str, u64)], zero: impl Display) -> String {
    let fitting = units.iter().find(|(_, factor)| amount != 0 && amount.is_multiple_of(*factor));
    fitting.map_or_else(|| zero.to_string(), |(unit, factor)| format!("{}{unit}", amount / factor))
}

/// A duration in the words of `bot.toml`.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    show(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), &DURATIONS, "0s")
}

/// A size in the words of `bot.toml`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    show(bytes, &SIZES, "0B")
}
