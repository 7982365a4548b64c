//! The guide's examples as tests: every `rust` block of its chapters is compiled, and run where it has a `main` that does
//! something. There is nothing else in here, and nothing at all outside of `cargo test --doc`.

macro_rules! chapters {
    ($($name:ident $file:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../../docs/", $file))]
            mod $name {}
        )*
    };
}

chapters! {
    readme "README.md",
    testing "testing.md",
    bot_api "guide/bot-api.md",
    broadcasts "guide/broadcasts.md",
    buttons "guide/buttons.md",
    commands "guide/commands.md",
    concepts "guide/concepts.md",
    conversations "guide/conversations.md",
    errors "guide/errors.md",
    files "guide/files.md",
    first_plugin "guide/first-plugin.md",
    groups "guide/groups.md",
    handlers "guide/handlers.md",
    http "guide/http.md",
    inline_payments_polls "guide/inline-payments-polls.md",
    jobs "guide/jobs.md",
    sending "guide/sending.md",
    storage "guide/storage.md",
    timers "guide/timers.md",
    translations "guide/translations.md",
}
