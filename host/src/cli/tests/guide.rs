//! What the documentation tells people to write is read by the same code that will read it: `toml` blocks by the reader of
//! `bot.toml`, commands in `sh` blocks by the command line.

use std::path::PathBuf;

use super::*;

/// A block of code of one language, with the place where it begins.
struct Block {
    place: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn blocks(language: &str) -> Vec<Block> {
    let mut files = ["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)).to_vec();
    for folder in ["docs", "docs/guide"] {
        let pages = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(pages.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut inside = false;
        let mut ours = false;
        for (number, line) in text.lines().enumerate() {
            if let Some(opened) = line.strip_prefix("```") {
                inside = !inside;
                ours = inside && opened == language;
                if ours {
                    let name = file.strip_prefix(root()).unwrap().display();
                    found.push(Block { place: format!("{name}:{}", number + 1), text: String::new() });
                }
            } else if ours {
                let block = found.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
    }
    found
}

#[test]
fn every_configuration_of_the_documentation_is_read() {
    let blocks = blocks("toml");
    // Tokens of their own: two bots with the same would be a problem.
    let token = |number: u8| format!("{number}23456:{}", "A".repeat(35));
    let variables = [
        ("BOT_TOKEN", token(1)),
        ("SHOP_TOKEN", token(2)),
        ("DESK_TOKEN", token(3)),
        // It is hidden in all texts of the process from then on, so it is none that stands anywhere else.
        ("WEBHOOK_SECRET", "told-to-Telegram-alone".to_owned()),
        ("PAY_KEY", "what-the-shop-pays-with".to_owned()),
    ];
    for Block { place, text } in &blocks {
        let whole = completed(text);
        let environment = variables.iter().cloned().collect();
        let read = Config::parse(Path::new("/srv/bot.toml"), &whole, &environment, LoadOptions::default());
        if let Err(error) = read {
            panic!("{place}: {error}\n{whole}");
        }
    }
    assert!(blocks.len() >= 8, "only {} blocks were found", blocks.len());
}

/// With what a part of a configuration leaves out: the token, and the paths of plugins of which only a part is shown.
fn completed(text: &str) -> String {
    const BOT: &str = "[bot]\ntoken = { env = \"BOT_TOKEN\" }\n";
    let mut whole = match text.contains("[bot]\n") {
        true if text.contains("token = ") => text.to_owned(),
        true => text.replace("[bot]\n", BOT),
        false if text.contains("[bots.") => text.to_owned(),
        false => format!("{BOT}{text}"),
    };
    let parts = text.lines().filter_map(|line| line.strip_prefix("[plugins.")?.split_once(['.', ']']));
    let names: std::collections::BTreeSet<_> = parts.map(|(name, _)| name).collect();
    for name in names.into_iter().filter(|name| !text.contains(&format!("[plugins.{name}]"))) {
        whole.push_str(&format!("[plugins.{name}]\npath = \"{name}.wasm\"\n"));
    }
    whole
}

#[test]
fn every_command_of_the_documentation_is_one() {
    let mut commands = 0;
    for Block { place, text } in blocks("sh") {
        for words in text.lines().flat_map(simple_commands) {
            let words: Vec<_> = words.into_iter().skip_while(|word| word.contains('=')).collect();
            if words.first().is_some_and(|program| program.rsplit('/').next() == Some("botyard")) {
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{place}: {words:?}: {}", parsed.unwrap_err());
                commands += 1;
            }
        }
    }
    assert!(commands >= 30, "only {commands} commands were found");
}

/// The words of each command in a line, as a shell takes them apart: as far as the documentation needs it.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | '<' | '>') => {
                commands.last_mut().unwrap().extend(word.take());
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands
}

#[test]
fn lines_are_taken_apart_as_a_shell_does() {
    let line = "A=1 botyard call - --state 'a=\"b c\"' && x | botyard dead # list";
    let expected =
        [vec!["A=1", "botyard", "call", "-", "--state", "a=\"b c\""], vec![], vec!["x"], vec!["botyard", "dead"]];
    assert_eq!(simple_commands(line), expected);
}
