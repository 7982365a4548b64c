//! The ways in which a secret is spelt where it is written down: as it is, as a text in quotes, in an address, in base64.
//! Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A shorter line of a secret says little, and may be an ordinary word.
const LONG_LINE: usize = 16;
/// Nobody puts a longer one into an address or a header.
const LONGEST_ENCODED: usize = 1024;
/// Less of it than this, in base64, may be anything.
const SHORTEST_BASE64: usize = 8;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const OF_ADDRESSES: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What other programs leave as it is in an address, besides letters and digits: all but what must be encoded, in a
/// component of one, in a form (where a space is a plus), in a path, a query, and in front of the host.
const LEFT: [&[u8]; 7] = [
    b"-_.~",
    b"-_.~!*'()",
    b"-_.~/",
    b"-_.*+",
    b"-_.~!*'()/:;=@[\\]^|$&+,%",
    b"-_.~!*()/:;=@[\\]^|$&+,%?`{}",
    b"-_.~!*'()$&+,%",
];

/// All of them, each once.
pub(super) fn of(secret: &str) -> BTreeSet<String> {
    let json = serde_json::Value::from(secret).to_string();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json).to_owned();
    let mut forms = BTreeSet::from([secret.to_owned(), secret.escape_debug().to_string()]);
    for json in [in_ascii(&json), json] {
        forms.insert(json.replace('/', "\\/"));
        forms.insert(json);
    }
    forms
        .extend(secret.lines().filter(|line| line.len() >= LONG_LINE && !line.starts_with("-----")).map(str::to_owned));
    if secret.len() > LONGEST_ENCODED {
        return forms;
    }
    for left in LEFT {
        let encoded = percent_encoded(secret, left);
        forms.insert(encoded.replace("%20", "+"));
        forms.insert(in_lower_case(&encoded));
        forms.insert(encoded);
    }
    for alphabet in [STANDARD, OF_ADDRESSES] {
        // Whatever stands before it shifts it by so many bytes.
        for before in 0..3 {
            let within = base64_within(secret.as_bytes(), before, alphabet);
            if within.len() >= SHORTEST_BASE64 {
                forms.insert(within);
            }
        }
    }
    forms
}

/// As writers have it that trust in ASCII only.
fn in_ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(text, "\\u{unit:04x}").expect("writing to a text can't fail");
            }
        }
    }
    text
}

fn percent_encoded(text: &str, left: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || left.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a text can't fail");
        }
    }
    encoded
}

/// The same with `%2f` for `%2F`.
fn in_lower_case(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at(part.len().min(2));
        text.extend(["%", &code.to_ascii_lowercase(), rest]);
    }
    text
}

/// What base64 makes of it behind so many other bytes, as far as it depends on it alone.
fn base64_within(secret: &[u8], before: usize, alphabet: &[u8; 64]) -> String {
    let bits = (before + secret.len()) * 8;
    let bit = |at: usize| match (at / 8).checked_sub(before) {
        Some(byte) => secret[byte] >> (7 - at % 8) & 1,
        None => 0,
    };
    let characters = (before * 8).div_ceil(6)..bits / 6;
    let value = |character: usize| (0..6).fold(0, |value, n| value << 1 | usize::from(bit(character * 6 + n)));
    characters.map(|character| char::from(alphabet[value(character)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_known_wherever_it_begins() {
        // `printf 'shop:s3cret-key+é' | base64`, with less and less in front.
        for encoded in ["c2hvcDpzM2NyZXQta2V5K8Op", "aG9wOnMzY3JldC1rZXkrw6k=", "b3A6czNjcmV0LWtleSvDqQ=="] {
            let found = of("s3cret-key+é").iter().any(|form| encoded.contains(form.as_str()));
            assert!(found, "{encoded}");
        }
        assert_eq!(base64_within(b"Man", 0, STANDARD), "TWFu");
        assert_eq!(base64_within(&[0xfb, 0xff], 0, OF_ADDRESSES), "-_");
    }
}
