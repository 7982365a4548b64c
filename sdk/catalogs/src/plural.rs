//! The plural forms of the languages: CLDR's rules (release 46), cardinal and ordinal.
//!
//! The rules are written down here, since the ones that come with Fluent for Rust (`intl_pluralrules` 7.0.2) lose the
//! remainder where a rule names a range: 103 in Arabic and 22 in Belarusian come out wrong.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use unic_langid::LanguageIdentifier;

/// As CLDR names them.
pub(crate) const FORMS: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];

/// From a number to its form.
pub(crate) type Rule = fn(&Operands) -> &'static str;

/// What rules look at, named as CLDR does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operands {
    /// The whole part.
    i: u64,
    /// Digits of the fraction, and the fraction itself, with zeros at its end.
    v: usize,
    f: u64,
    /// The same without them.
    t: u64,
}

impl Operands {
    /// None for numbers beyond counting.
    pub(crate) fn of(whole: &str, fraction: &str) -> Option<Self> {
        let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
        // Of a longer fraction the beginning is enough: that it is none, and how it ends, no rule asks.
        let fraction = fraction.get(..18).unwrap_or(fraction);
        let (f, t) = (number(fraction)?, number(fraction.trim_end_matches('0'))?);
        Some(Self { i: number(whole)?, v: fraction.len(), f, t })
    }

    /// The number where it is a whole one, however it is written: `n` in the rules.
    fn n(&self) -> Option<u64> {
        (self.t == 0).then_some(self.i)
    }

    fn is(&self, numbers: &[u64]) -> bool {
        self.n().is_some_and(|n| numbers.contains(&n))
    }

    fn within(&self, range: RangeInclusive<u64>) -> bool {
        self.n().is_some_and(|n| range.contains(&n))
    }

    /// `n % by`; none that equals anything where there is a fraction.
    fn n_mod(&self, by: u64) -> u64 {
        self.n().map_or(u64::MAX, |n| n % by)
    }

    /// A whole number of millions, without a fraction.
    fn millions(&self) -> bool {
        self.v == 0 && self.i != 0 && self.i.is_multiple_of(1_000_000)
    }

    fn just_one(&self) -> bool {
        self.i == 1 && self.v == 0
    }
}

/// The first form whose condition holds.
macro_rules! forms {
    ($o:ident: $($form:ident if $condition:expr),* $(,)?) => {
        |$o| { $(if $condition { return stringify!($form); })* "other" }
    };
}

/// The rule for quantities.
#[expect(clippy::nonminimal_bool, reason = "the conditions stand as in CLDR")]
pub(crate) fn cardinal(locale: &LanguageIdentifier) -> Rule {
    match locale.language.as_str() {
        "am" | "as" | "bn" | "doi" | "fa" | "gu" | "hi" | "kn" | "pcm" | "zu" => {
            forms!(o: one if o.i == 0 || o.is(&[1]))
        }
        "ff" | "hy" | "kab" => forms!(o: one if o.i <= 1),
        "ast" | "de" | "en" | "et" | "fi" | "fy" | "gl" | "ia" | "ie" | "io" | "lij" | "nl" | "sc" | "sv" | "sw"
        | "ur" | "yi" => forms!(o: one if o.just_one()),
        "si" => forms!(o: one if o.within(0..=1) || (o.i == 0 && o.f == 1)),
        "ak" | "bho" | "csw" | "guw" | "ln" | "mg" | "nso" | "pa" | "ti" | "wa" => forms!(o: one if o.within(0..=1)),
        "tzm" => forms!(o: one if o.within(0..=1) || o.within(11..=99)),
        "af" | "an" | "asa" | "az" | "bal" | "bem" | "bez" | "bg" | "brx" | "ce" | "cgg" | "chr" | "ckb" | "dv"
        | "ee" | "el" | "eo" | "eu" | "fo" | "fur" | "gsw" | "ha" | "haw" | "hu" | "jgo" | "jmc" | "ka" | "kaj"
        | "kcg" | "kk" | "kkj" | "kl" | "ks" | "ksb" | "ku" | "ky" | "lb" | "lg" | "mas" | "mgo" | "ml" | "mn"
        | "mr" | "nah" | "nb" | "nd" | "ne" | "nn" | "nnh" | "no" | "nr" | "ny" | "nyn" | "om" | "or" | "os"
        | "pap" | "ps" | "rm" | "rof" | "rwk" | "saq" | "sd" | "sdh" | "seh" | "sn" | "so" | "sq" | "ss" | "ssy"
        | "st" | "syr" | "ta" | "te" | "teo" | "tig" | "tk" | "tn" | "tr" | "ts" | "ug" | "uz" | "ve" | "vo"
        | "vun" | "wae" | "xh" | "xog" => {
            forms!(o: one if o.is(&[1]))
        }
        "da" => forms!(o: one if o.is(&[1]) || (o.t != 0 && o.i <= 1)),
        "is" => forms!(o: one if (o.t == 0 && o.i % 10 == 1 && o.i % 100 != 11) || (o.t % 10 == 1 && o.t % 100 != 11)),
        "mk" => forms!(o: one if (o.v == 0 && o.i % 10 == 1 && o.i % 100 != 11) || (o.f % 10 == 1 && o.f % 100 != 11)),
        "ceb" | "fil" | "tl" => forms!(o:
            one if (o.v == 0 && (1..=3).contains(&o.i)) || (o.v == 0 && ![4, 6, 9].contains(&(o.i % 10)))
                || (o.v != 0 && ![4, 6, 9].contains(&(o.f % 10)))
        ),
        "lv" | "prg" => forms!(o:
            zero if o.n_mod(10) == 0 || (11..=19).contains(&o.n_mod(100)) || (o.v == 2 && (11..=19).contains(&(o.f % 100))),
            one if (o.n_mod(10) == 1 && o.n_mod(100) != 11) || (o.v == 2 && o.f % 10 == 1 && o.f % 100 != 11)
                || (o.v != 2 && o.f % 10 == 1),
        ),
        "lag" => forms!(o: zero if o.is(&[0]), one if o.i <= 1),
        "blo" | "ksh" => forms!(o: zero if o.is(&[0]), one if o.is(&[1])),
        "he" | "iw" => forms!(o: one if o.just_one() || (o.i == 0 && o.v != 0), two if o.i == 2 && o.v == 0),
        "iu" | "naq" | "sat" | "se" | "sma" | "smi" | "smj" | "smn" | "sms" => {
            forms!(o: one if o.is(&[1]), two if o.is(&[2]))
        }
        "shi" => forms!(o: one if o.i == 0 || o.is(&[1]), few if o.within(2..=10)),
        "mo" | "ro" => {
            forms!(o: one if o.just_one(), few if o.v != 0 || o.is(&[0]) || (1..=19).contains(&o.n_mod(100)))
        }
        "bs" | "hr" | "sh" | "sr" => forms!(o:
            one if (o.v == 0 && o.i % 10 == 1 && o.i % 100 != 11) || (o.f % 10 == 1 && o.f % 100 != 11),
            few if (o.v == 0 && (2..=4).contains(&(o.i % 10)) && !(12..=14).contains(&(o.i % 100)))
                || ((2..=4).contains(&(o.f % 10)) && !(12..=14).contains(&(o.f % 100))),
        ),
        "pt" if locale.region.is_some_and(|region| region.as_str() == "PT") => {
            forms!(o: one if o.just_one(), many if o.millions())
        }
        "fr" | "pt" => forms!(o: one if o.i <= 1, many if o.millions()),
        "ca" | "it" | "lld" | "scn" | "vec" => forms!(o: one if o.just_one(), many if o.millions()),
        "es" => forms!(o: one if o.is(&[1]), many if o.millions()),
        "gd" => forms!(o: one if o.is(&[1, 11]), two if o.is(&[2, 12]), few if o.within(3..=10) || o.within(13..=19)),
        "sl" => forms!(o:
            one if o.v == 0 && o.i % 100 == 1,
            two if o.v == 0 && o.i % 100 == 2,
            few if o.v != 0 || (3..=4).contains(&(o.i % 100)),
        ),
        "dsb" | "hsb" => forms!(o:
            one if (o.v == 0 && o.i % 100 == 1) || o.f % 100 == 1,
            two if (o.v == 0 && o.i % 100 == 2) || o.f % 100 == 2,
            few if (o.v == 0 && (3..=4).contains(&(o.i % 100))) || (3..=4).contains(&(o.f % 100)),
        ),
        "cs" | "sk" => forms!(o: one if o.just_one(), few if (2..=4).contains(&o.i) && o.v == 0, many if o.v != 0),
        "pl" => forms!(o:
            one if o.just_one(),
            few if o.v == 0 && (2..=4).contains(&(o.i % 10)) && !(12..=14).contains(&(o.i % 100)),
            many if o.v == 0,
        ),
        "be" => forms!(o:
            one if o.n_mod(10) == 1 && o.n_mod(100) != 11,
            few if (2..=4).contains(&o.n_mod(10)) && !(12..=14).contains(&o.n_mod(100)),
            many if o.t == 0,
        ),
        "lt" => forms!(o:
            one if o.n_mod(10) == 1 && !(11..=19).contains(&o.n_mod(100)),
            few if (2..=9).contains(&o.n_mod(10)) && !(11..=19).contains(&o.n_mod(100)),
            many if o.f != 0,
        ),
        "ru" | "uk" => forms!(o:
            one if o.v == 0 && o.i % 10 == 1 && o.i % 100 != 11,
            few if o.v == 0 && (2..=4).contains(&(o.i % 10)) && !(12..=14).contains(&(o.i % 100)),
            many if o.v == 0,
        ),
        "br" => forms!(o:
            one if o.n_mod(10) == 1 && ![11, 71, 91].contains(&o.n_mod(100)),
            two if o.n_mod(10) == 2 && ![12, 72, 92].contains(&o.n_mod(100)),
            few if [3, 4, 9].contains(&o.n_mod(10)) && ![1, 7, 9].contains(&(o.n_mod(100) / 10)),
            many if !o.is(&[0]) && o.n_mod(1_000_000) == 0,
        ),
        "mt" => forms!(o:
            one if o.is(&[1]),
            two if o.is(&[2]),
            few if o.is(&[0]) || (3..=10).contains(&o.n_mod(100)),
            many if (11..=19).contains(&o.n_mod(100)),
        ),
        "ga" => forms!(o: one if o.is(&[1]), two if o.is(&[2]), few if o.within(3..=6), many if o.within(7..=10)),
        "gv" => forms!(o:
            one if o.v == 0 && o.i % 10 == 1,
            two if o.v == 0 && o.i % 10 == 2,
            few if o.v == 0 && (o.i % 100).is_multiple_of(20),
            many if o.v != 0,
        ),
        "kw" => forms!(o:
            zero if o.is(&[0]),
            one if o.is(&[1]),
            two if [2, 22, 42, 62, 82].contains(&o.n_mod(100))
                || (o.n_mod(1_000) == 0
                    && ((1_000..=20_000).contains(&o.n_mod(100_000))
                        || [40_000, 60_000, 80_000].contains(&o.n_mod(100_000))))
                || o.n_mod(1_000_000) == 100_000,
            few if [3, 23, 43, 63, 83].contains(&o.n_mod(100)),
            many if [1, 21, 41, 61, 81].contains(&o.n_mod(100)),
        ),
        "ar" | "ars" => forms!(o:
            zero if o.is(&[0]),
            one if o.is(&[1]),
            two if o.is(&[2]),
            few if (3..=10).contains(&o.n_mod(100)),
            many if (11..=99).contains(&o.n_mod(100)),
        ),
        "cy" => forms!(o:
            zero if o.is(&[0]), one if o.is(&[1]), two if o.is(&[2]), few if o.is(&[3]), many if o.is(&[6])
        ),
        _ => forms!(o: other if o.i == 0),
    }
}

/// The rule for places in a row: first, second, third.
pub(crate) fn ordinal(locale: &LanguageIdentifier) -> Rule {
    match locale.language.as_str() {
        "sv" => forms!(o: one if [1, 2].contains(&o.n_mod(10)) && ![11, 12].contains(&o.n_mod(100))),
        "bal" | "fil" | "fr" | "ga" | "hy" | "lo" | "mo" | "ms" | "ro" | "tl" | "vi" => forms!(o: one if o.is(&[1])),
        "hu" => forms!(o: one if o.is(&[1, 5])),
        "ne" => forms!(o: one if o.within(1..=4)),
        "be" => forms!(o: few if [2, 3].contains(&o.n_mod(10)) && ![12, 13].contains(&o.n_mod(100))),
        "uk" => forms!(o: few if o.n_mod(10) == 3 && o.n_mod(100) != 13),
        "tk" => forms!(o: few if [6, 9].contains(&o.n_mod(10)) || o.is(&[10])),
        "kk" => forms!(o: many if [6, 9].contains(&o.n_mod(10)) || (o.n_mod(10) == 0 && !o.is(&[0]))),
        "it" | "lld" | "sc" | "scn" | "vec" => forms!(o: many if o.is(&[8, 11, 80, 800])),
        "lij" => forms!(o: many if o.is(&[8, 11]) || o.within(80..=89) || o.within(800..=899)),
        "ka" => forms!(o:
            one if o.i == 1,
            many if o.i == 0 || (2..=20).contains(&(o.i % 100)) || [40, 60, 80].contains(&(o.i % 100)),
        ),
        "sq" => forms!(o: one if o.is(&[1]), many if o.n_mod(10) == 4 && o.n_mod(100) != 14),
        "kw" => forms!(o:
            one if o.within(1..=4) || ((1..=4).contains(&(o.n_mod(100) % 20)) && o.n_mod(100) < 100),
            many if o.n_mod(100) == 5,
        ),
        "en" => forms!(o:
            one if o.n_mod(10) == 1 && o.n_mod(100) != 11,
            two if o.n_mod(10) == 2 && o.n_mod(100) != 12,
            few if o.n_mod(10) == 3 && o.n_mod(100) != 13,
        ),
        "mr" => forms!(o: one if o.is(&[1]), two if o.is(&[2, 3]), few if o.is(&[4])),
        "gd" => forms!(o: one if o.is(&[1, 11]), two if o.is(&[2, 12]), few if o.is(&[3, 13])),
        "ca" => forms!(o: one if o.is(&[1, 3]), two if o.is(&[2]), few if o.is(&[4])),
        "mk" => forms!(o:
            one if o.i % 10 == 1 && o.i % 100 != 11,
            two if o.i % 10 == 2 && o.i % 100 != 12,
            many if [7, 8].contains(&(o.i % 10)) && ![17, 18].contains(&(o.i % 100)),
        ),
        "az" => forms!(o:
            one if [1, 2, 5, 7, 8].contains(&(o.i % 10)) || [20, 50, 70, 80].contains(&(o.i % 100)),
            few if [3, 4].contains(&(o.i % 10)) || (o.i % 100 == 0 && o.i % 1_000 != 0),
            many if o.i == 0 || o.i % 10 == 6 || [40, 60, 90].contains(&(o.i % 100)),
        ),
        "gu" | "hi" => forms!(o: one if o.is(&[1]), two if o.is(&[2, 3]), few if o.is(&[4]), many if o.is(&[6])),
        "as" | "bn" => forms!(o:
            one if o.is(&[1, 5, 7, 8, 9, 10]), two if o.is(&[2, 3]), few if o.is(&[4]), many if o.is(&[6])
        ),
        "or" => forms!(o:
            one if o.is(&[1, 5, 7, 8, 9]), two if o.is(&[2, 3]), few if o.is(&[4]), many if o.is(&[6])
        ),
        "cy" => forms!(o:
            zero if o.is(&[0, 7, 8, 9]), one if o.is(&[1]), two if o.is(&[2]), few if o.is(&[3, 4]), many if o.is(&[5, 6])
        ),
        _ => forms!(o: other if o.i == 0),
    }
}

/// The forms of a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forms {
    /// Those that whole numbers take, each with one that does.
    pub(crate) whole: Vec<(&'static str, u64)>,
    /// All of them.
    pub(crate) all: BTreeSet<&'static str>,
}

impl Forms {
    pub(crate) fn of(locale: &LanguageIdentifier, ordinal: bool) -> Self {
        let rule = if ordinal { self::ordinal(locale) } else { cardinal(locale) };
        let form = |whole: u64, fraction: &str| Some(rule(&Operands::of(&whole.to_string(), fraction)?));
        let mut whole: Vec<(&'static str, u64)> = Vec::new();
        for number in 0..=200 {
            if let Some(form) = form(number, "")
                && whole.iter().all(|(known, _)| *known != form)
            {
                whole.push((form, number));
            }
        }
        let seldom = [(1_000_000, ""), (0, "0"), (0, "5"), (1, "0"), (1, "5"), (2, "5"), (10, "0"), (21, "1")];
        let seldom = seldom.into_iter().filter_map(|(whole, fraction)| form(whole, fraction));
        let all = whole.iter().map(|(form, _)| *form).chain(seldom).collect();
        Self { whole, all }
    }
}
