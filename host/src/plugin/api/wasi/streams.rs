//! The standard streams: what is written is logged line by line, and there is nothing to read.
//!
//! Standard output is logged as `info`, standard error as `warn`, like `botyard:log` and within the same limits. A line that
//! is not ended is kept until it is, or until the run ends.

use wasmtime::Result;
use wasmtime::component::{ComponentType, LinkerInstance, Lower, Resource};

use super::Handle;
use crate::plugin::api::Host;
use crate::plugin::api::log::LINE_BYTES;
use crate::plugin::bindings::botyard::log::log::{Host as _, Level};

/// What can be written at a time without asking again.
const ROOM: u64 = 64 << 10;

/// The beginnings of lines.
#[derive(Debug, Default)]
pub(super) struct Begun {
    output: Vec<u8>,
    errors: Vec<u8>,
}

#[derive(ComponentType, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[expect(dead_code, reason = "nothing fails here")]
    LastOperationFailed(Resource<Handle>),
    #[component(name = "closed")]
    Closed,
}

type Streamed<T> = std::result::Result<T, StreamError>;

pub(super) fn link(into: &mut LinkerInstance<'_, Host>) -> Result<()> {
    for name in ["[method]input-stream.read", "[method]input-stream.blocking-read"] {
        into.func_wrap(name, |_, _: (Resource<Handle>, u64)| Ok((Streamed::<Vec<u8>>::Err(StreamError::Closed),)))?;
    }
    for name in ["[method]input-stream.skip", "[method]input-stream.blocking-skip"] {
        into.func_wrap(name, |_, _: (Resource<Handle>, u64)| Ok((Streamed::<u64>::Err(StreamError::Closed),)))?;
    }
    for name in ["[method]input-stream.subscribe", "[method]output-stream.subscribe"] {
        into.func_wrap(name, |mut store, _: (Resource<Handle>,)| {
            Ok((store.data_mut().wasi.handles.hand_out(Handle::Due(0))?,))
        })?;
    }
    into.func_wrap("[method]output-stream.check-write", |_, _: (Resource<Handle>,)| Ok((Streamed::Ok(ROOM),)))?;
    for name in ["[method]output-stream.write", "[method]output-stream.blocking-write-and-flush"] {
        into.func_wrap(name, |mut store, (to, bytes): (Resource<Handle>, Vec<u8>)| {
            let host = store.data_mut();
            let is_output = host.wasi.handles.get(&to)? == Handle::Output;
            host.write(is_output, &bytes)?;
            Ok((Streamed::Ok(()),))
        })?;
    }
    for name in ["[method]output-stream.flush", "[method]output-stream.blocking-flush"] {
        into.func_wrap(name, |_, _: (Resource<Handle>,)| Ok((Streamed::Ok(()),)))?;
    }
    Ok(())
}

impl Host {
    pub(in crate::plugin::api) fn write(&mut self, is_output: bool, mut bytes: &[u8]) -> Result<()> {
        // A line is never cut, which could cut a secret in two: one that is too long is dropped by the log.
        while self.log_left > 0 && !bytes.is_empty() {
            let most = usize::try_from(self.log_left).unwrap_or(usize::MAX);
            let begun = self.begun(is_output);
            let end = bytes.iter().position(|byte| *byte == b'\n');
            begun.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            bytes = end.map_or(&[], |end| &bytes[end + 1..]);
            if end.is_some() || begun.len() > most {
                self.end_line(is_output)?;
            }
        }
        Ok(())
    }

    fn end_line(&mut self, is_output: bool) -> Result<()> {
        let line = std::mem::take(self.begun(is_output));
        let bytes = line.len();
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            // Nothing is logged, but it was looked at: millions of them take their time.
            self.charge_log(bytes + LINE_BYTES);
            return Ok(());
        }
        let level = if is_output { Level::Info } else { Level::Warn };
        self.emit(level, line.to_owned(), Vec::new())
    }

    /// Logs what was written and not ended, at the end of a run.
    pub(in crate::plugin) fn end_lines(&mut self) {
        for is_output in [true, false] {
            if self.begun(is_output).is_empty() {
                continue;
            }
            self.end_line(is_output).expect("logging does not fail");
        }
    }

    fn begun(&mut self, is_output: bool) -> &mut Vec<u8> {
        let begun = &mut self.wasi.begun;
        if is_output { &mut begun.output } else { &mut begun.errors }
    }
}
