//! What people are told when an object was put back: which, what was changed and by whom.

use super::action::{ApplyReason, ObjectAction, Step};
use super::observed::{ObjectObserved, Read};
use super::set::{ObjectSet, OwnerKind};
use super::sync::drift_message;
use super::wording::summary;
use crate::object_key::ObjectKey;

/// The objects that these steps put back.
pub fn corrections<Own>(steps: &[Step<Own>]) -> impl Iterator<Item = &ObjectKey> {
    steps
        .iter()
        .flat_map(Step::on_objects)
        .filter_map(|action| match action {
            ObjectAction::Apply {
                key,
                why: ApplyReason::Correct,
                ..
            } => Some(key),
            _ => None,
        })
}

/// In words, for objects that were as the set shows before they were put back; `None` for none.
pub fn corrected<'a>(set: &ObjectSet<'_>, keys: impl Iterator<Item = &'a ObjectKey>) -> Option<String> {
    let nothing = ObjectObserved::default();
    let parts: Vec<String> = keys
        .map(|key| {
            let object = set.objects.get(key).unwrap_or(&nothing);
            format!("{} {} {}", key.kind, key.name, change(set.owner, object))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("put back {}", summary(&parts)))
}

fn change(owner: OwnerKind, object: &ObjectObserved) -> String {
    match (&object.memory.drifted, &object.seen) {
        (Some(drift), Some(_)) => format!("which {}", drift_message(owner, &drift.fields, &drift.managers)),
        (_, None) if matches!(object.memory.read, Some(Read::Absent)) => "which was deleted".to_owned(),
        _ => format!("which had lost its label {}", crds::labels::PART_OF),
    }
}
