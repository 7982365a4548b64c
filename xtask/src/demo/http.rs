//! As much of an HTTP client as talking to the simulator takes: one request, one connection, a JSON answer.
//!
//! HTTP/1.0 on purpose: the server closes the connection at the end of the answer, so nothing has to be framed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The body of an answer.
pub(super) fn get(address: &str, path: &str) -> Result<String> {
    exchange(address, &format!("GET {path}"), "")
}

/// Posts JSON.
pub(super) fn post(address: &str, path: &str, body: &Value) -> Result<String> {
    exchange(address, &format!("POST {path}"), &body.to_string())
}

fn exchange(address: &str, request: &str, body: &str) -> Result<String> {
    let answer = send(address, request, body).with_context(|| format!("{request} at {address}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("{request}: not an HTTP answer"))?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        bail!("{request}: status {status}: {body}");
    }
    Ok(body.to_owned())
}

fn send(address: &str, request: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
