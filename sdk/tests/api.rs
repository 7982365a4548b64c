//! The objects of the Bot API, and the facts that they are made from.

use botyard_sdk::prelude::*;

#[test]
fn objects_go_through_serde_and_lose_nothing() {
    let json = r#"{"id":7,"first_name":"Ä","brand_new":[1,{"x":null}]}"#;
    let user: api::User = serde_json::from_str(json).unwrap();
    assert_eq!((user.id(), user.first_name().as_str(), user.last_name()), (7, "Ä", None));
    assert_eq!(serde_json::to_value(&user).unwrap(), serde_json::from_str::<Value>(json).unwrap());
    // What is missing or of another form is none, empty or 0, and nothing else is lost by it.
    let broken = json!({ "message_id": "x", "chat": 3, "from": { "id": 1.0 }, "date": "17", "photo": {} });
    let broken: api::Message = serde_json::from_value(broken).unwrap();
    assert_eq!((broken.message_id(), broken.chat().id(), broken.date()), (0, 0, 17));
    assert_eq!((broken.from().map(|user| user.id()), broken.photo().len()), (Some(1), 0));
}

#[test]
fn the_host_knows_every_kind_of_update() {
    let spec: Value = serde_json::from_str(include_str!("../bot-api.json")).unwrap();
    let host = include_str!("../../host/src/domain/update.rs");
    let (_, list) = host.split_once("pub const UPDATE_KINDS").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let fields = spec["areas"]["updates"]["objects"]["Update"].as_array().unwrap();
    let kinds: Vec<_> = fields.iter().filter_map(|field| field.as_str()?.split_once(": ")).collect();
    let kinds: Vec<_> = kinds.into_iter().map(|(name, _)| name).filter(|name| *name != "update_id").collect();
    assert_eq!(kinds.len(), list.matches("    \"").count());
    for kind in kinds {
        assert!(list.contains(&format!("\"{kind}\",")), "{kind} is missing in UPDATE_KINDS");
    }
    assert_eq!(spec["version"], api::VERSION);
}
