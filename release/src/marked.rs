//! A text in YAML as a tree whose parts know where they stand, to tell people the line of their file that something is about.
//!
//! The parser tells the place of a mistake that stops it, and of nothing else. But what it gives exactly as it was written is a part of the text itself.
//! Anchors name the same part again and again, so only so much is read: what is left over is [`Node::Unread`].

mod kinds;
mod place;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use self::kinds::Kind;
pub(crate) use self::place::{Place, Remark};

/// So many letters are copied, of what is written in another way than it is read: a text may name one of them again and again.
const MOST_COPIED: usize = 1 << 20;

/// A part of a text.
#[derive(Debug)]
pub(crate) enum Node<'t> {
    /// Nobody knows what.
    Unread,
    Scalar(Scalar<'t>),
    List(Vec<Self>),
    /// Keys with their values, in the order of the text.
    Map(Vec<(Scalar<'t>, Self)>),
}

/// A word, a number, a text or nothing at all, as it is written.
#[derive(Debug, Default)]
pub(crate) struct Scalar<'t> {
    pub(crate) text: Cow<'t, str>,
    /// The byte at which it begins; unknown where it is written in another way than it is read.
    pub(crate) start: Option<usize>,
    /// Whether it says that there is nothing.
    pub(crate) is_null: bool,
}

impl<'t> Node<'t> {
    /// Reads a text within its size.
    pub(crate) fn read(text: &'t str) -> Result<Self, serde_yaml::Error> {
        let kind = Kind::read(text)?;
        let left = Cell::new(MOST_COPIED);
        let reading = Reading {
            kind: &kind,
            text,
            left: &left,
        };
        reading.deserialize(serde_yaml::Deserializer::from_str(text))
    }

    /// What a map has under this key, with the key. Of several the last one, as for whoever reads a map of any keys.
    pub(crate) fn entry(&self, key: &str) -> Option<(&Scalar<'t>, &Self)> {
        let Self::Map(entries) = self else { return None };
        let found = entries.iter().rfind(|(found, _)| found.text == key);
        found.map(|(key, value)| (key, value))
    }

    /// The element of a list at this index, from 0.
    pub(crate) fn item(&self, index: usize) -> Option<&Self> {
        match self {
            Self::List(items) => items.get(index),
            _ => None,
        }
    }
}

/// Reads a part of which it is known what it is: so the parser can be asked for it as it is written.
#[derive(Clone, Copy)]
struct Reading<'k, 't> {
    kind: &'k Kind,
    text: &'t str,
    /// How many letters may still be copied.
    left: &'k Cell<usize>,
}

impl<'t> Reading<'_, 't> {
    fn scalar(self, text: Cow<'t, str>, start: Option<usize>) -> Node<'t> {
        Node::Scalar(Scalar {
            text,
            start,
            is_null: matches!(self.kind, Kind::Null),
        })
    }
}

impl<'t> DeserializeSeed<'t> for Reading<'_, 't> {
    type Value = Node<'t>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Node<'t>, D::Error> {
        match self.kind {
            Kind::Unread => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Node::Unread),
            Kind::Null | Kind::Scalar => deserializer.deserialize_str(self),
            Kind::List(_) => deserializer.deserialize_seq(self),
            Kind::Map(_) => deserializer.deserialize_map(self),
        }
    }
}

impl<'t> Visitor<'t> for Reading<'_, 't> {
    type Value = Node<'t>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what was read before")
    }

    fn visit_borrowed_str<E>(self, text: &'t str) -> Result<Node<'t>, E> {
        let start = text.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        Ok(self.scalar(Cow::Borrowed(text), start))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'t>, E> {
        let left = self.left.get().checked_sub(text.len());
        self.left.set(left.unwrap_or_default());
        Ok(match left {
            Some(_) => self.scalar(Cow::Owned(text.to_owned()), None),
            None => Node::Unread,
        })
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<Node<'t>, A::Error> {
        let Kind::List(kinds) = self.kind else {
            return Ok(Node::Unread);
        };
        let mut items = Vec::new();
        for kind in kinds {
            items.extend(list.next_element_seed(Self { kind, ..self })?);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Node<'t>, A::Error> {
        let Kind::Map(kinds) = self.kind else {
            return Ok(Node::Unread);
        };
        let mut entries = Vec::new();
        for (key, value) in kinds {
            let Some(key) = map.next_key_seed(Self { kind: key, ..self })? else {
                break;
            };
            let value = map.next_value_seed(Self { kind: value, ..self })?;
            // A key may be a list or a map itself; nothing that is looked for has such a one.
            let key = if let Node::Scalar(key) = key {
                key
            } else {
                Scalar::default()
            };
            entries.push((key, value));
        }
        Ok(Node::Map(entries))
    }
}
