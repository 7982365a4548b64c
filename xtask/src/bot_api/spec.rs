//! The facts: `sdk/bot-api.json` as values, and what follows from them.
//!
//! A field is written `name: type`, with `?` behind an optional one. A type is `int`, `float`, `bool`, `true`, `string`,
//! `chat` (an id or an `@name`), `file`, the name of an object, union or enum, a constant (`"photo"`, `0`), or one of
//! these in brackets for a list.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

pub(super) struct Spec {
    pub(super) version: String,
    pub(super) released: String,
    pub(super) areas: BTreeMap<String, Area>,
    /// What Telegram sends: reachable from an update or an answer.
    pub(super) read: BTreeSet<String>,
    /// What a plugin sends: reachable from a parameter.
    pub(super) written: BTreeSet<String>,
}

#[derive(Default)]
pub(super) struct Area {
    pub(super) enums: BTreeMap<String, Vec<String>>,
    pub(super) unions: BTreeMap<String, Vec<Type>>,
    pub(super) objects: BTreeMap<String, Vec<Field>>,
    pub(super) methods: BTreeMap<String, Method>,
}

pub(super) struct Method {
    pub(super) returns: Type,
    pub(super) optional: bool,
    pub(super) params: Vec<Field>,
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Type,
    pub(super) optional: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Float,
    Bool,
    True,
    Text,
    Chat,
    File,
    /// One of the four things that may be a `reply_markup`.
    Markup,
    /// Always this JSON.
    Constant(String),
    List(Box<Self>),
    Named(String),
}

impl Type {
    fn parse(text: &str) -> Self {
        match text {
            "int" => Self::Int,
            "float" => Self::Float,
            "bool" => Self::Bool,
            "true" => Self::True,
            "string" => Self::Text,
            "chat" => Self::Chat,
            "file" => Self::File,
            "ReplyMarkup" => Self::Markup,
            _ => match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(item) => Self::List(Box::new(Self::parse(item))),
                None if text.starts_with(|c: char| c.is_ascii_uppercase()) => Self::Named(text.to_owned()),
                None => Self::Constant(text.to_owned()),
            },
        }
    }

    /// The object, union or enum that is meant, of a list that of its items.
    pub(super) fn named(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::List(item) => item.named(),
            _ => None,
        }
    }
}

impl Type {
    /// Itself, or of a list its items.
    pub(super) fn item(&self) -> &Self {
        match self {
            Self::List(item) => item.item(),
            kind => kind,
        }
    }
}

impl Spec {
    /// Words and numbers, or a list of them.
    pub(super) fn is_plain(&self, kind: &Type) -> bool {
        match kind.item() {
            Type::File | Type::Markup => false,
            Type::Named(name) => self.is_enum(name),
            _ => true,
        }
    }

    /// A text, or one of several things of which one is a text, or a list of them.
    pub(super) fn holds_text(&self, kind: &Type) -> bool {
        match kind.item() {
            Type::Text => true,
            Type::Named(name) => self.union(name).unwrap_or_default().contains(&Type::Text),
            _ => false,
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(text)?;
        let text = |key: &str| json[key].as_str().map(str::to_owned).with_context(|| format!("no `{key}`"));
        let (version, released) = (text("version")?, text("released")?);
        let mut areas = BTreeMap::new();
        for (name, area) in json["areas"].as_object().context("no `areas`")? {
            areas.insert(name.clone(), Area::parse(area).with_context(|| format!("area `{name}`"))?);
        }
        let (read, written) = (BTreeSet::new(), BTreeSet::new());
        let mut spec = Self { version, released, areas, read, written };
        spec.check()?;
        spec.walk();
        Ok(spec)
    }

    pub(super) fn object(&self, name: &str) -> Option<&[Field]> {
        self.areas.values().find_map(|area| area.objects.get(name)).map(Vec::as_slice)
    }

    pub(super) fn union(&self, name: &str) -> Option<&[Type]> {
        self.areas.values().find_map(|area| area.unions.get(name)).map(Vec::as_slice)
    }

    pub(super) fn is_enum(&self, name: &str) -> bool {
        self.areas.values().any(|area| area.enums.contains_key(name))
    }

    /// Every name that is used is known, and known once.
    fn check(&self) -> Result<()> {
        let mut known = BTreeSet::new();
        let mut used = Vec::new();
        for area in self.areas.values() {
            let names = area.enums.keys().chain(area.unions.keys()).chain(area.objects.keys()).cloned();
            for name in names.chain(area.methods.keys().map(|name| capitalized(name))) {
                ensure!(known.insert(name.clone()), "`{name}` is there twice");
            }
            let fields = area.objects.values().flatten().chain(area.methods.values().flat_map(|m| &m.params));
            used.extend(fields.map(|field| &field.kind));
            used.extend(area.unions.values().flatten());
            used.extend(area.methods.values().map(|method| &method.returns));
        }
        match used.into_iter().filter_map(Type::named).find(|name| !known.contains(*name)) {
            Some(name) => bail!("`{name}` is used and not there"),
            None => Ok(()),
        }
    }

    fn walk(&mut self) {
        let methods = || self.areas.values().flat_map(|area| area.methods.values());
        let answers = methods().filter_map(|method| method.returns.named()).chain(["Update"]);
        let read = self.reachable(answers);
        let markups = ["InlineKeyboardMarkup", "ReplyKeyboardMarkup", "ReplyKeyboardRemove", "ForceReply"];
        let params = methods().flat_map(|method| &method.params).filter_map(|field| field.kind.named());
        let written = self.reachable(params.chain(markups));
        (self.read, self.written) = (read, written);
    }

    fn reachable<'a>(&'a self, from: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = from.collect();
        while let Some(name) = open.pop() {
            if found.insert(name.to_owned()) {
                let fields = self.object(name).unwrap_or_default().iter().map(|field| &field.kind);
                open.extend(fields.chain(self.union(name).unwrap_or_default()).filter_map(Type::named));
            }
        }
        found
    }
}

impl Area {
    fn parse(json: &Value) -> Result<Self> {
        let mut area = Self::default();
        for (name, texts) in members(json, "enums") {
            area.enums.insert(name.clone(), strings(texts)?);
        }
        for (name, members) in members(json, "unions") {
            area.unions.insert(name.clone(), strings(members)?.iter().map(|member| Type::parse(member)).collect());
        }
        for (name, fields) in members(json, "objects") {
            area.objects.insert(name.clone(), self::fields(fields).with_context(|| format!("object `{name}`"))?);
        }
        for (name, method) in members(json, "methods") {
            let returns = method["returns"].as_str().with_context(|| format!("method `{name}` has no `returns`"))?;
            let (returns, optional) = optional(returns);
            let params = fields(&method["params"]).with_context(|| format!("method `{name}`"))?;
            area.methods.insert(name.clone(), Method { returns: Type::parse(returns), optional, params });
        }
        Ok(area)
    }
}

fn members<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    json.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn strings(json: &Value) -> Result<Vec<String>> {
    let texts = json.as_array().context("a list is wanted here")?;
    texts.iter().map(|text| text.as_str().map(str::to_owned).context("a text is wanted here")).collect()
}

fn fields(json: &Value) -> Result<Vec<Field>> {
    let field = |text: &String| {
        let (name, kind) = text.split_once(": ").with_context(|| format!("`{text}` is no `name: type`"))?;
        let (kind, optional) = optional(kind);
        Ok(Field { name: name.to_owned(), kind: Type::parse(kind), optional })
    };
    strings(json)?.iter().map(field).collect()
}

fn optional(kind: &str) -> (&str, bool) {
    kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true))
}

/// `sendPoll` becomes `SendPoll`: a method's type.
pub(super) fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
