//! Formatted text: what is found in plain text by itself, and what `parse_mode` marks.
//!
//! Offsets and lengths count UTF-16 units. Errors are worded as Telegram words them after “can't parse entities: ”,
//! with byte offsets into what the bot sent.

mod html;
mod markdown;

use super::model::Entity;

/// Text without its markup, and what the markup said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Formatted {
    pub(super) text: String,
    pub(super) entities: Vec<Entity>,
    units: usize,
}

impl Formatted {
    fn push(&mut self, c: char) {
        self.text.push(c);
        self.units += c.len_utf16();
    }

    /// Ends an entity that began at `start`; an empty one does not count.
    fn close(&mut self, kind: &str, start: usize) -> Option<&mut Entity> {
        if self.units == start {
            return None;
        }
        self.entities.push(Entity::new(kind, start, self.units - start));
        self.entities.last_mut()
    }

    /// Cuts white space off both ends, as Telegram does, and puts the entities in order.
    fn trimmed(mut self) -> Self {
        let lead = self.text.len() - self.text.trim_start().len();
        let lead: usize = self.text.drain(..lead).map(char::len_utf16).sum();
        self.text.truncate(self.text.trim_end().len());
        let units = units(&self.text);
        self.entities.retain_mut(|entity| {
            let end = (entity.offset + entity.length).saturating_sub(lead).min(units);
            entity.offset = entity.offset.saturating_sub(lead);
            entity.length = end.saturating_sub(entity.offset);
            entity.length > 0
        });
        self.entities.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
        self
    }
}

/// The length of a text as Telegram counts it for offsets.
pub(super) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// What a bot's text comes to: its markup or its list of entities, and what Telegram finds by itself.
pub(super) fn format(text: &str, parse_mode: &str, given: Vec<Entity>) -> Result<Formatted, String> {
    let parsed = match parse_mode.to_ascii_lowercase().as_str() {
        "" => Formatted { text: text.to_owned(), entities: given, units: 0 },
        "html" => html::parse(text)?,
        "markdownv2" => markdown::parse_v2(text)?,
        "markdown" => markdown::parse_legacy(text)?,
        _ => return Err("unsupported parse_mode".to_owned()),
    };
    let mut formatted = parsed.trimmed();
    let marked = formatted.entities.len();
    for found in detect(&formatted.text) {
        let end = found.offset + found.length;
        let overlaps = |entity: &Entity| {
            entity.offset < end
                && found.offset < entity.offset + entity.length
                && matches!(entity.kind.as_str(), "code" | "pre" | "text_link" | "text_mention" | "bot_command" | "url")
        };
        if !formatted.entities[..marked].iter().any(overlaps) {
            formatted.entities.push(found);
        }
    }
    formatted.entities.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
    Ok(formatted)
}

/// Finds commands, mentions, hashtags and links in plain text.
pub(super) fn detect(text: &str) -> Vec<Entity> {
    // All of them have one of these, most texts have none.
    if !text.bytes().any(|byte| matches!(byte, b'/' | b'@' | b'#')) {
        return Vec::new();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut entities = Vec::new();
    let (mut at, mut units) = (0, 0);
    while at < chars.len() {
        let free = at == 0 || !(is_word(chars[at - 1]) || matches!(chars[at - 1], '/' | '<' | '>' | '@'));
        let found = if free { entity_at(&chars[at..]) } else { None };
        let (kind, n_chars) = found.unwrap_or(("", 1));
        let length = chars[at..at + n_chars].iter().map(|c| c.len_utf16()).sum();
        if found.is_some() {
            entities.push(Entity::new(kind, units, length));
        }
        units += length;
        at += n_chars;
    }
    entities
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn run(chars: &[char], accept: impl Fn(char) -> bool) -> usize {
    chars.iter().take_while(|&&c| accept(c)).count()
}

/// The entity that begins exactly here, and how many characters it has.
fn entity_at(chars: &[char]) -> Option<(&'static str, usize)> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let ends = |at: usize| chars.get(at).is_none_or(|&c| !is_word(c) && !matches!(c, '/' | '<' | '>'));
    match chars[0] {
        '/' => {
            let command = run(&chars[1..], name);
            let end = 1 + command;
            let bot = if chars.get(end) == Some(&'@') { run(&chars[end + 1..], name) } else { 0 };
            let end = if (3..=32).contains(&bot) { end + 1 + bot } else { end };
            ((1..=64).contains(&command) && ends(end)).then_some(("bot_command", end))
        }
        '@' => {
            let length = run(&chars[1..], name);
            ((4..=32).contains(&length) && ends(1 + length)).then_some(("mention", 1 + length))
        }
        '#' => {
            let length = run(&chars[1..], is_word);
            let letters = chars[1..=length].iter().any(|c| c.is_alphabetic());
            letters.then_some(("hashtag", 1 + length))
        }
        'h' => {
            let scheme = ["https://", "http://"].iter().find(|scheme| {
                chars.len() > scheme.len() && scheme.chars().zip(chars).all(|(wanted, &c)| wanted == c)
            })?;
            let mut length = run(chars, |c| !c.is_whitespace() && !matches!(c, '<' | '>' | '"'));
            while matches!(chars[length - 1], '.' | ',' | '!' | '?' | ';' | ':' | ')' | '\'') {
                length -= 1;
            }
            (length > scheme.len()).then_some(("url", length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize, usize)> {
        detect(text).into_iter().map(|entity| (entity.kind, entity.offset, entity.length)).collect()
    }

    #[test]
    fn offsets_count_utf16_units() {
        let one = |kind: &str, offset, length| vec![(kind.to_owned(), offset, length)];
        for (text, expected) in [
            ("/start", one("bot_command", 0, 6)),
            ("/start@My_Bot now", one("bot_command", 0, 13)),
            ("👍 /help", one("bot_command", 3, 5)),
            ("👨‍👩‍👧é /help", one("bot_command", 10, 5)),
            ("see /a.", one("bot_command", 4, 2)),
            ("a/b", vec![]),
            ("/usr/bin", vec![]),
            ("//x", vec![]),
            ("</b>", vec![]),
            ("/x>", vec![]),
            ("/", vec![]),
            ("/привет", vec![]),
            ("hi @alice_1!", one("mention", 3, 8)),
            ("me@alice_1", vec![]),
            ("#тег2 x", one("hashtag", 0, 5)),
            ("#12", vec![]),
            ("😀 https://a.example/x?y=1.", one("url", 3, 23)),
            ("http://", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn white_space_at_the_ends_goes_and_entities_follow() {
        let formatted = format(" \n <b> a😀 </b> ", "HTML", Vec::new()).unwrap();
        assert_eq!(formatted.text, "a😀");
        assert_eq!((formatted.entities[0].offset, formatted.entities[0].length), (0, 3));
        assert_eq!(format("  ", "", Vec::new()).unwrap().text, "");
    }

    #[test]
    fn nothing_is_found_inside_code() {
        let kinds =
            |text| format(text, "HTML", Vec::new()).unwrap().entities.into_iter().map(|e| e.kind).collect::<Vec<_>>();
        assert_eq!(kinds("<code>/start</code>"), ["code"]);
        assert_eq!(kinds("<b>/start</b>"), ["bold", "bot_command"]);
    }
}
