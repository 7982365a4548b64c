//! Finds a compiler that can build for WebAssembly, and installs what is missing.
//!
//! Three ways, tried in order, each said aloud: what the current toolchain has, what rustup brings, and Debian's own
//! compiler, which builds the standard library from source. The last one serves machines that reach a Debian mirror and
//! a crate registry but no toolchain server. When none works, the error says what to install by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::process::{self, Running, output_of};
use crate::workspace;

/// What all guests are built for: no operating system, no WASI.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DEBIAN_LINKER_PACKAGE: &str = "rust-web-llvm";

/// A way to get at the standard library for WebAssembly.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Installed,
    Rustup,
    Debian,
}

impl Source {
    /// Reads the value of `--wasm-from`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "installed" => Self::Installed,
            "rustup" => Self::Rustup,
            "debian" => Self::Debian,
            other => bail!("--wasm-from takes installed, rustup or debian, not {other:?}"),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Rustup => "rustup",
            Self::Debian => "debian",
        }
    }
}

/// A compiler that can build guests.
pub(crate) enum Toolchain {
    /// The one that builds everything else too.
    Current,
    /// Debian's, with the linker to use.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// `cargo build` for guests.
    pub(crate) fn build(&self) -> Command {
        let mut command = match self {
            Self::Current => workspace::cargo(),
            Self::Debian { .. } => workspace::cargo_at(DEBIAN_CARGO),
        };
        command.args(["build", "--target", TARGET]);
        // They would replace the flags in .cargo/config.toml, which bound a guest's stack.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        // Beside them: makes a guest a twelfth smaller. Not in that file, since the linker refuses it to profiles that keep
        // debug information.
        command.args(["--config", r#"target.wasm32-unknown-unknown.rustflags=["-Clink-arg=--compress-relocations"]"#]);
        if let Self::Debian { linker } = self {
            command
                .arg("-Zbuild-std=std,panic_abort")
                .env("RUSTC", DEBIAN_RUSTC)
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                // `cargo run` puts the libraries of its own toolchain here.
                .env_remove("LD_LIBRARY_PATH")
                .env_remove("RUSTUP_TOOLCHAIN");
        }
        command
    }
}

/// Finds a compiler: by the given way, or by the first one that works.
pub(crate) fn find(forced: Option<Source>) -> Result<Toolchain> {
    let sources = match &forced {
        Some(source) => std::slice::from_ref(source),
        None => &[Source::Installed, Source::Rustup, Source::Debian][..],
    };
    let mut reasons = Vec::new();
    for source in sources {
        let found = match source {
            Source::Installed => installed(),
            Source::Rustup => rustup(),
            Source::Debian => debian(),
        };
        match found {
            Ok(toolchain) => return Ok(toolchain),
            Err(_) if process::interrupted() => bail!("interrupted"),
            Err(reason) => reasons.push(format!("  {}: {reason:#}", source.name())),
        }
    }
    Err(anyhow!(
        "no standard library for {TARGET}; tried\n{}\nwhere rustup works, `rustup target add {TARGET}` is all it needs; \
         on Debian, `apt-get update && apt-get install {}` and this command again",
        reasons.join("\n"),
        DEBIAN_PACKAGES.join(" "),
    ))
}

fn installed() -> Result<Toolchain> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder = output_of(Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]))
        .context("rustc does not say where its libraries are")?;
    if !has_std(Path::new(&folder)) {
        bail!("the current toolchain has none");
    }
    println!("    WebAssembly: the current toolchain has {TARGET}");
    Ok(Toolchain::Current)
}

fn has_std(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}

fn rustup() -> Result<Toolchain> {
    output_of(Command::new("rustup").arg("--version")).context("rustup is not installed")?;
    println!("    WebAssembly: the current toolchain {TARGET} comes from rustup");
    let mut adding = Running::start("rustup", Command::new("rustup").args(["target", "add", TARGET]))?;
    match adding.wait_for(Duration::from_secs(180))? {
        Some(status) if status.success() => {}
        Some(status) => bail!("`rustup target add {TARGET}` failed ({status})"),
        None => bail!("`rustup target add {TARGET}` did not end within three minutes"),
    }
    installed()
}

fn debian() -> Result<Toolchain> {
    let missing = ![DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_STD].iter().all(|path| Path::new(path).exists());
    if missing || !new_enough() {
        println!("    WebAssembly: installing Debian's {}", DEBIAN_PACKAGES.join(", "));
        apt_get(&["update"]).unwrap_or_else(|error| println!("    going on with the lists that are there: {error:#}"));
        apt_get(&[&["install", "-y", "--no-install-recommends"][..], &DEBIAN_PACKAGES].concat())?;
        if !new_enough() {
            bail!("Debian's rustc is older than {}, which this project needs", env!("CARGO_PKG_RUST_VERSION"));
        }
    }
    let linker = match linker() {
        Some(linker) => linker,
        None => {
            apt_get(&["install", "-y", "--no-install-recommends", DEBIAN_LINKER_PACKAGE])?;
            linker().context("no rust-lld and no wasm-ld to link with")?
        }
    };
    println!("    WebAssembly: Debian's rustc builds the standard library from source, {} links", linker.display());
    Ok(Toolchain::Debian { linker })
}

/// Whether Debian's compiler is one that the workspace accepts.
fn new_enough() -> bool {
    fn minor(version: &str) -> Option<(u32, u32)> {
        let mut parts = version.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
    let said = output_of(Command::new(DEBIAN_RUSTC).arg("--version").env_remove("LD_LIBRARY_PATH"));
    let version = said.as_deref().and_then(|said| minor(said.split_whitespace().nth(1)?));
    version.is_some_and(|version| Some(version) >= minor(env!("CARGO_PKG_RUST_VERSION")))
}

/// A linker for WebAssembly: the one that comes with every toolchain, or a system's.
fn linker() -> Option<PathBuf> {
    let mut places = Vec::new();
    for rustc in ["rustc", DEBIAN_RUSTC] {
        let sysroot = output_of(Command::new(rustc).args(["--print", "sysroot"]));
        let host = output_of(Command::new(rustc).args(["--print", "host-tuple"]));
        if let (Some(sysroot), Some(host)) = (sysroot, host) {
            places.push(Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld"));
        }
    }
    places.extend(["/usr/bin/rust-lld", "/usr/bin/wasm-ld"].map(PathBuf::from));
    places.into_iter().find(|place| place.exists())
}

fn apt_get(args: &[&str]) -> Result<()> {
    output_of(Command::new("apt-get").arg("--version")).context("this is not Debian: there is no apt-get")?;
    let mut command = if rustix::process::getuid().is_root() {
        Command::new("apt-get")
    } else {
        output_of(Command::new("sudo").args(["-n", "true"])).context("needs root, or sudo without a password")?;
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    command.args(["-q", "-o", "DPkg::Lock::Timeout=120"]).args(args).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(&format!("`apt-get {}`", args.join(" ")), &mut command)
}
