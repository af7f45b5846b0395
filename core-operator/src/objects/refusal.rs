//! A refused apply in words: what the API server says, or, where others own fields, whose they are and what helps.

use crds::labels;
use kube::ResourceExt;
use operator_kit::apply::{AppliedObject, ApplyError, FieldConflict};
use planning::objects::OwnerKind;

/// How many fields are named.
const NAMED: usize = 3;

/// What is said of an object that the API server took and did not keep as it was sent. Whoever sent it again at once would do so for ever.
pub(super) const NOT_KEPT: &str = "the API server took the object and dropped or changed the label by which the operator knows it: stop the policy \
    that changes its labels";

/// Whether the mark is on an object as it was stored.
pub(super) fn is_marked(applied: &AppliedObject, part_of: &str) -> bool {
    applied.live.labels().get(labels::PART_OF).map(String::as_str) == Some(part_of)
}

/// Why an apply was refused, for people.
pub(super) fn refusal(owner: OwnerKind, error: &ApplyError) -> String {
    match error {
        ApplyError::Conflict { conflicts, .. } if !conflicts.is_empty() => conflict(owner, conflicts),
        other => other.to_string(),
    }
}

fn conflict(owner: OwnerKind, conflicts: &[FieldConflict]) -> String {
    let mut managers: Vec<&str> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let fields: Vec<&str> = conflicts.iter().map(|conflict| conflict.field.as_str()).collect();
    let named = fields[..fields.len().min(NAMED)].join(", ");
    let more = match fields.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the object was there before, and conflicts with the {owner} at {named}{more}, written by {}; \
         delete the object, or take these fields out of it",
        managers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_fields_and_owners_and_says_what_helps() {
        let conflict = |(manager, field): (&str, &str)| FieldConflict {
            manager: manager.to_owned(),
            field: field.to_owned(),
        };
        let fields = [
            ("kubectl", ".data.a"),
            ("helm", ".data.b"),
            ("kubectl", ".data.c"),
            ("helm", ".data.d"),
        ];
        let error = ApplyError::Conflict {
            conflicts: fields.map(conflict).into(),
            message: "Apply failed with 4 conflicts".to_owned(),
        };
        assert_eq!(
            refusal(OwnerKind::Release, &error),
            "the object was there before, and conflicts with the release at .data.a, .data.b, .data.c and 1 more, written by helm, kubectl; \
             delete the object, or take these fields out of it"
        );
    }
}
