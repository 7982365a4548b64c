//! Telegram's HTML, as far as it must be understood to be cut.

#![expect(clippy::string_slice, reason = "cut only beside ASCII characters that were just found there")]

use super::parsed::Parsed;

/// `None` where the tags don't match.
pub(super) fn parse(source: &str) -> Option<Parsed> {
    let mut parsed = Parsed::default();
    let mut open: Vec<(&str, usize)> = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        if rest.starts_with('<') {
            let end = at + tag_length(rest)?;
            let inside = &source[at + 1..end - 1];
            match inside.strip_prefix('/') {
                Some(name) => {
                    let (opened, span) = open.pop()?;
                    let name = name.trim();
                    if !name.is_empty() && !name.eq_ignore_ascii_case(opened) {
                        return None;
                    }
                    parsed.close(at..end, span, format!("</{opened}>"));
                }
                None => {
                    let name = inside.split([' ', '\t', '\n', '\r', '/']).next().filter(|name| !name.is_empty())?;
                    open.push((name, parsed.open(at..end, &source[at..end])));
                }
            }
            at = end;
        } else if let Some((shows, length)) = reference(rest) {
            parsed.escaped(at..at + length, shows.encode_utf8(&mut [0; 4]));
            at += length;
        } else {
            // An ampersand that begins no reference stands for itself.
            let length =
                rest.bytes().skip(1).position(|byte| matches!(byte, b'<' | b'&')).map_or(rest.len(), |n| n + 1);
            parsed.verbatim(at, &rest[..length]);
            at += length;
        }
    }
    open.is_empty().then_some(parsed)
}

/// How long the tag is that begins here. What is in quotes does not end it.
pub(in crate::telegram) fn tag_length(rest: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'>') => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// `&lt;` and the like at the beginning of `rest`: the character, and how many bytes say it.
pub(in crate::telegram) fn reference(rest: &str) -> Option<(char, usize)> {
    let name = rest.strip_prefix('&')?;
    let end = name.bytes().take(10).position(|byte| byte == b';')?;
    let name = &name[..end];
    let shows = match name {
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
            char::from_u32(code.ok()?).filter(|&shows| shows != '\0')?
        }
    };
    Some((shows, end + 2))
}
