//! `parse_mode=MarkdownV2` and the older `Markdown`.

#![expect(clippy::string_slice, reason = "the cursor moves by whole characters")]

use super::Formatted;

const RESERVED: &str = "_*[]()~`>#+-=|{}.!";

/// An entity that is open.
struct Open {
    kind: &'static str,
    start: usize,
    /// Byte offset of its mark.
    at: usize,
    language: Option<String>,
}

/// The characters of the source, looked at from a moving place.
struct Cursor<'a> {
    source: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let there = self.rest().starts_with(mark);
        if there {
            self.at += mark.len();
        }
        there
    }
}

/// Reads MarkdownV2.
pub(super) fn parse_v2(source: &str) -> Result<Formatted, String> {
    let mut cursor = Cursor { source, at: 0 };
    let mut out = Formatted::default();
    let mut open: Vec<Open> = Vec::new();
    let mut line_start = true;
    loop {
        let at = cursor.at;
        let top = open.last().map_or("", |entity| entity.kind);
        let verbatim = matches!(top, "code" | "pre");
        let was_line_start = std::mem::replace(&mut line_start, false);
        let Some(c) = cursor.next() else { break };
        if c == '\\'
            && let Some(escaped) = cursor.rest().chars().next().filter(|&c| c.is_ascii() && c != '\0')
        {
            cursor.next();
            out.push(escaped);
            continue;
        }
        if c == '\n' {
            let continues = cursor.rest().starts_with('>') || cursor.rest().starts_with("**>");
            if top == "blockquote" && !continues {
                close(&mut out, open.pop());
            }
            out.push(c);
            line_start = true;
            continue;
        }
        if verbatim && c != '`' || !RESERVED.contains(c) {
            out.push(c);
            continue;
        }
        if was_line_start && c == '>' {
            if top != "blockquote" {
                open.push(Open { kind: "blockquote", start: out.units, at, language: None });
            }
            continue;
        }
        // Ends what is open, if this is its mark.
        let mark = match top {
            "bold" => "*",
            "italic" if cursor.rest().starts_with('_') => "\0",
            "italic" => "_",
            "underline" => "__",
            "strikethrough" => "~",
            "spoiler" => "||",
            "code" => "`",
            "pre" => "```",
            "text_link" | "custom_emoji" => "]",
            _ => "\0",
        };
        cursor.at = at;
        if cursor.eat(mark) {
            let entity = open.pop().expect("a mark is looked for only where one is open");
            if mark == "]" {
                end_link(&mut cursor, &mut out, entity)?
            } else {
                close(&mut out, Some(entity))
            }
            continue;
        }
        if verbatim {
            cursor.next();
            out.push(c);
            continue;
        }
        let started = [
            ("__", "underline"),
            ("_", "italic"),
            ("*", "bold"),
            ("~", "strikethrough"),
            ("||", "spoiler"),
            ("```", "pre"),
            ("`", "code"),
            ("[", "text_link"),
            ("![", "custom_emoji"),
        ]
        .into_iter()
        .find(|(mark, _)| cursor.eat(mark));
        let Some((_, kind)) = started else {
            return Err(format!("Character '{c}' is reserved and must be escaped with the preceding '\\'"));
        };
        let language = if kind == "pre" { language(&mut cursor) } else { None };
        open.push(Open { kind, start: out.units, at, language });
    }
    while open.last().is_some_and(|entity| entity.kind == "blockquote") {
        close(&mut out, open.pop());
    }
    match open.pop() {
        Some(entity) => Err(format!("Can't find end of {} entity at byte offset {}", title(entity.kind), entity.at)),
        None => Ok(out),
    }
}

fn title(kind: &str) -> &'static str {
    match kind {
        "bold" => "Bold",
        "italic" => "Italic",
        "underline" => "Underline",
        "strikethrough" => "Strikethrough",
        "spoiler" => "Spoiler",
        "code" => "Code",
        "pre" => "Pre",
        "custom_emoji" => "CustomEmoji",
        _ => "TextUrl",
    }
}

fn close(out: &mut Formatted, entity: Option<Open>) {
    let Some(entity) = entity else { return };
    if let Some(closed) = out.close(entity.kind, entity.start) {
        closed.language = entity.language;
    }
}

/// The word after the opening of a code block, if a line break follows; that line break is no part of the code.
fn language(cursor: &mut Cursor<'_>) -> Option<String> {
    let (line, _) = cursor.rest().split_once('\n')?;
    if line.contains(|c: char| c.is_whitespace() || c == '`') {
        return None;
    }
    let language = line.to_owned();
    cursor.at += language.len() + 1;
    (!language.is_empty()).then_some(language)
}

/// Reads `(address)` after a link's text.
fn end_link(cursor: &mut Cursor<'_>, out: &mut Formatted, entity: Open) -> Result<(), String> {
    if !cursor.eat("(") {
        return close_link(out, entity, "");
    }
    let begin = cursor.at - 1;
    let mut url = String::new();
    loop {
        match cursor.next() {
            Some(')') => return close_link(out, entity, &url),
            Some('\\') => url.extend(cursor.next()),
            Some(c) => url.push(c),
            None => return Err(format!("Can't find end of a URL at byte offset {begin}")),
        }
    }
}

fn close_link(out: &mut Formatted, entity: Open, url: &str) -> Result<(), String> {
    if entity.kind == "custom_emoji" {
        let id = url.split_once("id=").map(|(_, id)| id.to_owned());
        let id = id.ok_or("Custom emoji URL must have an emoji identifier")?;
        if let Some(closed) = out.close("custom_emoji", entity.start) {
            closed.custom_emoji_id = Some(id);
        }
    } else if url.contains(['.', ':'])
        && let Some(closed) = out.close("text_link", entity.start)
    {
        closed.url = Some(url.to_owned());
    }
    Ok(())
}

/// Reads the older Markdown: no nesting, four marks.
pub(super) fn parse_legacy(source: &str) -> Result<Formatted, String> {
    let mut cursor = Cursor { source, at: 0 };
    let mut out = Formatted::default();
    loop {
        let at = cursor.at;
        let Some(c) = cursor.next() else { return Ok(out) };
        if c == '\\' && cursor.rest().starts_with(['_', '*', '`', '[']) {
            out.push(cursor.next().expect("looked at above"));
            continue;
        }
        let (kind, end) = match c {
            '*' => ("bold", "*"),
            '_' => ("italic", "_"),
            '`' if cursor.eat("``") => ("pre", "```"),
            '`' => ("code", "`"),
            '[' => ("text_link", "]"),
            _ => {
                out.push(c);
                continue;
            }
        };
        let language = if kind == "pre" { language(&mut cursor) } else { None };
        let entity = Open { kind, start: out.units, at, language };
        while !cursor.eat(end) {
            let inner = cursor.next();
            out.push(inner.ok_or_else(|| format!("Can't find end of the entity starting at byte offset {at}"))?);
        }
        if kind == "text_link" { end_link(&mut cursor, &mut out, entity)? } else { close(&mut out, Some(entity)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities(out: &Formatted) -> Vec<(&str, usize, usize)> {
        out.entities.iter().map(|entity| (entity.kind.as_str(), entity.offset, entity.length)).collect()
    }

    #[test]
    fn marks_become_entities() {
        for (source, text, expected) in [
            ("*a* _b_", "a b", vec![("bold", 0, 1), ("italic", 2, 1)]),
            ("😀 __u__ ~s~ ||p||", "😀 u s p", vec![("underline", 3, 1), ("strikethrough", 5, 1), ("spoiler", 7, 1)]),
            ("*_x_*", "x", vec![("italic", 0, 1), ("bold", 0, 1)]),
            ("`a*b.c`", "a*b.c", vec![("code", 0, 5)]),
            ("```rust\nlet a = 1;\n```", "let a = 1;\n", vec![("pre", 0, 11)]),
            ("1\\.5\\!", "1.5!", vec![]),
            (">q\n>r\nend", "q\nr\nend", vec![("blockquote", 0, 3)]),
        ] {
            let out = parse_v2(source).unwrap();
            assert_eq!(out.text, text, "{source}");
            assert_eq!(entities(&out), expected, "{source}");
        }
        let link = parse_v2("[t](https://a.example/\\))").unwrap();
        assert_eq!(link.entities[0].url.as_deref(), Some("https://a.example/)"));
    }

    #[test]
    fn errors_are_telegrams() {
        for (source, error) in [
            ("1.5", "Character '.' is reserved and must be escaped with the preceding '\\'"),
            ("é *x", "Can't find end of Bold entity at byte offset 3"),
            ("`x", "Can't find end of Code entity at byte offset 0"),
            ("[x](y", "Can't find end of a URL at byte offset 3"),
        ] {
            assert_eq!(parse_v2(source).unwrap_err(), error, "{source}");
        }
        assert_eq!(parse_legacy("a *b").unwrap_err(), "Can't find end of the entity starting at byte offset 2");
    }

    #[test]
    fn the_older_markdown_does_not_nest() {
        let out = parse_legacy("*a_b* \\*c 1.5").unwrap();
        assert_eq!(out.text, "a_b *c 1.5");
        assert_eq!(entities(&out), [("bold", 0, 3)]);
    }
}
