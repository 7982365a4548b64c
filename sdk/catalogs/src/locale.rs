//! Which catalogs to ask, and in which order. Pure and total: no language code is an error.

use fluent_langneg::{NegotiationStrategy, negotiate_languages};
use unic_langid::LanguageIdentifier;

/// Longer ones are not language codes, and not worth reading.
const LONGEST: usize = 64;

/// Reads a language code in any of the forms that are met: `pt-br`, `en_US`, `ru_RU.UTF-8`. What can't be
/// read is cut off from behind, subtag by subtag.
pub(super) fn parse(code: &str) -> Option<LanguageIdentifier> {
    let code = code.split(['.', '@']).next()?.trim();
    if code.len() > LONGEST {
        return None;
    }
    let code = code.replace('_', "-");
    let mut rest = code.as_str();
    loop {
        match rest.parse::<LanguageIdentifier>() {
            Ok(locale) if locale.language.is_empty() => return None,
            Ok(locale) => return Some(with_script(locale)),
            Err(_) => rest = rest.rsplit_once('-')?.0,
        }
    }
}

/// A language code as it is kept: none where nothing of it is a locale.
#[must_use]
pub fn normal(code: &str) -> Option<String> {
    parse(code).map(|locale| locale.to_string())
}

/// Where Chinese is written in the traditional script, a code without one means that.
fn with_script(mut locale: LanguageIdentifier) -> LanguageIdentifier {
    let traditional = locale.region.is_some_and(|region| matches!(region.as_str(), "TW" | "HK" | "MO"));
    if traditional && locale.language.as_str() == "zh" && locale.script.is_none() {
        locale.script = "Hant".parse().ok();
    }
    locale
}

/// The places in `available`, best first: the locale, its parents and relatives, then the default locale, then the
/// last resort.
pub(super) fn chain(
    wanted: Option<&LanguageIdentifier>,
    available: &[LanguageIdentifier],
    default: Option<&LanguageIdentifier>,
    last: Option<usize>,
) -> Vec<usize> {
    let mut chain = Vec::new();
    for wanted in wanted.into_iter().chain(default) {
        for found in negotiate_languages(&[wanted], available, None, NegotiationStrategy::Filtering) {
            let index = available.iter().position(|locale| locale == found);
            chain.extend(index.filter(|index| !chain.contains(index)));
        }
    }
    chain.extend(last.filter(|last| !chain.contains(last)));
    chain
}
