//! Overrides from the environment: `BOTYARD__SECTION__KEY=value`.
//!
//! They are put into the tree before it is checked, so that a wrong one is found by the same rules as a wrong line
//! of the file, under the variable's name. Names are matched to the keys that are there without regard to case, and
//! `_` stands for `-` too; a key that is not there yet is made, in lower case.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use super::problem::{Origin, Problem};
use super::tree::{self, Node, Table, Value};

const PREFIX: &str = "BOTYARD__";

/// The variables that a configuration may be read with.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

// Values may be secret, whatever their names.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<K: Into<String>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl Environment {
    /// This process's variables.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect()
    }

    /// The value of one variable that must be there and hold something.
    pub(super) fn get(&self, name: &str) -> Result<&str, String> {
        let value = self.0.get(name).ok_or_else(|| format!("the environment variable {name} is not set"))?;
        let value = value.to_str().ok_or_else(|| format!("the environment variable {name} is not UTF-8 text"))?;
        if value.trim().is_empty() {
            return Err(format!("the environment variable {name} is empty"));
        }
        Ok(value.trim())
    }

    pub(super) fn apply(&self, root: &mut Table, problems: &mut Vec<Problem>) {
        // In the order of their names: a whole table comes before its keys.
        for (name, value) in &self.0 {
            let Some(keys) = name.strip_prefix(PREFIX) else { continue };
            let origin = Origin::Variable(Arc::from(name.as_str()));
            let keys: Vec<&str> = keys.split("__").collect();
            let Some(value) = value.to_str() else {
                problems.push(Problem::new(&origin, "the value is not UTF-8 text"));
                continue;
            };
            if keys.iter().any(|key| key.is_empty()) {
                let message = "the name has an empty part; it should be like BOTYARD__SECTION__KEY";
                problems.push(Problem::new(&origin, message));
                continue;
            }
            set(root, &keys, tree::parse_variable(value, &origin), &origin);
        }
    }
}

fn set(table: &mut Table, keys: &[&str], node: Node, origin: &Origin) {
    let Some((first, rest)) = keys.split_first() else { return };
    let key = matching_key(table, first);
    if rest.is_empty() {
        table.insert(key, (origin.clone(), node));
        return;
    }
    let empty = || Node { origin: origin.clone(), raw: None, value: Value::Table(Table::new()) };
    let (_, child) = table.entry(key).or_insert_with(|| (origin.clone(), empty()));
    if !matches!(child.value, Value::Table(_)) {
        *child = empty();
    }
    if let Value::Table(child) = &mut child.value {
        set(child, rest, node, origin);
    }
}

fn matching_key(table: &Table, name: &str) -> String {
    let lower = name.to_lowercase();
    let same = |key: &&String| key.to_lowercase().replace('-', "_") == lower.replace('-', "_");
    if table.contains_key(&lower) {
        return lower;
    }
    table.keys().find(same).cloned().unwrap_or(lower)
}
