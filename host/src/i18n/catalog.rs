//! Reading catalogs, and one message out of one catalog.

use std::fmt;
use std::path::{Path, PathBuf};

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentError, FluentResource, FluentValue, builtins};
use unic_langid::LanguageIdentifier;

pub(super) type Bundle = FluentBundle<FluentResource>;

/// Placeables and calls within each other.
const DEEPEST: usize = 20;
/// Bytes of a catalog: a message can stand for another one a hundred times.
const LARGEST: usize = 1 << 20;
/// Bytes of a translation; what comes after them is left out. Telegram takes 4,096 characters.
const LONGEST: usize = 64 << 10;
/// Digits behind the point that a catalog can ask for.
const MOST_DIGITS: usize = 100;

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
    /// A file of the operator's can't be read.
    #[error("catalog {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// Adds a catalog of the plugin's own.
pub(super) fn add(loaded: &mut Vec<(LanguageIdentifier, Bundle)>, locale: &str, source: &str) -> Result<(), Error> {
    let resource = parse(locale, source)?;
    bundle(loaded, locale, locale)?.add_resource(resource).map_err(|errors| twice(locale, &errors))
}

/// Adds the operator's catalogs: the files `<locale>.ftl` of a folder, which need not exist.
pub(super) fn add_overrides(loaded: &mut Vec<(LanguageIdentifier, Bundle)>, folder: &Path) -> Result<(), Error> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Read { path, source }
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(folder)(error)),
    };
    for entry in entries {
        let path = entry.map_err(unreadable(folder))?.path();
        let (Some(locale), Some("ftl")) =
            (path.file_stem().and_then(|name| name.to_str()), path.extension().and_then(|name| name.to_str()))
        else {
            continue;
        };
        let source = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        let catalog = path.display().to_string();
        let resource = parse(&catalog, &source)?;
        bundle(loaded, &catalog, locale)?.add_resource_overriding(resource);
    }
    Ok(())
}

/// The message `key`, or the attribute after its dot; none where the bundle lacks it.
pub(super) fn format(bundle: &Bundle, key: &str, args: &FluentArgs<'_>) -> Option<String> {
    let (id, attribute) = key.split_once('.').map_or((key, None), |(id, attribute)| (id, Some(attribute)));
    let message = bundle.get_message(id)?;
    let pattern = match attribute {
        Some(attribute) => message.get_attribute(attribute)?.value(),
        None => message.value()?,
    };
    // What can't be resolved stands in the text in its source form, which tells more than no text at all.
    let mut unresolved = Vec::new();
    let mut text = Bounded(String::new());
    let is_whole = bundle.write_pattern(&mut text, pattern, Some(args), &mut unresolved).is_ok();
    if !unresolved.is_empty() || !is_whole {
        tracing::debug!(key, problems = unresolved.len(), "a translation is not complete");
    }
    Some(text.0)
}

/// A text that takes no more than [`LONGEST`] bytes.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let left = LONGEST - self.0.len();
        self.0.push_str(more.split_at(more.floor_char_boundary(left)).0);
        if more.len() > left { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Fluent's own `NUMBER`, which would write as many zeros as it is asked for.
fn number<'a>(positional: &[FluentValue<'a>], named: &FluentArgs<'_>) -> FluentValue<'a> {
    let mut value = builtins::NUMBER(positional, named);
    if let FluentValue::Number(number) = &mut value {
        let digits = &mut number.options.minimum_fraction_digits;
        *digits = digits.map(|digits| digits.min(MOST_DIGITS));
    }
    value
}

/// The bundle of a locale, made where there is none yet.
fn bundle<'a>(
    loaded: &'a mut Vec<(LanguageIdentifier, Bundle)>,
    catalog: &str,
    locale: &str,
) -> Result<&'a mut Bundle, Error> {
    let locale: LanguageIdentifier =
        locale.replace('_', "-").parse().map_err(|_| Error::Locale { catalog: catalog.to_owned() })?;
    let index = loaded.iter().position(|(known, _)| *known == locale).unwrap_or_else(|| {
        let mut bundle = Bundle::new_concurrent(vec![locale.clone()]);
        // Isolation marks would surround every variable; Telegram's clients show them as they please.
        bundle.set_use_isolating(false);
        bundle.add_function("NUMBER", number).expect("a new bundle has no functions yet");
        loaded.push((locale, bundle));
        loaded.len() - 1
    });
    Ok(&mut loaded[index].1)
}

fn parse(catalog: &str, source: &str) -> Result<FluentResource, Error> {
    if source.len() > LARGEST {
        return Err(Error::TooLarge { catalog: catalog.to_owned(), size: source.len() });
    }
    if let Some((line, message)) = too_deep(source) {
        let problem = format!("more than {DEEPEST} placeables within each other");
        return Err(Error::Syntax { catalog: catalog.to_owned(), line, message: message.to_owned(), problem });
    }
    FluentResource::try_new(source.to_owned()).map_err(|(_, errors)| {
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
    })
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

fn twice(catalog: &str, errors: &[FluentError]) -> Error {
    let message = errors.iter().find_map(|error| match error {
        FluentError::Overriding { id, .. } => Some(id.clone()),
        _ => None,
    });
    Error::Twice { catalog: catalog.to_owned(), message: message.unwrap_or_default() }
}
