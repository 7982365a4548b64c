//! WASI 0.2: as much of it as the runtimes of other languages can't start without.
//!
//! What a component imports of it is linked when it is loaded ([`link`]), and gives it nothing that our own interfaces
//! don't. The clocks and the randomness are those of `botyard:clock` and `botyard:random`, so they are the same on every
//! attempt and in a replay; what is written to the standard streams is logged, within `limits.log`; there are no
//! arguments, no environment, no files and no network. What is imported and not served answers `access-denied` where it
//! has such an answer, and ends the run where it has none. What can't be had at all is refused when the file is loaded
//! ([`refuses`]).
//!
//! Waiting holds no thread, and the end of the run's time ends it.

mod handles;
mod streams;

use std::borrow::Cow;

use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem, Type};
use wasmtime::component::{Component, ComponentType, Linker, LinkerInstance, Lower, Resource, ResourceType, Val};
use wasmtime::{Engine, Error, Result};

use self::handles::{Handle, Handles};
use self::streams::Begun;
use super::Host;
use crate::plugin::bindings::botyard::random::random::Host as _;

/// The packages of which there is something. Whatever they may get in later releases of 0.2 is imported in vain.
const PACKAGES: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];
/// What those are told who wait for nothing at all.
const NOTHING: &str = "wasi:io/poll: waits for nothing";
const MILLISECOND: u64 = 1_000_000;

/// What a run has of WASI.
#[derive(Debug, Default)]
pub(super) struct Wasi {
    handles: Handles,
    begun: Begun,
}

impl Wasi {
    /// Forgets the handles of an instance that is gone.
    pub(super) fn renew(&mut self) {
        self.handles = Handles::default();
    }
}

/// Whether an import is one of WASI's.
pub(in crate::plugin) fn is_of_wasi(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// Why an import of WASI's can't be had, and what mends it; `None` where it can.
pub(in crate::plugin) fn refuses(import: &str) -> Option<&'static str> {
    let name = import.strip_prefix("wasi:")?;
    let package = name.split(['/', '@']).next().unwrap_or_default();
    let is_second = name.split_once('@').is_some_and(|(_, version)| version.starts_with("0.2."));
    if package == "http" {
        Some(
            "HTTP goes through `botyard:http/client`, within grants; build with componentize-js' `disableFeatures: \
             [\"http\", \"fetch-event\"]`, with jco's `--disable http fetch-event`, or without what imports it",
        )
    } else if !PACKAGES.contains(&package) {
        Some("of WASI there are clocks, randomness and standard streams; build without what imports it")
    } else if !is_second {
        Some("of WASI there is 0.2; build with tools, or for a target, of that version, such as wasm32-wasip2")
    } else {
        None
    }
}

/// The linker, with what this component imports of WASI.
pub(in crate::plugin) fn link<'a>(linker: &'a Linker<Host>, component: &Component) -> Result<Cow<'a, Linker<Host>>> {
    let (engine, kind) = (component.engine(), component.component_type());
    let wanted = kind.imports(engine).filter_map(|(name, import)| match import.ty {
        ComponentItem::ComponentInstance(interface) if is_of_wasi(name) => Some((name, interface)),
        _ => None,
    });
    let mut linker = Cow::Borrowed(linker);
    for (name, interface) in wanted {
        // Under the very name, whichever release of 0.2 it is of; what is served takes the place of what answers in vain.
        let mut into = linker.to_mut().allow_shadowing(true).instance(name)?;
        link_in_vain(&mut into, engine, name, &interface)?;
        link_served(&mut into, name.split('@').next().unwrap_or(name))?;
    }
    Ok(linker)
}

/// All of an interface, to no avail.
fn link_in_vain(
    into: &mut LinkerInstance<'_, Host>,
    engine: &Engine,
    interface: &str,
    items: &ComponentInstance,
) -> Result<()> {
    for (name, item) in items.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(_) => {
                let called = format!("the plugin called `{interface}#{name}`, which this host does not offer");
                into.func_new(name, move |_, kind, _, results| match (denial(&kind), results) {
                    (Some(answer), [result]) => {
                        *result = answer;
                        Ok(())
                    }
                    _ => Err(Error::msg(called.clone())),
                })?;
            }
            // The guest's own types keep one kind of handle from being taken for another.
            ComponentItem::Resource(_) => {
                into.resource(name, ResourceType::host::<Handle>(), |mut store, number| {
                    store.data_mut().wasi.handles.give_back(number);
                    Ok(())
                })?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The function's own way to say that something is forbidden, if it has one.
fn denial(kind: &ComponentFunc) -> Option<Val> {
    let Some(Type::Result(result)) = kind.results().next() else { return None };
    let Some(Type::Enum(codes)) = result.err() else { return None };
    let code = codes.names().find(|code| *code == "access-denied")?;
    Some(Val::Result(Err(Some(Box::new(Val::Enum(code.to_owned()))))))
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// What of an interface does something.
fn link_served(into: &mut LinkerInstance<'_, Host>, interface: &str) -> Result<()> {
    match interface {
        "wasi:cli/environment" => {
            into.func_wrap("get-environment", |_, ()| Ok((Vec::<(String, String)>::new(),)))?;
            into.func_wrap("get-arguments", |_, ()| Ok((Vec::<String>::new(),)))?;
            into.func_wrap("initial-cwd", |_, ()| Ok((None::<String>,)))
        }
        "wasi:cli/exit" => {
            let ended = || -> Result<()> { Err(Error::msg("the plugin ended itself, with `exit`")) };
            into.func_wrap("exit", move |_, (_,): (std::result::Result<(), ()>,)| ended())?;
            into.func_wrap("exit-with-code", move |_, (_,): (u8,)| ended())
        }
        "wasi:cli/stdin" => link_handle(into, "get-stdin", Handle::Input),
        "wasi:cli/stdout" => link_handle(into, "get-stdout", Handle::Output),
        "wasi:cli/stderr" => link_handle(into, "get-stderr", Handle::Errors),
        "wasi:cli/terminal-stdin" => link_none(into, "get-terminal-stdin"),
        "wasi:cli/terminal-stdout" => link_none(into, "get-terminal-stdout"),
        "wasi:cli/terminal-stderr" => link_none(into, "get-terminal-stderr"),
        "wasi:clocks/monotonic-clock" => {
            into.func_wrap("now", |store, ()| Ok((store.data().monotonic(),)))?;
            into.func_wrap("resolution", |_, ()| Ok((MILLISECOND,)))?;
            into.func_wrap("subscribe-instant", |mut store, (when,): (u64,)| {
                Ok((store.data_mut().wasi.handles.hand_out(Handle::Due(when))?,))
            })?;
            into.func_wrap("subscribe-duration", |mut store, (time,): (u64,)| {
                let host = store.data_mut();
                let when = host.monotonic().saturating_add(time);
                Ok((host.wasi.handles.hand_out(Handle::Due(when))?,))
            })
        }
        "wasi:clocks/wall-clock" => {
            into.func_wrap("now", |store, ()| {
                let now = store.data().now();
                let nanoseconds = u32::try_from(now % 1_000 * MILLISECOND).expect("it is less than a second");
                Ok((Datetime { seconds: now / 1_000, nanoseconds },))
            })?;
            into.func_wrap("resolution", |_, ()| Ok((Datetime { seconds: 0, nanoseconds: MILLISECOND as u32 },)))
        }
        "wasi:filesystem/preopens" => {
            into.func_wrap("get-directories", |_, ()| Ok((Vec::<(Resource<Handle>, String)>::new(),)))
        }
        "wasi:io/poll" => link_poll(into),
        "wasi:io/streams" => streams::link(into),
        "wasi:random/random" => link_random(into, "get-random-bytes", "get-random-u64"),
        "wasi:random/insecure" => link_random(into, "get-insecure-random-bytes", "get-insecure-random-u64"),
        "wasi:random/insecure-seed" => {
            into.func_wrap("insecure-seed", |mut store, ()| Ok(((random(&mut store)?, random(&mut store)?),)))
        }
        // All that can be done with it is denied, by the functions themselves.
        "wasi:sockets/instance-network" => link_handle(into, "instance-network", Handle::Network),
        _ => Ok(()),
    }
}

fn link_handle(into: &mut LinkerInstance<'_, Host>, name: &str, handle: Handle) -> Result<()> {
    into.func_wrap(name, move |mut store, ()| Ok((store.data_mut().wasi.handles.hand_out(handle)?,)))
}

fn link_none(into: &mut LinkerInstance<'_, Host>, name: &str) -> Result<()> {
    into.func_wrap(name, |_, ()| Ok((None::<Resource<Handle>>,)))
}

fn link_random(into: &mut LinkerInstance<'_, Host>, bytes: &str, number: &str) -> Result<()> {
    into.func_wrap(bytes, |mut store, (length,): (u64,)| {
        Ok((store.data_mut().bytes(u32::try_from(length).unwrap_or(u32::MAX))?,))
    })?;
    into.func_wrap(number, |mut store, ()| Ok((random(&mut store)?,)))
}

fn random(store: &mut wasmtime::StoreContextMut<'_, Host>) -> Result<u64> {
    let bytes = store.data_mut().bytes(8)?;
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn link_poll(into: &mut LinkerInstance<'_, Host>) -> Result<()> {
    into.func_wrap("[method]pollable.ready", |store, (one,): (Resource<Handle>,)| {
        let host = store.data();
        Ok((host.wasi.handles.get(&one)?.due() <= host.monotonic(),))
    })?;
    into.func_wrap_async("[method]pollable.block", |mut store, (one,): (Resource<Handle>,)| {
        Box::new(async move { store.data_mut().poll(&[one]).await.map(drop) })
    })?;
    into.func_wrap_async("poll", |mut store, (all,): (Vec<Resource<Handle>>,)| {
        Box::new(async move { Ok((store.data_mut().poll(&all).await?,)) })
    })
}

impl Host {
    /// Waits for the first of them; answers with the places of all that have come.
    async fn poll(&mut self, all: &[Resource<Handle>]) -> Result<Vec<u32>> {
        let due = all.iter().map(|one| Ok(self.wasi.handles.get(one)?.due())).collect::<Result<Vec<_>>>()?;
        let first = due.iter().min().copied().ok_or_else(|| Error::msg(NOTHING))?;
        self.wait(std::time::Duration::from_nanos(first.saturating_sub(self.monotonic()))).await;
        let now = self.monotonic();
        Ok((0..).zip(due).filter(|(_, due)| *due <= now).map(|(place, _)| place).collect())
    }
}
