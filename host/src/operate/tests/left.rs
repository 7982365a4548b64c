//! What plugins have left.

use super::*;

#[tokio::test]
async fn of_a_plugin_that_is_forgotten_nothing_is_left_but_what_is_on_its_way() {
    use crate::store::rows::{kv, outbox, timer};
    let room = room();
    let store = &room.operator.store;
    for id in [7_123_456_789, 7_987_654_321] {
        fill(&room, id).await;
    }
    let rang = StoredEvent::Timer {
        plugin: PluginName::new("shop"),
        conversation: Conversation::default(),
        id: 1,
        name: "t".to_owned(),
        payload: vec![],
        due: 1,
    };
    room.append(inbox::lane_prefix(BOT, EventLane::whole(Lane::Other)), InboxRow::new(rang, 1).encode()).await;
    let kept = kv::ValueRow { expires: 0, bytes: vec![1] }.encode();
    let others = kv::key(BOT, &PluginName::new("shop2"), kv::Scope::Plugin, "all");
    let ops = vec![Op::Put { key: others.clone(), value: kept }];
    store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    let left = room.operator.left();
    let [shop, other] = &left[..] else { panic!("{left:?}") };
    assert_eq!((&*shop.plugin, shop.timers, &*other.plugin, other.timers), ("shop", 3, "shop2", 0));
    let calls = || store.scan_prefix(&outbox::bot_prefix(BOT), 10).unwrap().len();
    let (sent_later, letters) = (calls(), room.dead().len());
    assert!(room.operator.forget(&PluginName::new("shop")).await.unwrap() > 20);
    assert_eq!(room.operator.left(), left[1..]);
    assert_eq!((calls(), room.dead().len()), (sent_later, letters));
    let mut finds_timers = timer::declared_prefix(BOT);
    finds_timers.pop();
    assert_eq!(store.scan_prefix(&finds_timers, 10).unwrap(), []);
    assert!(store.get(&others).unwrap().is_some());
    assert_eq!(room.operator.forget(&PluginName::new("shop")).await.unwrap(), 0);
    assert_eq!(store.check().unwrap().problems, [""; 0]);
}
