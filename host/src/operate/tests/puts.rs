//! What is put by hand into a store that others write to.

use futures_util::future::join_all;

use super::*;
use crate::operate::{Entry, Put};

fn entry(fields: serde_json::Value) -> Entry {
    let mut entry = json!({ "plugin": "shop", "expires": 0, "json": 1 });
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

#[tokio::test]
async fn the_operators_word_holds_whoever_writes_at_the_same_moment() {
    let room = room();
    let mut all = Vec::new();
    for n in 0..20 {
        let put = |entry| Put { entry, delete: false };
        all.push(put(entry(json!({ "kind": "value", "user": 7, "key": "k", "json": n }))));
        all.push(put(entry(json!({ "kind": "state", "chat": 5, "name": "a", "version": 1, "json": n }))));
    }
    for put in join_all(all.iter().map(|put| room.operator.put_entry(put))).await {
        assert!(put.unwrap());
    }
    let gone = Put { entry: all[0].entry.clone(), delete: true };
    assert!(room.operator.put_entry(&gone).await.unwrap() && !room.operator.put_entry(&gone).await.unwrap());
}

#[tokio::test]
async fn what_is_given_out_can_be_put_and_what_can_not_be_is_known_before() {
    let room = room();
    // Of a timer that the plugin itself has set: it has a state of its own.
    let of_nobody = entry(json!({ "kind": "state", "name": "a", "version": 1 }));
    assert!(room.operator.put_entry(&Put { entry: of_nobody.clone(), delete: false }).await.unwrap());
    let page = room.operator.entries(&Default::default(), None, 9).unwrap();
    assert_eq!(page.entries, [of_nobody]);
    for (fields, part) in [
        (json!({ "kind": "value", "user": 7 }), "has a key"),
        (json!({ "kind": "value", "user": 7, "chat": 5, "key": "k" }), "not of both"),
        (json!({ "kind": "state", "user": 7 }), "a name and a version"),
        (json!({ "kind": "aside", "user": 7, "name": "a" }), "a name and a version"),
        (json!({ "kind": "timer", "user": 7 }), "only states and values"),
        (json!({ "kind": "value", "key": "k", "plugin": "" }), "which plugin"),
        (json!({ "kind": "value", "key": "k", "hex": "00" }), "either in"),
    ] {
        let entry = entry(fields);
        let said = entry.fits().unwrap_err();
        assert!(said.contains(part), "{said}");
        let refused = room.operator.put_entry(&Put { entry, delete: false }).await.unwrap_err();
        assert!(matches!(&refused, Refused::Wrong(_)), "{refused}");
    }
}
