//! A file of recipients: an id or an `@name` in each line.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;

use anyhow::Context as _;

use crate::cli::exit::WrongArgument;
use crate::store::rows::broadcast::Recipient;
use crate::telegram::cast;

/// So many wrong lines are told at once.
const PROBLEMS: usize = 10;

/// Who is in a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct List {
    /// In the order of the file, each once.
    pub(super) recipients: Vec<Recipient>,
    /// How many were in it more than once.
    pub(super) repeated: usize,
}

/// `-` for standard input.
pub(super) fn read(path: &Path) -> anyhow::Result<List> {
    if path.as_os_str() == "-" {
        return parse("standard input", stdin().lock());
    }
    let file = File::open(path).with_context(|| format!("the recipients can't be read: {}", path.display()))?;
    parse(&path.display().to_string(), BufReader::new(file))
}

fn parse(name: &str, input: impl BufRead) -> anyhow::Result<List> {
    let mut list = List::default();
    let mut seen = HashSet::new();
    let mut problems = Vec::new();
    let mut wrong = 0_usize;
    for (line, number) in input.lines().zip(1_u64..) {
        let line = line.with_context(|| format!("{name}:{number} can't be read"))?;
        let line = line.trim_start_matches('\u{feff}');
        let text = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if text.is_empty() {
            continue;
        }
        match cast::recipient(text) {
            Ok(recipient) if seen.insert(recipient.clone()) => list.recipients.push(recipient),
            Ok(_) => list.repeated += 1,
            Err(problem) => {
                wrong += 1;
                if problems.len() < PROBLEMS {
                    problems.push(format!("{name}:{number}: {problem}"));
                }
            }
        }
    }
    if wrong > problems.len() {
        problems.push(format!("… and {} more lines like these", wrong - problems.len()));
    }
    if !problems.is_empty() {
        return Err(WrongArgument(problems.join("\n")).into());
    }
    if list.recipients.is_empty() {
        return Err(WrongArgument(format!("{name} names nobody to send to")).into());
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ChatId;

    #[test]
    fn comments_blank_lines_and_repetitions_do_no_harm() {
        let text = "\u{feff}# people\n7\n\n  -1001557912345 # a group\n@News\r\n7\n@news\n+7\n";
        let list = parse("f", text.as_bytes()).unwrap();
        let expected = [
            Recipient::Chat(ChatId(7)),
            Recipient::Chat(ChatId(-1_001_557_912_345)),
            Recipient::Name("@news".to_owned()),
        ];
        assert_eq!((list.recipients.as_slice(), list.repeated), (&expected[..], 3));
    }

    #[test]
    fn every_wrong_line_is_named_up_to_ten() {
        let error = |text: &str| parse("people.txt", text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error("7\nanna\n\n0\n"),
            "people.txt:2: \"anna\" is neither a chat's id nor a public @name\npeople.txt:4: 0 is no chat"
        );
        assert!(error(&"x\n".repeat(30)).ends_with("… and 20 more lines like these"));
        assert_eq!(error("# nobody\n"), "people.txt names nobody to send to");
    }
}
