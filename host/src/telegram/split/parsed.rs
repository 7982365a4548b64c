//! A text with its markup told apart: what is seen, and which bytes of the source show it.

use std::ops::Range;

/// Either some of what is seen, or a mark.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Bytes of the source.
    pub(super) source: Range<usize>,
    /// Bytes of what is seen; none for a mark.
    pub(super) visible: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Seen as it is written: it may be cut anywhere.
    Verbatim,
    /// Written otherwise than seen: an escape.
    Escaped,
    /// Opens the span of this number.
    Open(usize),
    /// Closes it.
    Close(usize),
}

/// What is marked from one place to another.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// What opens it again after a cut.
    pub(super) open: String,
    /// What closes it before one.
    pub(super) close: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Parsed {
    pub(super) visible: String,
    pub(super) pieces: Vec<Piece>,
    pub(super) spans: Vec<Span>,
}

impl Parsed {
    /// A text without markup.
    pub(super) fn plain(text: &str) -> Self {
        let mut parsed = Self::default();
        parsed.verbatim(0, text);
        parsed
    }

    /// Text that is seen as it stands in the source at `at`.
    pub(super) fn verbatim(&mut self, at: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        let visible = self.push(text);
        match self.pieces.last_mut() {
            Some(last) if last.kind == Kind::Verbatim && last.source.end == at => {
                last.source.end += text.len();
                last.visible.end = visible.end;
            }
            _ => self.pieces.push(Piece { source: at..at + text.len(), visible, kind: Kind::Verbatim }),
        }
    }

    /// Source that shows something else.
    pub(super) fn escaped(&mut self, source: Range<usize>, shows: &str) {
        let visible = self.push(shows);
        self.pieces.push(Piece { source, visible, kind: Kind::Escaped });
    }

    /// A mark that opens a span; `again` opens it again elsewhere. Answers with the span's number.
    pub(super) fn open(&mut self, source: Range<usize>, again: impl Into<String>) -> usize {
        let span = self.spans.len();
        self.spans.push(Span { open: again.into(), close: String::new() });
        self.mark(source, Kind::Open(span));
        span
    }

    /// A mark that closes a span, and is what closes it elsewhere.
    pub(super) fn close(&mut self, source: Range<usize>, span: usize, mark: impl Into<String>) {
        self.spans[span].close = mark.into();
        self.mark(source, Kind::Close(span));
    }

    fn mark(&mut self, source: Range<usize>, kind: Kind) {
        let here = self.visible.len();
        self.pieces.push(Piece { source, visible: here..here, kind });
    }

    fn push(&mut self, text: &str) -> Range<usize> {
        let start = self.visible.len();
        self.visible.push_str(text);
        start..self.visible.len()
    }

    /// Where each span lies in what is seen.
    pub(super) fn extents(&self) -> Vec<Range<usize>> {
        let mut extents = vec![0..0; self.spans.len()];
        for piece in &self.pieces {
            match piece.kind {
                Kind::Open(span) => extents[span].start = piece.visible.start,
                Kind::Close(span) => extents[span].end = piece.visible.start,
                Kind::Verbatim | Kind::Escaped => {}
            }
        }
        extents
    }
}
