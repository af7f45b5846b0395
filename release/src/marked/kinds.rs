//! What the parts of a text in YAML are, as far as they are worth a look.

use std::{cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, EnumAccess, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor},
};

/// So much is read: far more than the largest description is, which names nothing twice.
const MOST: usize = 1 << 20;
/// What a part counts beside its letters.
const PART: usize = 16;

/// What a part of a text is.
#[derive(Debug)]
pub(super) enum Kind {
    Unread,
    Null,
    Scalar,
    List(Vec<Self>),
    /// Keys and values.
    Map(Vec<(Self, Self)>),
}

impl Kind {
    pub(super) fn read(text: &str) -> Result<Self, serde_yaml::Error> {
        let left = Cell::new(MOST);
        Reading { left: &left }.deserialize(serde_yaml::Deserializer::from_str(text))
    }
}

/// Reads a [`Kind`] out of what is left to be read.
#[derive(Clone, Copy)]
struct Reading<'l> {
    left: &'l Cell<usize>,
}

impl Reading<'_> {
    /// Whether so much may still be read, which then is less.
    fn spend(self, size: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(size));
        size <= left
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        if self.spend(PART) {
            deserializer.deserialize_any(self)
        } else {
            deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Kind::Unread)
        }
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Kind;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Kind, E> {
        Ok(Kind::Scalar)
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        Ok(if self.spend(text.len()) {
            Kind::Scalar
        } else {
            Kind::Unread
        })
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    /// A text without anything in it is as an empty map.
    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Map(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(self)? {
            entries.push((key, map.next_value_seed(self)?));
        }
        Ok(Kind::Map(entries))
    }

    /// What has a tag is what it is without.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Kind, A::Error> {
        let (IgnoredAny, value) = tagged.variant()?;
        value.newtype_variant_seed(self)
    }
}
