//! Updates of every shape, well formed and not, and what `serde_json::Value` makes of them.
//!
//! The host reads an update's parts without building the whole of it, so there must be somebody who says what these parts
//! are: [`expected`] does, by looking them up in a `Value`. Where a `Value` can't be had (a lone surrogate, a number that no
//! float holds, too many brackets) all that is asked of the host is that it goes on.

use botyard::domain::{ChatId, ThreadId, UPDATE_KINDS, UpdateId, UpdateView, UserId};
use rand::Rng;
use rand::seq::IndexedRandom as _;
use serde_json::Value;

/// An update, and the name of its first field that is not `update_id`.
pub struct Sample {
    /// The text, which may be no JSON at all.
    pub text: String,
    /// The update's kind; empty where it has no content.
    pub kind: String,
    /// Something was done to the text afterwards, so that nothing else is known of it.
    pub damaged: bool,
}

impl Sample {
    /// One of them.
    pub fn random(random: &mut impl Rng) -> Self {
        let kind = match random.random_range(0..8) {
            0 => word(random),
            1..4 => "message".to_owned(),
            4 => "callback_query".to_owned(),
            _ => (*UPDATE_KINDS.choose(random).expect("there are some")).to_owned(),
        };
        let mut fields = Vec::new();
        if random.random_bool(0.95) {
            fields.push((name("update_id", random), number(random)));
        }
        if random.random_bool(0.97) {
            fields.push((name(&kind, random), content(random, 0)));
        }
        // A field that a later Bot API may put beside the content.
        let second = random.random_bool(0.05);
        let has_content = fields.iter().any(|(key, _)| !is_id(key));
        if fields.len() > 1 && random.random_bool(0.3) {
            fields.swap(0, 1);
        }
        if second && has_content {
            fields.push(("\"beside\"".to_owned(), content(random, 1)));
        }
        let mut text = object(fields, random);
        let damaged = random.random_bool(0.03);
        if damaged {
            damage(&mut text, random);
        }
        Self { text, kind: if has_content { kind } else { String::new() }, damaged }
    }
}

fn is_id(key: &str) -> bool {
    serde_json::from_str::<String>(key).is_ok_and(|key| key == "update_id")
}

/// What the host is to read, if a `Value` can be made of the text and is an object.
#[must_use]
pub fn expected(sample: &Sample) -> Option<UpdateView<'static>> {
    if sample.damaged {
        return None;
    }
    let update: Value = serde_json::from_str(&sample.text).ok()?;
    let update = update.as_object()?;
    let mut view = UpdateView {
        id: update.get("update_id").and_then(integer).map(UpdateId),
        kind: sample.kind.clone().into(),
        ..UpdateView::default()
    };
    if sample.kind.is_empty() {
        return Some(view);
    }
    let nothing = Value::Null;
    let content = update.get(&sample.kind).unwrap_or(&nothing);
    let place = content.get("message").unwrap_or(content);
    if let Some(chat) = place.get("chat").or_else(|| content.get("voter_chat")).or_else(|| content.get("actor_chat")) {
        view.chat = chat.get("id").and_then(integer).map(ChatId);
        view.chat_type = chat.get("type").and_then(text);
    }
    if place.get("is_topic_message") == Some(&Value::Bool(true)) {
        view.thread = place.get("message_thread_id").and_then(integer).map(ThreadId);
    }
    view.message_id = place.get("message_id").and_then(integer);
    if let Some(user) = content.get("from").or_else(|| content.get("user")) {
        view.user = user.get("id").and_then(integer).map(UserId);
        view.language = user.get("language_code").and_then(text);
    }
    if content.get("message").is_none() {
        view.text = content.get("text").or_else(|| content.get("caption")).and_then(text);
    }
    view.callback_data = content.get("data").and_then(text);
    if matches!(sample.kind.as_str(), "message" | "channel_post" | "business_message") {
        view.album = content.get("media_group_id").and_then(text).filter(|album| !album.is_empty());
    }
    Some(view)
}

/// Reads it as the host does, and says where that is not what was to be read.
///
/// # Errors
/// The update, and both readings.
pub fn check(sample: &Sample) -> Result<(), String> {
    let read = UpdateView::parse(&sample.text);
    match (expected(sample), read) {
        // What is passed on as it stands is no part of the oracle's reading.
        (Some(expected), Ok(view))
            if (UpdateView { moved: None, chat_object: None, content: "", ..view.clone() }) == expected =>
        {
            // Nor may what is asked of it later fail.
            std::hint::black_box((view.command(), view.defect()));
            Ok(())
        }
        (None, _) => Ok(()),
        (expected, read) => Err(format!("{}\nread: {read:?}\nexpected: {expected:?}", sample.text)),
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.parse().ok().or_else(|| whole(text.parse().ok()?)),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 53 bits")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0).then_some(number as i64)
}

fn text(value: &Value) -> Option<std::borrow::Cow<'static, str>> {
    value.as_str().map(|text| text.to_owned().into())
}

fn content(random: &mut impl Rng, depth: usize) -> String {
    if random.random_bool(0.05) {
        return oddity(random);
    }
    let mut fields = Vec::new();
    for (key, often) in [
        ("message_id", 0.7),
        ("chat", 0.8),
        ("from", 0.8),
        ("user", 0.1),
        ("voter_chat", 0.05),
        ("actor_chat", 0.05),
        ("message", if depth == 0 { 0.15 } else { 0.0 }),
        ("message_thread_id", 0.2),
        ("is_topic_message", 0.2),
        ("text", 0.6),
        ("caption", 0.2),
        ("data", 0.2),
        ("media_group_id", 0.1),
        ("date", 0.5),
    ] {
        if !random.random_bool(often) {
            continue;
        }
        let value = match key {
            _ if random.random_bool(0.04) => oddity(random),
            "chat" | "from" | "user" | "voter_chat" | "actor_chat" => who(random),
            "message" => content(random, depth + 1),
            "is_topic_message" => (*["true", "false"].choose(random).expect("two")).to_owned(),
            "text" | "caption" | "data" | "media_group_id" => string(random),
            _ => number(random),
        };
        fields.push((name(key, random), value.clone()));
        if random.random_bool(0.02) {
            // Twice: the last one counts, for everybody.
            fields.push((name(key, random), string(random)));
        }
    }
    for _ in 0..random.random_range(0..4) {
        fields.push((string(random), oddity(random)));
    }
    object(fields, random)
}

fn who(random: &mut impl Rng) -> String {
    let mut fields = vec![(name("id", random), number(random))];
    if random.random_bool(0.7) {
        let kind = (*["private", "group", "supergroup", "channel"].choose(random).expect("four")).to_owned();
        fields.push((name("type", random), format!("\"{kind}\"")));
    }
    if random.random_bool(0.5) {
        fields.push((name("language_code", random), string(random)));
    }
    fields.push((name("first_name", random), string(random)));
    object(fields, random)
}

/// A number as Telegram writes it, or as nobody should.
fn number(random: &mut impl Rng) -> String {
    let id: i64 = match random.random_range(0..6) {
        0 => random.random_range(-10..10),
        1 => random.random_range(-1_009_999_999_999..-1_000_000_000_000),
        2 => random.random_range(0..(1 << 52)),
        3 => *[i64::MAX, i64::MIN, 1 << 52, -(1 << 53), (1 << 53) + 1, u32::MAX.into()].choose(random).expect("six"),
        _ => random.random_range(1..9_999_999_999),
    };
    match random.random_range(0..40) {
        // With more digits `serde_json` does not hit the nearest float.
        0 => format!("{}.0", id % 100_000_000_000_000),
        1 => format!("{}e{}", id % 1000, random.random_range(0..18)),
        2 => format!("\"{id}\""),
        3 => format!("{}E-{}", id % 100_000, random.random_range(0..9)),
        4 => ["-0", "1e400", "0.5", "18446744073709551616", "-9223372036854775809", "1e-7", "12.0e2"]
            .choose(random)
            .map_or_else(String::new, |text| (*text).to_owned()),
        _ => id.to_string(),
    }
}

fn string(random: &mut impl Rng) -> String {
    let mut text = String::from("\"");
    for _ in 0..random.random_range(0..6) {
        text.push_str(
            [
                "hello",
                "/start",
                " ",
                "@bot",
                "👩‍👩‍👧",
                "\\ud83d\\ude00",
                "\\n",
                "\\\"",
                "\\\\",
                "\\u0041",
                "é",
                "\u{202e}",
                "\\/",
                "{",
                "]",
                "message",
                "7",
                "ў",
                "\u{7f}",
                "\\u0000",
            ]
            .choose(random)
            .expect("some"),
        );
    }
    if random.random_bool(0.01) {
        text.push_str("\\ud83d");
    }
    text.push('"');
    text
}

fn word(random: &mut impl Rng) -> String {
    (*["a_kind_of_next_year", "сообщение", "x", "Message", "message "].choose(random).expect("some")).to_owned()
}

/// A name, now and then with escapes.
fn name(name: &str, random: &mut impl Rng) -> String {
    if !random.random_bool(0.03) {
        return format!("\"{name}\"");
    }
    let escaped: String = name
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if random.random_bool(0.5) => char::from(byte).to_string(),
            _ => format!("\\u{unit:04x}"),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// A value of no particular type.
fn oddity(random: &mut impl Rng) -> String {
    match random.random_range(0..12) {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => "[]".to_owned(),
        3 => "{}".to_owned(),
        4 => format!("[{},{}]", number(random), string(random)),
        5 => format!("{{{}:{}}}", string(random), number(random)),
        6 => {
            let depth = random.random_range(1..400);
            format!("{}{}", "[".repeat(depth), "]".repeat(depth))
        }
        7 => {
            let depth = random.random_range(1..60);
            format!("{}1{}", "{\"message\":".repeat(depth), "}".repeat(depth))
        }
        8 | 9 => string(random),
        _ => number(random),
    }
}

fn object(fields: Vec<(String, String)>, random: &mut impl Rng) -> String {
    let space = if random.random_bool(0.1) { " \n\t" } else { "" };
    let fields: Vec<_> =
        fields.into_iter().map(|(key, value)| format!("{space}{key}{space}:{space}{value}{space}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// As a broken proxy would.
fn damage(text: &mut String, random: &mut impl Rng) {
    let mut bytes = std::mem::take(text).into_bytes();
    match random.random_range(0..3) {
        0 => bytes.truncate(random.random_range(0..bytes.len())),
        1 => {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        _ => bytes.extend_from_slice(b"}"),
    }
    // As intake does: what is no UTF-8 is read as well as it can be.
    *text = String::from_utf8_lossy(&bytes).into_owned();
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn samples(seed: u64, count: usize) -> impl Iterator<Item = Sample> {
        let mut random = StdRng::seed_from_u64(seed);
        std::iter::from_fn(move || Some(Sample::random(&mut random))).take(count)
    }

    /// `cargo xtask bench reading` does the same half a million times.
    #[test]
    fn the_host_reads_what_a_json_value_says() {
        let mut readable = 0;
        for sample in samples(7, 10_000) {
            check(&sample).unwrap_or_else(|problem| panic!("{problem}"));
            readable += usize::from(expected(&sample).is_some_and(|view| view.chat.is_some() && view.user.is_some()));
        }
        assert!(readable > 3_000, "the samples are not only broken ones: {readable}");
    }

    #[test]
    fn threads_read_the_same() {
        std::thread::scope(|scope| {
            for seed in 0..2 {
                scope.spawn(move || {
                    samples(seed, 4_000)
                        .for_each(|sample| check(&sample).unwrap_or_else(|problem| panic!("{problem}")));
                });
            }
        });
    }
}
