//! `[i18n]`: translations.

use std::path::PathBuf;

use unic_langid::LanguageIdentifier;

use super::reader::Reader;
use super::tree::Node;
use super::units;

/// `[i18n]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct I18n {
    /// `default_locale`: what is spoken to whoever's language has no catalog; `"en"`.
    pub default_locale: String,
    /// `locales`: a folder with `PLUGIN/LOCALE.ftl` files that go before the plugins' own texts. None by default.
    pub locales: Option<PathBuf>,
}

impl I18n {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let default_locale = section.value("default_locale", locale).unwrap_or_else(|| "en".to_owned());
        let locales = section.path("locales");
        section.finish();
        Self { default_locale, locales }
    }
}

fn locale(node: &Node) -> Result<String, String> {
    let text = units::text(node)?;
    match text.parse::<LanguageIdentifier>() {
        Ok(locale) => Ok(locale.to_string()),
        Err(_) => units::expected("a language tag such as \"en\" or \"pt-BR\"", node),
    }
}
