//! The bot that a command for plugin authors works with: a `bot.toml`, or plugins named on the command line, or the crate
//! in the current folder. And that crate itself, where there is one, so that what is tested is what was written.

use std::path::{Path, PathBuf};

use super::build::{Package, toolchain};
use super::exit::WrongArgument;
use crate::config::{self, Config, Environment, LoadOptions};

/// A configuration as text, real or made up.
pub(super) struct BotFile {
    /// Where it is, or would be.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) workshop: Option<Workshop>,
}

/// A plugin's crate, and where the bot looks for its file.
pub(super) struct Workshop {
    pub(super) package: Package,
    pub(super) folder: PathBuf,
    pub(super) out: PathBuf,
}

impl BotFile {
    /// `plugins` are `[NAME=]FILE.wasm`; with them nothing else is looked at.
    pub(super) fn find(path: &Path, plugins: &[String]) -> anyhow::Result<Self> {
        if !plugins.is_empty() {
            let named: Vec<(String, PathBuf)> = plugins.iter().map(|plugin| named(plugin)).collect::<Result<_, _>>()?;
            return Ok(Self { path: std::path::absolute(path)?, text: made_of(&named)?, workshop: None });
        }
        let path = std::path::absolute(path)?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let package = is_crate_of_plugin(&folder).then(|| Package::find(&folder)).transpose()?;
        match (std::fs::read_to_string(&path), package) {
            (Ok(text), package) => {
                let workshop = package.and_then(|package| Workshop::of(package, &folder, &path, &text));
                Ok(Self { path, text, workshop })
            }
            (Err(error), Some(package)) if error.kind() == std::io::ErrorKind::NotFound => {
                let out = package.target.join("botyard").join(format!("{}.wasm", package.name));
                let text = made_of(&[(package.name.clone(), out.clone())])?;
                Ok(Self { path, text, workshop: Some(Workshop { package, folder, out }) })
            }
            (Err(error), _) if error.kind() == std::io::ErrorKind::NotFound => Err(config::Error::Missing(path).into()),
            (Err(source), _) => Err(config::Error::Unreadable { path, source }.into()),
        }
    }

    /// The configuration, without a need for a token.
    pub(super) fn config(&self) -> anyhow::Result<Config> {
        let options = LoadOptions { token_optional: true };
        Ok(Config::parse(&self.path, &self.text, &Environment::of_process(), options)?)
    }

    /// The crate of a plugin in the bot's folder.
    pub(super) fn take_workshop(&mut self) -> Option<Workshop> {
        self.workshop.take()
    }

    /// Brings the plugin's file up to date, where its crate is here. Quietly: cargo speaks only of what is wrong.
    pub(super) fn build_here(&self) -> anyhow::Result<()> {
        let Some(Workshop { package, folder, out }) = &self.workshop else { return Ok(()) };
        package.make(folder, &toolchain::find(folder)?, out, true)?;
        Ok(())
    }
}

impl Workshop {
    /// `None` when the bot does not run this plugin.
    fn of(package: Package, folder: &Path, path: &Path, text: &str) -> Option<Self> {
        let options = LoadOptions { token_optional: true };
        let config = Config::parse(path, text, &Environment::default(), options).ok()?;
        let file = format!("{}.wasm", package.name);
        let is_it = |out: &&PathBuf| {
            out.file_name().is_some_and(|name| name.to_string_lossy().replace('_', "-") == file.replace('_', "-"))
        };
        let out = config.plugins.values().map(|plugin| &plugin.path).find(is_it)?.clone();
        Some(Self { package, folder: folder.to_owned(), out })
    }
}

/// A look at `Cargo.toml` alone: cargo need not be asked about what is no plugin.
fn is_crate_of_plugin(folder: &Path) -> bool {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let Ok(manifest) = text.parse::<toml::Table>() else { return false };
    let kinds = manifest.get("lib").and_then(|lib| lib.get("crate-type")).and_then(toml::Value::as_array);
    manifest.contains_key("package")
        && kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == Some("cdylib")))
}

/// `[NAME=]FILE.wasm`; without a name the file's.
fn named(plugin: &str) -> Result<(String, PathBuf), WrongArgument> {
    let (name, file) = match plugin.split_once('=') {
        Some((name, file)) => (name.to_owned(), Path::new(file)),
        None => {
            let file = Path::new(plugin);
            (file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase(), file)
        }
    };
    if !file.is_file() {
        return Err(WrongArgument(format!("there is no file {}; `botyard build` makes one", file.display())));
    }
    Ok((name, file.to_owned()))
}

/// The configuration of a bot with these plugins, the first asked first.
fn made_of(plugins: &[(String, PathBuf)]) -> anyhow::Result<String> {
    let mut text = String::new();
    for (priority, (name, file)) in (0..).zip(plugins.iter().rev()) {
        let path = toml::Value::from(std::path::absolute(file)?.display().to_string());
        let name = toml::Value::from(name.as_str());
        text += &format!("[plugins.{name}]\npath = {path}\npriority = {priority}\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_on_the_command_line_make_a_bot() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("Shop.wasm");
        std::fs::write(&file, "").unwrap();
        let plugins = [file.display().to_string(), format!("other={}", file.display())];
        let mut bot = BotFile::find(&folder.path().join("bot.toml"), &plugins).unwrap();
        let config = bot.config().unwrap();
        let plugins: Vec<_> = config.plugins.iter().map(|(name, plugin)| (name.as_str(), plugin.priority)).collect();
        assert_eq!(plugins, [("other", 0), ("shop", 1)]);
        assert!(bot.take_workshop().is_none());
    }

    #[test]
    fn without_a_bot_or_a_crate_it_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = BotFile::find(&folder.path().join("bot.toml"), &[]).err().unwrap();
        assert!(error.to_string().contains("no such file"), "{error}");
        assert!(!is_crate_of_plugin(folder.path()));
        std::fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"x\"\n[lib]\ncrate-type = [\"cdylib\"]\n")
            .unwrap();
        assert!(is_crate_of_plugin(folder.path()));
    }
}
