//! Any bytes at all: reading them must end, whatever they are, and agree with a JSON value where there can be one.
#![no_main]

use botyard::domain::{EventLane, KeyStrategy, UpdateView};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let read = UpdateView::parse(&text);
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
        assert_eq!(read.is_ok(), value.is_object(), "an update is an object");
    }
    let Ok(view) = read else { return };
    std::hint::black_box((view.command(), view.defect()));
    for key in KeyStrategy::ALL {
        let lane = view.lane(key);
        assert_eq!(EventLane::decode(&lane.encode()), Some(lane));
    }
});
