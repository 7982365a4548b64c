//! What the generated modules are written in.
//!
//! Everything that they make is `#[inline]` or generic: it is compiled where it is used, and what a plugin does not use
//! costs it nothing.

/// An object of the Bot API.
macro_rules! object {
    ($name:ident $anchor:literal) => {
        #[doc = concat!("The object [`", stringify!($name), "`](https://core.telegram.org/bots/api#", $anchor, ") of the Bot API.")]
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(pub(crate) Json);

        impl Object for $name {
            #[inline]
            fn json(&self) -> &Json {
                &self.0
            }
            #[inline]
            fn set(mut self, key: &str, value: impl Serialize) -> Self {
                self.0.put_value(key, &value);
                self
            }
        }

        impl FromJson for $name {
            #[inline]
            fn read(json: &Json) -> Option<Self> {
                json.is_object().then(|| Self(json.clone()))
            }
            #[inline]
            fn absent() -> Self {
                Self(Json::null())
            }
        }

        traits!($name);

        impl From<$name> for Json {
            #[inline]
            fn from(object: $name) -> Self {
                object.0
            }
        }
    };
}

/// What objects and unions have in common.
macro_rules! traits {
    ($name:ident) => {
        impl fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.json().fmt(f)
            }
        }

        impl Serialize for $name {
            #[inline]
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.json().serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            #[inline]
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_serde(deserializer)
            }
        }
    };
}

/// Fields to read.
macro_rules! fields {
    ($name:ident { $($field:ident $key:literal $type:ty;)* }) => {
        impl $name {
            $(
                #[doc = concat!("The field `", $key, "`.")]
                #[inline]
                #[must_use]
                pub fn $field(&self) -> $type {
                    self.get($key)
                }
            )*
        }
    };
}

/// Fields and parameters to write. Those of `new` are required, those before it always the same.
macro_rules! builder {
    ($name:ident {
        $(const $fixed:literal $json:literal;)*
        new($($needed:ident $needed_key:literal $needed_kind:tt),*);
        $($field:ident $key:literal $kind:tt;)*
    }) => {
        impl $name {
            /// With all that Telegram requires.
            #[inline]
            pub fn new($($needed: argument!($needed_kind)),*) -> Self {
                #[allow(unused_mut, reason = "there may be nothing to set")]
                let mut json = Json::object();
                $(json.put_raw($fixed, $json);)*
                $(put!(json, $needed_key, $needed, $needed_kind);)*
                Self(json)
            }
            $(
                #[doc = concat!("Sets `", $key, "`.")]
                #[inline]
                    pub fn $field(mut self, value: argument!($kind)) -> Self {
                    put!(self.0, $key, value, $kind);
                    self
                }
            )*
        }
    };
}

/// What stands in a signature for a kind of parameter.
macro_rules! argument {
    (int) => { i64 };
    (bool) => { bool };
    (float) => { f64 };
    (text) => { impl AsRef<str> };
    (chat) => { impl Into<ChatTarget> };
    (file) => { impl Into<InputFile> };
    (markup) => { impl Markup };
    ((list int)) => { impl IntoIterator<Item = i64> };
    ((list text)) => { impl IntoIterator<Item = impl AsRef<str>> };
    ((list (list $type:ident))) => { impl IntoIterator<Item = impl IntoIterator<Item = impl Into<$type>>> };
    ((list $type:ident)) => { impl IntoIterator<Item = impl Into<$type>> };
    ($type:ident) => { impl Into<$type> };
}

/// Writes a parameter of a kind.
macro_rules! put {
    ($json:expr, $key:literal, $value:ident, int) => {
        $json.put_integer($key, $value)
    };
    ($json:expr, $key:literal, $value:ident, bool) => {
        $json.put_raw($key, truth($value))
    };
    ($json:expr, $key:literal, $value:ident, float) => {
        $json.put_float($key, $value)
    };
    ($json:expr, $key:literal, $value:ident, text) => {
        $json.put_text($key, $value.as_ref())
    };
    ($json:expr, $key:literal, $value:ident, chat) => {
        put_chat(&mut $json, $key, $value.into())
    };
    ($json:expr, $key:literal, $value:ident, file) => {
        $json.put_text($key, $value.into().as_str())
    };
    ($json:expr, $key:literal, $value:ident, markup) => {
        put_markup(&mut $json, $key, $value.into_json())
    };
    ($json:expr, $key:literal, $value:ident, (list int)) => {
        put_integers(&mut $json, $key, $value)
    };
    ($json:expr, $key:literal, $value:ident, (list text)) => {
        $json.put_list($key, $value.into_iter().map(|text| Json::text(text.as_ref())).collect())
    };
    ($json:expr, $key:literal, $value:ident, (list (list $type:ident))) => {
        $json.put_list($key, $value.into_iter().map(|row| objects::<$type, _>(row)).collect())
    };
    ($json:expr, $key:literal, $value:ident, (list $type:ident)) => {
        $json.put_json($key, &objects::<$type, _>($value))
    };
    ($json:expr, $key:literal, $value:ident, $type:ident) => {
        $json.put_json($key, &part::<$type>($value))
    };
}

/// A method of the Bot API, with its parameters.
macro_rules! method {
    ($name:ident $method:literal $anchor:literal -> $answer:ty) => {
        #[doc = concat!("The method [`", $method, "`](https://core.telegram.org/bots/api#", $anchor, ") of the Bot API.")]
        #[derive(Clone, PartialEq, Eq)]
        #[must_use = "a method does nothing until it is given to `ctx.queue(…)` or `ctx.ask(…)`"]
        pub struct $name(pub(crate) Json);

        impl Method for $name {
            const NAME: &'static str = $method;
            type Answer = $answer;

            #[inline]
            fn params(&self) -> &Json {
                &self.0
            }
            #[inline]
            fn set(mut self, key: &str, value: impl Serialize) -> Self {
                self.0.put_value(key, &value);
                self
            }
        }

        impl fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {:?}", $method, self.0)
            }
        }
    };
}

/// One of several objects, told apart by a field.
macro_rules! union {
    ($name:ident $anchor:literal $tag:literal [$($text:ident)?] [$($list:ident)?] {
        $($variant:ident($type:ident) $($value:literal)?;)*
    } [$($rest:ident)?]) => {
        #[doc = concat!("One of the objects that the Bot API calls [`", stringify!($name), "`](https://core.telegram.org/bots/api#", $anchor, ").")]
        #[derive(Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                /// A plain text: the JSON string.
                $text(Json),
            )?
            $(
                /// Several after one another: the JSON array.
                $list(Json),
            )?
            $(
                #[doc = concat!("A [`", stringify!($type), "`].")]
                $variant($type),
            )*
            /// One that this version of the SDK does not know.
            Unknown(Json),
        }

        impl $name {
            /// Its JSON.
            #[inline]
            #[must_use]
            pub fn json(&self) -> &Json {
                match self {
                    $(Self::$text(json) => json,)?
                    $(Self::$list(json) => json,)?
                    $(Self::$variant(object) => object.json(),)*
                    Self::Unknown(json) => json,
                }
            }

            /// A field that several of them have, or that this version of the SDK does not know.
            #[inline]
            #[must_use]
            pub fn get<T: FromJson>(&self, key: &str) -> T {
                field(self.json(), key)
            }
        }

        impl FromJson for $name {
            #[inline]
            #[allow(unused_variables, reason = "not every union has a tag")]
            fn read(json: &Json) -> Option<Self> {
                $(if json.as_json().starts_with('"') {
                    return Some(Self::$text(json.clone()));
                })?
                $(if json.is_array() {
                    return Some(Self::$list(json.clone()));
                })?
                if !json.is_object() {
                    return None;
                }
                let tag = json.get($tag);
                let tag = tag.as_ref().map_or("", Json::as_json);
                $($(if tag == $value {
                    return <$type>::read(json).map(Self::$variant);
                })?)*
                // Without one that needs no tag it is unknown; with one this is that.
                let rest = |json| Self::Unknown(json);
                $(let rest = |json| Self::$rest($rest(json));)?
                Some(rest(json.clone()))
            }
            #[inline]
            fn absent() -> Self {
                Self::Unknown(Json::null())
            }
        }

        traits!($name);

        impl From<$name> for Json {
            #[inline]
            fn from(union: $name) -> Self {
                union.json().clone()
            }
        }

        $(impl From<$type> for $name {
            #[inline]
            fn from(object: $type) -> Self {
                Self::$variant(object)
            }
        })*
    };
}

/// One of several names.
macro_rules! names {
    ($name:ident { $($variant:ident $text:literal;)* }) => {
        /// One of the names that fields of this meaning hold in the [Bot API](https://core.telegram.org/bots/api).
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                #[doc = concat!("`", $text, "`")]
                $variant,
            )*
            /// One that this version of the SDK does not know; empty where there is none.
            Unknown(String),
        }

        impl $name {
            /// As the Bot API writes it.
            #[inline]
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(name) => name,
                }
            }
        }

        impl AsRef<str> for $name {
            #[inline]
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<&str> for $name {
            #[inline]
            fn from(name: &str) -> Self {
                match name {
                    $($text => Self::$variant,)*
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromJson for $name {
            #[inline]
            fn read(json: &Json) -> Option<Self> {
                json.as_text().map(|name| Self::from(name.as_str()))
            }
            #[inline]
            fn absent() -> Self {
                Self::Unknown(String::new())
            }
        }
    };
}
