//! How conditions are read, written and bounded. What they mean is a table (`cases.json`) that the host and the SDK's test
//! driver both go through.

use proptest::prelude::*;

use super::*;

const REGEX_BYTES: usize = 1 << 20;

fn parse(text: &str) -> Result<Condition, Error> {
    Condition::parse(text, REGEX_BYTES)
}

#[test]
fn what_is_written_is_read_again() {
    for (text, shown) in [
        ("private", "private"),
        ("private&group|channel", "private & group | channel"),
        ("private & (group | channel)", "private & (group | channel)"),
        ("!( private )", "!private"),
        ("!(private|group)", "!(private | group)"),
        ("! ! private", "!!private"),
        ("((private))", "private"),
        (r#"chat( -100 , 7 )&text("a\"b","\u0416")"#, r#"chat(-100, 7) & text("a\"b", "Ж")"#),
        (r#"text_matches("^\\d+$")"#, r#"text_matches("^\\d+$")"#),
    ] {
        let condition = parse(text).unwrap();
        assert_eq!(condition.to_string(), shown);
        assert_eq!(parse(shown).unwrap().to_string(), shown);
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (text, part) in [
        ("", "at byte 0: a test"),
        ("private &", "at byte 9: a test"),
        ("private group", "at byte 8: `&`, `|` or the end"),
        ("(private", "at byte 8: `)`"),
        ("chat(7", "`,` or `)`"),
        ("chat(7 8)", "`,` or `)`"),
        ("chat(x)", "a whole number"),
        ("chat(99999999999999999999)", "a whole number"),
        ("text(\"x)", "a text in quotes"),
        ("chat()", "`chat` takes one or more ids"),
        ("chat(\"7\")", "`chat` takes one or more ids"),
        ("has(7)", "`has` takes one or more texts"),
        ("private(7)", "`private` takes nothing"),
        ("text_matches(\"a\", \"b\")", "one regular expression"),
        ("text_matches(\"(\")", "is not a regular expression"),
        ("privat", "did you mean `private`?"),
        ("brand_new(7)", "a newer host may know it"),
        ("Private", "at byte 0"),
        ("private\u{a0}", "at byte 7"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn hostile_conditions_end_soon() {
    let deep = format!("{}private{}", "(".repeat(1_000), ")".repeat(1_000));
    assert_eq!(parse(&deep).unwrap_err(), Error::Deep);
    assert_eq!(parse(&format!("{}private", "!".repeat(1_000))).unwrap_err(), Error::Deep);
    assert_eq!(parse(&["private"; 65].join("&")).unwrap_err(), Error::Many);
    assert!(parse(&["private"; 64].join("|")).is_ok());
    assert!(matches!(parse(&format!("text(\"{}\")", "x".repeat(5_000))), Err(Error::Long(_))));
    for pattern in [r"\\w{100}", "(a{100}){1000}"] {
        let text = format!("text_matches(\"{pattern}\")");
        let error = Condition::parse(&text, 64 << 10).unwrap_err();
        assert!(matches!(error, Error::Regex { .. }) && error.to_string().len() < 600, "{error}");
    }
    let bomb = format!("{{\"x\":{}{},\"photo\":1}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse("has(\"photo\")").unwrap().holds(&Subject { content: &bomb, ..Subject::default() }));
    assert!(!parse("has(\"photo\")").unwrap().holds(&Subject { content: "[", ..Subject::default() }));
}

proptest! {
    /// Whatever comes is refused, or shown in a form that is read as the same.
    #[test]
    fn any_text_is_read_or_refused(text in r#"([a-z_]{0,4}|private|has|chat|[()&|!, ]|"[^\\"]{0,3}"|-?[0-9]{1,3}){0,12}"#) {
        if let Ok(condition) = parse(&text) {
            let shown = condition.to_string();
            prop_assert_eq!(parse(&shown).unwrap().to_string(), shown);
        }
    }
}
