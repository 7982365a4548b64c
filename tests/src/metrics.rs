//! What the admin pages say.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The lines of `/metrics`.
pub struct Metrics(Vec<(String, f64)>);

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(
            lines
                .filter_map(|line| line.rsplit_once(' '))
                .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
                .collect(),
        )
    }

    /// The sum over all lines that begin with this name and hold all of these `label="value"` texts.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let is_it = |line: &str| {
            line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
                && labels.iter().all(|label| line.contains(label))
        };
        self.0.iter().filter(|(line, _)| is_it(line)).map(|(_, value)| value).sum()
    }
}

/// `GET`, in the simplest way.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}
