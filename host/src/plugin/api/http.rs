//! `botyard:http/client`: requests to granted servers, made at once.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{DESCRIBING, Host, StopOnDrop};
use crate::config::redaction::redact;
use crate::plugin::allowance::Short;
use crate::plugin::bindings::botyard::http::client as wit;
use crate::plugin::grants::Reach;
use crate::plugin::http::{Budget, Error, Exchange, Request, Response};
use crate::plugin::tape::NOT_ON_TAPE;
use crate::plugin::{Answer, Limit};
use crate::whose;

/// What is left of a run's time for making something of "not in time", at most.
const REST: Duration = Duration::from_millis(250);

impl wit::Host for Host {
    async fn send(&mut self, request: wit::Request) -> wasmtime::Result<Result<wit::Response, wit::Error>> {
        let answer = self.send_request(request.into()).await;
        Ok(answer.map(Into::into).map_err(Into::into))
    }
}

impl Host {
    async fn send_request(&mut self, request: Request) -> Result<Response, Error> {
        let Some(tape) = self.run.as_ref().and_then(|run| run.tape.clone()) else {
            return self.request_at_once(request).await;
        };
        let (what, how) = fingerprint(&request);
        let answer = if tape.plays() {
            match tape.play(&what, &how) {
                Some(Answer::Response { status, headers, body, url }) => {
                    Ok(Response { status, headers, body: body.bytes(), url })
                }
                Some(Answer::Failed(error)) => Err(error),
                _ => Err(Error::Unreachable(NOT_ON_TAPE.to_owned())),
            }
        } else {
            self.request_at_once(request).await
        };
        tape.record(&what, &how, (&answer).into());
        answer
    }

    async fn request_at_once(&mut self, request: Request) -> Result<Response, Error> {
        let (context, client) = (Arc::clone(&self.context), self.http.clone());
        let limits = &context.limits;
        let run = self.run.as_mut().ok_or_else(|| Error::Denied(DESCRIBING.to_owned()))?;
        // What only reads is made again by a second run: it wants to see how things are by then.
        let changes = !["GET", "HEAD", "OPTIONS"].iter().any(|method| request.method.eq_ignore_ascii_case(method));
        let (what, how) = if changes { fingerprint(&request) } else { Default::default() };
        let plugin = &context.name;
        let asked = (&*what, &*how);
        if changes
            && let Some(answer) = run.journal.http.recall(&mut run.http_cursor, run.attempt, plugin, asked, |_| None)
        {
            let lost = "an earlier attempt at this event ended before the answer came";
            return answer.unwrap_or_else(|| Err(Error::UnknownOutcome(lost.to_owned())));
        }
        // Room for the longest answer too: a request that has had its effect is not to break off for lack of it.
        let sends = size_of(&request);
        let reserved = sends + limits.http_bytes;
        context.allowance.take_http_bytes(reserved, limits.http_bytes_per_minute).map_err(|short| {
            let (most, place) = (limits.http_bytes_per_minute, Limit::HttpBytesPerMinute.hit(plugin));
            match short {
                Short::For(wait) => {
                    run.short = Some((Limit::HttpBytesPerMinute, wait));
                    Error::Limited(format!("more than {most} bytes in a minute: {place}"))
                }
                Short::Always => {
                    Error::Denied(format!("the request and `limits.http_bytes` are more than {most} bytes: {place}"))
                }
            }
        })?;
        let left = run.deadline.saturating_duration_since(tokio::time::Instant::now());
        let budget = Budget {
            bytes: limits.http_bytes,
            calls: (limits.http_calls, limits.http_calls.saturating_sub(run.requests)),
            per_minute: limits.http_per_minute,
            bytes_per_minute: limits.http_bytes_per_minute,
            allowance: Arc::clone(&context.allowance),
            deadline: run.deadline - REST.min(left / 10),
        };
        let place = changes.then(|| run.journal.http.begin(&mut run.http_cursor, run.attempt, plugin, &what, &how));
        let task = {
            let context = Arc::clone(&context);
            // A task of its own: what this future is polled on is the guest's small stack, and its time is the guest's.
            tokio::spawn(whose::same(async move {
                let reach = Reach { plugin: &context.name, declared: &context.http, granted: &context.grants.http };
                client.send(&context.name, &reach, request, budget).await
            }))
        };
        let _stop = StopOnDrop(task.abort_handle());
        let Exchange { result, reached, short, requests, bytes, taken } = task.await.unwrap_or_else(|error| Exchange {
            result: Err(Error::UnknownOutcome(error.to_string())),
            reached: true,
            short: None,
            requests: 1,
            bytes: sends,
            taken: 0,
        });
        // One that never left counts too: there is an end to trying.
        run.requests += requests.max(1);
        if let Some(short) = short {
            run.short = Some(short);
        }
        let got = result.as_ref().map_or(limits.http_bytes, |answer| answer.body.len() as u64);
        let used = if reached { bytes + got } else { 0 };
        let taken = reserved + taken;
        if limits.http_bytes_per_minute > 0 {
            context.allowance.give_back_http_bytes(taken.saturating_sub(used));
            context.allowance.note_http_bytes(used.saturating_sub(taken));
        }
        let result = result.map_err(without_secrets);
        if let Some(place) = place {
            run.journal.http.finish(place, &result, reached, settled(&result));
        }
        if let Ok(response) = &result {
            let bytes = response.body.len() + response.headers.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
            run.charge_data(bytes).map_err(Error::Limited)?;
        }
        result
    }
}

/// Whether another attempt at the event must not make the request again. One that the server has refused or failed at
/// may be: the attempt is made for that.
fn settled(result: &Result<Response, Error>) -> bool {
    match result {
        Ok(response) => response.status < 400,
        Err(_) => true,
    }
}

/// Bytes that it sends, about.
fn size_of(request: &Request) -> u64 {
    let headers = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    (request.url.len() + headers + request.body.len()) as u64
}

/// Tells a request from others; a hash, since bodies may be large.
fn fingerprint(request: &Request) -> (String, String) {
    let mut hash = Sha256::new();
    for (name, value) in &request.headers {
        for text in [name, value] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
    }
    hash.update([0]);
    hash.update(&request.body);
    let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    (format!("{} {}", request.method, request.url), hash)
}

/// The texts of others (a name server's, a TLS library's) go to the plugin and perhaps to the log.
fn without_secrets(error: Error) -> Error {
    let clean = |text: String| redact(&text).into_owned();
    match error {
        Error::Denied(text) => Error::Denied(clean(text)),
        Error::Invalid(text) => Error::Invalid(clean(text)),
        Error::Limited(text) => Error::Limited(clean(text)),
        Error::Unreachable(text) => Error::Unreachable(clean(text)),
        Error::UnknownOutcome(text) => Error::UnknownOutcome(clean(text)),
    }
}

impl From<wit::Request> for Request {
    fn from(request: wit::Request) -> Self {
        let wit::Request { method, url, headers, body, timeout_ms } = request;
        Self { method, url, headers, body, timeout: timeout_ms.map(|ms| Duration::from_millis(ms.into())) }
    }
}

impl From<Response> for wit::Response {
    fn from(Response { status, headers, body, url }: Response) -> Self {
        Self { status, headers, body, url }
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(text) => Self::Denied(text),
            Error::Invalid(text) => Self::Invalid(text),
            Error::Limited(text) => Self::Limited(text),
            Error::Unreachable(text) => Self::Unreachable(text),
            Error::UnknownOutcome(text) => Self::UnknownOutcome(text),
        }
    }
}
