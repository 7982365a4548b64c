//! The page under a person's hands: typing, keys, clicks, and what there is to see.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chrome::Chrome;

pub(super) struct Page {
    pub(super) chrome: Chrome,
    home: String,
}

impl Page {
    pub(super) fn open(program: &str, home: &str) -> Self {
        Self { chrome: Chrome::start(program, home), home: home.to_owned() }
    }

    /// Opens the page anew, so large, at a chat: `USER/CHAT/TOPIC`.
    pub(super) fn visit(&mut self, width: u32, height: u32, is_dark: bool, place: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.chrome.command("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.chrome.command("Emulation.setEmulatedMedia", &media);
        // The same address with another hash would be the same page.
        self.chrome.command("Page.navigate", &json!({ "url": "about:blank" }));
        self.until("location.href === 'about:blank'");
        self.chrome.command("Page.navigate", &json!({ "url": format!("{}#{place}", self.home) }));
        self.until("document.querySelector('#chats li') && document.querySelector('#clock-face')");
    }

    /// The value of an expression, awaited.
    pub(super) fn js(&mut self, code: &str) -> Value {
        let evaluate = json!({ "expression": code, "awaitPromise": true, "returnByValue": true });
        let mut result = self.chrome.command("Runtime.evaluate", &evaluate);
        assert!(result.get("exceptionDetails").is_none(), "{code}: {}", result["exceptionDetails"]);
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(super) fn until(&mut self, code: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.js(&format!("Boolean({code})")) != json!(true) {
            if Instant::now() > deadline {
                self.shot("failed");
                let log =
                    self.js("document.getElementById('log')?.innerText + document.querySelector('dialog')?.innerText");
                panic!("{code} does not become true; there is: {log}");
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until the newest messages show this text.
    pub(super) fn hears(&mut self, text: &str) {
        self.until(&format!(
            "[...document.querySelectorAll('#log article')].slice(-4).some((m) => m.innerText.includes({}))",
            json!(text)
        ));
    }

    /// Types a text into whatever has the focus.
    pub(super) fn types(&mut self, text: &str) {
        self.chrome.command("Input.insertText", &json!({ "text": text }));
    }

    /// Presses a key.
    pub(super) fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowDown" => 40,
            "ArrowUp" => 38,
            " " => 32,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            " " => " ",
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.chrome.command("Input.dispatchKeyEvent", &event);
        }
    }

    /// Writes to the bot, by keyboard alone.
    pub(super) fn says(&mut self, text: &str) {
        self.js("document.getElementById('text').focus()");
        self.types(text);
        // The list of commands takes an Enter for itself.
        if self.js("document.getElementById('panel').hidden") == json!(false) {
            self.key("Escape");
        }
        self.key("Enter");
    }

    /// Clicks the last visible button or link within `part` that is called so, where the mouse would.
    pub(super) fn clicks(&mut self, part: &str, name: &str) {
        let find = format!(
            "[...document.querySelectorAll({part} + ' :is(button, a, label, summary)')].findLast((b) => b.checkVisibility() && \
             (b.innerText.trim() === {name} || b.innerText.split('\\n').includes({name}) || b.getAttribute('aria-label') === {name}))",
            part = json!(part),
            name = json!(name),
        );
        self.until(&find);
        let at = self.js(&format!(
            "(() => {{ const b = {find}; b.scrollIntoView({{ block: 'nearest' }}); const r = b.getBoundingClientRect(); \
             return {{ x: r.x + r.width / 2, y: r.y + r.height / 2 }}; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": at["x"], "y": at["y"], "button": "left", "clickCount": 1 });
            self.chrome.command("Input.dispatchMouseEvent", &event);
        }
    }

    /// Nothing is wider than the window.
    pub(super) fn fits(&mut self) {
        let wide = self.js(
            "[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)\
             .map((e) => `${e.tagName}#${e.id}.${e.className}`).slice(0, 5)",
        );
        assert_eq!(wide, json!([]), "these do not fit");
    }

    /// A picture, where somebody wants to look.
    pub(super) fn shot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("BOTYARD_SHOTS") else { return };
        let shot = self.chrome.command("Page.captureScreenshot", &json!({ "format": "png" }));
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, base64(shot["data"].as_str().unwrap_or_default())).expect("the folder is writable");
    }

    /// The page has complained of nothing, and asked nobody else.
    pub(super) fn is_content(&mut self) {
        self.js("1");
        assert_eq!(self.chrome.complaints, Vec::<String>::new());
        assert_eq!(self.chrome.strays, Vec::<String>::new());
    }
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let (mut bytes, mut bits, mut n_bits) = (Vec::new(), 0_usize, 0);
    for digit in digits {
        (bits, n_bits) = ((bits << 6) | digit, n_bits + 6);
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push(u8::try_from(bits >> n_bits & 0xff).expect("eight bits"));
            bits &= (1 << n_bits) - 1;
        }
    }
    bytes
}
