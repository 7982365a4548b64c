//! Finding one's way in JSON text: where values begin and end. Checks nothing that it need not; where the text is no
//! JSON it stops looking.

use std::ops::Range;

/// The first value of a text.
pub(crate) fn first(text: &str) -> Range<usize> {
    let start = skip_blank(text.as_bytes(), 0);
    start..value_end(text.as_bytes(), start).unwrap_or(start)
}

/// The value of an object's field.
pub(crate) fn find(object: &str, key: &str) -> Option<Range<usize>> {
    fields(object).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The fields of an object, until something is no JSON. Telegram's names have nothing to escape, so the text between the
/// quotes is the name.
pub(crate) fn fields(object: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let bytes = object.as_bytes();
    let mut at = inside(bytes, b'{');
    std::iter::from_fn(move || {
        let name = at?..string_end(bytes, at?)?;
        let colon = skip_blank(bytes, name.end);
        let start = (bytes.get(colon) == Some(&b':')).then(|| skip_blank(bytes, colon + 1))?;
        let value = start..value_end(bytes, start)?;
        at = next(bytes, value.end);
        Some((object.get(name.start + 1..name.end - 1)?, value))
    })
}

/// The items of an array; none where it is something else.
pub(crate) fn items(array: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = array.as_bytes();
    let mut at = inside(bytes, b'[').filter(|&at| bytes.get(at) != Some(&b']'));
    std::iter::from_fn(move || {
        let start = at?;
        let end = value_end(bytes, start)?;
        at = next(bytes, end);
        Some(start..end)
    })
}

/// The text of a JSON string; `None` where it is something else.
pub(crate) fn unescape(json: &str) -> Option<String> {
    let mut rest = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(rest.len());
    while let Some((plain, escaped)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut letters = escaped.chars();
        let letter = letters.next();
        rest = letters.as_str();
        text.push(match letter? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => unicode(&mut rest),
            other => other,
        });
    }
    text.push_str(rest);
    Some(text)
}

/// The character whose code `rest` begins with; half a pair of surrogates is none.
fn unicode(rest: &mut &str) -> char {
    let first = code_unit(rest);
    let mut code = first;
    if let (Some(high @ 0xD800..0xDC00), Some(mut after)) = (first, rest.strip_prefix("\\u"))
        && let Some(low @ 0xDC00..0xE000) = code_unit(&mut after)
    {
        code = Some(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
        *rest = after;
    }
    code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn code_unit(rest: &mut &str) -> Option<u32> {
    let (digits, after) = rest.split_at_checked(4)?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    *rest = after;
    Some(code)
}

pub(super) fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Where the first thing within an array or object begins.
fn inside(bytes: &[u8], open: u8) -> Option<usize> {
    (bytes.first() == Some(&open)).then(|| skip_blank(bytes, 1))
}

/// Where the thing after a comma begins.
fn next(bytes: &[u8], at: usize) -> Option<usize> {
    let at = skip_blank(bytes, at);
    (bytes.get(at) == Some(&b',')).then(|| skip_blank(bytes, at + 1))
}

/// Past the end of the value that begins at `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => nest_end(bytes, at),
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
            let length = bytes.get(at..)?.iter().position(ends);
            Some(length.map_or(bytes.len(), |length| at + length))
        }
    }
}

fn nest_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
