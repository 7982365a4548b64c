//! Takes a table apart key by key, collecting what is wrong instead of stopping at it.
//!
//! A key that is asked for is known; what is left at the end is not, and is compared with those that were asked for.
//! A wrong value is noted and read as absent: the section's default then stands in until the whole has been read and
//! is refused.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use super::environment::Environment;
use super::problem::{self, Origin, Problem};
use super::tree::{Node, Table, Value};
use super::{LoadOptions, units};

/// What reading needs beside the tree, and what it finds.
pub(super) struct Context<'a> {
    folder: &'a Path,
    environment: &'a Environment,
    pub(super) options: LoadOptions,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    /// What was read beside `bot.toml`.
    files: RefCell<Vec<PathBuf>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(folder: &'a Path, environment: &'a Environment, options: LoadOptions) -> Self {
        Self {
            folder,
            environment,
            options,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            files: RefCell::default(),
        }
    }

    /// The problems, the warnings, and the files that hold secrets.
    pub(super) fn into_findings(self) -> (Vec<Problem>, Vec<Problem>, Vec<PathBuf>) {
        (self.problems.into_inner(), self.warnings.into_inner(), self.files.into_inner())
    }
}

#[derive(Clone)]
pub(super) struct Reader<'a> {
    pub(super) context: &'a Context<'a>,
    /// `plugins.echo`; empty at the top.
    name: String,
    /// Where something that is missing should be.
    origin: Origin,
    table: Table,
    asked: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    pub(super) fn root(context: &'a Context<'a>, table: Table) -> Self {
        Self { context, name: String::new(), origin: Origin::Whole, table, asked: Vec::new() }
    }

    /// The value of `key`, if it is there and `read` accepts it.
    pub(super) fn value<T>(&mut self, key: &'static str, read: impl FnOnce(&Node) -> Result<T, String>) -> Option<T> {
        let (_, node) = self.take(key)?;
        read(&node).map_err(|message| self.wrong(key, &node.origin, &message)).ok()
    }

    /// A duration such as `"30s"`.
    pub(super) fn duration(&mut self, key: &'static str, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.value(key, |node| units::duration(node, range))
    }

    /// A size such as `"32MiB"`.
    pub(super) fn bytes(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        self.value(key, |node| units::bytes(node, range))
    }

    /// A path; a relative one starts at the file's folder.
    pub(super) fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        let folder = self.context.folder;
        self.value(key, |node| Ok(folder.join(units::text(node)?)))
    }

    /// A path that makes sense only where something else does.
    pub(super) fn path_if(&mut self, key: &'static str, sense: impl FnOnce() -> Result<(), String>) -> Option<PathBuf> {
        let folder = self.context.folder;
        self.value(key, |node| sense().and_then(|()| Ok(folder.join(units::text(node)?))))
    }

    /// A default path.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.context.folder.join(path)
    }

    /// The table under `key`; an empty one where there is none.
    pub(super) fn table(&mut self, key: &'static str) -> Reader<'a> {
        match self.take(key) {
            Some((origin, node)) => self.child(key, origin, node),
            None => self.empty_child(key),
        }
    }

    /// This section with another one over it, key by key. A nested table is replaced as a whole, since it may be a secret;
    /// only a webhook's keys are keys of the section in this sense.
    pub(super) fn under(mut self, over: Reader<'a>) -> Reader<'a> {
        if !over.table.is_empty() {
            self.origin = over.origin;
        }
        self.name = over.name;
        for (key, (origin, node)) in over.table {
            match (self.table.get_mut(&key), node) {
                (Some((_, Node { value: Value::Table(below), .. })), Node { value: Value::Table(over), .. })
                    if key == "webhook" =>
                {
                    below.extend(over);
                }
                (_, node) => {
                    self.table.insert(key, (origin, node));
                }
            }
        }
        self
    }

    /// A list or table without fixed keys: every entry's name, place and value.
    pub(super) fn entries(&mut self) -> Vec<(String, Origin, Node)> {
        std::mem::take(&mut self.table).into_iter().map(|(key, (origin, node))| (key, origin, node)).collect()
    }

    /// A reader for `node`, which is the entry `key` of this table.
    pub(super) fn child(&self, key: &str, origin: Origin, node: Node) -> Reader<'a> {
        let found = node.kind();
        let Value::Table(table) = node.value else {
            self.problem(&node.origin, format!("expected a table [{}], found {found}", self.full_name(key)));
            return self.empty_child(key);
        };
        Reader { context: self.context, name: self.full_name(key), origin, table, asked: Vec::new() }
    }

    /// `{ env = … }`, `{ file = … }` or the secret itself. `needed`: whether one that can't be had is a problem.
    pub(super) fn secret(&mut self, key: &'static str, needed: bool) -> Option<SecretString> {
        let (origin, node) = self.take(key)?;
        self.secret_in(key, origin, node, needed)
    }

    /// The same for an entry that was taken already.
    pub(super) fn secret_in(&self, key: &str, origin: Origin, node: Node, needed: bool) -> Option<SecretString> {
        let at = node.origin.clone();
        // A variable may hold a secret that happens to look like a number.
        if let (Some(raw), false) = (&node.raw, matches!(node.value, Value::Table(_))) {
            return self.secret_text(key, &at, raw);
        }
        match &node.value {
            Value::Text(text) => {
                if !matches!(at, Origin::Variable(_)) {
                    let better = "{ env = \"NAME\" } or { file = \"PATH\" }";
                    self.warn(&at, format!("`{key}` {} is written into the file; better: {better}", self.place()));
                }
                self.secret_text(key, &at, text)
            }
            Value::Table(_) => {
                let found = self.child(key, origin, node).referenced_secret()?;
                if let (Err(message), true) = (&found, needed) {
                    self.wrong(key, &at, message);
                }
                found.ok()
            }
            _ => {
                let expected = "expected { env = \"NAME\" }, { file = \"PATH\" } or a text in quotes";
                self.wrong(key, &at, &format!("{expected}, found {}", node.kind()));
                None
            }
        }
    }

    fn secret_text(&self, key: &str, at: &Origin, text: &str) -> Option<SecretString> {
        if text.trim().is_empty() {
            self.wrong(key, at, "the text is empty");
            return None;
        }
        Some(text.trim().into())
    }

    /// None: the table itself is wrong, which has been noted. Else the secret or why it can't be had.
    fn referenced_secret(mut self) -> Option<Result<SecretString, String>> {
        let n_given = ["env", "file"].iter().filter(|key| self.has(key)).count();
        let n_unknown = self.table.len() - n_given;
        let variable = self.value("env", units::text);
        let file = self.path("file");
        // A misspelt key explains itself.
        if n_given == 2 || (n_given == 0 && n_unknown == 0) {
            self.problem(&self.origin, format!("[{}] needs either `env` or `file`", self.name));
        }
        let found = match (variable, file) {
            (Some(variable), None) => Some(self.context.environment.get(&variable).map(SecretString::from)),
            (None, Some(file)) => {
                self.context.files.borrow_mut().push(file.clone());
                Some(read_secret(&file))
            }
            _ => None,
        };
        self.finish();
        found
    }

    /// Notes every key that nobody asked for.
    pub(super) fn finish(self) {
        for (key, (origin, _)) in &self.table {
            let suggestion = problem::suggest(key, self.asked.iter().copied());
            self.problem(origin, format!("unknown key `{key}` {}; {suggestion}", self.place()));
        }
    }

    /// Notes that `key` is not there.
    pub(super) fn missing(&self, key: &str, mend: &str) {
        self.problem(&self.origin, format!("`{key}` is missing {}: {mend}", self.place()));
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn problem(&self, origin: &Origin, message: impl Into<String>) {
        self.context.problems.borrow_mut().push(Problem::new(origin, message));
    }

    pub(super) fn warn(&self, origin: &Origin, message: impl Into<String>) {
        self.context.warnings.borrow_mut().push(Problem::new(origin, message));
    }

    /// Notes that the value of `key` is wrong.
    pub(super) fn wrong(&self, key: &str, origin: &Origin, message: &str) {
        self.problem(origin, format!("`{key}` {}: {message}", self.place()));
    }

    fn take(&mut self, key: &'static str) -> Option<(Origin, Node)> {
        self.asked.push(key);
        self.table.remove(key)
    }

    fn empty_child(&self, key: &str) -> Reader<'a> {
        let name = self.full_name(key);
        Reader { context: self.context, name, origin: self.origin.clone(), table: Table::new(), asked: Vec::new() }
    }

    fn full_name(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn place(&self) -> String {
        if self.name.is_empty() { "at the top level".to_owned() } else { format!("in [{}]", self.name) }
    }
}

fn read_secret(file: &Path) -> Result<SecretString, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("could not read the secret from {}: {error}", file.display()))?;
    match text.trim() {
        "" => Err(format!("the file {} is empty", file.display())),
        secret => Ok(secret.into()),
    }
}
