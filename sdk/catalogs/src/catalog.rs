//! Reading catalogs, and one message out of one catalog.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fluent_syntax::ast::Entry;
use fluent_syntax::parser;
use unic_langid::LanguageIdentifier;

use crate::message::{Message, Messages};
use crate::number::MOST_DIGITS;
use crate::resolve::{self, Language};
use crate::{Markup, Value};

/// Placeables and calls within each other.
const DEEPEST: usize = 20;
/// Bytes of a catalog: a message can stand for another one a hundred times.
const LARGEST: usize = 1 << 20;
/// Why catalogs can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of a catalog is no language tag.
    #[error("catalog `{catalog}`: its name is not a language tag such as `en` or `pt-BR`")]
    Locale {
        /// The catalog.
        catalog: String,
    },
    /// A catalog is not FTL.
    #[error("catalog `{catalog}`, line {line}, message `{message}`: {problem}")]
    Syntax {
        /// The catalog: a locale of the plugin's or a file of the operator's.
        catalog: String,
        /// Where, from 1.
        line: usize,
        /// The message that can't be read.
        message: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A catalog has too many bytes.
    #[error("catalog `{catalog}` has {size} bytes; at most {LARGEST} are possible")]
    TooLarge {
        /// The catalog.
        catalog: String,
        /// Its bytes.
        size: usize,
    },
    /// A catalog says the same message twice.
    #[error("catalog `{catalog}`: the message `{message}` is there twice")]
    Twice {
        /// The catalog.
        catalog: String,
        /// The message.
        message: String,
    },
    /// A number in a catalog has too many digits.
    #[error("catalog `{catalog}`, line {line}, message `{message}`: a number can have {MOST_DIGITS} digits")]
    Digits {
        /// The catalog.
        catalog: String,
        /// Where, from 1.
        line: usize,
        /// The message.
        message: String,
    },
    /// A file of the operator's can't be read.
    #[error("catalog {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// One locale.
pub(super) struct Loaded {
    pub(super) locale: LanguageIdentifier,
    pub(super) language: Language,
    pub(super) messages: Messages,
}

/// Adds a catalog of the plugin's own. `catalog` is what errors call it.
pub(super) fn add(loaded: &mut Vec<Loaded>, catalog: &str, locale: &str, source: &str) -> Result<(), Error> {
    place(loaded, catalog, locale)?.messages.0.extend(parse(catalog, source)?);
    Ok(())
}

/// Adds the operator's catalogs: the files `<locale>.ftl` of a folder, which need not exist.
pub(super) fn add_overrides(loaded: &mut Vec<Loaded>, folder: &Path) -> Result<(), Error> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Read { path, source }
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(folder)(error)),
    };
    let entries: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(unreadable(folder))?;
    entries.sort();
    for path in entries {
        let (Some(locale), Some("ftl")) =
            (path.file_stem().and_then(|name| name.to_str()), path.extension().and_then(|name| name.to_str()))
        else {
            continue;
        };
        let source = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        let catalog = path.display().to_string();
        add(loaded, &catalog, locale, &source)?;
    }
    Ok(())
}

/// What belongs to a locale, made where there is nothing yet.
fn place<'a>(loaded: &'a mut Vec<Loaded>, catalog: &str, locale: &str) -> Result<&'a mut Loaded, Error> {
    let locale: LanguageIdentifier =
        locale.replace('_', "-").parse().map_err(|_| Error::Locale { catalog: catalog.to_owned() })?;
    let index = loaded.iter().position(|known| known.locale == locale).unwrap_or_else(|| {
        loaded.push(Loaded { language: Language::of(&locale), locale, messages: Messages::default() });
        loaded.len() - 1
    });
    Ok(&mut loaded[index])
}

/// The messages of a catalog, attributes and terms among them.
fn parse(catalog: &str, source: &str) -> Result<BTreeMap<String, Message>, Error> {
    if source.len() > LARGEST {
        return Err(Error::TooLarge { catalog: catalog.to_owned(), size: source.len() });
    }
    if let Some((line, message)) = too_deep(source) {
        let problem = format!("more than {DEEPEST} placeables within each other");
        return Err(Error::Syntax { catalog: catalog.to_owned(), line, message: message.to_owned(), problem });
    }
    let resource = parser::parse_runtime(source).map_err(|(_, errors)| {
        let error = errors.first().expect("a refused resource has an error");
        let junk = error.slice.clone().and_then(|slice| source.get(slice)).unwrap_or_default();
        let start = error.slice.as_ref().map_or(error.pos.start, |slice| slice.start);
        // The parser goes on to the next entry before it complains; the message's own line is the useful one.
        let place = start + (junk.len() - junk.trim_start().len());
        Error::Syntax {
            catalog: catalog.to_owned(),
            line: source.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1,
            message: junk.split('=').next().unwrap_or_default().trim().chars().take(60).collect(),
            problem: error.kind.to_string(),
        }
    })?;
    let mut messages = BTreeMap::new();
    for entry in &resource.body {
        let (dash, name, value, attributes) = match entry {
            Entry::Message(message) => ("", message.id.name, message.value.as_ref(), &message.attributes),
            Entry::Term(term) => ("-", term.id.name, Some(&term.value), &term.attributes),
            _ => continue,
        };
        let value = value.map(|value| (format!("{dash}{name}"), name, value));
        let attributes =
            attributes.iter().map(|one| (format!("{dash}{name}.{}", one.id.name), one.id.name, &one.value));
        for (key, at, pattern) in value.into_iter().chain(attributes) {
            let line = line_of(source, at);
            let Ok(message) = Message::read(catalog, line, pattern) else {
                return Err(Error::Digits { catalog: catalog.to_owned(), line, message: key });
            };
            if messages.insert(key.clone(), message).is_some() {
                return Err(Error::Twice { catalog: catalog.to_owned(), message: key });
            }
        }
    }
    Ok(messages)
}

/// The line of a part of `source`, from 1.
fn line_of(source: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(source.as_ptr() as usize);
    source.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The first message with too many braces and brackets in each other, which the parser would follow until the stack
/// ends.
fn too_deep(source: &str) -> Option<(usize, &str)> {
    let (mut depth, mut message) = (0_usize, "");
    for (index, line) in source.lines().enumerate() {
        if let Some(begun) = begins_message(line) {
            (depth, message) = (0, begun);
        }
        for byte in line.bytes() {
            match byte {
                b'{' => depth += 1,
                // Elsewhere it is text.
                b'(' if depth > 0 => depth += 1,
                b'}' | b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEEPEST {
                return Some((index + 1, message));
            }
        }
    }
    None
}

/// The message that begins with this line. Inside of a placeable no line can look like that, though it may well
/// begin at the margin.
fn begins_message(line: &str) -> Option<&str> {
    let (id, _) = line.split_once('=')?;
    let id = id.trim_end_matches(' ');
    let name = id.strip_prefix('-').unwrap_or(id);
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then_some(id)
}

impl Loaded {
    /// The message `key`, or the attribute after its dot; none where the catalog lacks it.
    pub(super) fn write(&self, key: &str, args: &[(String, Value)], markup: Markup) -> Option<String> {
        resolve::write(&self.messages, self.language, key, args, markup)
    }
}
