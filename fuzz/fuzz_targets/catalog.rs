//! A plugin's catalog, which is read when the plugin is loaded, and what is made of it for users: neither may panic, and
//! no text may grow beyond what a catalog can hold.
#![no_main]

use botyard_catalogs::{Catalogs, Markup, Value};
use libfuzzer_sys::fuzz_target;

const MOST: usize = 64 << 10;

fuzz_target!(|source: &str| {
    let all = match Catalogs::load(&[("en".to_owned(), source.to_owned())], None, "en") {
        Ok(all) => all,
        Err(error) => return assert!(error.to_string().contains("`en`"), "{error}"),
    };
    let keys = source.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key.trim());
    for key in keys.take(20) {
        std::hint::black_box((all.variables(key), all.texts(key).count()));
        for value in [Value::Text("_*<x>&".to_owned()), Value::Number(-0.5), Value::Integer(i64::MIN)] {
            let args = ["x", "n", "name"].map(|name| (name.to_owned(), value.clone()));
            for markup in [Markup::Plain, Markup::Html, Markup::MarkdownV2] {
                let made = all.translate("ru", key, &args, markup);
                assert!(made.is_none_or(|made| made.len() <= MOST));
            }
        }
    }
});
