//! Names: the snake case of states, and the nearest right name for a wrong one.

/// What a conversation can be.
pub(crate) const KEYS: [&str; 5] = ["chat", "user", "user_in_chat", "topic", "user_in_topic"];

/// The key of a plugin whose events need no order. It keeps no states.
pub(crate) const NO_KEY: &str = "none";

/// The fields of a message that tell what it is made of.
pub(crate) const CONTENTS: [&str; 27] = [
    "text",
    "live_photo",
    "photo",
    "animation",
    "video",
    "audio",
    "voice",
    "video_note",
    "document",
    "sticker",
    "paid_media",
    "story",
    "venue",
    "location",
    "contact",
    "dice",
    "poll",
    "checklist",
    "game",
    "invoice",
    "successful_payment",
    "refunded_payment",
    "rich_message",
    "new_chat_members",
    "left_chat_member",
    "pinned_message",
    "web_app_data",
];

/// `AskSize` becomes `ask_size`: how the host knows a state.
pub(crate) fn snake_case(variant: &str) -> String {
    let mut name = String::with_capacity(variant.len() + 4);
    for (at, letter) in variant.char_indices() {
        if letter.is_uppercase() && at > 0 {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// The known name that was probably meant: at most two letters away, and one in three.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let close = known
        .iter()
        .map(|&other| (distance(name, other), other))
        .filter(|&(away, other)| away > 0 && away <= 2.min(other.len() / 3));
    close.min().map(|(_, other)| other)
}

/// Levenshtein's distance, in one row.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let best = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::KINDS;

    #[test]
    fn states_are_named_in_snake_case() {
        for (variant, name) in [("Idle", "idle"), ("AskSize", "ask_size"), ("V2", "v2"), ("Ü", "ü")] {
            assert_eq!(snake_case(variant), name);
        }
    }

    #[test]
    fn small_slips_are_recognised() {
        assert_eq!(nearest("comand", &["command", "text"]), Some("command"));
        assert_eq!(nearest("mesage", &KINDS), Some("message"));
        assert_eq!(nearest("doc", &["on"]), None);
        assert_eq!(nearest("test", &["text"]), Some("text"));
        assert_eq!(nearest("message", &KINDS), None);
        assert_eq!(nearest("guest_message", &KINDS), None);
    }
}
