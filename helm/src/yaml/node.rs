//! A document as plain data: what is left of YAML or JSON after reading. Unlike [`Value`] it is owned by one holder and may cross threads.

use std::collections::BTreeMap;

use crate::value::{IntType, List, Map, Value};

/// One YAML or JSON value. Keys are strings, as JSON demands; Go's reader turns other scalar keys into their text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Node {
    /// `null`, `~` or nothing.
    #[default]
    Null,
    /// A boolean, which YAML 1.1 also writes as `yes`, `on` and `y`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// A number with a fraction or an exponent, and every number of a chart's values.
    Float(f64),
    /// A string, also for timestamps and tagged scalars.
    Text(String),
    /// A string that is no UTF-8. No document holds one: it is a file that an argument names.
    Bytes(Vec<u8>),
    /// A sequence.
    List(Vec<Self>),
    /// A mapping.
    Map(BTreeMap<String, Self>),
}

impl Node {
    /// An integer of Go, by its bits.
    pub(crate) fn integer(bits: i64, int_type: IntType) -> Self {
        if int_type.is_unsigned() && bits < 0 {
            Self::Uint(bits.cast_unsigned())
        } else {
            Self::Int(bits)
        }
    }

    /// An empty mapping.
    pub fn empty_map() -> Self {
        Self::Map(BTreeMap::new())
    }

    /// About the bytes that it takes, with all within.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::Bytes(bytes) => bytes.len(),
                Self::List(items) => items.iter().map(Self::memory).sum(),
                Self::Map(entries) => {
                    let within = entries.iter().map(|(key, node)| key.len() + node.memory());
                    Self::memory_of_entries(entries.len()) + within.sum::<usize>()
                }
                _ => 0,
            }
    }

    /// About the bytes that the entries of a mapping take: they lie in groups with some places free.
    pub(crate) const fn memory_of_entries(count: usize) -> usize {
        const GROUP: usize = 11;
        const FILLED: usize = 8;
        count.div_ceil(FILLED) * GROUP * size_of::<(String, Self)>()
    }

    /// The entries of a mapping, nothing for other nodes.
    pub fn as_map(&self) -> Option<&BTreeMap<String, Self>> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The entries of a mapping for changing, nothing for other nodes.
    pub fn as_map_mut(&mut self) -> Option<&mut BTreeMap<String, Self>> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items of a sequence, nothing for other nodes.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text of a string, nothing for other nodes.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key, nothing when it is absent or this is no mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// The same with every number as a float, because Helm reads values through JSON without asking for integers.
    #[must_use]
    pub fn with_float_numbers(mut self) -> Self {
        self.make_numbers_floats();
        self
    }

    #[expect(clippy::cast_precision_loss, reason = "the loss above 2^53 is Helm's too")]
    fn make_numbers_floats(&mut self) {
        match self {
            Self::Int(number) => *self = Self::Float(*number as f64),
            Self::Uint(number) => *self = Self::Float(*number as f64),
            Self::List(items) => items.iter_mut().for_each(Self::make_numbers_floats),
            Self::Map(entries) => entries.values_mut().for_each(Self::make_numbers_floats),
            _ => {}
        }
    }

    /// A fresh value for templates; changes to it are not seen here. Integers become floats, see [`Node::with_float_numbers`].
    #[expect(clippy::cast_precision_loss, reason = "the loss above 2^53 is Helm's too")]
    pub fn to_value(&self) -> Value {
        self.value(&|number| Value::Float(number as f64))
    }

    /// The same for values that a user set: their integers are Go's `int64`.
    pub(crate) fn to_user_value(&self) -> Value {
        self.value(&Value::int64)
    }

    #[expect(clippy::cast_precision_loss, reason = "the loss above 2^53 is Helm's too")]
    fn value(&self, integer: &impl Fn(i64) -> Value) -> Value {
        match self {
            Self::Null => Value::Nil,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(number) => integer(*number),
            Self::Uint(number) => Value::Float(*number as f64),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::from(text.as_str()),
            Self::Bytes(bytes) => Value::from(bytes.as_slice()),
            Self::List(items) => Value::List(List::new(items.iter().map(|item| item.value(integer)).collect())),
            Self::Map(entries) => Value::Map(
                entries
                    .iter()
                    .map(|(key, node)| (key.as_str(), node.value(integer)))
                    .collect::<Map>(),
            ),
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Self); N]> for Node {
    fn from(entries: [(K, Self); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, node)| (key.into(), node)).collect())
    }
}
