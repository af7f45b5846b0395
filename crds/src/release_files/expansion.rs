//! How much a text in YAML is once each alias stands for what it names. A file of some kilobytes can be gigabytes then: the parser counts how often aliases are
//! followed, not how long that is which they name.

use std::{cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor},
};

/// So much a text may be. The longest description that is read is a sixteenth of that.
const MOST: usize = 1 << 20;
/// What a part counts beside its letters.
const PART: usize = 16;

/// Whether a text is more than anybody writes. What is no YAML is not, which whoever reads it tells.
pub(super) fn is_too_much(bytes: &[u8]) -> bool {
    // Without an alias it is as long as it is.
    if !bytes.contains(&b'*') {
        return false;
    }
    let left = Cell::new(Some(MOST));
    let read = Counting { left: &left }.deserialize(serde_yaml::Deserializer::from_slice(bytes));
    read.is_err() && left.get().is_none()
}

/// Goes through what is left to be counted; nothing of it is kept.
#[derive(Clone, Copy)]
struct Counting<'l> {
    /// Nothing once it was too much.
    left: &'l Cell<Option<usize>>,
}

impl Counting<'_> {
    fn spend<E: Error>(self, size: usize) -> Result<(), E> {
        let left = self.left.get().and_then(|left| left.checked_sub(size));
        self.left.set(left);
        left.map(|_| ()).ok_or_else(|| E::custom("too much"))
    }
}

impl<'de> DeserializeSeed<'de> for Counting<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.spend(PART)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counting<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i128<E>(self, _: i128) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u128<E>(self, _: u128) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.spend(text.len())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(self)?.is_some() {
            map.next_value_seed(self)?;
        }
        Ok(())
    }

    /// What has a tag is what it is without.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let (IgnoredAny, value) = tagged.variant()?;
        value.newtype_variant_seed(self)
    }
}
