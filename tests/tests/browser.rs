//! The playground as an author sees it: a real browser in front of a real host. `cargo xtask test browser` finds a
//! Chromium and names it in `BOTYARD_BROWSER`; without that these tests say that they are skipped.
//!
//! With `BOTYARD_SHOTS` naming a folder, pictures of the page are put there.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(clippy::print_stdout, reason = "who runs it is told what was left out")]

mod browser {
    mod chrome;
    mod page;
    mod playground;
}
