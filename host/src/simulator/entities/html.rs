//! `parse_mode=HTML`.

#![expect(clippy::string_slice, reason = "cut only beside ASCII characters that were just found there")]

use super::Formatted;

/// An element that is open.
struct Open<'a> {
    tag: &'a str,
    start: usize,
    attribute: Option<String>,
}

/// The text without tags, and an entity for each of them.
pub(super) fn parse(source: &str) -> Result<Formatted, String> {
    let mut out = Formatted::default();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut at = 0;
    while let Some(c) = source.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = &source[at..];
        match c {
            '&' => {
                let (decoded, length) = reference(rest).unwrap_or(('&', 1));
                out.push(decoded);
                at += length;
            }
            '<' if rest.starts_with("</") => {
                let end = rest.find('>').ok_or_else(|| format!("Unclosed end tag at byte offset {at}"))?;
                let name = rest[2..end].trim();
                let element = open.pop().ok_or_else(|| format!("Unexpected end tag at byte offset {at}"))?;
                if !name.is_empty() && !name.eq_ignore_ascii_case(element.tag) {
                    return Err(format!(
                        "Unmatched end tag at byte offset {at}, expected \"</{}>\", found \"</{name}>\"",
                        element.tag.to_ascii_lowercase()
                    ));
                }
                close(&mut out, element, open.last());
                at += end + 1;
            }
            '<' => {
                let end = rest.find('>').ok_or_else(|| format!("Unclosed start tag at byte offset {at}"))?;
                open.push(start_tag(&rest[1..end], at, out.units)?);
                at += end + 1;
            }
            _ => {
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    match open.pop() {
        Some(element) => {
            Err(format!("Can't find end tag corresponding to start tag \"{}\"", element.tag.to_ascii_lowercase()))
        }
        None => Ok(out),
    }
}

fn start_tag(inside: &str, at: usize, start: usize) -> Result<Open<'_>, String> {
    let inside = inside.trim_end_matches('/');
    let length = inside.find(|c: char| c.is_whitespace()).unwrap_or(inside.len());
    let (tag, attributes) = inside.split_at(length);
    let wanted = match tag.to_ascii_lowercase().as_str() {
        "b" | "strong" | "i" | "em" | "u" | "ins" | "s" | "strike" | "del" | "pre" | "tg-spoiler" => None,
        "a" => Some("href"),
        "span" | "code" => Some("class"),
        "tg-emoji" => Some("emoji-id"),
        "blockquote" => Some("expandable"),
        other => return Err(format!("Unsupported start tag \"{other}\" at byte offset {at}")),
    };
    let attribute = wanted.and_then(|name| attribute(attributes, name));
    if tag.eq_ignore_ascii_case("span") && attribute.as_deref() != Some("tg-spoiler") {
        return Err(format!("Tag \"span\" must have class \"tg-spoiler\" at byte offset {at}"));
    }
    Ok(Open { tag, start, attribute })
}

fn close(out: &mut Formatted, element: Open<'_>, parent: Option<&Open<'_>>) {
    let kind = match element.tag.to_ascii_lowercase().as_str() {
        "b" | "strong" => "bold",
        "i" | "em" => "italic",
        "u" | "ins" => "underline",
        "s" | "strike" | "del" => "strikethrough",
        "span" | "tg-spoiler" => "spoiler",
        "pre" => "pre",
        "code" => "code",
        "tg-emoji" => "custom_emoji",
        "blockquote" if element.attribute.is_some() => "expandable_blockquote",
        "blockquote" => "blockquote",
        _ => "text_link",
    };
    // `<pre><code class="language-x">` is one entity.
    let language = element.attribute.as_deref().and_then(|class| class.strip_prefix("language-"));
    if kind == "code" && parent.is_some_and(|parent| parent.tag.eq_ignore_ascii_case("pre")) {
        if let Some(entity) = out.close("code", element.start) {
            entity.language = language.map(str::to_owned);
        }
        return;
    }
    if kind == "pre" {
        let inner = out.entities.iter().position(|entity| entity.kind == "code" && entity.offset == element.start);
        let language = inner.and_then(|at| out.entities.remove(at).language);
        if let Some(entity) = out.close("pre", element.start) {
            entity.language = language;
        }
        return;
    }
    if kind == "text_link" {
        // A link without an address is a link to its own text, if that is one.
        let Some(url) = element.attribute.filter(|url| url.contains("://") || url.contains('.')) else { return };
        if let Some(entity) = out.close(kind, element.start) {
            entity.url = Some(url);
        }
        return;
    }
    if let Some(entity) = out.close(kind, element.start)
        && kind == "custom_emoji"
    {
        entity.custom_emoji_id = element.attribute;
    }
}

/// The value of an attribute, with its references decoded; one without a value is empty.
fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes.trim();
    while !rest.is_empty() {
        let length = rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=').map(str::trim_start) else {
            if name.eq_ignore_ascii_case(wanted) {
                return Some(String::new());
            }
            rest = after;
            continue;
        };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_once(char::is_whitespace).unwrap_or((value, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(decode(value));
        }
        rest = after.trim_start();
    }
    None
}

fn decode(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (decoded, length) = if c == '&' { reference(rest).unwrap_or(('&', 1)) } else { (c, c.len_utf8()) };
        out.push(decoded);
        rest = &rest[length..];
    }
    out
}

/// `&lt;` and the like at the beginning of `rest`: the character and how many bytes say it.
fn reference(rest: &str) -> Option<(char, usize)> {
    let end = rest.char_indices().take(10).find(|&(_, c)| c == ';').map(|(at, _)| at)?;
    let name = &rest[1..end];
    let decoded = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?).filter(|&c| c != '\0')?
        }
    };
    Some((decoded, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_entities() {
        for (source, text, kind, offset, length) in [
            ("a<b>b</b>", "ab", "bold", 1, 1),
            ("<STRONG>x</strong>", "x", "bold", 0, 1),
            ("😀<em>ü</em>", "😀ü", "italic", 2, 1),
            ("<span class=\"tg-spoiler\">x</span>", "x", "spoiler", 0, 1),
            ("<pre>a\nb</pre>", "a\nb", "pre", 0, 3),
            ("<blockquote expandable>q</blockquote>", "q", "expandable_blockquote", 0, 1),
            ("&lt;b&gt;<u>&amp;</u>&unknown; &#x1F600;", "<b>&&unknown; 😀", "underline", 3, 1),
        ] {
            let out = parse(source).unwrap();
            assert_eq!(out.text, text, "{source}");
            let [entity] = &out.entities[..] else { panic!("{source}: {:?}", out.entities) };
            assert_eq!((entity.kind.as_str(), entity.offset, entity.length), (kind, offset, length), "{source}");
        }
    }

    #[test]
    fn attributes_are_kept() {
        let link = parse("<a href='https://a.example/?x=1&amp;y=2'>here</a>").unwrap();
        assert_eq!(link.entities[0].url.as_deref(), Some("https://a.example/?x=1&y=2"));
        let code = parse("<pre><code class=\"language-rust\">fn</code></pre>").unwrap();
        assert_eq!(code.entities.len(), 1);
        assert_eq!((code.entities[0].kind.as_str(), code.entities[0].language.as_deref()), ("pre", Some("rust")));
    }

    #[test]
    fn errors_are_telegrams() {
        for (source, error) in [
            ("<x>", "Unsupported start tag \"x\" at byte offset 0"),
            ("é<b", "Unclosed start tag at byte offset 2"),
            ("a < b", "Unclosed start tag at byte offset 2"),
            ("<b>x", "Can't find end tag corresponding to start tag \"b\""),
            ("x</b>", "Unexpected end tag at byte offset 1"),
            ("<b>x</i>", "Unmatched end tag at byte offset 4, expected \"</b>\", found \"</i>\""),
            ("<b>x</b", "Unclosed end tag at byte offset 4"),
            ("<span>x</span>", "Tag \"span\" must have class \"tg-spoiler\" at byte offset 0"),
        ] {
            assert_eq!(parse(source).unwrap_err(), error, "{source}");
        }
    }
}
