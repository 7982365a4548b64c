//! Numbers, and how a language writes them: what groups the digits and what stands before the fraction. Digits are Latin
//! ones everywhere.
//!
//! Only what a catalog asks for with `NUMBER` is written like that; a bare `{ $n }` is a number as a program writes it,
//! since it may well be the number of an order.

use unic_langid::LanguageIdentifier;

use crate::Value;
use crate::plural::Operands;

/// Digits of a fraction where a catalog does not say how many at most.
const USUAL_FRACTION: usize = 3;
/// Digits that a catalog can ask for, before the point or behind it.
pub(crate) const MOST_DIGITS: usize = 15;

const NO_BREAK: char = '\u{a0}';
const NARROW: char = '\u{202f}';

/// What is said about a number's form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// The language's form, and not a program's.
    is_form: bool,
    pub(crate) is_ordinal: bool,
    ungrouped: bool,
    least_fraction: usize,
    most_fraction: Option<usize>,
    least_whole: usize,
}

impl Style {
    /// That of `NUMBER` without options.
    pub(crate) fn form() -> Self {
        Self { is_form: true, ..Self::default() }
    }

    /// That of a number as it stands in a catalog: with all digits of its fraction.
    pub(crate) fn with_fraction(digits: usize) -> Self {
        Self { least_fraction: digits, ..Self::default() }
    }

    /// An option that is a text.
    pub(crate) fn say(&mut self, option: &str, value: &str) {
        match (option, value) {
            ("type", "ordinal") => self.is_ordinal = true,
            ("useGrouping", "false") => self.ungrouped = true,
            _ => {}
        }
    }

    /// An option that is a number. What is no number of digits is taken for the nearest one.
    pub(crate) fn set(&mut self, option: &str, value: f64) {
        let digits = (value as usize).min(MOST_DIGITS);
        match option {
            "minimumFractionDigits" => self.least_fraction = digits,
            "maximumFractionDigits" => self.most_fraction = Some(digits),
            "minimumIntegerDigits" => self.least_whole = digits,
            _ => {}
        }
    }
}

/// A number, and how it is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    exact: Exact,
    pub(crate) style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Exact {
    Integer(i64),
    Float(f64),
}

/// A number's digits as they are seen.
struct Digits {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Number {
    pub(crate) fn new(value: f64, style: Style) -> Self {
        Self { exact: Exact::Float(value), style }
    }

    /// A text is none: 0.
    pub(crate) fn of(value: &Value) -> Self {
        let exact = match value {
            Value::Integer(number) => Exact::Integer(*number),
            Value::Number(number) => Exact::Float(*number),
            Value::Text(_) => Exact::Integer(0),
        };
        Self { exact, style: Style::default() }
    }

    pub(crate) fn styled(self, style: &Style) -> Self {
        let least_fraction = style.least_fraction.max(self.style.least_fraction);
        Self { style: Style { least_fraction, ..style.clone() }, ..self }
    }

    pub(crate) fn value(&self) -> f64 {
        match self.exact {
            Exact::Integer(number) => number as f64,
            Exact::Float(number) => number,
        }
    }

    /// None where it has no digits: it is infinite, or no number.
    fn digits(&self) -> Option<Digits> {
        let style = &self.style;
        let text = match self.exact {
            Exact::Integer(number) => number.unsigned_abs().to_string(),
            Exact::Float(number) if !number.is_finite() => return None,
            Exact::Float(number) if style.is_form => {
                let most = style.most_fraction.unwrap_or(USUAL_FRACTION).max(style.least_fraction);
                format!("{:.most$}", number.abs())
            }
            Exact::Float(number) => number.abs().to_string(),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let mut fraction = fraction.to_owned();
        while fraction.len() > style.least_fraction && fraction.ends_with('0') {
            fraction.pop();
        }
        while fraction.len() < style.least_fraction {
            fraction.push('0');
        }
        let width = style.least_whole;
        let whole = format!("{whole:0>width$}");
        let is_zero = whole.bytes().chain(fraction.bytes()).all(|digit| digit == b'0');
        Some(Digits { negative: self.value() < 0.0 && !is_zero, whole, fraction })
    }

    /// What plural rules look at; none for what can't be counted.
    pub(crate) fn operands(&self) -> Option<Operands> {
        let Digits { whole, fraction, .. } = self.digits()?;
        Operands::of(&whole, &fraction)
    }

    pub(crate) fn write(&self, form: Form) -> String {
        let Some(Digits { negative, whole, fraction }) = self.digits() else { return self.value().to_string() };
        let mut text = String::from(if negative { "-" } else { "" });
        if !self.style.is_form {
            text.push_str(&whole);
        } else {
            form.group(&whole, self.style.ungrouped, &mut text);
        }
        if !fraction.is_empty() {
            text.push(if self.style.is_form { form.point } else { '.' });
            text.push_str(&fraction);
        }
        text
    }
}

/// The form of one language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    group: char,
    point: char,
    /// Four digits alone are not grouped.
    sparing: bool,
    /// Thousands, then hundreds: 12,34,567.
    by_two: bool,
}

impl Form {
    pub(crate) fn of(locale: &LanguageIdentifier) -> Self {
        let region = locale.region.as_ref().map(|region| region.as_str()).unwrap_or_default();
        let form = |group, point| Self { group, point, sparing: false, by_two: false };
        let language = locale.language.as_str();
        match (language, region) {
            ("de", "CH" | "LI") => form('’', '.'),
            ("de", "AT") => form(NO_BREAK, ','),
            ("es", "MX" | "US" | "PE" | "GT" | "HN" | "NI" | "SV" | "PA" | "DO" | "PR" | "419") => form(',', '.'),
            ("pt", "PT" | "AO" | "MZ" | "CV") => Self { sparing: true, ..form(NO_BREAK, ',') },
            ("fr", "CH") => form(NARROW, ','),
            ("en", "IN") | ("hi" | "bn" | "ta" | "te" | "mr" | "gu" | "kn" | "ml" | "pa" | "or" | "as" | "ne", _) => {
                Self { by_two: true, ..form(',', '.') }
            }
            ("fr", _) => form(NARROW, ','),
            ("bg" | "pl" | "lv" | "et" | "ka", _) => Self { sparing: true, ..form(NO_BREAK, ',') },
            ("es" | "it", _) => Self { sparing: true, ..form('.', ',') },
            (
                "ru" | "uk" | "be" | "cs" | "sk" | "hu" | "lt" | "fi" | "sv" | "nb" | "nn" | "no" | "uz" | "kk" | "ky"
                | "hy" | "tk" | "tg" | "tt" | "sq" | "ab" | "os",
                _,
            ) => form(NO_BREAK, ','),
            (
                "de" | "pt" | "nl" | "tr" | "id" | "el" | "ro" | "mo" | "hr" | "sr" | "bs" | "sl" | "mk" | "vi" | "da"
                | "is" | "az" | "gl" | "ca" | "eu" | "fo" | "jv",
                _,
            ) => form('.', ','),
            _ => form(',', '.'),
        }
    }

    fn group(self, whole: &str, ungrouped: bool, text: &mut String) {
        let grouped = !ungrouped && whole.len() > if self.sparing { 4 } else { 3 };
        for (place, digit) in whole.char_indices() {
            let left = whole.len() - place;
            let begins_group = left == 3 || (left > 3 && (left - 3).is_multiple_of(if self.by_two { 2 } else { 3 }));
            if grouped && place > 0 && begins_group {
                text.push(self.group);
            }
            text.push(digit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(locale: &str) -> Form {
        Form::of(&locale.parse().unwrap())
    }

    #[test]
    fn each_language_writes_numbers_its_way() {
        for (locale, number, text) in [
            ("en", 1_234_567.5, "1,234,567.5"),
            ("en", -999.0, "-999"),
            ("en", 0.123_456, "0.123"),
            ("en", -0.000_01, "0"),
            ("uz", 1_234.0, "1\u{a0}234"),
            ("ru", 1_234_567.25, "1\u{a0}234\u{a0}567,25"),
            ("ru-RU", 12_345.0, "12\u{a0}345"),
            ("de", 1_234.5, "1.234,5"),
            ("de-CH", 1_234.5, "1’234.5"),
            ("fr", 1_234.5, "1\u{202f}234,5"),
            ("pl", 1_234.0, "1234"),
            ("pl", 12_345.0, "12\u{a0}345"),
            ("es", 1_234.5, "1234,5"),
            ("es-MX", 1_234.5, "1,234.5"),
            ("pt-BR", 1_234.5, "1.234,5"),
            ("hi", 1_234_567.0, "12,34,567"),
            ("ar", 1_234.0, "1,234"),
            ("xx", 1_234.0, "1,234"),
        ] {
            assert_eq!(Number::new(number, Style::form()).write(form(locale)), text, "{locale}");
        }
    }

    #[test]
    fn a_catalog_says_how_many_digits() {
        for (number, options, text) in [
            (5.0, &[("minimumFractionDigits", 2.0)] as &[_], "5.00"),
            (5.567, &[("maximumFractionDigits", 1.0)], "5.6"),
            (5.5, &[("minimumFractionDigits", 2.0), ("maximumFractionDigits", 1.0)], "5.50"),
            (7.0, &[("minimumIntegerDigits", 2.0)], "07"),
            (0.5, &[("maximumFractionDigits", 0.0)], "0"),
            (1.0, &[("minimumFractionDigits", f64::MAX)], "1.000000000000000"),
            (1.0, &[("minimumFractionDigits", -1.0)], "1"),
            (f64::INFINITY, &[], "inf"),
        ] {
            let mut style = Style::form();
            options.iter().for_each(|(option, value)| style.set(option, *value));
            assert_eq!(Number::new(number, style).write(form("en")), text);
        }
        let mut plain = Style::form();
        plain.say("useGrouping", "false");
        assert_eq!(Number::new(1_234.5, plain).write(form("ru")), "1234,5");
        let longest = Number { exact: Exact::Integer(i64::MIN), style: Style::form() };
        assert_eq!(longest.write(form("en")), "-9,223,372,036,854,775,808");
    }
}
