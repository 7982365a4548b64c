//! What `cargo xtask help` says: written for somebody who sees this repository for the first time.

use anyhow::{Result, bail};

const OVERVIEW: &str = "\
cargo xtask: everything one does with this repository

  demo       start the bot with its example plugins and chat with it in a browser; no token, no network
  test       run every check and test
  plugins    build the example plugins to target/plugins/NAME.wasm
  bench      measure, with the release build
  chaos      kill the host, break the network and replace the plugin while updates flow; then count
  book       make a site of the guide in docs/
  bot-api    make the SDK's typed Bot API anew from sdk/bot-api.json
  tidy       the checks of `test` that need no compiler: layout, layering, forgotten notes
  ci         the same as `test`
  help       this text; `cargo xtask help demo` says more about one command

Begin with `cargo xtask demo`. The first build compiles a WebAssembly engine and takes several minutes; later ones
take seconds.";

const DEMO: &str = "\
cargo xtask demo [--listen ADDR] [--wasm-from WHERE]
cargo xtask demo --check [--wasm-from WHERE]

Builds the host and the example plugins, then starts the host with bot.toml against a simulated Telegram that runs in
the same process. It prints the address of a chat page: what you type there, the plugins answer. Ctrl-C stops it, and
the next start goes on where the conversations were (they are kept in the folder data).

  --check           nobody at the keyboard: plays a short conversation with five of the plugins, with a restart of the host
                    in the middle of a form, prints it, and exits with 0 only if every answer is right. Uses free ports and
                    a store of its own, so it can run beside another demo.
  --listen ADDR     where the chat page is served, 127.0.0.1:8090 by default
  --wasm-from WHERE see `cargo xtask help plugins`";

const TEST: &str = "\
cargo xtask test [--fast] [--wasm-from WHERE] [STEP…]

Runs every check and test, each as a named step that says what it does and how long it took. The first failure ends it.
With names of steps it runs only those.

  tidy      layout, layering, forgotten notes, links and table of contents of the docs: no compiler needed
  format    rustfmt
  build     the host, and everything that tests it
  plugins   example plugins and the tests' guests, to WebAssembly
  clippy    lints over everything, warnings denied
  docs      the API documentation, warnings denied (slow)
  book      the guide as a site; builds mdBook when it is not installed (slow)
  test      unit and end-to-end tests, the guide's examples among them
  chats     the conversation scripts of the example plugins (plugins/*/*.chat), with `botyard test`
  demo      the conversation of `cargo xtask demo --check` (slow)
  browser   the playground in a Chromium, when there is one, or in the one named in BOTYARD_BROWSER (slow)
  deny      licences and advisories of the dependencies, when cargo-deny is installed (slow)

  --fast            leaves out the slow ones
  --wasm-from WHERE see `cargo xtask help plugins`";

const PLUGINS: &str = "\
cargo xtask plugins [--guests] [--wasm-from WHERE] [NAME…]

Builds the crates in plugins/ to target/plugins/NAME.wasm; with names, only those. A file is replaced whole and only when
its content has changed, so a host that runs and watches it sees each new version once.

  --guests           also the guests of the tests (tests/guests/) to target/guests-wasm/NAME.wasm
  --wasm-from WHERE  where the standard library for WebAssembly comes from. Without it these are tried in order:
                       installed   the current toolchain has it already
                       rustup      `rustup target add wasm32-unknown-unknown`
                       debian      Debian's packages rustc-web, cargo-web and rust-web-src: its compiler builds the
                                   standard library from source; needs root, or sudo without a password";

const BENCH: &str = "\
cargo xtask bench [--quick] [--json] [NAME…]

Builds the host and the plugins in their release form and runs the benchmarks; with names, only those. Numbers are worth
something only on a machine that does nothing else meanwhile. docs/benchmarks.md tells what they mean.

  throughput   echoed messages per second, end to end, beside a bare HTTP loop that makes the same calls
  run_cost     what one run costs, and its parts
  reload       from saving a plugin to its first answer
  latency      how long others wait while some handlers sleep
  neighbours   how long others wait while some handlers loop, eat memory and panic
  reading      what reading one update costs; 700,000 of every shape, each compared with what a JSON value says
  backlog      100,000 waiting updates that take a second each: time, memory, a newcomer's wait (seven minutes)

  --quick      less of everything: half a minute in all, and numbers that vary more
  --json       one JSON document instead of tables";

const CHAOS: &str = "\
cargo xtask chaos [--updates N] [--kills K] [--seed S] [--mode polling|webhook|both]
cargo xtask chaos --reloads N

Lets N updates (2,000) flow through the host, polled and then through a webhook (--mode: one of the two), while it is
killed K times (10) at random moments, Telegram answers with errors, floods, resets and cut answers, and the plugin's file is replaced again and again. Then it counts what people
were answered: exits with 0 only if no update was lost, every count is exact and every chat's order was kept. Answers that
came twice are told, and are no failure: where an answer was in flight, the Bot API has no way to tell. The moments are
random; --seed repeats a run's.

With --reloads, a plugin is replaced N times by a file that the host has never seen while updates flow. It exits with 0
only if every update took effect once and memory after the last is within a tenth of that after the first tenth.";

const BOOK: &str = "\
cargo xtask book [--open]

Makes a site of docs/ in target/book, with mdBook: the one in the PATH, else one that cargo builds into target/tools, once.
docs/SUMMARY.md is its table of contents; `cargo xtask tidy` says when a page is missing there, or a link leads nowhere.

  --open    shows it in a browser";

const BOT_API: &str = "\
cargo xtask bot-api

Writes sdk/src/api/generated and the list of methods that the macros know, from sdk/bot-api.json. That file holds the facts
of a Bot API version: names, types, what is required and what is one of what. After Telegram has released a new one, write
what is new into it, call this, and commit both. `cargo xtask tidy` says when the results are stale.";

const TIDY: &str = "\
cargo xtask tidy

Looks at the files of the repository without compiling them, and names every problem with file and line: tabs, trailing
blanks, forgotten notes, files that have grown too long, modules that do not say what they are for, parts of the host
that reach upward in its layering, dependencies with a version of their own, links that lead nowhere, pages that are missing in
the guide's table of contents, generated code that is stale.";

pub(crate) fn print(command: Option<&str>) -> Result<()> {
    let text = match command {
        None | Some("help") => OVERVIEW,
        Some("demo") => DEMO,
        Some("test" | "ci") => TEST,
        Some("plugins") => PLUGINS,
        Some("bench") => BENCH,
        Some("chaos") => CHAOS,
        Some("book") => BOOK,
        Some("bot-api") => BOT_API,
        Some("tidy") => TIDY,
        Some(other) => bail!("there is no `cargo xtask {other}`; `cargo xtask help` lists what there is"),
    };
    println!("{text}");
    Ok(())
}
