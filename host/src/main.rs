//! The `botyard` command. Everything is in the library; see `botyard --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    botyard::cli::main()
}
