//! Typed values from JSON. Nothing here fails: what is not there, or has another form, has a value of its own.

use serde::{Deserialize, Deserializer};

use super::Json;

/// What a field or an answer can be read as.
pub trait FromJson: Sized {
    /// The value, if the JSON has the form of one.
    fn read(json: &Json) -> Option<Self>;
    /// What stands for a field that is not there.
    fn absent() -> Self;
}

pub(super) fn field<T: FromJson>(object: &Json, key: &str) -> T {
    object.get(key).and_then(|json| T::read(&json)).unwrap_or_else(T::absent)
}

pub(super) fn from_serde<'de, T: FromJson, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let json = Json::deserialize(deserializer)?;
    Ok(T::read(&json).unwrap_or_else(T::absent))
}

impl FromJson for Json {
    fn read(json: &Json) -> Option<Self> {
        Some(json.clone())
    }
    fn absent() -> Self {
        Self::null()
    }
}

impl FromJson for i64 {
    fn read(json: &Json) -> Option<Self> {
        json.as_i64()
    }
    fn absent() -> Self {
        0
    }
}

impl FromJson for f64 {
    fn read(json: &Json) -> Option<Self> {
        json.as_f64()
    }
    fn absent() -> Self {
        0.0
    }
}

impl FromJson for bool {
    fn read(json: &Json) -> Option<Self> {
        json.as_bool()
    }
    fn absent() -> Self {
        false
    }
}

impl FromJson for String {
    fn read(json: &Json) -> Option<Self> {
        json.as_text()
    }
    fn absent() -> Self {
        Self::new()
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn read(json: &Json) -> Option<Self> {
        Some(T::read(json))
    }
    fn absent() -> Self {
        None
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn read(json: &Json) -> Option<Self> {
        json.is_array().then(|| json.items().map(|item| T::read(&item).unwrap_or_else(T::absent)).collect())
    }
    fn absent() -> Self {
        Self::new()
    }
}
