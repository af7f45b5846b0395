//! What people are told when an object was put back: which, what was changed and by whom.

use super::action::{ApplyReason, ReleaseAction, Step};
use super::object::drift_message;
use super::observed::{ObjectObserved, ReleaseObserved};
use super::wording::summary;
use crate::object_key::ObjectKey;

/// The objects that these steps put back.
pub fn corrections(steps: &[Step]) -> impl Iterator<Item = &ObjectKey> {
    steps
        .iter()
        .flat_map(|step| &step.actions)
        .filter_map(|action| match action {
            ReleaseAction::Apply {
                key,
                why: ApplyReason::Correct,
                ..
            } => Some(key),
            _ => None,
        })
}

/// In words, for objects that were as `observed` shows before they were put back; `None` for none.
pub fn corrected<'a>(observed: &ReleaseObserved, keys: impl Iterator<Item = &'a ObjectKey>) -> Option<String> {
    let nothing = ObjectObserved::default();
    let parts: Vec<String> = keys
        .map(|key| {
            let object = observed.objects.get(key).unwrap_or(&nothing);
            format!("{} {} {}", key.kind, key.name, change(object))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("put back {}", summary(&parts)))
}

fn change(object: &ObjectObserved) -> String {
    match (&object.memory.drifted, &object.seen) {
        (Some(drift), Some(_)) => format!("which {}", drift_message(&drift.fields, &drift.managers)),
        (_, None) if matches!(object.memory.read, Some(super::observed::Read::Absent)) => {
            "which was deleted".to_owned()
        }
        _ => format!("which had lost its label {}", crds::labels::PART_OF),
    }
}
