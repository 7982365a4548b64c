//! What the bot should have done and what it did, side by side; pure.
//!
//! Within a chat the order counts; between chats there is none. Answers to pressed buttons overtake messages at Telegram
//! too, so they are a row of their own.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::known::named;
use super::script::What;

/// One thing that the bot did.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Deed {
    /// The title of its chat.
    pub(super) chat: Option<String>,
    pub(super) what: Done,
    pub(super) refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Done {
    Says { text: String, buttons: Vec<Vec<String>> },
    Edits { text: String, buttons: Vec<Vec<String>> },
    Answers(String),
    Calls { method: String, params: Json },
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Diff {
    Same(String),
    /// Expected, and not there.
    Missing(String),
    /// There, and not expected.
    Unexpected(String),
}

/// What is expected and what was done in one chat; answers are apart.
type Row<'a> = (Vec<&'a (String, What)>, Vec<&'a Deed>);

/// `None` when everything is as it should be. `here` is the chat of those whose place is not told.
pub(super) fn compare(expected: &[(String, What)], done: &[Deed], here: &str) -> Option<Vec<Diff>> {
    let mut rows: BTreeMap<(bool, &str), Row<'_>> = BTreeMap::new();
    for item in expected {
        rows.entry((matches!(item.1, What::Answers(_)), &item.0)).or_default().0.push(item);
    }
    for deed in done {
        let chat = deed.chat.as_deref().unwrap_or(here);
        rows.entry((matches!(deed.what, Done::Answers(_)), chat)).or_default().1.push(deed);
    }
    // `...` stands for whatever is done there, answers too.
    let open: Vec<String> =
        expected.iter().filter(|(_, what)| *what == What::Anything).map(|(chat, _)| chat.clone()).collect();
    for ((is_answers, chat), (expected, done)) in &mut rows {
        if *is_answers && open.iter().any(|open| open == chat) {
            done.retain(|deed| expected.iter().any(|(_, what)| fits(what, deed)));
        }
    }
    let mut all_fit = true;
    let mut diff = Vec::new();
    for ((_, chat), (expected, done)) in &rows {
        all_fit &= all_match(expected, done);
        diff.extend(side_by_side(expected, done, if *chat == here { None } else { Some(chat) }));
    }
    (!all_fit).then_some(diff)
}

fn all_match(expected: &[&(String, What)], done: &[&Deed]) -> bool {
    match (expected.split_first(), done.split_first()) {
        (None, None) => true,
        (Some(((_, What::Anything), rest)), _) => {
            (0..=done.len()).any(|skipped| all_match(rest, done.get(skipped..).unwrap_or_default()))
        }
        (Some(((_, what), rest)), Some((deed, others))) => fits(what, deed) && all_match(rest, others),
        _ => false,
    }
}

/// The longest common row of both, and what stands between.
fn side_by_side(expected: &[&(String, What)], done: &[&Deed], chat: Option<&str>) -> Vec<Diff> {
    let (n, m) = (expected.len(), done.len());
    let pair = |i: usize, j: usize| fits(&expected[i].1, done[j]);
    let mut longest = vec![vec![0; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            longest[i][j] =
                if pair(i, j) { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut diff) = (0, 0, Vec::new());
    while i < n || j < m {
        if i < n && expected[i].1 == What::Anything {
            diff.push(Diff::Same("...".to_owned()));
            i += 1;
        } else if i < n && j < m && pair(i, j) {
            diff.push(Diff::Same(done[j].show(chat)));
            (i, j) = (i + 1, j + 1);
        } else if i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1]) {
            diff.push(Diff::Missing(show(&expected[i].1, chat)));
            i += 1;
        } else {
            diff.push(Diff::Unexpected(done[j].show(chat)));
            j += 1;
        }
    }
    diff
}

pub(super) fn fits(what: &What, deed: &Deed) -> bool {
    if let Some(refused) = &deed.refused {
        return matches!(what, What::Refused(pattern) if matches(pattern, refused));
    }
    let same_buttons = |wanted: &Option<Vec<Vec<String>>>, buttons: &[Vec<String>]| {
        let same_row = |(wanted, row): (&Vec<String>, &Vec<String>)| {
            wanted.len() == row.len() && wanted.iter().zip(row).all(|(pattern, label)| matches(pattern, label))
        };
        wanted.as_ref().is_none_or(|rows| rows.len() == buttons.len() && rows.iter().zip(buttons).all(same_row))
    };
    match (what, &deed.what) {
        (What::Says { text: pattern, buttons: wanted }, Done::Says { text, buttons })
        | (What::Edits { text: pattern, buttons: wanted }, Done::Edits { text, buttons }) => {
            matches(pattern, text) && same_buttons(wanted, buttons)
        }
        (What::Answers(pattern), Done::Answers(text)) => matches(pattern, text),
        (What::Calls { method, params: wanted }, Done::Calls { method: called, params }) => {
            method.eq_ignore_ascii_case(called) && wanted.as_ref().is_none_or(|wanted| holds(params, wanted))
        }
        _ => false,
    }
}

/// True if all that is wanted is there; there may be more in objects. Texts are patterns.
fn holds(there: &Json, wanted: &Json) -> bool {
    match (there, wanted) {
        (Json::Object(there), Json::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| there.get(key).is_some_and(|there| holds(there, wanted)))
        }
        (Json::Array(there), Json::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| holds(there, wanted))
        }
        (Json::String(there), Json::String(wanted)) => matches(wanted, there),
        (there, wanted) => there == wanted,
    }
}

/// `*` stands for anything, and so does `${name}`; `\*` for a star, `\$` for a dollar, `\[` for a bracket that begins a
/// line, `\\` for a backslash.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    capture(pattern, text).is_some()
}

/// What the names of a pattern stand for in a text that fits it.
pub(super) fn capture(pattern: &str, text: &str) -> Option<Vec<(String, String)>> {
    let (mut pieces, mut names) = (vec![String::new()], Vec::new());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let piece = pieces.last_mut().expect("there is always one");
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match (c, after.chars().next(), named(rest)) {
            ('\\', Some(special @ ('*' | '\\' | '[' | '$')), _) => {
                piece.push(special);
                after.get(1..).unwrap_or_default()
            }
            ('*', ..) => {
                pieces.push(String::new());
                names.push("");
                after
            }
            (_, _, Some((name, behind))) => {
                pieces.push(String::new());
                names.push(name);
                behind
            }
            _ => {
                piece.push(c);
                after
            }
        };
    }
    let text = text.trim_end();
    let (first, others) = pieces.split_first().expect("there is always one");
    let Some((last, middle)) = others.split_last() else { return (text == first.trim_end()).then(Vec::new) };
    let mut left = text.strip_prefix(first.as_str())?;
    let mut found = Vec::new();
    for piece in middle {
        let (between, behind) = left.split_once(piece.as_str())?;
        found.push(between);
        left = behind;
    }
    found.push(left.strip_suffix(last.as_str())?);
    let found = names.into_iter().zip(found).filter(|(name, _)| !name.is_empty());
    Some(found.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn show(what: &What, chat: Option<&str>) -> String {
    match what {
        What::Says { text, buttons } => message("", chat, text, buttons.as_deref()),
        What::Edits { text, buttons } => message(" edits", chat, text, buttons.as_deref()),
        What::Answers(text) => message(" answers", chat, text, None),
        What::Calls { method, params } => call(method, params.as_ref()),
        What::Refused(text) => message(" is refused", chat, text, None),
        What::Anything => "...".to_owned(),
    }
}

impl Deed {
    /// As a script would say it.
    pub(super) fn show(&self, chat: Option<&str>) -> String {
        let buttons = |buttons: &Vec<Vec<String>>| if buttons.is_empty() { None } else { Some(buttons.clone()) };
        let shown = match &self.what {
            Done::Says { text, buttons: rows } => message("", chat, text, buttons(rows).as_deref()),
            Done::Edits { text, buttons: rows } => message(" edits", chat, text, buttons(rows).as_deref()),
            Done::Answers(text) => message(" answers", chat, text, None),
            Done::Calls { method, params } => call(method, Some(params)),
        };
        match &self.refused {
            Some(why) => format!("{}\n  # of {shown}", message(" is refused", chat, why, None)),
            None => shown,
        }
    }
}

fn message(verb: &str, chat: Option<&str>, text: &str, buttons: Option<&[Vec<String>]>) -> String {
    let place = chat.map(|chat| format!(" in {chat}")).unwrap_or_default();
    let mut shown = format!("Bot{verb}{place}: {}", text.replace('\n', "\n  "));
    for row in buttons.unwrap_or_default() {
        let row: Vec<String> = row.iter().map(|label| format!("[{label}]")).collect();
        shown += &format!("\n  {}", row.join(" "));
    }
    if buttons.is_some_and(<[_]>::is_empty) {
        shown += "\n  []";
    }
    shown
}

fn call(method: &str, params: Option<&Json>) -> String {
    format!("Bot calls {method} {}", params.map(ToString::to_string).unwrap_or_default()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, fit) in [
            ("hi", "hi", true),
            ("hi", "hi there", false),
            ("*", "", true),
            ("hi*", "hi there", true),
            ("*there", "hi there", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("2 \\* 2", "2 * 2", true),
            ("2 \\* 2", "2 x 2", false),
            ("\\[a]", "[a]", true),
            ("a\\b", "a\\b", true),
            ("é*🦊", "éé🦊", true),
        ] {
            assert_eq!(matches(pattern, text), fit, "{pattern} {text}");
        }
    }

    fn says(chat: &str, text: &str) -> Deed {
        let what = Done::Says { text: text.to_owned(), buttons: vec![vec!["Yes".to_owned()]] };
        Deed { chat: Some(chat.to_owned()), what, refused: None }
    }

    fn wants(chat: &str, text: &str) -> (String, What) {
        (chat.to_owned(), What::Says { text: text.to_owned(), buttons: None })
    }

    #[test]
    fn order_counts_within_a_chat_only() {
        let done = [says("a", "1"), says("b", "x"), says("a", "2")];
        let fine = |expected: &[(String, What)]| compare(expected, &done, "a").is_none();
        assert!(fine(&[wants("b", "x"), wants("a", "1"), wants("a", "2")]));
        assert!(!fine(&[wants("b", "x"), wants("a", "2"), wants("a", "1")]));
        assert!(!fine(&[wants("b", "x"), wants("a", "1")]), "something more was said");
        let anything = || ("a".to_owned(), What::Anything);
        assert!(fine(&[wants("b", "x"), anything(), wants("a", "2")]));
        assert!(fine(&[wants("b", "x"), wants("a", "1"), anything()]));
        assert!(!fine(&[wants("b", "x"), wants("a", "2"), anything()]));
    }

    #[test]
    fn what_differs_is_shown_beside_what_does_not() {
        let done = [says("a", "1"), says("a", "3")];
        let diff = compare(&[wants("a", "1"), wants("a", "2")], &done, "a").unwrap();
        let line = |text: &str| format!("Bot: {text}\n  [Yes]");
        assert_eq!(diff, [Diff::Same(line("1")), Diff::Missing("Bot: 2".to_owned()), Diff::Unexpected(line("3"))],);
        let buttons = Some(vec![vec!["No".to_owned()]]);
        let wrong_button = ("a".to_owned(), What::Says { text: "1".to_owned(), buttons });
        assert!(compare(&[wrong_button, wants("a", "3")], &done, "a").is_some());
    }

    #[test]
    fn a_refusal_is_never_what_was_expected_unless_it_is_written() {
        let refused = Deed { refused: Some("chat not found".to_owned()), ..says("a", "1") };
        assert!(compare(&[wants("a", "1")], std::slice::from_ref(&refused), "a").is_some());
        let expected = ("a".to_owned(), What::Refused("*not found".to_owned()));
        assert_eq!(compare(&[expected], &[refused], "a"), None);
    }

    #[test]
    fn parameters_may_be_more_than_is_asked_for() {
        let there = serde_json::json!({ "a": 1, "b": [{ "c": "hello", "d": 2 }] });
        for (wanted, fit) in [
            (serde_json::json!({ "a": 1 }), true),
            (serde_json::json!({ "b": [{ "c": "h*" }] }), true),
            (serde_json::json!({ "b": [] }), false),
            (serde_json::json!({ "a": 2 }), false),
            (serde_json::json!({ "x": null }), false),
        ] {
            assert_eq!(holds(&there, &wanted), fit, "{wanted}");
        }
    }
}
