//! Which parts of a value no keyword has looked at.

use std::collections::BTreeSet;

use crate::schema::document::Json;
use crate::schema::keywords::Subschema;

/// What nobody has looked at yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Unevaluated<'v> {
    pub(super) properties: BTreeSet<&'v str>,
    pub(super) items: BTreeSet<usize>,
}

impl<'v> Unevaluated<'v> {
    /// What a schema may leave over, as far as it or the schema around it asks.
    pub(super) fn of(value: &'v Json, subschema: &Subschema, is_asked: bool) -> Self {
        let mut all = Self::default();
        match value {
            Json::Map(entries)
                if !subschema.evaluates_all_properties() && (is_asked || subschema.object.unevaluated.is_some()) =>
            {
                all.properties = entries.keys().map(String::as_str).collect();
            }
            Json::List(items) if is_asked || subschema.array.unevaluated.is_some() => {
                all.items = (subschema.evaluated_items(items.len())..items.len()).collect();
            }
            _ => {}
        }
        all
    }

    pub(super) fn keep_common(&mut self, other: &Self) {
        self.properties.retain(|name| other.properties.contains(name));
        self.items.retain(|index| other.items.contains(index));
    }

    pub(super) fn len(&self) -> usize {
        self.properties.len() + self.items.len()
    }
}
