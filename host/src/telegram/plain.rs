//! A call without its markup, for one whose markup Telegram could not read; pure.
//!
//! The markup is broken, so nothing is parsed: of HTML the tags that Telegram knows are taken away and references are
//! resolved, of Markdown the escapes are. Everything else may be what somebody wrote, and stays.

#![expect(clippy::string_slice, reason = "cut only beside ASCII characters that were just found there")]

use serde_json::{Map, Value};

use super::split::{Limits, Markup, reference, tag_length, units};

const TAGS: [&str; 17] = [
    "a",
    "b",
    "blockquote",
    "code",
    "del",
    "em",
    "i",
    "ins",
    "pre",
    "s",
    "span",
    "strike",
    "strong",
    "tg-emoji",
    "tg-spoiler",
    "tg-time",
    "u",
];
/// A longer one is none: looking for the end of many that have none must not take long.
const LONGEST_TAG: usize = 4096;
const TEXTS: [(&str, &str, usize); 2] =
    [("text", "entities", Limits::TEXT), ("caption", "caption_entities", Limits::CAPTION)];

/// The parameters without markup; `None` where there is none.
#[must_use]
pub fn plain(params: &str) -> Option<String> {
    let mut params: Map<String, Value> = serde_json::from_str(params).ok()?;
    let mut has_changed = strip(&mut params);
    match params.get_mut("media") {
        Some(Value::Object(item)) => has_changed |= strip(item),
        Some(Value::Array(items)) => {
            for item in items.iter_mut().filter_map(Value::as_object_mut) {
                has_changed |= strip(item);
            }
        }
        _ => {}
    }
    has_changed.then(|| Value::Object(params).to_string())
}

/// Takes the markup from what has a text or a caption; false where there is none.
fn strip(object: &mut Map<String, Value>) -> bool {
    let parse_mode = object.remove("parse_mode");
    let markup = Markup::of(parse_mode.as_ref()).unwrap_or(Markup::None);
    let mut has_changed = parse_mode.is_some();
    for (name, entities, limit) in TEXTS {
        has_changed |= object.remove(entities).is_some();
        if let Some(Value::String(text)) = object.get_mut(name) {
            *text = match markup {
                Markup::None => continue,
                Markup::Html => html(text, true, limit),
                Markup::MarkdownV2 => unescaped(text, |c| c.is_ascii() && c != '\0'),
                Markup::Markdown => unescaped(text, |c| matches!(c, '_' | '*' | '`' | '[')),
            };
        }
    }
    has_changed
}

/// Where links lead is written behind them, if there is room.
fn html(source: &str, with_links: bool, limit: usize) -> String {
    let mut out = String::new();
    let mut link: Option<(usize, String)> = None;
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if let Some(tag) = tag(rest) {
            if let Some(address) = address(tag) {
                link = Some((out.len(), address));
            } else if tag.eq_ignore_ascii_case("</a>")
                && let Some((start, address)) = link.take().filter(|_| with_links)
                && out[start..] != address
            {
                out.push_str(&format!(" ({address})"));
            }
            at += tag.len();
        } else {
            let (shows, length) = reference(rest).unwrap_or((c, c.len_utf8()));
            out.push(shows);
            at += length;
        }
    }
    if with_links && units(&out) > limit { html(source, false, limit) } else { out }
}

/// The tag that begins here, if it is one of Telegram's.
fn tag(rest: &str) -> Option<&str> {
    let rest = &rest[..rest.floor_char_boundary(LONGEST_TAG)];
    let inside = rest.strip_prefix('<')?;
    let name = inside.strip_prefix('/').unwrap_or(inside);
    let length = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))?;
    TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(&name[..length])).then_some(())?;
    Some(&rest[..tag_length(rest)?])
}

/// What `<a href="…">` links to.
fn address(tag: &str) -> Option<String> {
    let attributes = tag.get(..3).filter(|start| start.eq_ignore_ascii_case("<a ")).map(|_| &tag[3..tag.len() - 1])?;
    let value =
        attributes.trim_start().get(4..).filter(|_| attributes.trim_start()[..4].eq_ignore_ascii_case("href"))?;
    let value = value.trim_start().strip_prefix('=')?.trim();
    let value = value.strip_prefix(['"', '\'']).and_then(|value| value.strip_suffix(['"', '\''])).unwrap_or(value);
    Some(html(value, false, 0)).filter(|address| !address.is_empty())
}

fn unescaped(text: &str, is_escapable: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.next_if(|next| c == '\\' && is_escapable(*next)) {
            Some(escaped) => out.push(escaped),
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn markup_goes_and_what_was_written_stays() {
        for (parse_mode, text, expected) in [
            ("HTML", "<b>a</b> < b &amp; c <script>", "a < b & c <script>"),
            ("html", "<b>a <i>b</b> <U>c", "a b c"),
            ("HTML", "<a href=\"https://a.example/?x=1&amp;y\">here</a>!", "here (https://a.example/?x=1&y)!"),
            ("HTML", "<a href='https://a.example/'>https://a.example/</a>", "https://a.example/"),
            ("HTML", "<pre><code class=\"language-rust\">a > b</code></pre", "a > b</pre"),
            ("HTML", "<a", "<a"),
            ("HTML", "<a hré=1>x", "x"),
            ("MarkdownV2", "1\\.5 *a. [b](c)", "1.5 *a. [b](c)"),
            ("Markdown", "a\\_b \\. _c", "a_b \\. _c"),
            ("", "<b>\\_", "<b>\\_"),
        ] {
            let params = json!({ "chat_id": 7, "text": text, "parse_mode": parse_mode }).to_string();
            let plain: Value = serde_json::from_str(&plain(&params).unwrap()).unwrap();
            assert_eq!(plain, json!({ "chat_id": 7, "text": expected }), "{text}");
        }
    }

    #[test]
    fn links_are_written_out_only_where_there_is_room() {
        let text = format!("{}<a href=\"https://a.example/\">here</a>", "x".repeat(1015));
        let params = json!({ "caption": text, "parse_mode": "HTML" }).to_string();
        let plain: Value = serde_json::from_str(&plain(&params).unwrap()).unwrap();
        assert_eq!(plain["caption"], "x".repeat(1015) + "here");
    }

    #[test]
    fn entities_and_media_are_looked_at_too() {
        let params = json!({ "text": "a", "entities": [{ "type": "bold" }] }).to_string();
        assert_eq!(plain(&params).as_deref(), Some(r#"{"text":"a"}"#));
        let params = json!({ "media": [{ "caption": "<b>a", "parse_mode": "HTML" }, {}] }).to_string();
        assert_eq!(plain(&params).as_deref(), Some(r#"{"media":[{"caption":"a"},{}]}"#));
        assert_eq!(plain(r#"{"text":"a","media":7}"#), None);
        assert_eq!(plain("x"), None);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(text in "[<>/a-c&;#\"'= é😀\\\\*_]{0,40}", mode in 0_usize..3) {
            let mode = ["HTML", "MarkdownV2", "Markdown"][mode];
            let params = json!({ "text": text, "parse_mode": mode });
            prop_assert!(plain(&params.to_string()).is_some());
        }
    }
}
