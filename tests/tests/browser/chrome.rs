//! A Chromium without a window, spoken to in the DevTools protocol over two pipes: JSON, with a zero byte behind each
//! message. The shell gives it the pipes under the numbers that it wants.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more than anything takes, even on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Chrome {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    /// What the page has complained of.
    pub(super) complaints: Vec<String>,
    /// Requests that went elsewhere than to the page's own server.
    pub(super) strays: Vec<String>,
    home: String,
    _profile: TempDir,
}

impl Chrome {
    /// Starts one with an empty page; `home` is the only address that it should ever ask.
    pub(super) fn start(program: &str, home: &str) -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#, program])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--no-sandbox"])
            .args(["--disable-background-networking", "--disable-extensions", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let commands = child.stdin.take().expect("it is piped");
        let mut answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|read| read > 1) {
                let json = serde_json::from_slice(&message[..message.len() - 1]).expect("the browser speaks JSON");
                if sender.send(json).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut chrome = Self {
            child,
            commands,
            messages,
            session: None,
            last_id: 0,
            complaints: Vec::new(),
            strays: Vec::new(),
            home: home.to_owned(),
            _profile: profile,
        };
        let target = chrome.command("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = chrome.command("Target.attachToTarget", &attach);
        chrome.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chrome.command(&format!("{domain}.enable"), &json!({}));
        }
        chrome
    }

    /// Gives a command and answers its result.
    pub(super) fn command(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser listens");
        loop {
            let mut message = match self.messages.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("the browser does not answer {method}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended before it answered {method}"),
            };
            if message["id"] == json!(self.last_id) {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.hear(&message);
        }
    }

    fn hear(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.complaints.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if matches!(params["type"].as_str(), Some("error" | "warning")) => {
                self.complaints.push(params["args"].to_string());
            }
            "Log.entryAdded" if matches!(params["entry"]["level"].as_str(), Some("error" | "warning")) => {
                self.complaints.push(params["entry"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with(&self.home) && !url.starts_with("data:") && !url.starts_with("about:") {
                    self.strays.push(url.to_owned());
                }
            }
            _ => {}
        }
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        // It has children of its own, which go with it when it is asked to.
        let close = b"{\"id\":0,\"method\":\"Browser.close\"}\0";
        if self.commands.write_all(close).is_ok() {
            for _ in 0..100 {
                if matches!(self.child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
