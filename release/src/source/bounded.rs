//! What a server says in JSON, bounded while it is parsed: it decides how many entries there are and how long their texts.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, SeqAccess, Visitor},
};

/// Longest text that is kept of a server, in characters: one more than of any name that is used or passed on.
pub(super) const LONGEST_TEXT: usize = 257;

/// A list of which no more than `MOST` entries are kept; the others are stepped over.
#[derive(Debug)]
pub(super) struct AtMost<T, const MOST: usize> {
    pub(super) entries: Vec<T>,
    /// Whether there were others.
    pub(super) is_cut: bool,
}

impl<T, const MOST: usize> Default for AtMost<T, MOST> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            is_cut: false,
        }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries(PhantomData))
    }
}

struct Entries<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Entries<T, MOST> {
    type Value = AtMost<T, MOST>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = AtMost::default();
        while kept.entries.len() < MOST {
            match list.next_element()? {
                Some(entry) => kept.entries.push(entry),
                None => return Ok(kept),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            kept.is_cut = true;
        }
        Ok(kept)
    }
}

/// The beginning of a text.
#[derive(Debug)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Beginning)
    }
}

struct Beginning;

impl Visitor<'_> for Beginning {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.chars().take(LONGEST_TEXT).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_kept_to_its_bound_and_says_if_there_was_more() {
        for (text, kept, is_cut) in [
            ("[]", &[][..], false),
            ("[1, 2]", &[1, 2], false),
            ("[1, 2, 3, 4]", &[1, 2], true),
        ] {
            let list: AtMost<u8, 2> = serde_json::from_str(text).unwrap();
            assert_eq!((list.entries.as_slice(), list.is_cut), (kept, is_cut), "{text}");
        }
        for text in ["[1, 2, 3, ", "[1, 2, 3, }]", "{}", "[\"a\"]"] {
            assert!(serde_json::from_str::<AtMost<u8, 2>>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_is_kept_to_its_bound() {
        let long = "ä".repeat(1000);
        let Text(text) = serde_json::from_str(&format!("{long:?}")).unwrap();
        assert_eq!(text, long[..2 * LONGEST_TEXT]);
        let Text(short) = serde_json::from_str(r#""a\nb""#).unwrap();
        assert_eq!(short, "a\nb");
    }
}
