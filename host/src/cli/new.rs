//! `botyard new`: a plugin to begin with, in a folder of its own, that builds, is tested and can be chatted with at once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::exit::{Exit, WrongArgument};
use super::say;

/// Begin a new plugin, in a folder of its own
///
/// The folder NAME gets a crate with a handler or two, a catalog of texts, a native test, a conversation
/// script, and a bot.toml to run it with. It builds and its tests pass as it is.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct New {
    /// What the plugin is called: a-z, 0-9, `-` and `_`
    name: String,
    /// What it begins as
    #[arg(long, short, value_enum, default_value_t = Template::Echo)]
    template: Template,
    /// The folder of the SDK, `sdk` in a clone of Botyard; found by itself when botyard runs from there
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

/// What a plugin begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Template {
    /// Says back what it is told
    Echo,
    /// A conversation with several steps and a state
    Form,
    /// Buttons that change their message
    Menu,
    /// Goods, a basket, an order: values that are kept
    Shop,
    /// Answers to `@bot text` in any chat
    Inline,
    /// Timers
    Reminder,
    /// Looks after a group: administrators, deleting
    Admin,
}

struct Content {
    code: &'static str,
    catalog: &'static str,
    script: &'static str,
    about: &'static str,
}

macro_rules! content {
    ($folder:literal, $about:literal) => {
        Content {
            code: include_str!(concat!("new/templates/", $folder, "/lib.rs")),
            catalog: include_str!(concat!("new/templates/", $folder, "/en.ftl")),
            script: include_str!(concat!("new/templates/", $folder, "/script.chat")),
            about: $about,
        }
    };
}

impl Template {
    fn content(self) -> Content {
        match self {
            Self::Echo => content!("echo", "Says back what it is told"),
            Self::Form => content!("form", "Asks for a name and an age"),
            Self::Menu => content!("menu", "A menu of buttons"),
            Self::Shop => content!("shop", "A small shop"),
            Self::Inline => content!("inline", "Answers inline queries"),
            Self::Reminder => content!("reminder", "Reminds people"),
            Self::Admin => content!("admin", "Keeps a group tidy"),
        }
    }
}

impl New {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let Self { name, template, sdk } = self;
        check_name(&name)?;
        let folder = Path::new(&name);
        if folder.symlink_metadata().is_ok() {
            let message = format!("{name} is there already, and stays as it is; choose another name, or move it away");
            return Err(WrongArgument(message).into());
        }
        let sdk = find_sdk(sdk)?;
        // All of it or nothing.
        let unfinished = PathBuf::from(format!(".{name}.{}.unfinished", std::process::id()));
        let written = write(&unfinished, &name, template, sdk.as_deref())
            .and_then(|()| Ok(fs::rename(&unfinished, folder)?))
            .with_context(|| format!("could not make the folder {name}"));
        if written.is_err() {
            fs::remove_dir_all(&unfinished).unwrap_or_default();
        }
        written?;
        say(&format!(
            "{name}: a plugin that you can change, with its tests and a bot.toml\n\nGo on with:\n  cd {name}\n  \
             botyard dev      Chat with it in a browser; every change of the source is there at once\n  \
             botyard test     Build it, and play the conversation in {name}.chat\n  \
             cargo test       Its own tests, at the end of src/lib.rs\n  \
             botyard run      Run it on Telegram, with the token from @BotFather in BOT_TOKEN\n"
        ));
        Ok(Exit::Done)
    }
}

fn write(folder: &Path, name: &str, template: Template, sdk: Option<&Path>) -> anyhow::Result<()> {
    let Content { code, catalog, script, about } = template.content();
    fs::create_dir_all(folder.join("src"))?;
    fs::create_dir_all(folder.join("locales"))?;
    let dependency = match sdk {
        Some(path) => format!("{{ path = {} }}", toml::Value::from(path.display().to_string())),
        None => format!("\"{}\"", env!("CARGO_PKG_VERSION")),
    };
    let files = [
        ("Cargo.toml", manifest(name, about, &dependency)),
        ("bot.toml", bot(name)),
        (".gitignore", "/target\n/*.wasm\n/data\n/data.*\n".to_owned()),
        ("src/lib.rs", code.replace("plugin_name", &name.replace('-', "_"))),
        ("locales/en.ftl", catalog.to_owned()),
    ];
    for (file, content) in files {
        fs::write(folder.join(file), content)?;
    }
    fs::write(folder.join(format!("{name}.chat")), script)?;
    Ok(())
}

fn manifest(name: &str, about: &str, sdk: &str) -> String {
    format!(
        "[package]
name = \"{name}\"
description = \"{about}\"
version = \"0.1.0\"
edition = \"2024\"
publish = false

[lib]
crate-type = [\"cdylib\", \"rlib\"] # cdylib: the plugin; rlib: its tests, which run natively

[dependencies]
botyard-sdk = {sdk}

[profile.release]
opt-level = \"s\"
lto = true
codegen-units = 1
panic = \"abort\"
strip = \"debuginfo\" # keeps the names of functions, so that backtraces can be read

# Wherever this folder lies, it is no part of a workspace around it.
[workspace]
"
    )
}

fn bot(name: &str) -> String {
    format!(
        "# The bot that this plugin is tried with. `botyard check` looks it through; the bot.toml of Botyard lists all keys.

[bot]
# From @BotFather. Neither `botyard dev` nor `botyard test` needs one.
token = {{ env = \"BOT_TOKEN\" }}
# The menu behind / is made of the commands' help texts; `commands = false` leaves it to @BotFather.

[plugins.{name}]
path = \"{name}.wasm\"
"
    )
}

/// Where the SDK is: as told, else beside the program's own source, else wherever cargo gets crates from.
fn find_sdk(told: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    if let Some(told) = told {
        if !is_sdk(&told) {
            let message = format!("{} is not the SDK; name the folder `sdk` in a clone of Botyard", told.display());
            return Err(WrongArgument(message).into());
        }
        return Ok(Some(told.canonicalize()?));
    }
    let program = std::env::current_exe().and_then(|program| program.canonicalize()).unwrap_or_default();
    Ok(program.ancestors().skip(1).map(|folder| folder.join("sdk")).find(|folder| is_sdk(folder)))
}

fn is_sdk(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    manifest.lines().any(|line| line.trim() == "name = \"botyard-sdk\"")
}

/// It names the folder, the crate, a Rust module and the plugin, and has to be right as each of them.
fn check_name(name: &str) -> Result<(), WrongArgument> {
    const TAKEN: [&str; 52] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
        "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
        "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
        "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
        "test",
    ];
    const CRATES: [&str; 7] = ["alloc", "botyard", "botyard-sdk", "core", "proc-macro", "serde", "std"];
    let fits = name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
    if !fits {
        return Err(WrongArgument(format!(
            "{name:?} can't name a plugin: up to 64 of a-z, 0-9, `-` and `_`, beginning with a letter, such as tea-shop"
        )));
    }
    if TAKEN.contains(&name) || CRATES.contains(&name.replace('_', "-").as_str()) {
        return Err(WrongArgument(format!("`{name}` means something to Rust and can't name a plugin; try my-{name}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_to_be_right_for_a_folder_a_crate_and_a_module() {
        for name in ["echo", "tea-shop", "a1_b", &"a".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "Echo", "1st", "-x", "a b", "../x", "a/b", "é", "fn", "core", "botyard_sdk", &"a".repeat(65)]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn every_template_is_whole() {
        for template in Template::value_variants() {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().join("tea-shop");
            write(&folder, "tea-shop", *template, None).unwrap();
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
            assert!(read("src/lib.rs").contains("mod tea_shop {"), "{template:?}");
            assert!(read("src/lib.rs").contains("use super::tea_shop::"), "{template:?}");
            let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
            assert_eq!(manifest["package"]["name"].as_str(), Some("tea-shop"));
            // A text that stands in both would be changed in the one that does not count.
            let code = read("src/lib.rs");
            let doubled = code.lines().find(|line| line.contains("t!(ctx, ") && line.contains("; \""));
            assert_eq!(doubled, None, "{template:?}");
            // Every text of the source is in the catalog.
            let catalog = read("locales/en.ftl");
            for piece in
                read("src/lib.rs").split("t!(ctx, \"").skip(1).chain(read("src/lib.rs").split("help = \"").skip(1))
            {
                let key = piece.split('"').next().unwrap();
                assert!(catalog.lines().any(|line| line.starts_with(&format!("{key} = "))), "{template:?}: {key}");
            }
        }
    }

    #[test]
    fn only_the_sdk_is_taken_for_the_sdk() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(is_sdk(&here.join("../sdk")) && !is_sdk(here));
        assert_eq!(find_sdk(Some(here.join("../sdk"))).unwrap(), Some(here.join("../sdk").canonicalize().unwrap()));
        assert_eq!(Exit::of(&find_sdk(Some(here.to_owned())).unwrap_err()), Exit::Usage);
    }
}
