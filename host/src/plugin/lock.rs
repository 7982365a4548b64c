//! `bot.lock`, beside `bot.toml`: which files an operator has let in, and what they may want.
//!
//! Written by `botyard plugin install` and `approve`, read whenever a plugin is loaded. A plugin without an entry is loaded
//! whatever it wants, within its grants. One with an entry is loaded when it is the file of that entry or wants no more than
//! that one did. A file that can't be read lets nobody in: it is there to be relied on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Rights;

const HEAD: &str = "\
# Which plugins were approved, and what they may want. Written by `botyard plugin install` and `botyard plugin approve`;
# keep it beside bot.toml, and under version control with it. A file with another hash is loaded if it wants no more than
# stands here; if it wants more, it waits for `botyard plugin approve NAME`. `earlier` are files that were approved before it:
# the host may go back to them.
";

/// Files that stay good to go back to, as many as the host keeps.
const EARLIER: usize = 5;

/// All approved plugins, by their names in `bot.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// One entry each.
    #[serde(default)]
    pub plugins: BTreeMap<String, Approved>,
}

/// What was approved of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approved {
    /// The whole hash of its file, in hexadecimal.
    pub sha256: String,
    /// The version that its author gave it.
    pub version: String,
    /// Where the file came from.
    pub source: String,
    /// What it wanted.
    pub rights: Rights,
    /// The hashes of the files that were approved before it, the newest first: what the host may go back to, beside that.
    #[serde(default)]
    pub earlier: Vec<String>,
}

/// Why a plugin is not loaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The file can't be read.
    #[error("{path} can't be read, so no plugin is let in: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// It wants more.
    #[error("waits for approval: it now {wants}; `botyard plugin approve {name}` takes it")]
    WantsMore {
        /// Its name in `bot.toml`.
        name: String,
        /// What it wants beyond the approved, in words.
        wants: String,
    },
    /// It is another file, and only the approved one is wanted.
    #[error(
        "waits for approval: it is not the file in bot.lock (`pin = \"hash\"`); `botyard plugin approve {name}` takes it"
    )]
    OtherFile {
        /// Its name in `bot.toml`.
        name: String,
    },
    /// A version that has served is not approved any more.
    #[error(
        "is not let in by bot.lock any more ({why}); to have it serve again, put its file in its place, and `botyard plugin \
         approve {name}` takes it"
    )]
    NoLonger {
        /// Its name in `bot.toml`.
        name: String,
        /// What speaks against it.
        why: String,
    },
}

impl Lock {
    /// Where it lies.
    #[must_use]
    pub fn path(config_file: &Path) -> PathBuf {
        config_file.with_extension("lock")
    }

    /// Reads the file beside this `bot.toml`; one that is not there is empty.
    ///
    /// # Errors
    /// When it is there and can't be read.
    pub fn read(config_file: &Path) -> Result<Self, LockError> {
        let path = Self::path(config_file);
        let failed = |reason: String| LockError::Unreadable { path: path.display().to_string(), reason };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| failed(error.message().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Writes down that a file is approved. That of before stays good to go back to.
    pub fn approve(&mut self, name: &str, mut approved: Approved) {
        if let Some(before) = self.plugins.remove(name) {
            let files = std::iter::once(before.sha256).chain(before.earlier);
            approved.earlier = files.filter(|sha256| *sha256 != approved.sha256).take(EARLIER).collect();
        }
        self.plugins.insert(name.to_owned(), approved);
    }

    /// Decides what the hash alone decides, before anything of the file is run. `strict`: only the approved file itself.
    ///
    /// # Errors
    /// Why it is not let in.
    pub fn check_hash(&self, name: &str, strict: bool, sha256: &str) -> Result<(), LockError> {
        match self.plugins.get(name) {
            Some(approved) if approved.sha256.eq_ignore_ascii_case(sha256) => Ok(()),
            _ if strict => Err(LockError::OtherFile { name: name.to_owned() }),
            _ => Ok(()),
        }
    }

    /// Decides about a file that was let in once and is kept: what serves while a newer one is on trial or refused.
    ///
    /// # Errors
    /// Why it is not let in any more.
    pub fn check_kept(&self, name: &str, strict: bool, sha256: &str, rights: &Rights) -> Result<(), LockError> {
        let approved = self.plugins.get(name);
        if approved.is_some_and(|approved| approved.earlier.iter().any(|earlier| earlier.eq_ignore_ascii_case(sha256)))
        {
            return Ok(());
        }
        self.check(name, strict, sha256, rights).map_err(|error| LockError::NoLonger {
            name: name.to_owned(),
            why: match error {
                LockError::WantsMore { wants, .. } => format!("it {wants}"),
                _ => "`pin = \"hash\"`, and its hash is not there".to_owned(),
            },
        })
    }

    /// Decides whether a file is let in. `strict`: only the approved file itself.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, name: &str, strict: bool, sha256: &str, rights: &Rights) -> Result<(), LockError> {
        self.check_hash(name, strict, sha256)?;
        let Some(approved) = self.plugins.get(name) else { return Ok(()) };
        if approved.sha256.eq_ignore_ascii_case(sha256) {
            return Ok(());
        }
        let beyond = rights.beyond(&approved.rights);
        if beyond.is_empty() {
            return Ok(());
        }
        Err(LockError::WantsMore { name: name.to_owned(), wants: beyond.lines().join(", ") })
    }

    /// The file's text: the same for the same content.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        let quoted = |text: &str| toml::Value::from(text).to_string();
        for (name, approved) in &self.plugins {
            let Approved { sha256, version, source, rights, earlier } = approved;
            let Rights { methods, kinds, http, interfaces } = rights;
            let list = |list: &[String]| {
                let lines: String = list.iter().map(|item| format!("    {},\n", quoted(item))).collect();
                if lines.is_empty() { "[]".to_owned() } else { format!("[\n{lines}]") }
            };
            write!(
                text,
                "\n[plugins.{name}]\nsha256 = {}\nversion = {}\nsource = {}\n{}\n[plugins.{name}.rights]\nmethods = {}\nkinds = \
                 {}\nhttp = {}\ninterfaces = {}\n",
                quoted(sha256),
                quoted(version),
                quoted(source),
                if earlier.is_empty() { String::new() } else { format!("earlier = {}\n", list(earlier)) },
                list(methods),
                list(kinds),
                list(http),
                list(interfaces),
            )
            .expect("writing to a text can't fail");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(methods: &[&str]) -> Rights {
        Rights { methods: methods.iter().map(|method| (*method).to_owned()).collect(), ..Rights::default() }
    }

    fn lock() -> Lock {
        let approved = |source: &str| Approved {
            sha256: "ab".repeat(32),
            version: "1.0 \"beta\"".to_owned(),
            source: source.to_owned(),
            rights: Rights {
                kinds: vec!["message".to_owned()],
                http: vec!["https://*.a.example".to_owned()],
                ..rights(&["answer*", "sendMessage"])
            },
            earlier: if source.starts_with("https") { vec!["ef".repeat(32)] } else { vec![] },
        };
        let plugins = [("shop", "https://a.example/shop.wasm"), ("a-1", "C:\\a.wasm\n")];
        Lock { plugins: plugins.map(|(name, source)| (name.to_owned(), approved(source))).into() }
    }

    #[test]
    fn what_is_written_is_read_again_and_always_looks_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bot.toml");
        assert_eq!(Lock::read(&file), Ok(Lock::default()), "none is there yet");
        let text = lock().text();
        assert!(text.starts_with("# Which plugins"), "{text}");
        std::fs::write(Lock::path(&file), &text).unwrap();
        let read = Lock::read(&file).unwrap();
        assert_eq!((&read, read.text()), (&lock(), text));
        for broken in ["plugins = 1", "[plugins.a]", "[plugin.a]\nx = 1", "\u{0}"] {
            std::fs::write(Lock::path(&file), broken).unwrap();
            assert!(matches!(Lock::read(&file), Err(LockError::Unreadable { .. })), "{broken}");
        }
    }

    #[test]
    fn a_file_is_let_in_if_it_is_the_one_or_wants_no_more() {
        let (lock, same, other) = (lock(), "AB".repeat(32), "cd".repeat(32));
        let more = rights(&["sendMessage", "banChatMember"]);
        for (name, strict, sha256, wanted, expected) in [
            ("shop", false, &same, &more, Ok(())),
            ("shop", true, &same, &more, Ok(())),
            ("shop", false, &other, &rights(&["answerInlineQuery"]), Ok(())),
            ("shop", true, &other, &rights(&[]), Err("is not the file in bot.lock")),
            ("shop", false, &other, &more, Err("it now calls banChatMember; `botyard plugin approve shop`")),
            ("new", false, &other, &more, Ok(())),
            ("new", true, &other, &rights(&[]), Err("approve new")),
        ] {
            let answer = lock.check(name, strict, sha256, wanted).map_err(|error| error.to_string());
            match expected {
                Ok(()) => assert_eq!(answer, Ok(()), "{name} {strict}"),
                Err(part) => assert!(answer.clone().is_err_and(|text| text.contains(part)), "{answer:?}"),
            }
        }
    }

    #[test]
    fn what_has_served_goes_on_only_as_far_as_it_is_approved() {
        let (lock, same, earlier, other) = (lock(), "ab".repeat(32), "EF".repeat(32), "cd".repeat(32));
        let more = rights(&["banChatMember"]);
        for (name, strict, sha256, wanted, expected) in [
            ("shop", true, &same, &more, Ok(())),
            ("shop", true, &earlier, &more, Ok(())),
            ("shop", false, &earlier, &more, Ok(())),
            ("shop", false, &other, &rights(&["sendMessage"]), Ok(())),
            ("shop", true, &other, &rights(&[]), Err("its hash is not there")),
            ("shop", false, &other, &more, Err("it calls banChatMember")),
            ("new", false, &other, &more, Ok(())),
            ("new", true, &other, &rights(&[]), Err("approve new")),
        ] {
            let answer = lock.check_kept(name, strict, sha256, wanted).map_err(|error| error.to_string());
            match expected {
                Ok(()) => assert_eq!(answer, Ok(()), "{name} {strict}"),
                Err(part) => assert!(answer.clone().is_err_and(|text| text.contains(part)), "{answer:?}"),
            }
        }
        // The file in its place is another matter: what was approved before is not what is approved now.
        assert!(
            lock.check_hash("shop", true, &earlier).is_err() && lock.check("shop", false, &earlier, &more).is_err()
        );
    }

    #[test]
    fn what_was_approved_before_stays_good_to_go_back_to() {
        let mut lock = Lock::default();
        let approved =
            |n: usize| Approved { sha256: format!("{n:064}"), ..super::tests::lock().plugins["a-1"].clone() };
        for n in [1, 2, 2, 3, 1, 4, 5, 6, 7] {
            lock.approve("shop", approved(n));
        }
        let kept: Vec<usize> = lock.plugins["shop"].earlier.iter().map(|sha256| sha256.parse().unwrap()).collect();
        assert_eq!(kept, [6, 5, 4, 1, 3]);
        assert_eq!(toml::from_str::<Lock>(&lock.text()).unwrap(), lock);
    }

    proptest::proptest! {
        #[test]
        fn no_damage_to_it_lets_anybody_in_unread(
            at in proptest::prelude::any::<proptest::sample::Index>(), length in 1..200_usize,
            new in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..8),
        ) {
            let mut bytes = lock().text().into_bytes();
            let from = at.index(bytes.len());
            let to = (from + length).min(bytes.len());
            bytes.splice(from..to, new);
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("bot.toml");
            std::fs::write(Lock::path(&file), &bytes).unwrap();
            match Lock::read(&file) {
                // What is read is what stands there, and can be written and read again.
                Ok(read) => proptest::prop_assert_eq!(toml::from_str::<Lock>(&read.text()).unwrap(), read),
                Err(error) => proptest::prop_assert!(error.to_string().contains("bot.lock"), "{}", error),
            }
        }
    }
}
