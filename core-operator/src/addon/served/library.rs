//! What API servers say of kinds, kept once for all clusters that say the same: those of a fleet have the same documents.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use expressions::ObjectKind;
use operator_kit::parts::parts_of;
use serde_json::Value;

use crate::objects::lock;

/// Parts of all that is kept: a Deployment with all that it refers to has some ten thousand, and a stage waits for few kinds. So much takes some 60 MiB at the very
/// worst, and a few where nobody is hostile.
const MOST_KEPT: usize = 300_000;

/// Parts of the schema of one kind that is kept, or looked into at all: the largest CRDs that people write have half as many.
pub(super) const LARGEST: usize = 150_000;

/// What is counted for each entry besides.
const ENTRY: usize = 64;

/// The shelf, with what was asked for last at its end. Clones share it.
#[derive(Clone, Default)]
pub(in crate::addon) struct Library(Arc<Mutex<Shelf>>);

#[derive(Default)]
struct Shelf {
    entries: VecDeque<Entry>,
    parts: usize,
}

struct Entry {
    hash: String,
    kind: ObjectKind,
    schema: Option<Arc<Value>>,
    parts: usize,
}

impl Library {
    /// What a document of this hash says of a kind; the inner one is empty where it does not have the kind.
    #[expect(
        clippy::option_option,
        reason = "one says whether it is kept, the other what is kept"
    )]
    pub(super) fn get(&self, hash: &str, kind: &ObjectKind) -> Option<Option<Arc<Value>>> {
        let mut kept = lock(&self.0);
        let place = kept.place(hash, kind)?;
        let entry = kept.entries.remove(place)?;
        let schema = entry.schema.clone();
        kept.entries.push_back(entry);
        Some(schema)
    }

    /// Keeps what a document says, which has this hash and no other: everybody believes it.
    pub(super) fn keep(&self, hash: &str, kind: &ObjectKind, schema: Option<&Arc<Value>>) {
        let parts = ENTRY + schema.map_or(0, |schema| parts_of(schema));
        let mut kept = lock(&self.0);
        if kept.place(hash, kind).is_some() {
            return;
        }
        kept.parts += parts;
        kept.entries.push_back(Entry {
            hash: hash.to_owned(),
            kind: kind.clone(),
            schema: schema.cloned(),
            parts,
        });
        while kept.parts > MOST_KEPT
            && let Some(oldest) = kept.entries.pop_front()
        {
            kept.parts -= oldest.parts;
        }
    }
}

impl Shelf {
    fn place(&self, hash: &str, kind: &ObjectKind) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.hash == hash && entry.kind == *kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_asked_for_longest_ago_goes_first_and_all_of_it_is_bounded() {
        let library = Library::default();
        let kind = ObjectKind::new("example.org/v1", "Ring");
        let large = Arc::new(json!(vec![json!([]); LARGEST / 8]));
        for hash in ["a", "b", "c"] {
            library.keep(hash, &kind, Some(&large));
        }
        assert_eq!(library.get("a", &kind), Some(Some(Arc::clone(&large))));
        library.keep("none", &kind, None);
        assert_eq!(library.get("none", &kind), Some(None));
        for hash in ["d", "e"] {
            library.keep(hash, &kind, Some(&large));
        }
        let kept = ["a", "b", "c", "d", "e"].map(|hash| library.get(hash, &kind).is_some());
        assert_eq!(kept, [true, false, false, true, true]);
        assert_eq!(library.get("a", &ObjectKind::new("example.org/v1", "Bell")), None);
    }
}
