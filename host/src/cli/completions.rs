//! `botyard completions`: what a shell needs to complete commands and options.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::exit::Exit;
use super::{Cli, say};

/// Print what a shell needs to complete commands and options
///
/// bash: botyard completions bash > ~/.local/share/bash-completion/completions/botyard
/// zsh:  botyard completions zsh > a file `_botyard` in a folder of $fpath
/// fish: botyard completions fish > ~/.config/fish/completions/botyard.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "botyard", &mut script);
        say(&String::from_utf8(script)?);
        Ok(Exit::Done)
    }
}
