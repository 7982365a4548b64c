//! Names: the snake case of states, and the nearest right name for a wrong one.

/// What a conversation can be.
pub(crate) const KEYS: [&str; 5] = ["chat", "user", "user_in_chat", "topic", "user_in_topic"];

/// The key of a plugin whose events need no order. It keeps no states.
pub(crate) const NO_KEY: &str = "none";

/// The update kinds of the Bot API, as of 10.3, to tell a misspelt kind from a new one.
pub(crate) const KINDS: [&str; 27] = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "guest_message",
    "managed_bot",
    "subscription",
    "stopped_message_generation",
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
