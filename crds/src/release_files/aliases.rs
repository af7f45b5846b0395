//! How much a text in YAML is once each alias stands for what it names. A file of some kilobytes can be gigabytes then: the parser counts how often aliases are
//! followed, not how long that is which they name.

use std::{cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor},
};

use super::ReleaseFileError;

/// So much a text may be, in bytes, where each part of it counts [`PART`] beside its letters. The longest description that is read is a sixteenth of that.
const MOST: usize = 1 << 20;
/// What a part counts beside its letters.
const PART: usize = 16;

/// Refuses a text in YAML, of one document or several, that is more than anybody writes, or of which it cannot be known: whoever reads only parts of it might
/// read on past what cannot be counted.
pub fn bound_aliases(text: &[u8]) -> Result<(), ReleaseFileError> {
    // Without an alias it is as long as it is.
    if !text.contains(&b'*') {
        return Ok(());
    }
    for document in serde_yaml::Deserializer::from_slice(text) {
        let left = Cell::new(Some(MOST));
        let counted = Counting { left: &left }.deserialize(document);
        match counted {
            Err(_) if left.get().is_none() => return Err(ReleaseFileError::TooManyAliases),
            counted => counted.map_err(ReleaseFileError::ReadYaml)?,
        }
    }
    Ok(())
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

    /// The tag is copied with what has it.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let ((), value) = tagged.variant_seed(self)?;
        value.newtype_variant_seed(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_much(text: &str) -> bool {
        matches!(bound_aliases(text.as_bytes()), Err(ReleaseFileError::TooManyAliases))
    }

    #[test]
    fn what_is_named_again_and_again_counts_each_time() {
        let named = |length: usize, times: usize| format!("a: [&o {}{}]", "n".repeat(length), ", *o".repeat(times));
        assert!(bound_aliases(named(1_000, 100).as_bytes()).is_ok());
        assert!(is_too_much(&named(40_000, 1_000)));
        let of_aliases = format!(
            "a: [&a [1{}], &b [*a{}]{}]",
            ", 2".repeat(99),
            ", *a".repeat(99),
            ", *b".repeat(9)
        );
        assert!(is_too_much(&of_aliases));
        // Tags are copied, too.
        let tagged = format!(
            "a: [&a !{} 1, &b [*a{}]{}]",
            "t".repeat(30_000),
            ", *a".repeat(30),
            ", *b".repeat(30)
        );
        assert!(is_too_much(&tagged));
        assert!(is_too_much(&format!("a: 1\n---\n{}", named(40_000, 1_000))));
    }

    #[test]
    fn what_cannot_be_counted_is_not_read() {
        let bomb = format!("[&o {}{}]", "n".repeat(40_000), ", *o".repeat(1_000));
        for before in ["!!int a", "&a [*a]", &format!("{}{}", "[".repeat(200), "]".repeat(200))] {
            let text = format!("unknown: {before}\nknown: {bomb}");
            assert!(bound_aliases(text.as_bytes()).is_err(), "{before}");
        }
    }

    #[test]
    fn stars_that_name_nothing_are_letters() {
        let product = format!("conditions: '1{} > 0'", " * 1".repeat(10_000));
        assert!(bound_aliases(product.as_bytes()).is_ok());
        assert!(
            bound_aliases(b"text: |\n  *bold*\nnumbers: [1, -1, 1.5, 0x10, 18446744073709551616, true, ~, !tag x]")
                .is_ok()
        );
    }
}
