//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a value came from. The order is the order in which problems are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A place in the file, both counted from 1; the column in characters.
    At {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// An environment variable.
    Variable(Arc<str>),
    /// The file as a whole: something is missing from it.
    Whole,
}

/// One thing that is wrong, or probably not meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub origin: Origin,
    /// What, and the mend.
    pub message: String,
}

impl Problem {
    pub(super) fn new(origin: &Origin, message: impl Into<String>) -> Self {
        Self { origin: origin.clone(), message: message.into() }
    }

    /// The line for a person: `bot.toml:12:5: …` or `BOTYARD__BOT__TOKN: …`.
    #[must_use]
    pub fn line(&self, file: &Path) -> String {
        let file = file.display();
        let message = &self.message;
        match &self.origin {
            Origin::At { line, column } => format!("{file}:{line}:{column}: {message}"),
            Origin::Variable(name) => format!("{name}: {message}"),
            Origin::Whole => format!("{file}: {message}"),
        }
    }
}

/// All problems of one file, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file, as it was named.
    pub file: PathBuf,
    /// What is wrong.
    pub list: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(file: &Path, mut list: Vec<Problem>) -> Self {
        list.sort();
        list.dedup();
        Self { file: file.to_owned(), list }
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.list.iter().map(|problem| problem.line(&self.file)).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// What to say about a name that is none of `known`: the nearest one, or all of them.
pub(super) fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known.iter().min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate));
    match nearest {
        None => "nothing is known here".to_owned(),
        Some(nearest) if is_near(name, nearest) => format!("did you mean `{nearest}`?"),
        Some(_) => format!("known here: {}", known.join(", ")),
    }
}

/// One letter wrong in a short name, a third of them in a long one, or one name being the other's beginning.
fn is_near(name: &str, candidate: &str) -> bool {
    let longest = name.chars().count().max(candidate.chars().count());
    let is_beginning = name.len() >= 3 && (candidate.starts_with(name) || name.starts_with(candidate));
    is_beginning || strsim::damerau_levenshtein(name, candidate) <= (longest / 3).max(1)
}
