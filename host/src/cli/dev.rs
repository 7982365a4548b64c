//! `botyard dev`: runs the bot of a plugin's folder on the simulator, and brings each change of the source to it.
//!
//! It builds; the host that runs beside it notices the new file by itself, as it does everywhere. What does not compile,
//! or does not load, changes nothing: the version before serves on. There are no trials: what was written last is what
//! answers, and fails where it must. A rollback would go back over several changes, to what nobody looks at any more.

mod sources;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::time::Instant;

use self::sources::Sources;
use super::bot::{BotFile, Workshop};
use super::build::toolchain::{self, Toolchain};
use super::exit::{Exit, WrongArgument};
use super::{run, say, tell};
use crate::app::RunOptions;
use crate::config::DEFAULT_FILE;

/// Between two looks at the source. A change is built when the source has not changed any more since the last look.
const LOOK: Duration = Duration::from_millis(150);

/// Write a plugin and chat with it: every change is built and live at once
///
/// Run it in the folder of a plugin's crate. It builds the plugin, plays Telegram, and prints the address of
/// a page in which you chat with the bot, as several people if you like. Save a file, and the next message is
/// answered by the new version, with all conversations where they were. What does not compile is told here,
/// and the version before serves on. Ctrl-C stops it.
///
/// A version that compiles serves at once and is not rolled back, whatever `probation` says: a handler that
/// fails is told here and in the page. For trials there is `botyard run --simulator`.
///
/// The bot is that of the bot.toml in the folder; without one, the plugin alone.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Dev {
    /// The folder of the plugin's Cargo.toml
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Where the page is served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
}

impl Dev {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let mut bot = BotFile::find(&self.folder.join(DEFAULT_FILE), &[])?;
        let Some(workshop) = bot.take_workshop() else {
            let message = format!(
                "{} holds no plugin's crate whose file the bot.toml there runs; `botyard new` makes such a folder",
                self.folder.display()
            );
            return Err(WrongArgument(message).into());
        };
        if !bot.path.exists() {
            bot = bot.written_to(&workshop.package.target.join("botyard"))?;
        }
        let toolchain = toolchain::find(&workshop.folder)?;
        tell(&format!("building {}; {}", workshop.package.name, toolchain.describe()));
        let mut builder = Builder { sources: Sources::of(&workshop), workshop, toolchain };
        while !builder.build() {
            tell("it is built again when a file changes");
            builder.sources.wait_for_change_blocking(LOOK);
        }
        let config = bot.config()?;
        say(&format!("chat with the bot at http://{}/ (Ctrl-C stops it)\n", self.listen));
        let options = RunOptions { simulator: Some(self.listen), without_trials: true, ..RunOptions::default() };
        run::run_host(config, options, builder.run())?;
        Ok(Exit::Done)
    }
}

struct Builder {
    workshop: Workshop,
    toolchain: Toolchain,
    sources: Sources,
}

impl Builder {
    async fn run(mut self) {
        loop {
            self.sources.wait_for_change(LOOK).await;
            // cargo and the look at its result take their time, on a thread where that disturbs nobody.
            let build = tokio::task::spawn_blocking(move || {
                self.build();
                self
            });
            self = match build.await {
                Ok(builder) => builder,
                // It has panicked, and the log has said why; or the host stops.
                Err(_) => return,
            };
        }
    }

    /// True if there is a new version, or none is needed.
    fn build(&mut self) -> bool {
        let begin = Instant::now();
        // What changes from here on is not in it.
        self.sources.look();
        let Workshop { package, folder, out } = &self.workshop;
        let made = package.make_fast(folder, &self.toolchain, out);
        let seconds = begin.elapsed().as_secs_f64();
        match &made {
            Ok(()) => tell(&format!("{} is built ({seconds:.1} s)", package.name)),
            Err(error) => tell(&format!("{} is not built: {error:#}; nothing has changed for the bot", package.name)),
        }
        // It names what it was made of, which may lie elsewhere.
        self.sources.learn(&self.workshop);
        made.is_ok()
    }
}

impl BotFile {
    /// The same as a file, where the host can watch it; and with a store beside it.
    fn written_to(self, folder: &std::path::Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(DEFAULT_FILE);
        let text = format!("{}\n[admin]\nlisten = \"127.0.0.1:0\"\n", self.text);
        std::fs::write(&path, &text).with_context(|| format!("could not write {}", path.display()))?;
        Ok(Self { path, text, ..self })
    }
}
