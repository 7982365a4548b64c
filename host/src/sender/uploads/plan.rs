//! Where a call's files stand in its parameters, and what Telegram will remember of them. Pure.
//!
//! Telegram keeps a file with its name, its duration, its thumbnail and the like: the same content sent otherwise is
//! another file. So what an upload is remembered by ([`Place::key`]) is made of all of that. What can't be sent by
//! `file_id` (thumbnails, a chat's photo, stickers of a set) is uploaded every time.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::store::rows::file::{Attached, Hash};

const SCHEME: &str = "attach://";
/// The methods whose file Telegram remembers, with the name of its parameter.
const SINGLE: [(&str, &str); 8] = [
    ("sendPhoto", "photo"),
    ("sendDocument", "document"),
    ("sendVideo", "video"),
    ("sendAnimation", "animation"),
    ("sendAudio", "audio"),
    ("sendVoice", "voice"),
    ("sendVideoNote", "video_note"),
    ("sendSticker", "sticker"),
];
/// The methods whose files stand in `media`.
const MEDIA: [&str; 2] = ["sendMediaGroup", "editMessageMedia"];
/// Of what is said about a file, what becomes part of it.
const BAKED: [&str; 11] = [
    "thumbnail",
    "cover",
    "start_timestamp",
    "duration",
    "width",
    "height",
    "length",
    "title",
    "performer",
    "supports_streaming",
    "disable_content_type_detection",
];

/// The parameters of a call that carries files.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    params: Map<String, Value>,
    places: Vec<Place>,
}

/// One place where a file stands.
#[derive(Debug, Clone)]
struct Place {
    path: Vec<Step>,
    file: Attached,
    is_photo: bool,
    /// What the upload is remembered by, and where the answer tells its `file_id`.
    known: Option<(Hash, Told)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

/// Where an answer tells a `file_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    /// In the message of this number.
    item: usize,
    kind: String,
}

impl Plan {
    /// None if the parameters are no object.
    pub(super) fn of(method: &str, params: &[u8], files: &[Attached]) -> Option<Self> {
        let mut params: Map<String, Value> = serde_json::from_slice(params).ok()?;
        // Lists and objects may come as text.
        for value in params.values_mut() {
            if let Value::String(text) = value
                && text.starts_with(['[', '{'])
                && text.contains(SCHEME)
                && let Ok(inner @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text)
            {
                *value = inner;
            }
        }
        let mut plan = Self { places: Vec::new(), params: Map::new() };
        let single = SINGLE.iter().find(|(name, _)| name.eq_ignore_ascii_case(method)).map(|(_, field)| *field);
        let in_media = MEDIA.iter().any(|name| name.eq_ignore_ascii_case(method));
        for (key, value) in &params {
            let mut path = vec![Step::Key(key.clone())];
            let kind = single.filter(|field| field == key);
            plan.visit(&params, value, kind, &mut path, in_media && key == "media", files);
        }
        plan.params = params;
        Some(plan)
    }

    fn visit(
        &mut self,
        owner: &Map<String, Value>,
        value: &Value,
        kind: Option<&str>,
        path: &mut Vec<Step>,
        in_media: bool,
        files: &[Attached],
    ) {
        match value {
            Value::String(text) => {
                let id = text.strip_prefix(SCHEME);
                let Some(file) = id.and_then(|id| files.iter().find(|file| file.id == id)) else { return };
                let item = path.iter().find_map(|step| if let Step::Item(at) = step { Some(*at) } else { None });
                let named = |name: &str| matches!(path.last(), Some(Step::Key(key)) if key == name);
                let is_photo = kind == Some("photo") || named("photo");
                let known =
                    kind.map(|kind| (key(file, kind, owner), Told { item: item.unwrap_or(0), kind: kind.to_owned() }));
                self.places.push(Place { path: path.clone(), file: file.clone(), is_photo, known });
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(Step::Item(at));
                    self.visit(owner, item, None, path, in_media, files);
                    path.pop();
                }
            }
            Value::Object(fields) => {
                for (key, inner) in fields {
                    let kind = (in_media && key == "media").then(|| fields.get("type")?.as_str()).flatten();
                    path.push(Step::Key(key.clone()));
                    self.visit(fields, inner, kind, path, false, files);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// The files, and whether each is to be a photo.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Attached, bool)> {
        self.places.iter().map(|place| (&place.file, place.is_photo))
    }

    /// What the uploads may be remembered by, in an order that is the same for everybody.
    pub(super) fn keys(&self) -> Vec<Hash> {
        let mut keys: Vec<Hash> =
            self.places.iter().filter_map(|place| place.known.as_ref().map(|(key, _)| *key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Puts what is known in the files' places: the parameters, and the files that are still to be uploaded.
    pub(super) fn fill(&self, known: impl Fn(&Hash) -> Option<String>) -> (Map<String, Value>, Vec<Attached>) {
        let mut params = self.params.clone();
        let mut replaced = Vec::new();
        for place in &self.places {
            if let Some(id) = place.known.as_ref().and_then(|(key, _)| known(key)) {
                let (last, owner) = place.path.split_last().expect("a place is somewhere");
                if let (Some(Value::Object(owner)), Step::Key(key)) = (at_mut(&mut params, owner), last) {
                    owner.insert(key.clone(), id.into());
                    // A file that is there has its own already, and this one would be uploaded for nothing.
                    owner.remove("thumbnail");
                } else if let Step::Key(key) = last {
                    params.insert(key.clone(), id.into());
                    params.remove("thumbnail");
                }
                replaced.push(owner);
            }
        }
        let is_there = |place: &Place| {
            let owner = place.path.split_last().map(|(_, owner)| owner).unwrap_or_default();
            let is_thumbnail = matches!(place.path.last(), Some(Step::Key(key)) if key == "thumbnail");
            let itself = place.known.as_ref().is_some_and(|(key, _)| known(key).is_some());
            itself || (is_thumbnail && replaced.contains(&owner))
        };
        let mut left: Vec<Attached> = Vec::new();
        for place in self.places.iter().filter(|place| !is_there(place)) {
            if left.iter().all(|file| file.id != place.file.id) {
                left.push(place.file.clone());
            }
        }
        (params, left)
    }

    /// What the answer tells: the key of each upload and its `file_id`.
    pub(super) fn told(&self, answer: &[u8]) -> Vec<(Hash, String)> {
        let Ok(answer) = serde_json::from_slice::<Value>(answer) else { return Vec::new() };
        let id = |told: &Told| {
            let message = if answer.is_array() { answer.get(told.item)? } else { &answer };
            let file = message.get(&told.kind)?;
            // Of a photo's sizes the last is the largest.
            let file = file.as_array().map_or(Some(file), |sizes| sizes.last())?;
            file.get("file_id")?.as_str().map(str::to_owned)
        };
        self.places
            .iter()
            .filter_map(|place| place.known.as_ref())
            .filter_map(|(key, told)| Some((*key, id(told)?)))
            .collect()
    }
}

/// A form's fields: texts as they are, the rest as JSON.
pub(super) fn texts(params: Map<String, Value>) -> Vec<(String, String)> {
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    params.into_iter().map(|(key, value)| (key, text(value))).collect()
}

fn key(file: &Attached, kind: &str, owner: &Map<String, Value>) -> Hash {
    let mut hash = Sha256::new();
    hash.update(file.hash);
    for part in [kind, &file.name, &file.content_type] {
        hash.update(part);
        hash.update([0]);
    }
    for name in BAKED {
        if let Some(value) = owner.get(name) {
            hash.update(name);
            hash.update(value.to_string());
            hash.update([0]);
        }
    }
    hash.finalize().into()
}

fn at_mut<'a>(params: &'a mut Map<String, Value>, path: &[Step]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    let Step::Key(first) = first else { return None };
    rest.iter().try_fold(params.get_mut(first)?, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Item(at) => value.get_mut(at),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(id: &str) -> Attached {
        let hash = Sha256::digest(id).into();
        Attached { id: id.into(), hash, size: 3, name: format!("{id}.bin"), content_type: "x/y".into(), number: 1 }
    }

    fn plan(method: &str, params: &Value) -> Plan {
        let files = [file("a"), file("b"), file("c")];
        Plan::of(method, params.to_string().as_bytes(), &files).unwrap()
    }

    fn left(plan: &Plan, known: &[(Hash, String)]) -> (Value, Vec<String>) {
        let look = |key: &Hash| known.iter().find(|(known, _)| known == key).map(|(_, id)| id.clone());
        let (params, left) = plan.fill(look);
        (Value::Object(params), left.into_iter().map(|file| file.id).collect())
    }

    #[test]
    fn an_upload_is_remembered_and_takes_its_thumbnail_along() {
        let params =
            json!({ "chat_id": 7, "video": "attach://a", "thumbnail": "attach://b", "caption": "attach://c!" });
        let plan = plan("sendVideo", &params);
        assert_eq!(left(&plan, &[]), (params, vec!["b".to_owned(), "a".to_owned()]));
        let answer = json!({ "message_id": 1, "video": { "file_id": "V" } });
        let told = plan.told(answer.to_string().as_bytes());
        assert_eq!(told.len(), 1);
        assert_eq!(left(&plan, &told), (json!({ "chat_id": 7, "video": "V", "caption": "attach://c!" }), vec![]));
        assert!(plan.told(br#"{"animation":{"file_id":"A"}}"#).is_empty(), "it has become something else");
        assert!(plan.told(b"true").is_empty());
    }

    #[test]
    fn albums_as_lists_or_as_text_are_looked_through() {
        let media = json!([
            { "type": "photo", "media": "attach://a" },
            { "type": "video", "media": "attach://b", "thumbnail": "attach://c" },
            { "type": "photo", "media": "AgACfileid" },
        ]);
        for media in [media.clone(), media.to_string().into()] {
            let plan = plan("sendMediaGroup", &json!({ "chat_id": 7, "media": media }));
            assert_eq!(
                plan.files().map(|(file, photo)| (&*file.id, photo)).collect::<Vec<_>>(),
                [("a", true), ("b", false), ("c", false)]
            );
            let answer =
                json!([{ "photo": [{ "file_id": "small" }, { "file_id": "P" }] }, { "video": { "file_id": "V" } }, {}]);
            let told = plan.told(answer.to_string().as_bytes());
            let (params, rest) = left(&plan, &told[..1]);
            assert_eq!((&params["media"][0]["media"], rest), (&json!("P"), vec!["b".to_owned(), "c".to_owned()]));
            let (params, rest) = left(&plan, &told);
            assert_eq!(params["media"][1], json!({ "type": "video", "media": "V" }));
            assert!(rest.is_empty());
        }
        let edit = plan("editMessageMedia", &json!({ "media": { "type": "photo", "media": "attach://a" } }));
        assert_eq!(edit.told(br#"{"photo":[{"file_id":"P"}]}"#).len(), 1);
    }

    #[test]
    fn what_cannot_be_sent_by_its_id_is_uploaded_every_time() {
        for (method, params) in [
            ("setChatPhoto", json!({ "photo": "attach://a" })),
            ("createNewStickerSet", json!({ "stickers": [{ "sticker": "attach://a" }] })),
            ("sendPaidMedia", json!({ "media": [{ "type": "photo", "media": "attach://a" }] })),
        ] {
            let plan = plan(method, &params);
            assert!(plan.keys().is_empty(), "{method}");
            assert_eq!(left(&plan, &[]).1, ["a"], "{method}");
        }
    }

    #[test]
    fn the_same_content_sent_otherwise_is_another_file() {
        let key = |method: &str, params: Value| plan(method, &params).keys()[0];
        let plain = key("sendAudio", json!({ "audio": "attach://a", "chat_id": 1, "caption": "x" }));
        assert_eq!(plain, key("SENDAUDIO", json!({ "audio": "attach://a", "chat_id": 2 })));
        assert_ne!(plain, key("sendAudio", json!({ "audio": "attach://a", "title": "Song" })));
        assert_ne!(plain, key("sendDocument", json!({ "document": "attach://a" })));
        let album = json!({ "media": [{ "type": "audio", "media": "attach://a" }, { "type": "audio", "media": "attach://a" }] });
        let album = plan("sendMediaGroup", &album);
        assert_eq!(album.keys(), [plain], "and in an album it is the same");
        assert_eq!(left(&album, &[]).1, ["a"], "which is uploaded once");
    }
}
