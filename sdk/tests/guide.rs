//! What the guide shows as whole files is what lies in `guide/`, where it is compiled: people copy it as it stands, so it can
//! have no hidden lines.

use botyard_sdk::test::Bot;

include!("guide/tea.rs");

/// The chapter has the file, to the letter, in a block of this kind.
fn shows(chapter: &str, kind: &str, file: &str) {
    let block = format!("```{kind}\n{file}```\n");
    assert!(chapter.contains(&block), "the chapter is to have this block:\n{block}");
}

#[test]
fn the_first_plugin_takes_orders() {
    shows(include_str!("../../docs/guide/first-plugin.md"), "rs", include_str!("guide/tea.rs"));
    let mut bot = Bot::<tea::Plugin>::new();
    assert_eq!(bot.text("/order green 2").texts(), ["2 × green tea, coming."]);
    assert_eq!(bot.text("/menu").texts(), ["Black or green. /order one."]);
}

#[test]
fn the_catalogs_are_those_that_the_examples_are_compiled_with() {
    let chapter = include_str!("../../docs/guide/translations.md");
    shows(chapter, "ftl", concat!("# locales/en.ftl\n", include_str!("guide/en.ftl")));
    shows(chapter, "ftl", concat!("# locales/ru.ftl\n", include_str!("guide/ru.ftl")));
}
