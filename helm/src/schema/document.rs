//! JSON as schemas need it: numbers keep their digits, and every part has a pointer.

use std::collections::BTreeMap;

use super::Checks;
use super::number::Decimal;
use crate::json::{self, Build};
use crate::number::format_float;
use crate::value::{Map, Value};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
}

impl Build for Json {
    fn null() -> Self {
        Self::Null
    }

    fn bool(value: bool) -> Self {
        Self::Bool(value)
    }

    fn number(text: &str) -> Option<Self> {
        Some(Self::Number(text.to_owned()))
    }

    fn text(text: String) -> Self {
        Self::Text(text)
    }

    fn list(items: Vec<Self>) -> Self {
        Self::List(items)
    }

    fn map(entries: BTreeMap<String, Self>) -> Self {
        Self::Map(entries)
    }
}

impl Json {
    /// Reads the text of a schema. The error is Helm's.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let (document, length) = json::decode_first(text).map_err(|error| error.to_string())?;
        if text[length..].iter().all(u8::is_ascii_whitespace) {
            Ok(document)
        } else {
            Err("invalid character after top-level value".to_owned())
        }
    }

    /// The JSON of chart values, whose containers never contain themselves.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(bits, int_type) => Self::Number(int_type.number(*bits).to_string()),
            Value::Float(number) => Self::Number(format_float(*number)),
            Value::Str(text) | Value::Bytes(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            Value::List(list) => Self::List(list.items().iter().map(Self::of).collect()),
            Value::Map(map) => Self::of_map(map),
            Value::Nil | Value::Obj(_) => Self::Null,
        }
    }

    pub(super) fn of_map(map: &Map) -> Self {
        let entries = map.entries();
        let entries = entries
            .iter()
            .map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), Self::of(value)));
        Self::Map(entries.collect())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    pub(super) fn as_map(&self) -> Option<&BTreeMap<String, Self>> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(super) fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn is_container(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_))
    }

    /// What is at a JSON pointer; the error is why there is nothing.
    pub(super) fn at(&self, pointer: &str) -> Result<&Self, PointerError> {
        let mut found = self;
        for token in pointer.split('/').skip(1) {
            let token = unescape(token).ok_or(PointerError::Invalid)?;
            let inner = match found {
                Self::Map(entries) => entries.get(&token),
                Self::List(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            found = inner.ok_or(PointerError::NotFound)?;
        }
        Ok(found)
    }

    /// Equality of JSON: numbers by value. Adds what it looked at to `steps`.
    pub(super) fn equals(&self, other: &Self, checks: Checks, steps: &mut u64) -> bool {
        *steps += 1;
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => {
                *steps += (left.len() + right.len()) as u64 / 16;
                left == right
                    || Decimal::parse(left).is_some_and(|left| Decimal::parse(right).is_some_and(|right| left == right))
            }
            (Self::Number(left), Self::Text(right)) if checks == Checks::Faulty => {
                *steps += right.len() as u64 / 16;
                Decimal::of_text(right).is_some_and(|right| Decimal::parse(left) == Some(right))
            }
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| left.equals(right, checks, steps))
            }
            (Self::Map(left), Self::Map(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|((left_key, left), (right_key, right))| {
                        left_key == right_key && left.equals(right, checks, steps)
                    })
            }
            (left, right) => left == right,
        }
    }
}

/// Why a JSON pointer leads nowhere.
#[derive(Clone, Copy, Debug)]
pub(super) enum PointerError {
    Invalid,
    NotFound,
}

/// One token of a JSON pointer.
pub(super) fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (escaped, rest) = part.split_at_checked(1)?;
        text.push(match escaped {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        text.push_str(rest);
    }
    Some(text)
}
