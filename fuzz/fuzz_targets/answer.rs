//! What anything at all between here and Telegram may answer: it must be told apart, and a wait must be one that can be
//! waited for.
#![no_main]

use std::time::{Duration, Instant};

use botyard::telegram::{Error, Response, classify};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|body: &[u8]| {
    for status in [200, 204, 302, 400, 401, 409, 429, 502] {
        // Where there is one, it is text, whatever it says.
        let retry_after = body.get(..4).and_then(|start| std::str::from_utf8(start).ok()).map(str::to_owned);
        let (cut, body) = ((status == 204).then(|| "reset".to_owned()), Bytes::copy_from_slice(body));
        match classify("sendMessage", &Response { status, retry_after, cut, body }) {
            Ok(result) => {
                assert!((200..300).contains(&status));
                serde_json::from_slice::<&RawValue>(&result).expect("a result is JSON");
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                if let Error::Flooded { retry_after, .. } = error {
                    assert!(retry_after > Duration::ZERO && Instant::now().checked_add(retry_after).is_some());
                }
            }
        }
    }
});
