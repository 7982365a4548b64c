//! MarkdownV2 and the older Markdown, as far as they must be understood to be cut.

#![expect(clippy::string_slice, reason = "the place moves by whole characters")]

use super::parsed::Parsed;

const RESERVED: &str = "_*[]()~`>#+-=|{}.!";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Bold,
    Italic,
    Underline,
    Strikethrough,
    Spoiler,
    Code,
    Pre,
    Link,
    Quote,
}

/// Longer marks before those that they begin with.
const OPENING: [(&str, Mark); 9] = [
    ("__", Mark::Underline),
    ("_", Mark::Italic),
    ("*", Mark::Bold),
    ("~", Mark::Strikethrough),
    ("||", Mark::Spoiler),
    ("```", Mark::Pre),
    ("`", Mark::Code),
    ("![", Mark::Link),
    ("[", Mark::Link),
];

struct Reader<'a> {
    source: &'a str,
    at: usize,
    parsed: Parsed,
    open: Vec<(Mark, usize)>,
}

/// Reads MarkdownV2; `None` where it is not valid.
pub(super) fn parse_v2(source: &str) -> Option<Parsed> {
    let mut reader = Reader { source, at: 0, parsed: Parsed::default(), open: Vec::new() };
    // Empty marks (`**`) don't end it: they are the way to begin a quotation right after another.
    let mut line_start = true;
    while let Some(c) = reader.rest().chars().next() {
        let top = reader.open.last().map(|(mark, _)| *mark);
        let verbatim = matches!(top, Some(Mark::Code | Mark::Pre));
        if c == '\\'
            && let Some(escaped) = reader.rest()[1..].chars().next().filter(|c| c.is_ascii() && *c != '\0')
        {
            reader.escaped(2, escaped);
        } else if c == '\n' && reader.in_quote() {
            reader.line_in_quote()?;
            line_start = true;
            continue;
        } else if !RESERVED.contains(c) || (verbatim && c != '`') {
            reader.verbatim(c.len_utf8());
            line_start = c == '\n';
            continue;
        } else if c == '>' && line_start && top.is_none() {
            reader.open(1, Mark::Quote, ">");
        } else if let Some(mark) = top.and_then(|top| reader.closing(top)) {
            reader.close(mark)?;
            continue;
        } else if verbatim {
            reader.verbatim(1);
        } else {
            let (mark, kind) = OPENING.into_iter().find(|(mark, _)| reader.rest().starts_with(mark))?;
            if kind == Mark::Pre {
                reader.open_code_block();
            } else {
                reader.open(mark.len(), kind, mark);
            }
            continue;
        }
        line_start = false;
    }
    if let Some((Mark::Quote, span)) = reader.open.last().copied() {
        reader.end_quote(0, span, "");
    }
    reader.open.is_empty().then_some(reader.parsed)
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn verbatim(&mut self, length: usize) {
        self.parsed.verbatim(self.at, &self.source[self.at..self.at + length]);
        self.at += length;
    }

    fn escaped(&mut self, length: usize, shows: char) {
        self.parsed.escaped(self.at..self.at + length, shows.encode_utf8(&mut [0; 4]));
        self.at += length;
    }

    fn open(&mut self, length: usize, mark: Mark, again: &str) {
        let span = self.parsed.open(self.at..self.at + length, again);
        self.open.push((mark, span));
        self.at += length;
    }

    /// The language belongs to the mark, and so does one line break.
    fn open_code_block(&mut self) {
        let rest = &self.rest()[3..];
        let end = rest.find(|c: char| c.is_whitespace() || c == '`').unwrap_or(rest.len());
        let language = if rest[end..].starts_with('`') || end == rest.len() { "" } else { &rest[..end] };
        let line_break = usize::from(rest[language.len()..].starts_with('\n'));
        let again = format!("```{language}\n");
        self.open(3 + language.len() + line_break, Mark::Pre, &again);
    }

    /// What stands here and closes what is open, if it does.
    fn closing(&self, top: Mark) -> Option<&'static str> {
        let mark = match top {
            Mark::Bold => "*",
            Mark::Italic if self.rest().starts_with("__") => return None,
            Mark::Italic => "_",
            Mark::Underline => "__",
            Mark::Strikethrough => "~",
            Mark::Spoiler => "||",
            Mark::Code => "`",
            Mark::Pre => "```",
            Mark::Link => "]",
            Mark::Quote if self.ends_expandable() => "||",
            Mark::Quote => return None,
        };
        self.rest().starts_with(mark).then_some(mark)
    }

    fn close(&mut self, mark: &str) -> Option<()> {
        let (kind, span) = self.open.pop()?;
        let end = self.at + if kind == Mark::Link { link_end(self.rest())? } else { mark.len() };
        self.parsed.close(self.at..end, span, &self.source[self.at..end]);
        self.at = end;
        Some(())
    }

    fn in_quote(&self) -> bool {
        self.open.iter().any(|(mark, _)| *mark == Mark::Quote)
    }

    /// The mark at the end of a quotation that is shown folded.
    fn ends_expandable(&self) -> bool {
        self.rest()
            .strip_prefix("||")
            .is_some_and(|rest| rest.is_empty() || (rest.starts_with('\n') && !rest.starts_with("\n>")))
    }

    /// A line break within a quotation: it goes on, or ends here.
    fn line_in_quote(&mut self) -> Option<()> {
        if self.rest().starts_with("\n>") {
            self.escaped(2, '\n');
            return Some(());
        }
        match self.open.last().copied() {
            Some((Mark::Quote, span)) => self.end_quote(0, span, ""),
            _ => return None,
        }
        self.verbatim(1);
        Some(())
    }

    fn end_quote(&mut self, length: usize, span: usize, mark: &str) {
        self.open.pop();
        self.parsed.close(self.at..self.at + length, span, mark);
        self.at += length;
    }
}

/// How long `](address)` is that begins here.
fn link_end(rest: &str) -> Option<usize> {
    let Some(address) = rest.strip_prefix("](") else { return Some(1) };
    let mut escaped = false;
    for (at, byte) in address.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b')' => return Some(2 + at + 1),
            _ => {}
        }
    }
    None
}

/// Reads the older Markdown: no nesting, no escapes within a mark.
pub(super) fn parse_legacy(source: &str) -> Option<Parsed> {
    let mut reader = Reader { source, at: 0, parsed: Parsed::default(), open: Vec::new() };
    while let Some(c) = reader.rest().chars().next() {
        if c == '\\'
            && let Some(escaped) = reader.rest()[1..].chars().next().filter(|c| matches!(c, '_' | '*' | '`' | '['))
        {
            reader.escaped(2, escaped);
            continue;
        }
        let closing = match c {
            '*' => "*",
            '_' => "_",
            '`' if reader.rest().starts_with("```") => "```",
            '`' => "`",
            '[' => "]",
            _ => {
                reader.verbatim(c.len_utf8());
                continue;
            }
        };
        match closing {
            "```" => reader.open_code_block(),
            "]" => reader.open(1, Mark::Link, "["),
            mark => reader.open(mark.len(), Mark::Bold, mark),
        }
        let length = reader.rest().find(closing)?;
        reader.verbatim(length);
        reader.close(closing)?;
    }
    Some(reader.parsed)
}
