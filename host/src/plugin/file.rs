//! Reads a plugin's file: whole, but only if it is one, and not a larger one than a plugin can be.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Plugins have less than a megabyte; a runtime inside of them makes twenty.
pub const LARGEST: u64 = 64 << 20;

/// The content of a plugin's file.
///
/// # Errors
/// When it can't be read, is no file (opening a pipe would wait for ever), or is too large.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut wasm = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut wasm)?;
    if wasm.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(wasm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_sensible_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.wasm");
        let problem = || read_file(&path).unwrap_err().to_string();
        assert!(problem().contains("No such file"));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(problem(), "it is not a file");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(problem(), "it is not a file");
        fs::remove_dir(&path).unwrap();
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(problem(), "it is larger than 64 MiB");
        fs::write(&path, "x").unwrap();
        assert_eq!(read_file(&path).unwrap(), b"x");
    }
}
