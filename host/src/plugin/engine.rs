//! The one engine: its configuration, its pool of instances, and how a file becomes a plugin.
//!
//! The pool has a place for every run that may be under way at once; a run beyond that waits for a place.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use arc_swap::ArcSwap;
use secrecy::SecretString;
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{
    Config, InstanceAllocationStrategy, PoolingAllocationConfig, Store, UpdateDeadline, WasmBacktraceDetails,
};

use super::allowance::Allowances;
use super::api::{Host, wasi};
use super::bindings::{self, PluginPre};
use super::cache::Cache;
use super::clock::Clock;
use super::limits::{MEMORY_CAP, MOST_INSTANCES, MOST_MEMORIES, MOST_TABLES};
use super::pace::Paces;
use super::run::describe;
use super::turns::{Habit, LongRuns, Turns};
use super::version::{Context, Texts, file_hash};
use super::{Buttons, Error, Grants, HttpClient, Limits, Manifest, Plugin, Rights, Version, component, grants};
use crate::domain::PluginName;

/// The guest's part of a run's stack; what is left of the stack is for host functions.
const GUEST_STACK: usize = 256 << 10;
const STACK: usize = 512 << 10;
/// Cleared by hand instead of being given back: about as much as a small plugin touches.
const KEEP_RESIDENT: usize = 128 << 10;
/// Places that stay prepared for the plugin that used them last, with what is resident of them. A version that has just
/// been loaded takes fresh ones until there are so many, so every reload would add to them for as long.
const WARM: u32 = 32;
/// Places in the pool beyond those of the runs: for a plugin that is being loaded.
const SPARE: usize = 2;
/// What a guest may hand over in one call to the host, so that it can't make the host allocate without end.
const CALL_BYTES: usize = 16 << 20;

/// How the engine is set up.
#[derive(Clone)]
pub struct EngineSettings {
    /// Runs that may be under way at once.
    pub max_runs: usize,
    /// Where compiled plugins are kept; none to compile them at every start.
    pub cache_dir: Option<PathBuf>,
    /// Makes the HTTP requests of plugins.
    pub http: HttpClient,
}

/// What the operator says about one plugin.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Handed to the plugin as it is.
    pub config: serde_json::Value,
    /// Handed to the plugin one by one, when it asks by name.
    pub secrets: BTreeMap<String, SecretString>,
    /// What it may do.
    pub grants: Grants,
    /// What a run of it may use.
    pub limits: Limits,
    /// The folder that holds a folder of `<locale>.ftl` files for each plugin.
    pub locales_dir: Option<PathBuf>,
    /// The locale for users whose own has no catalog.
    pub default_locale: String,
}

/// The engine that all plugins share. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    wasm: wasmtime::Engine,
    linker: Linker<Host>,
    places: Semaphore,
    long_runs: LongRuns,
    http: HttpClient,
    allowances: Allowances,
    paces: Paces,
    cache: Option<Cache>,
    /// Compiling takes memory and all processors, so plugins are compiled one after the other; a second one, lest a file that
    /// takes very long keeps its own correction waiting.
    compiling: Turnstile,
    /// There are not many places for plugins that describe themselves.
    describing: Mutex<()>,
    clock: Clock,
}

impl Engine {
    /// Sets up the pool and starts the clock.
    ///
    /// # Errors
    /// When the engine or its thread can't be started. A pool that the system has no address space for is
    /// replaced by slower instances made one by one, with a warning.
    pub fn new(settings: EngineSettings) -> Result<Self, Error> {
        let wasm = wasmtime::Engine::new(&pooled(settings.max_runs)).or_else(|error| {
            tracing::warn!(%error, "no pool of instances; runs will be slower");
            wasmtime::Engine::new(&on_demand())
        });
        Self::over(wasm.map_err(broken)?, settings)
    }

    fn over(wasm: wasmtime::Engine, settings: EngineSettings) -> Result<Self, Error> {
        let mut linker = Linker::new(&wasm);
        bindings::Plugin::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host).map_err(broken)?;
        let epochs = wasm.clone();
        let clock = Clock::start(move || epochs.increment_epoch()).map_err(|error| Error::Engine(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            linker,
            places: Semaphore::new(settings.max_runs.max(1)),
            long_runs: LongRuns::here().map_err(|error| Error::Engine(error.to_string()))?,
            http: settings.http,
            allowances: Allowances::default(),
            paces: Paces::default(),
            cache: settings.cache_dir.and_then(|folder| Cache::open(folder, &wasm)),
            compiling: Turnstile::letting_in(2),
            describing: Mutex::new(()),
            clock,
            wasm,
        })))
    }

    /// Makes a plugin of a file: compiles it (or takes it from the cache), checks what it needs, and has it
    /// describe itself. Takes its time, so not for a thread that serves others. What is in the cache waits for no other
    /// plugin that is compiled.
    ///
    /// # Errors
    /// When the file can't serve; the error says why and what to do.
    pub fn load(&self, name: PluginName, wasm: &[u8], settings: Settings) -> Result<Arc<Plugin>, Error> {
        settings.limits.check().map_err(Error::Limits)?;
        let component = self.component(wasm)?;
        let code = self.link(&component)?;
        let bare = Context {
            name: name.clone(),
            config: settings.config.to_string(),
            secrets: settings.secrets,
            grants: settings.grants,
            limits: settings.limits,
            allowance: self.0.allowances.of(&name),
            methods: Vec::new(),
            http: Vec::new(),
            tells_expired: false,
            state_version: 0,
            catalogs: ArcSwap::default(),
        };
        let (bare, described) = {
            let _one_at_a_time = self.0.describing.lock().unwrap_or_else(PoisonError::into_inner);
            describe(self, &code, bare)
        };
        let mut described = described.map_err(|error| Error::Describe(error.with_place(&name)))?;
        let texts = Texts {
            sources: described.catalogs.drain(..).map(|catalog| (catalog.locale, catalog.source)).collect(),
            overrides: settings.locales_dir.map(|folder| folder.join(name.as_str())),
            default_locale: settings.default_locale,
        };
        let catalogs = texts.read()?;
        let manifest = Manifest::check(described).map_err(Error::Manifest)?;
        let buttons = Buttons::of(&manifest, &catalogs).map_err(Error::Manifest)?;
        let context = Context {
            methods: manifest.methods.clone(),
            http: manifest.http.clone(),
            tells_expired: manifest.expired,
            state_version: manifest.state_version,
            catalogs: ArcSwap::from_pointee(catalogs),
            ..bare
        };
        let mut warnings = context.warnings();
        let interfaces = component::interfaces(&component);
        let rights = Rights::of(&manifest, &interfaces);
        if rights.broadcasts() {
            warnings.extend(grants::check_broadcast(&name, &context.grants, false).err());
        }
        warnings.extend(rights.kinds_left_out(&name, &context.grants));
        let version = Version::of(wasm);
        let pace = self.0.paces.of(&name, version.as_str());
        let (engine, context, habit) = (self.clone(), context.into(), Habit::default());
        let turns = Turns::of_another();
        Ok(Arc::new(Plugin {
            name,
            version,
            manifest,
            rights,
            interfaces,
            warnings,
            engine,
            code,
            context,
            pace,
            habit,
            turns,
            buttons: ArcSwap::from_pointee(buttons),
            texts,
            retired: false.into(),
        }))
    }

    fn component(&self, wasm: &[u8]) -> Result<Component, Error> {
        let inner = &self.0;
        let hash = file_hash(wasm);
        let cached = || inner.cache.as_ref().and_then(|cache| cache.get(&inner.wasm, &hash));
        if let Some(component) = cached() {
            return Ok(component);
        }
        let _few_at_a_time = inner.compiling.enter();
        // It may have been compiled while this waited.
        if let Some(component) = cached() {
            return Ok(component);
        }
        // What describes an interface is not always checked before it is relied on, and anybody can have written it.
        let compile = || {
            let bytes = component::componentise(wasm)?;
            Component::from_binary(&inner.wasm, &bytes).map_err(|error| component::cannot_be_compiled(&error))
        };
        let component = std::panic::catch_unwind(AssertUnwindSafe(compile)).unwrap_or(Err(Error::Damaged))?;
        if let Some(cache) = &inner.cache {
            cache.put(&hash, &component);
        }
        Ok(component)
    }

    fn link(&self, component: &Component) -> Result<PluginPre<Host>, Error> {
        component::check_interface(component)?;
        // The names are right, so whatever does not fit is a type behind one of them.
        let differs = |error: wasmtime::Error| Error::Component(format!("{error:#}"));
        let linker = wasi::link(&self.0.linker, component).map_err(differs)?;
        PluginPre::new(linker.instantiate_pre(component).map_err(differs)?).map_err(differs)
    }

    /// A place among the runs that may be under way; waits for one where all are taken.
    pub(super) async fn place(&self) -> SemaphorePermit<'_> {
        self.0.places.acquire().await.expect("the engine never closes its places")
    }

    /// Where runs go that take long.
    pub(super) fn long_runs(&self) -> &LongRuns {
        &self.0.long_runs
    }

    /// What makes the HTTP requests of plugins.
    pub(super) fn http(&self) -> HttpClient {
        self.0.http.clone()
    }

    /// A store for one instance: guarded, and interrupted at every tick.
    pub(super) fn store(&self, mut host: Host) -> Store<Host> {
        host.begin();
        host.ticking = Some(self.0.clock.ticking());
        let mut store = Store::new(&self.0.wasm, host);
        store.limiter(|host| &mut host.memory);
        store.set_hostcall_fuel(CALL_BYTES);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            store.data().meter.check()?;
            Ok(UpdateDeadline::Yield(1))
        });
        store
    }
}

/// Lets a few in at a time. For threads that may block.
struct Turnstile {
    left: Mutex<usize>,
    out: Condvar,
}

/// Whoever is in.
struct Inside<'a>(&'a Turnstile);

impl Turnstile {
    fn letting_in(most: usize) -> Self {
        Self { left: Mutex::new(most), out: Condvar::new() }
    }

    fn enter(&self) -> Inside<'_> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.out.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        Inside(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.out.notify_one();
    }
}

fn broken(error: wasmtime::Error) -> Error {
    Error::Engine(format!("{error:#}"))
}

/// What every configuration has.
fn common() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .memory_init_cow(true)
        // Of the component model's own concurrency nothing is used, and keeping books on it costs time in every run.
        .concurrency_support(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(STACK)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable);
    config
}

fn pooled(max_runs: usize) -> Config {
    let instances = u32::try_from(max_runs.max(1) + SPARE).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        // Room for the largest in every place costs addresses, and no memory.
        .total_core_instances(instances.saturating_mul(MOST_INSTANCES))
        .total_memories(instances.saturating_mul(MOST_MEMORIES))
        .total_tables(instances.saturating_mul(MOST_TABLES))
        .total_stacks(instances)
        .max_core_instances_per_component(MOST_INSTANCES)
        .max_memories_per_component(MOST_MEMORIES)
        .max_tables_per_component(MOST_TABLES)
        .max_memory_size(MEMORY_CAP as usize)
        .max_unused_warm_slots(WARM)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT);
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// For systems without the address space for a pool: memory is reserved as it grows.
fn on_demand() -> Config {
    let mut config = common();
    config.memory_reservation(0).memory_guard_size(64 << 10);
    config
}

#[cfg(test)]
impl Engine {
    /// As on a system that has no address space for a pool.
    pub(super) fn without_pool(settings: EngineSettings) -> Self {
        Self::over(wasmtime::Engine::new(&on_demand()).unwrap(), settings).unwrap()
    }
}
