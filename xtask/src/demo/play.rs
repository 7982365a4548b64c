//! The conversation of `cargo xtask demo --check`: five plugins, three people, one restart in the middle.
//!
//! People write through the simulator's own API, as the chat page does; the bot is the real host. Every line is printed
//! as it is said. The first wrong or missing answer ends it, with the last lines of the host's log.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::host::{self, Folder};
use super::stage::{Person, Stage};
use crate::process;

/// How long the host is told to take over a text that begins with `slow`.
const SLOW: Duration = Duration::from_millis(1500);

/// Speaks English.
const ALICE: Person = Person { id: 1001, name: "Alice" };
/// Speaks Uzbek.
const BOTIR: Person = Person { id: 1002, name: "Botir" };
/// Speaks Brazilian Portuguese, which no plugin does. His id needs more than 32 bits.
const DIEGO: Person = Person { id: 5_012_338_965, name: "Diego" };

pub(super) fn conversation() -> Result<()> {
    let folder = Folder::temporary()?;
    let outcome = Stage::open(folder.path(), SLOW).and_then(play);
    if outcome.is_err() && !process::interrupted() {
        println!("\n    the last lines of the host's log:\n{}\n", host::log_tail(folder.path()));
    }
    outcome
}

fn play(mut stage: Stage<'_>) -> Result<()> {
    stage.note("echo: the same text again; a slow answer to one person keeps nobody else waiting");
    stage.says(&ALICE, "Hello 👋")?;
    stage.hears(&ALICE, "Hello 👋")?;
    stage.says(&ALICE, "slow hello")?;
    let said = Instant::now();
    stage.says(&BOTIR, "And me?")?;
    stage.hears(&BOTIR, "And me?")?;
    ensure!(said.elapsed() < SLOW, "Botir had to wait for Alice's slow answer");
    stage.hears(&ALICE, "slow hello")?;

    stage.note("form: goes on after a restart of the host");
    stage.says(&ALICE, "/form")?;
    stage.hears(&ALICE, "What is your name?")?;
    stage.says(&ALICE, "Alice")?;
    stage.hears(&ALICE, "How old are you?")?;
    let mut stage = stage.restart()?;
    stage.says(&ALICE, "34")?;
    stage.hears(&ALICE, "Alice, 34. Thank you!")?;

    stage.note("greeter: in the person's language, else in the default one");
    stage.says(&ALICE, "/hello")?;
    stage.hears(&ALICE, "Hello, Alice!")?;
    stage.says(&BOTIR, "/hello")?;
    stage.hears(&BOTIR, "Salom, Botir!")?;
    stage.says(&DIEGO, "/hello")?;
    stage.hears(&DIEGO, "Hello, Diego!")?;

    stage.note("counter: per chat and over all chats");
    stage.says(&BOTIR, "/count")?;
    stage.hears(&BOTIR, "This chat: 1. All chats: 1.")?;
    stage.says(&DIEGO, "/count")?;
    stage.hears(&DIEGO, "This chat: 1. All chats: 2.")?;
    stage.says(&BOTIR, "/count")?;
    stage.hears(&BOTIR, "This chat: 2. All chats: 3.")?;

    stage.note("menu: a button changes its message");
    stage.says(&DIEGO, "/menu")?;
    stage.hears(&DIEGO, "What would you like?")?;
    stage.presses(&DIEGO, "Drinks", "Drinks:")?;
    stage.presses(&DIEGO, "Tea", "Tea, a good choice.")?;

    stage.close()
}
