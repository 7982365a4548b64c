//! Files that are not as they should be: an error with its place, and never a secret in it.

use super::*;

/// Every key there is, with a token written into it.
fn whole() -> String {
    let text = include_str!("../../../../bot.toml").replace("{ env = \"BOT_TOKEN\" }", &format!("\"{TOKEN_VALUE}\""));
    assert!(text.contains(TOKEN_VALUE));
    text
}

proptest::proptest! {
    #[test]
    fn no_change_to_a_valid_file_makes_it_panic_or_tells_a_secret(
        changes in proptest::collection::vec(
            (proptest::prelude::any::<proptest::sample::Index>(), 0..60_usize, "[\\[\\]{}=\"'#,.\n\u{0}é0-9a-z]{0,4}"), 1..5),
        around_the_token in proptest::prelude::any::<bool>(),
    ) {
        let mut text = whole();
        for (at, gone, new) in &changes {
            let (from, to) = match (around_the_token, text.find("token = ")) {
                (true, Some(token)) => (token, token + 10),
                _ => (0, text.len()),
            };
            let from = text.floor_char_boundary((from + at.index(to - from)).min(text.len()));
            let gone = if around_the_token { gone % 4 } else { *gone };
            let to = text.floor_char_boundary((from + gone).min(text.len()));
            text.replace_range(from..to, new);
        }
        if let Err(error) = load(&text, NO_VARIABLES) {
            let error = error.to_string();
            proptest::prop_assert!(error.lines().all(|line| line.starts_with("/srv/bot.toml:")), "{error}");
            for part in [10..20, 30..TOKEN_VALUE.len()].map(|part| TOKEN_VALUE.get(part).unwrap()) {
                proptest::prop_assert!(!error.contains(part), "{error}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_an_error_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.toml");
    for bytes in [&b"\xff\xfe[bot]\n"[..], b"[bot]\ntoken = \"\xc3\x28\"\n", b"\0", &[0x80; 4096]] {
        std::fs::write(&path, bytes).unwrap();
        let error = Config::load(&path, LoadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("bot.toml"), "{error}");
    }
}
