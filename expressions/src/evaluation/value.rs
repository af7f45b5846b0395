//! The values of the language. What comes from an object is borrowed from it; what is made is shared, so that a copy costs nothing.

use std::{ops::Deref, rc::Rc};

use serde_json::Map;

use super::timestamps::Moment;

type Json = serde_json::Value;

#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    List(List<'a>),
    Map(Entries<'a>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Moment),
    /// A type, by its name.
    Type(&'static str),
}

#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Made(Rc<str>),
}

#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Json(&'a [Json]),
    Made(Rc<[Value<'a>]>),
}

#[derive(Clone, Debug)]
pub(super) enum Entries<'a> {
    Json(&'a Map<String, Json>),
    /// No two keys are equal.
    Made(Rc<[(Value<'a>, Value<'a>)]>),
}

/// The names of types that an expression can ask for.
pub(crate) const TYPES: [&str; 10] = [
    "null_type",
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "type",
];

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(elements) => elements.len(),
            Self::Made(elements) => elements.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Json(elements) => elements.get(index).map(Value::of_json),
            Self::Made(elements) => elements.get(index).cloned(),
        }
    }
}

impl<'a> Entries<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(entries) => entries.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    /// The keys, in a stable order.
    pub(super) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json(entries) => entries.keys().map(|key| Value::borrowed(key)).collect(),
            Self::Made(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn of_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => number
                .as_i64()
                .map_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)), Self::Int),
            Json::String(text) => Self::borrowed(text),
            Json::Array(elements) => Self::List(List::Json(elements)),
            Json::Object(entries) => Self::Map(Entries::Json(entries)),
        }
    }

    pub(super) fn borrowed(text: &'a str) -> Self {
        Self::Text(Text::Borrowed(text))
    }

    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// The name of its type, as the language calls it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Type(_) => "type",
        }
    }
}
