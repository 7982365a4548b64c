//! The parts of one text, with their markup.

#![expect(clippy::string_slice, reason = "cut only where a character begins")]

use std::ops::Range;

use serde_json::Value;

use super::cut::{Whole, cut};
use super::parsed::{Kind, Parsed};
use super::{html, markdown};

/// What Telegram takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// UTF-16 units that the first part may show.
    pub(crate) first: usize,
    /// The same for those after it.
    pub(crate) rest: usize,
    /// Bytes of a part as it is sent, with its markup.
    pub(crate) source: usize,
}

/// Telegram takes no note of further ones.
pub(super) const MOST_ENTITIES: usize = 100;

impl Limits {
    pub(crate) const TEXT: usize = 4096;
    pub(crate) const CAPTION: usize = 1024;
    const SOURCE: usize = 32 << 10;
}

impl Default for Limits {
    fn default() -> Self {
        Self { first: Self::TEXT, rest: Self::TEXT, source: Self::SOURCE }
    }
}

/// How a text is marked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Markup {
    /// By a list of entities, or not at all.
    None,
    Html,
    MarkdownV2,
    Markdown,
}

impl Markup {
    /// What `parse_mode` says; `None` if that is nothing known.
    pub(crate) fn of(parse_mode: Option<&Value>) -> Option<Self> {
        let name = match parse_mode {
            None | Some(Value::Null) => "",
            Some(name) => name.as_str()?,
        };
        match name.to_ascii_lowercase().as_str() {
            "" => Some(Self::None),
            "html" => Some(Self::Html),
            "markdownv2" => Some(Self::MarkdownV2),
            "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// One part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) entities: Vec<Value>,
}

/// What is longer than this is cut at its own boundaries, as any text is.
const SHORT: usize = 256;

/// Cuts a text that is too long. `None` where it is not, where its markup or entities can't be read, and where nothing
/// in it shows.
pub(crate) fn parts(text: &str, markup: Markup, entities: &[Value], limits: Limits) -> Option<Vec<Part>> {
    let may_be_crowded = entities.len() > MOST_ENTITIES || (markup != Markup::None && text.len() > 2 * MOST_ENTITIES);
    if text.len() <= limits.first.min(limits.source) && !may_be_crowded {
        return None;
    }
    let parsed = parse(text, markup)?;
    let entities = Entities::read(&parsed.visible, entities)?;
    let extents = parsed.extents();
    let marked: Vec<_> = extents.iter().chain(&entities.bytes).filter(|range| !range.is_empty()).cloned().collect();
    if units(&parsed.visible) <= limits.first && text.len() <= limits.source && marked.len() <= MOST_ENTITIES {
        return None;
    }
    let whole = Whole::new(marked.iter().filter(|range| range.len() <= SHORT).cloned().collect());

    let composer = Composer { source: text, parsed: &parsed, markup };
    let (mut parts, mut place, mut units_before) = (Vec::new(), Place::default(), 0);
    while place.at < parsed.visible.len() {
        let mut limit = if parts.is_empty() { limits.first } else { limits.rest };
        if let Some(end) = crowded_at(&marked, place.at) {
            limit = limit.min(units(&parsed.visible[place.at..end]));
        }
        let (part, next) = composer.part(&place, limit, limits.source, &whole)?;
        let shown = &parsed.visible[place.at..next.at];
        let n_units = units(shown);
        if !is_blank(shown) {
            parts.push(Part { text: part, entities: entities.within(units_before..units_before + n_units) });
        }
        units_before += n_units;
        place = next;
    }
    (!parts.is_empty()).then_some(parts)
}

/// Where the first entity begins that is one too many for a part that begins at `from`.
fn crowded_at(marked: &[Range<usize>], from: usize) -> Option<usize> {
    if marked.len() <= MOST_ENTITIES {
        return None;
    }
    let mut starts: Vec<usize> = marked.iter().filter(|range| range.end > from).map(|range| range.start).collect();
    starts.sort_unstable();
    starts.get(MOST_ENTITIES).map(|start| (*start).max(from))
}

fn parse(text: &str, markup: Markup) -> Option<Parsed> {
    match markup {
        Markup::None => Some(Parsed::plain(text)),
        Markup::Html => html::parse(text),
        Markup::MarkdownV2 => markdown::parse_v2(text),
        Markup::Markdown => markdown::parse_legacy(text),
    }
}

/// False where the marks don't match.
pub(super) fn is_readable(text: &str, markup: Markup) -> bool {
    parse(text, markup).is_some()
}

/// How Telegram counts.
pub(crate) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// True for what Telegram calls empty.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{ad}' | '\u{2800}' | '\u{3164}' | '\u{feff}')
    })
}

/// Up to where the text has been given to parts.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Bytes of what is seen.
    at: usize,
    piece: usize,
    /// The spans that are open here, the outermost first.
    open: Vec<usize>,
}

struct Composer<'a> {
    source: &'a str,
    parsed: &'a Parsed,
    markup: Markup,
}

impl Composer<'_> {
    /// The next part, and where the one after it begins. `None` if its marks alone are too long.
    fn part(&self, from: &Place, mut limit: usize, most_bytes: usize, whole: &Whole) -> Option<(String, Place)> {
        while limit > 0 {
            let end = cut(&self.parsed.visible, from.at, limit, whole);
            let (part, next) = self.compose(from.clone(), end);
            if part.len() <= most_bytes {
                return Some((part, next));
            }
            limit /= 2;
        }
        None
    }

    /// What shows the text up to `end`, with everything open before it opened again, and everything open then closed.
    fn compose(&self, mut place: Place, end: usize) -> (String, Place) {
        let mut out = String::new();
        for span in &place.open {
            self.join(&mut out, &self.parsed.spans[*span].open, &place.open);
        }
        let mut joins = true;
        while let Some(piece) = self.parsed.pieces.get(place.piece) {
            let shows = piece.visible.start < end;
            // Marks that close go with what they close, those that open with what they open.
            if !shows && !matches!(piece.kind, Kind::Close(_)) && end < self.parsed.visible.len() {
                break;
            }
            let source = match piece.kind {
                Kind::Verbatim => {
                    let skipped = place.at.saturating_sub(piece.visible.start);
                    let left_out = piece.visible.end.saturating_sub(end);
                    piece.source.start + skipped..piece.source.end - left_out
                }
                _ => piece.source.clone(),
            };
            if std::mem::take(&mut joins) {
                self.join(&mut out, &self.source[source], &place.open);
            } else {
                out.push_str(&self.source[source]);
            }
            match piece.kind {
                Kind::Open(span) => place.open.push(span),
                Kind::Close(_) => {
                    place.open.pop();
                }
                Kind::Verbatim | Kind::Escaped => place.at = piece.visible.end.min(end),
            }
            if piece.visible.end > end {
                break;
            }
            place.piece += 1;
        }
        place.at = end;
        for span in place.open.iter().rev() {
            self.join(&mut out, &self.parsed.spans[*span].close, &place.open);
        }
        (out, place)
    }

    /// Puts something where the source had another neighbour before it.
    fn join(&self, out: &mut String, next: &str, open: &[usize]) {
        if self.markup == Markup::MarkdownV2 {
            let ends_in_escape = |text: &str| text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
            if ends_in_escape(out) {
                // A backslash that stood for itself, since nothing after it could be escaped.
                out.push('\\');
            }
            let ends_in_mark = out.strip_suffix('_').is_some_and(|before| !ends_in_escape(before));
            if ends_in_mark && next.starts_with('_') {
                // `_` and `__` would be read as `__` and `_`: something that shows nothing keeps them apart.
                let is_bold = open.iter().any(|span| self.parsed.spans[*span].open == "*");
                out.push_str(if is_bold { "\r" } else { "**" });
            }
        }
        out.push_str(next);
    }
}

/// Entities given as a list.
struct Entities<'a> {
    given: Vec<(Range<usize>, &'a Value)>,
    /// Where they lie, in bytes.
    bytes: Vec<Range<usize>>,
}

impl<'a> Entities<'a> {
    /// `None` where one has no place in the text.
    fn read(text: &str, entities: &'a [Value]) -> Option<Self> {
        if entities.is_empty() {
            return Some(Self { given: Vec::new(), bytes: Vec::new() });
        }
        let number = |entity: &Value, name: &str| usize::try_from(entity.get(name)?.as_u64()?).ok();
        let place = |entity| {
            let start = number(entity, "offset")?;
            Some((start..start.checked_add(number(entity, "length")?)?, entity))
        };
        let given = entities.iter().map(place).collect::<Option<Vec<_>>>()?;
        // The byte at which each unit begins; the second half of a pair counts as its first.
        let mut bytes: Vec<usize> =
            text.char_indices().flat_map(|(at, c)| std::iter::repeat_n(at, c.len_utf16())).collect();
        bytes.push(text.len());
        let byte = |unit: usize| bytes.get(unit).copied().unwrap_or(text.len());
        let ranges = given.iter().map(|(range, _)| byte(range.start)..byte(range.end)).collect();
        Some(Self { given, bytes: ranges })
    }

    /// Those of a part, in its own units.
    fn within(&self, part: Range<usize>) -> Vec<Value> {
        let cut = |(range, entity): &(Range<usize>, &Value)| {
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            let mut entity = Some(*entity).filter(|_| start < end)?.clone();
            let fields = entity.as_object_mut()?;
            fields.insert("offset".to_owned(), (start - part.start).into());
            fields.insert("length".to_owned(), (end - start).into());
            Some(entity)
        };
        self.given.iter().filter_map(cut).collect()
    }
}
