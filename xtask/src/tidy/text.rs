//! Checks of one file's text, line by line.

use super::{File, Problems};
use crate::workspace::root;

const MAX_LINES: usize = 600;

/// Notes to oneself that must not stay. In two halves, so that this file does not find itself.
const FORGOTTEN: [(&str, &str); 5] =
    [("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("FIX", "ME"), ("XX", "X")];

pub(super) fn check(file: &File, problems: &mut Problems) {
    lines(file, problems);
    if file.is("rs") {
        rust(file, problems);
    }
}

fn lines(file: &File, problems: &mut Problems) {
    let here = root().display().to_string();
    for (number, line) in file.text.lines().enumerate() {
        if line.contains('\t') {
            problems.add(file, number, "a tab");
        }
        if line.ends_with([' ', '\r']) {
            problems.add(file, number, "blanks at the end of the line");
        }
        if line.contains(&here) {
            problems.add(file, number, "a path of this machine");
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        problems.add(file, file.text.lines().count() - 1, "the last line does not end");
    }
}

fn rust(file: &File, problems: &mut Problems) {
    let count = file.text.lines().count();
    if count > MAX_LINES {
        problems.add(file, 0, format_args!("{count} lines: more than {MAX_LINES} hold more than one responsibility"));
    }
    // Pages of tests are named by what they test; everything else says what it is for.
    if file.path.contains("/src/") && !file.path.ends_with("tests.rs") && !file.text.starts_with("//!") {
        problems.add(file, 0, "does not begin with `//!` and what the module is for");
    }
    for (number, line) in file.text.lines().enumerate() {
        for (begin, end) in FORGOTTEN {
            if line.contains(&format!("{begin}{end}")) {
                problems.add(file, number, format_args!("{begin}{} was forgotten", end.trim_end_matches('(')));
            }
        }
        if line.trim_start().starts_with("#[ignore") {
            problems.add(file, number, "an ignored test is no test: mend it or delete it");
        }
    }
}
