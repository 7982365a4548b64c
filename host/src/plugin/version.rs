//! One version of a plugin: what a file became when it was loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::{ArcSwap, Guard};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use super::allowance::Allowance;
use super::api::Host;
use super::bindings::PluginPre;
use super::engine::Engine;
use super::grants::{self, Reach};
use super::pace::Pace;
use super::turns::{Habit, Turns};
use super::{Buttons, Error, Grants, Limit, Limits, Manifest, Rights};
use crate::domain::{OriginPattern, PluginName};
use crate::i18n::{self, Catalogs, Markup, Value};
use crate::store::rows::version::PaceRow;

/// Tells versions apart: the beginning of the SHA-256 of the plugin's file, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    const DIGITS: usize = 12;

    /// The version that a file holds.
    #[must_use]
    pub fn of(wasm: &[u8]) -> Self {
        let mut hash = file_hash(wasm);
        hash.truncate(Self::DIGITS);
        Self(hash)
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The whole SHA-256 of a file, in hexadecimal.
#[must_use]
pub fn file_hash(wasm: &[u8]) -> String {
    Sha256::digest(wasm).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A loaded plugin, ready to run any number of times at once.
pub struct Plugin {
    /// The operator's name for it.
    pub name: PluginName,
    /// Which file it was made from.
    pub version: Version,
    /// What it says of itself.
    pub manifest: Manifest,
    /// What it wants.
    pub rights: Rights,
    /// The interfaces that it imports, with their versions.
    pub interfaces: Vec<String>,
    /// What the operator should know though the plugin can serve.
    pub warnings: Vec<String>,
    pub(super) engine: Engine,
    pub(super) code: PluginPre<Host>,
    pub(super) context: Arc<Context>,
    pub(super) pace: Arc<Pace>,
    pub(super) habit: Habit,
    pub(super) turns: Turns,
    pub(super) buttons: ArcSwap<Buttons>,
    pub(super) texts: Texts,
    /// It serves no more.
    pub(super) retired: AtomicBool,
}

/// What a plugin's catalogs are made of.
pub(super) struct Texts {
    /// Its own, by locale.
    pub(super) sources: Vec<(String, String)>,
    /// The operator's folder of texts for it.
    pub(super) overrides: Option<PathBuf>,
    pub(super) default_locale: String,
}

impl Texts {
    pub(super) fn read(&self) -> Result<Catalogs, i18n::Error> {
        Catalogs::load(&self.sources, self.overrides.as_deref(), &self.default_locale)
    }
}

/// What every run of a version shares and none changes.
pub(super) struct Context {
    pub(super) name: PluginName,
    /// JSON.
    pub(super) config: String,
    pub(super) secrets: BTreeMap<String, SecretString>,
    pub(super) grants: Grants,
    pub(super) limits: Limits,
    /// What is left for all runs together.
    pub(super) allowance: Arc<Allowance>,
    /// The methods that the manifest declares.
    pub(super) methods: Vec<String>,
    /// The origins that the manifest declares.
    pub(super) http: Vec<OriginPattern>,
    /// Whether the plugin wants to hear of the end of states.
    pub(super) tells_expired: bool,
    /// The version of the states that the plugin writes; 0 when it keeps none.
    pub(super) state_version: u32,
    pub(super) catalogs: ArcSwap<Catalogs>,
}

impl Plugin {
    /// A message from the plugin's catalogs, for what the host itself shows: the help of commands.
    #[must_use]
    pub fn translate(&self, locale: &str, key: &str, args: &[(String, Value)]) -> Option<String> {
        self.context.catalogs.load().translate(locale, key, args, Markup::Plain)
    }

    /// Whether others serve in its place: what of it is still under way finds states of theirs then, and must leave them
    /// as they are.
    pub fn set_retired(&self, retired: bool) {
        self.retired.store(retired, Relaxed);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }

    /// The buttons of its keyboards.
    #[must_use]
    pub fn buttons(&self) -> Guard<Arc<Buttons>> {
        self.buttons.load()
    }

    /// Reads the operator's texts for it again: for all that is said from now on. Blocks.
    ///
    /// # Errors
    /// When they can't be used; then those before stay.
    pub fn read_texts(&self) -> Result<(), Error> {
        let catalogs = self.texts.read()?;
        let buttons = Buttons::of(&self.manifest, &catalogs).map_err(Error::Manifest)?;
        self.context.catalogs.store(Arc::new(catalogs));
        self.buttons.store(Arc::new(buttons));
        Ok(())
    }

    /// What of its catalogs an author or a translator should look at.
    #[must_use]
    pub fn catalog_warnings(&self) -> Vec<String> {
        self.context.catalogs.load().warnings()
    }

    /// The locales that the plugin can speak.
    pub fn locales(&self) -> impl Iterator<Item = String> + use<> {
        self.context.catalogs.load().locales().collect::<Vec<_>>().into_iter()
    }

    /// How this version has done so far.
    #[must_use]
    pub fn pace(&self) -> PaceRow {
        self.pace.get()
    }

    /// How it had done before the host was started.
    pub fn recall(&self, pace: PaceRow) {
        self.pace.recall(pace);
    }

    /// What its runs may use.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.context.limits
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("name", &self.name).field("version", &self.version).finish_non_exhaustive()
    }
}

impl Context {
    /// The parameters of a call are longer than a value may be.
    pub(super) fn too_long(&self) -> String {
        format!("the parameters have more than {} bytes: {}", self.limits.value, Limit::Value.hit(&self.name))
    }

    /// A run has made all the calls that it may wait for.
    pub(super) fn too_many_calls(&self) -> String {
        format!("a run can make at most {} calls at once: {}", self.limits.calls, Limit::Calls.hit(&self.name))
    }

    /// Methods and servers that the plugin declares and will not be let call.
    pub(super) fn warnings(&self) -> Vec<String> {
        let reach = Reach { plugin: &self.name, declared: &self.http, granted: &self.grants.http };
        let exact = self.methods.iter().filter(|method| !method.ends_with('*'));
        exact
            .filter_map(|method| grants::check(&self.name, &self.methods, &self.grants, method).err())
            .chain(reach.warnings())
            .collect()
    }
}
