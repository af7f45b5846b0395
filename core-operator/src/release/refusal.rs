//! A refused apply in words: what the API server says, or, where others own fields, whose they are and what helps.

use operator_kit::apply::{ApplyError, FieldConflict};

/// How many fields are named.
const NAMED: usize = 3;

/// Why an apply was refused, for people.
pub(super) fn refusal(error: &ApplyError) -> String {
    match error {
        ApplyError::Conflict { conflicts, .. } if !conflicts.is_empty() => conflict(conflicts),
        other => other.to_string(),
    }
}

fn conflict(conflicts: &[FieldConflict]) -> String {
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
        "the object was there before, and conflicts with the release at {named}{more}, written by {}; \
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
            refusal(&error),
            "the object was there before, and conflicts with the release at .data.a, .data.b, .data.c and 1 more, written by helm, kubectl; \
             delete the object, or take these fields out of it"
        );
    }
}
