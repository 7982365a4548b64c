//! `botyard:files/files`: what a run sends and reads without having it in its memory.
//!
//! - A file that a run makes is on the disk when [`finish`](wit::Host::finish) answers, and in nobody's hands: it is
//!   sent by a call of the same run, or goes when the run has ended.
//! - What a run makes and fetches is bounded by its limits and by what the Bot API server takes.
//! - The disk is never waited for on a thread that serves others.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{DESCRIBING, Host, Run};
use crate::files::{Draft, Fetched, Files, Pin};
use crate::plugin::bindings::botyard::files::files as wit;
use crate::plugin::bindings::botyard::telegram::bot_api::CallError as WitCallError;
use crate::plugin::outbound::{NO_FILES, TOO_LARGE};
use crate::plugin::tape::NOT_ON_TAPE;
use crate::plugin::{Attachment, CallError, Limit, Tape, grants, reach};
use crate::store::rows::file::{Attached, Hash};
use crate::telegram::Refusal;
use crate::whose;

const SCHEME: &str = "attach://";
/// Characters behind it.
const ID_DIGITS: usize = 32;
/// Files of one run, made and fetched.
const MOST: usize = 100;
/// Files that are begun and not finished.
const MOST_BEGUN: usize = 16;
/// Bytes of a name, of a content type.
const NAME_BYTES: usize = 255;
/// Bytes that one `read` answers with.
const READ_BYTES: u32 = 1 << 20;
/// Bytes that the host copies at a time.
const PIECE: usize = 1 << 20;

/// The files of one run.
#[derive(Default)]
pub(super) struct RunFiles {
    next: u32,
    begun: BTreeMap<u32, Begun>,
    finished: Vec<Attachment>,
    fetched: BTreeMap<u32, Arc<Fetched>>,
    made_bytes: u64,
    fetched_bytes: u64,
}

struct Begun {
    name: String,
    content_type: String,
    size: u64,
    /// None before the first byte.
    draft: Option<Draft>,
}

impl wit::Host for Host {
    async fn create(&mut self, name: String, content_type: String) -> wasmtime::Result<Result<u32, String>> {
        Ok(self.create_file(name, content_type))
    }

    async fn append(&mut self, file: u32, bytes: Vec<u8>) -> wasmtime::Result<Result<(), String>> {
        Ok(self.append_to(file, bytes).await)
    }

    async fn finish(&mut self, file: u32) -> wasmtime::Result<Result<String, String>> {
        Ok(self.finish_file(file).await)
    }

    async fn open(&mut self, file_id: String) -> wasmtime::Result<Result<wit::Info, WitCallError>> {
        Ok(self.fetch(file_id).await.map_err(Into::into))
    }

    async fn read(&mut self, file: u32, offset: u64, length: u32) -> wasmtime::Result<Result<Vec<u8>, String>> {
        let fetched = match self.fetched(file) {
            Ok(fetched) => fetched,
            Err(problem) => return Ok(Err(problem)),
        };
        let length = length.min(READ_BYTES) as usize;
        Ok(on_disk(move || fetched.read(offset, length)).await)
    }

    async fn attach(
        &mut self,
        file: u32,
        name: String,
        content_type: String,
    ) -> wasmtime::Result<Result<String, String>> {
        Ok(self.attach_fetched(file, name, content_type).await)
    }
}

impl Host {
    fn create_file(&mut self, name: String, content_type: String) -> Result<u32, String> {
        let run = self.run.as_mut().ok_or(DESCRIBING)?;
        if name.is_empty() || name.len() > NAME_BYTES || content_type.len() > NAME_BYTES {
            return Err(format!("a file's name has 1 to {NAME_BYTES} bytes, and its content type at most as many"));
        }
        if run.files.begun.len() >= MOST_BEGUN {
            return Err(format!("{MOST_BEGUN} files are begun and not finished, and no more can be"));
        }
        let id = run.files.number()?;
        run.files.begun.insert(id, Begun { name, content_type, size: 0, draft: None });
        Ok(id)
    }

    async fn append_to(&mut self, id: u32, bytes: Vec<u8>) -> Result<(), String> {
        let limit = self.context.limits.upload;
        let run = self.run.as_mut().ok_or(DESCRIBING)?;
        let place = place(run)?;
        let begun = run.files.begun.get_mut(&id).ok_or("there is no such file, or it is finished")?;
        begun.size += bytes.len() as u64;
        run.files.made_bytes += bytes.len() as u64;
        if run.files.made_bytes > limit {
            let place = Limit::Upload.hit(&self.context.name);
            return Err(format!("this run has made more than {limit} bytes of files: {place}"));
        }
        if let Some(problem) = place.limits().refuses(&begun.name, begun.size.max(1), false) {
            return Err(problem);
        }
        // If the run ends meanwhile, the draft goes with the thread's work.
        let draft = begun.draft.take();
        let written = on_disk(move || {
            let mut draft = draft.map_or_else(|| place.draft(), Ok)?;
            draft.write(&bytes)?;
            Ok(draft)
        });
        let written = written.await;
        let run = self.run.as_mut().ok_or(DESCRIBING)?;
        match written {
            Ok(draft) => {
                if let Some(begun) = run.files.begun.get_mut(&id) {
                    begun.draft = Some(draft);
                }
                Ok(())
            }
            Err(problem) => {
                run.files.begun.remove(&id);
                Err(problem)
            }
        }
    }

    async fn finish_file(&mut self, id: u32) -> Result<String, String> {
        let run = self.run.as_mut().ok_or(DESCRIBING)?;
        let begun = run.files.begun.remove(&id).ok_or("there is no such file, or it is finished")?;
        let empty = || format!("the file `{}` is empty, and Telegram takes no empty files", begun.name);
        let draft = begun.draft.ok_or_else(empty)?;
        let (hash, pin) = on_disk(move || draft.keep()).await?;
        self.add_finished(begun.name, begun.content_type, begun.size, hash, pin)
    }

    fn add_finished(
        &mut self,
        name: String,
        content_type: String,
        size: u64,
        hash: Hash,
        pin: Pin,
    ) -> Result<String, String> {
        let run = self.run.as_mut().ok_or(DESCRIBING)?;
        let id = reference(&hash, &name, &content_type);
        let reference = format!("{SCHEME}{id}");
        let pin = Arc::new(pin);
        // Until the commit is there that needs it, or is known not to come.
        run.tx.hold(pin.clone());
        let attached = Attached { id, hash, size, name, content_type, number: 0 };
        run.files.finished.push(Attachment { attached, pin });
        Ok(reference)
    }

    async fn fetch(&mut self, file_id: String) -> Result<wit::Info, CallError> {
        if self.run.as_ref().and_then(|run| run.tape.as_ref()).is_some_and(Tape::plays) {
            return Err(CallError::Unreachable(NOT_ON_TAPE.to_owned()));
        }
        let context = &self.context;
        grants::check(&context.name, &context.methods, &context.grants, "getFile").map_err(CallError::Denied)?;
        if file_id.is_empty() || file_id.len() > 1_024 || reach::is_on_disk(&file_id) {
            return Err(CallError::Invalid("that is no file_id".to_owned()));
        }
        let limit = context.limits.download;
        let calls = context.limits.calls;
        let run = self.run.as_mut().ok_or_else(|| CallError::Denied(DESCRIBING.to_owned()))?;
        let id = run.files.number().map_err(CallError::Denied)?;
        if run.calls >= calls {
            return Err(CallError::Denied(context.too_many_calls()));
        }
        run.take_calls(context, 1, true)?;
        run.calls += 1;
        let deadline = run.deadline.saturating_duration_since(tokio::time::Instant::now());
        let outbound = Arc::clone(&run.outbound);
        // As for every call: what this future is polled on is the guest's small stack.
        let task = tokio::spawn(whose::same(async move { outbound.fetch(file_id, limit, deadline).await }));
        let fetched = task.await.unwrap_or_else(|error| Err(CallError::Unreachable(error.to_string())));
        let fetched = fetched.map_err(|error| match error {
            CallError::Denied(text) if text.starts_with(TOO_LARGE) => {
                CallError::Denied(format!("{text}: {}", Limit::Download.hit(&context.name)))
            }
            error => error,
        })?;
        let run = self.run.as_mut().ok_or_else(|| CallError::Denied(DESCRIBING.to_owned()))?;
        run.files.fetched_bytes += fetched.size;
        if run.files.fetched_bytes > limit {
            let place = Limit::Download.hit(&self.context.name);
            return Err(CallError::Denied(format!("this run has fetched more than {limit} bytes of files: {place}")));
        }
        let info = wit::Info {
            file: id,
            size: fetched.size,
            unique_id: fetched.unique_id.clone(),
            name: fetched.name.clone(),
        };
        run.files.fetched.insert(id, fetched);
        Ok(info)
    }

    fn fetched(&self, file: u32) -> Result<Arc<Fetched>, String> {
        let run = self.run.as_ref().ok_or(DESCRIBING)?;
        run.files.fetched.get(&file).cloned().ok_or_else(|| "there is no such file in this run".to_owned())
    }

    async fn attach_fetched(&mut self, file: u32, name: String, content_type: String) -> Result<String, String> {
        let fetched = self.fetched(file)?;
        let id = self.create_file(name, content_type)?;
        let mut offset = 0;
        while offset < fetched.size {
            let from = Arc::clone(&fetched);
            let piece = on_disk(move || from.read(offset, PIECE)).await?;
            offset += piece.len() as u64;
            self.append_to(id, piece).await?;
        }
        self.finish_file(id).await
    }
}

impl RunFiles {
    fn number(&mut self) -> Result<u32, String> {
        if self.next as usize >= MOST {
            return Err(format!("a run can have at most {MOST} files"));
        }
        self.next += 1;
        Ok(self.next)
    }
}

impl Run {
    /// The files that stand in a call's parameters.
    pub(super) fn attachments(&self, params: &str) -> Result<Vec<Attachment>, CallError> {
        let mut found = Vec::new();
        // Most calls carry none, and are not looked through. A slash may be written in two ways, `attach:` in one.
        if !params.contains("attach:") {
            return Ok(found);
        }
        let params: Value = serde_json::from_str(params)
            .map_err(|error| CallError::Invalid(format!("the parameters are not a JSON object: {error}")))?;
        self.find("", &Value::Null, &params, &mut found)?;
        Ok(found)
    }

    fn find(&self, key: &str, owner: &Value, value: &Value, found: &mut Vec<Attachment>) -> Result<(), CallError> {
        match value {
            // What people wrote is no reference.
            Value::String(_) if matches!(key, "text" | "caption") => {}
            Value::String(text) if text.starts_with(['[', '{']) && text.contains("attach:") => {
                // Lists and objects may come as text.
                if let Ok(inner @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text) {
                    self.find(key, owner, &inner, found)?;
                }
            }
            Value::String(text) => {
                let Some(id) = text.strip_prefix(SCHEME) else { return Ok(()) };
                let known = self.files.finished.iter().find(|file| file.attached.id == id);
                let Some(file) = known else {
                    let ours = id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
                    let reason = "a reference of a file that this run has not made: it holds for one run only";
                    return if ours { Err(CallError::Invalid(reason.to_owned())) } else { Ok(()) };
                };
                let is_photo = key == "photo" || (key == "media" && owner["type"] == "photo");
                let (name, size) = (&file.attached.name, file.attached.size);
                let limits = self.outbound.files().map(Files::limits);
                if let Some(description) = limits.and_then(|limits| limits.refuses(name, size, is_photo)) {
                    return Err(CallError::Refused { code: 413, description, kind: Refusal::Call });
                }
                if found.iter().all(|other| other.attached.id != id) {
                    found.push(file.clone());
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.find(key, owner, item, found)?;
                }
            }
            Value::Object(fields) => {
                for (key, inner) in fields {
                    self.find(key, value, inner, found)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn place(run: &Run) -> Result<Files, String> {
    run.outbound.files().cloned().ok_or_else(|| NO_FILES.to_owned())
}

/// The same for the same, so that a call made again is told to be the same.
fn reference(hash: &Hash, name: &str, content_type: &str) -> String {
    let mut all = Sha256::new();
    all.update(hash);
    all.update(name);
    all.update([0]);
    all.update(content_type);
    all.finalize().iter().take(ID_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Work that waits for the disk. What goes wrong is the host's to mend, so it is logged, too.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| {
        tracing::error!(%error, "a plugin's file can't be kept or read");
        format!("the host can't keep or read the file: {error}")
    })
}
