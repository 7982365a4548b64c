//! Where to cut a text: as late as possible, at the best boundary.

#![expect(clippy::string_slice, reason = "cut only where a character begins")]

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

/// Boundaries, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Boundary {
    Paragraph,
    Line,
    Sentence,
    Word,
    /// Between words, but within something that should stay whole.
    Within,
}

/// What should stay whole where it can: links, short marks.
#[derive(Debug, Default)]
pub(super) struct Whole(Vec<Range<usize>>);

impl Whole {
    /// From ranges of bytes in any order; those that overlap become one.
    pub(super) fn new(mut ranges: Vec<Range<usize>>) -> Self {
        ranges.retain(|range| range.start < range.end);
        ranges.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// What a cut here would go through.
    fn around(&self, at: usize) -> Option<&Range<usize>> {
        let next = self.0.partition_point(|range| range.start < at);
        self.0[..next].last().filter(|range| at < range.end)
    }
}

/// The end of the longest good beginning of `text[from..]` that has at most `limit` UTF-16 units, in bytes of `text`.
/// It is all of it where that fits, and at least one character.
pub(super) fn cut(text: &str, from: usize, limit: usize, whole: &Whole) -> usize {
    let end = from + fitting(&text[from..], limit);
    if end == text.len() {
        return end;
    }
    let enough = from + (end - from) / 2;
    let best = boundaries(text, from, end)
        .map(|(at, boundary)| match whole.around(at) {
            Some(range) if range.len() < end - from => (at, Boundary::Within),
            // Too early to be worth more than not cutting a word.
            _ if at <= enough => (at, boundary.max(Boundary::Word)),
            _ => (at, boundary),
        })
        .filter(|(at, _)| is_boundary(text, *at))
        // The last of the best.
        .min_by_key(|(at, boundary)| (*boundary, text.len() - at));
    match best {
        Some((at, boundary)) if boundary < Boundary::Within => at,
        // Rather before a whole thing than through it.
        best => match whole.around(end).filter(|range| range.start > from) {
            Some(range) if is_boundary(text, range.start) => range.start,
            _ => best.map_or_else(|| grapheme_before(text, from, end), |(at, _)| at),
        },
    }
}

/// How many bytes of the text have at most so many units; at least one character.
fn fitting(text: &str, limit: usize) -> usize {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > limit && at > 0 {
            return at;
        }
    }
    text.len()
}

/// Behind each run of white space (or as far into it as fits), and behind each sentence of scripts that have none.
fn boundaries(text: &str, from: usize, end: usize) -> impl Iterator<Item = (usize, Boundary)> {
    let mut chars = text[from..end].char_indices().peekable();
    let mut before = ' ';
    std::iter::from_fn(move || {
        while let Some((at, c)) = chars.next() {
            if !c.is_whitespace() {
                let is_end = matches!(c, '。' | '！' | '？');
                before = if is_closing(c) && is_terminal(before) { before } else { c };
                if is_end {
                    return Some((from + at + c.len_utf8(), Boundary::Sentence));
                }
                continue;
            }
            let mut lines = usize::from(c == '\n');
            let mut stop = from + at + c.len_utf8();
            while let Some((at, c)) = chars.next_if(|(_, c)| c.is_whitespace()) {
                lines += usize::from(c == '\n');
                stop = from + at + c.len_utf8();
            }
            if stop == end {
                // What comes behind the limit tells more.
                lines += space_after(text, end).filter(|c| *c == '\n').count();
            }
            return Some((stop, boundary(lines, before)));
        }
        None
    })
    .chain(at_limit(text, from, end))
}

/// The limit itself, where white space begins just there.
fn at_limit(text: &str, from: usize, end: usize) -> Option<(usize, Boundary)> {
    let before = text[from..end].chars().next_back().filter(|c| !c.is_whitespace())?;
    let (length, lines) =
        space_after(text, end).fold((0, 0), |(length, lines), c| (length + 1, lines + usize::from(c == '\n')));
    (length > 0).then(|| (end, boundary(lines, before)))
}

/// The white space that begins here, as far as it matters.
fn space_after(text: &str, at: usize) -> impl Iterator<Item = char> {
    text[at..].chars().take(100).take_while(|c| c.is_whitespace())
}

fn boundary(lines: usize, before: char) -> Boundary {
    match lines {
        0 if is_terminal(before) => Boundary::Sentence,
        0 => Boundary::Word,
        1 => Boundary::Line,
        _ => Boundary::Paragraph,
    }
}

fn is_terminal(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '؟' | '।')
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»')
}

fn is_boundary(text: &str, at: usize) -> bool {
    GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(true)
}

/// The last boundary between graphemes up to `end`; `end` itself where one grapheme alone is too long.
fn grapheme_before(text: &str, from: usize, end: usize) -> usize {
    if is_boundary(text, end) {
        return end;
    }
    let before = GraphemeCursor::new(end, text.len(), true).prev_boundary(text, 0).ok().flatten();
    before.filter(|at| *at > from).unwrap_or(end)
}
