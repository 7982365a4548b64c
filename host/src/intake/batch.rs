//! Splits an answer of `getUpdates` into updates, each with its id, and reads the one that a webhook brings; pure.
//!
//! One update that can't be read never costs the others of its batch anything: it is told apart, kept as it is,
//! and given the id that it must have had, so that the offset moves past it.

use serde_json::value::RawValue;

use crate::domain::{EventLane, LaneRule, UPDATE_KINDS, UpdateId, UpdateView};

/// One element of the batch.
#[derive(Debug, PartialEq)]
pub(super) struct Item<'a> {
    /// As sent, or worked out from its neighbours.
    pub(super) id: UpdateId,
    pub(super) raw: &'a str,
    /// For metrics: one of those that are known.
    pub(super) kind: &'static str,
    pub(super) content: Content,
}

#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Update {
        lane: EventLane,
        /// Where it is to be seen at once as well.
        control: Option<EventLane>,
    },
    /// Why it can't be read.
    Unreadable(&'static str),
}

/// Reads the batch. `offset` is the one it was asked for with: where nothing else tells an id, the first
/// element's is taken to be that.
///
/// # Errors
/// When the text is not a JSON array.
pub(super) fn split<'a>(
    body: &'a str,
    offset: Option<i64>,
    rule: &LaneRule,
) -> Result<Vec<Item<'a>>, serde_json::Error> {
    let elements: Vec<&RawValue> = serde_json::from_str(body)?;
    let views: Vec<_> = elements.iter().map(|raw| UpdateView::parse(raw.get()).ok()).collect();
    let ids: Vec<Option<i64>> = views.iter().map(|view| Some(view.as_ref()?.id?.0)).collect();
    let mut items = Vec::with_capacity(elements.len());
    for (place, (raw, view)) in elements.iter().zip(&views).enumerate() {
        let (kind, content) = (kind(view.as_ref()), content(view.as_ref(), rule));
        let Some(id) = ids.get(place).copied().flatten().or_else(|| infer(&ids, place, offset)) else {
            // The very first poll, and nothing in it has an id: there is no telling how to confirm it.
            continue;
        };
        items.push(Item { id: UpdateId(id), raw: raw.get(), kind, content });
    }
    Ok(items)
}

/// Reads the update that stands alone in a request. The error is why there is no telling which one it is.
pub(super) fn single<'a>(raw: &'a str, rule: &LaneRule) -> Result<Item<'a>, &'static str> {
    let view = UpdateView::parse(raw).ok();
    match (view.as_ref().and_then(|view| view.id), content(view.as_ref(), rule)) {
        (Some(id), content) => Ok(Item { id, raw, kind: kind(view.as_ref()), content }),
        (None, Content::Unreadable(reason)) => Err(reason),
        (None, Content::Update { .. }) => Err("its update_id is missing"),
    }
}

fn content(view: Option<&UpdateView<'_>>, rule: &LaneRule) -> Content {
    match view {
        Some(view) => match view.defect() {
            Some(defect) => Content::Unreadable(defect),
            None => Content::Update { lane: view.lane(rule.key), control: view.control_lane(rule) },
        },
        None => Content::Unreadable("it is not a JSON object"),
    }
}

/// A metric's label must not be whatever somebody sends.
fn kind(view: Option<&UpdateView<'_>>) -> &'static str {
    let known = UPDATE_KINDS.iter().find(|kind| view.is_some_and(|view| view.kind == **kind));
    known.copied().unwrap_or("other")
}

/// Ids of one batch are consecutive, so a neighbour tells the missing one.
fn infer(ids: &[Option<i64>], place: usize, offset: Option<i64>) -> Option<i64> {
    let away = |distance: usize| i64::try_from(distance).ok();
    let before = ids.iter().take(place).rev().enumerate().find_map(|(n, id)| (*id)?.checked_add(away(n + 1)?));
    let after = || ids.iter().skip(place + 1).enumerate().find_map(|(n, id)| (*id)?.checked_sub(away(n + 1)?));
    before.or_else(after).or_else(|| offset?.checked_add(away(place)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChatId, Lane};

    fn split(body: &str, offset: Option<i64>) -> Result<Vec<Item<'_>>, serde_json::Error> {
        super::split(body, offset, &LaneRule::default())
    }

    fn update(place: Lane) -> Content {
        Content::Update { lane: EventLane::whole(place), control: None }
    }

    fn ids(body: &str, offset: Option<i64>) -> Vec<i64> {
        split(body, offset).unwrap().iter().map(|item| item.id.0).collect()
    }

    #[test]
    fn a_broken_update_in_the_middle_gets_its_neighbours_next_id() {
        let body = r#"[{"update_id":5,"message":{"chat":{"id":1}}}, {"message":{}}, 17, {"update_id":8,"poll":{}}]"#;
        let items = split(body, None).unwrap();
        assert_eq!(ids(body, None), [5, 6, 7, 8]);
        assert_eq!(items[0].content, update(Lane::Chat(ChatId(1))));
        assert!(matches!(items[1].content, Content::Unreadable(_)));
        assert!(matches!(items[2].content, Content::Unreadable(_)));
        assert_eq!(items[3].content, update(Lane::Other));
    }

    #[test]
    fn a_broken_update_at_an_end_is_placed_too() {
        assert_eq!(ids(r#"[{}, {"update_id":8,"poll":{}}]"#, None), [7, 8]);
        assert_eq!(ids(r#"[{"update_id":8,"poll":{}}, null]"#, None), [8, 9]);
        assert_eq!(ids("[null, null]", Some(40)), [40, 41], "the offset tells where the batch begins");
        assert!(ids("[null]", None).is_empty(), "nothing tells");
    }

    #[test]
    fn an_update_alone_is_read_like_one_of_a_batch() {
        let single = |raw| super::single(raw, &LaneRule::default());
        let item = single(r#"{"update_id":5,"message":{"chat":{"id":1}}}"#).unwrap();
        assert_eq!((item.id.0, item.kind, item.content), (5, "message", update(Lane::Chat(ChatId(1)))));
        let item = single(r#"{"update_id":6,"news_of_2031":{}}"#).unwrap();
        assert_eq!((item.kind, item.content), ("other", update(Lane::Other)));
        assert!(matches!(single(r#"{"update_id":7}"#).unwrap().content, Content::Unreadable(_)));
        for body in
            ["", "[]", "{}", "null", "<html>", r#"{"message":{}}"#, r#"{"update_id":"x","message":{}}"#, "{\"upd"]
        {
            assert!(single(body).is_err(), "{body}");
        }
    }

    #[test]
    fn no_id_is_too_large_to_have_a_neighbour() {
        let (max, min) = (i64::MAX, i64::MIN);
        ids(&format!(r#"[{{"update_id":{max},"poll":{{}}}}, {{}}]"#), Some(max));
        ids(&format!(r#"[{{}}, {{"update_id":{min},"poll":{{}}}}]"#), None);
        ids("[{}, {}]", Some(max));
    }

    #[test]
    fn an_answer_that_is_no_array_is_an_error() {
        for body in ["", "{}", "[1,", "null", "<html>"] {
            assert!(split(body, None).is_err(), "{body}");
        }
    }
}
