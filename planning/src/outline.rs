//! Reads of JSON from outside what decisions want to know, and steps over the rest: a tree of all that seven megabytes of JSON can hold takes hundreds.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What is kept of a value.
pub(crate) enum Kept {
    /// A text, a number or a truth; of others nothing.
    Scalar,
    /// So many of the elements at the beginning of a list, as far as they are scalars.
    Scalars(usize),
    /// Of an object these fields.
    Fields(&'static [(&'static str, Self)]),
}

pub(crate) use Kept::{Fields, Scalar, Scalars};

/// `spec.topology` of a Cluster, in either spelling.
pub(crate) const TOPOLOGY: Kept = Fields(&[
    ("class", Scalar),
    ("classNamespace", Scalar),
    ("classRef", Fields(&[("name", Scalar), ("namespace", Scalar)])),
    ("version", Scalar),
]);

impl Kept {
    /// What is kept of JSON, in its place; `None` when the bytes are none. Of what is twice in it, the last counts.
    pub(crate) fn of(&self, bytes: &[u8]) -> Option<Value> {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let outline = self.deserialize(&mut json).ok()?;
        json.end().ok()?;
        Some(outline)
    }
}

impl<'de> DeserializeSeed<'de> for &Kept {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Kept {
    type Value = Value;

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Scalars(most) = self
            && list.len() < *most
        {
            match elements.next_element_seed(&Scalar)? {
                Some(element) => list.push(element),
                None => return Ok(list.into()),
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(if list.is_empty() { Value::Null } else { list.into() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let Fields(kept) = self else {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        };
        let mut fields = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            match kept.iter().find(|(name, _)| *name == key) {
                Some((_, kept)) => {
                    fields.insert(key, entries.next_value_seed(kept)?);
                }
                None => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields.into())
    }
}
