//! How many objects become one short message: alike ones together, a few by name, the rest counted. The rows of the inventory say all.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::set::ObjectSet;
use crate::object_key::{GroupKind, ObjectKey};

/// How many things a message names before it only counts.
const NAMED: usize = 3;

/// How many bytes each reason gets where there are several; a single one may fill the message.
const REASON_BYTES: usize = 240;

/// The first few, and how many more.
pub(crate) fn summary(items: &[String]) -> String {
    listed(items, "; ", "; and")
}

/// The first few between separators, and how many more.
pub(super) fn listed(items: &[String], separator: &str, last: &str) -> String {
    let mut text = items[..items.len().min(NAMED)].join(separator);
    if items.len() > NAMED {
        let _ = write!(text, "{last} {} more", items.len() - NAMED);
    }
    text
}

/// Objects and why they are not as wanted; those with the same reason together, in the order of the first of each.
pub(crate) fn refusals<'a>(objects: impl Iterator<Item = (String, &'a str)>) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    let mut position: BTreeMap<&str, usize> = BTreeMap::new();
    for (object, reason) in objects {
        let at = *position.entry(reason).or_insert_with(|| {
            reasons.push((reason, Vec::new()));
            reasons.len() - 1
        });
        reasons[at].1.push(object);
    }
    let told = &reasons[..reasons.len().min(NAMED)];
    let mut parts: Vec<String> = told
        .iter()
        .map(|(reason, objects)| {
            let reason = if reasons.len() > 1 {
                brief(reason)
            } else {
                (*reason).to_owned()
            };
            format!("{}: {reason}", listed(objects, ", ", " and"))
        })
        .collect();
    let untold: usize = reasons[told.len()..].iter().map(|(_, objects)| objects.len()).sum();
    if untold > 0 {
        parts.push(format!("and {untold} more"));
    }
    parts.join("; ")
}

fn brief(reason: &str) -> String {
    if reason.len() <= REASON_BYTES {
        return reason.to_owned();
    }
    format!("{}...", &reason[..reason.floor_char_boundary(REASON_BYTES)])
}

/// The kinds that the API server does not serve, with the versions that the intents name, and what helps.
pub(super) fn missing_kinds<'a>(set: &ObjectSet<'_>, keys: impl Iterator<Item = &'a ObjectKey>) -> Option<String> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for key in keys {
        let version = set.objects.get(key).map_or("", |object| &object.version);
        let name = [key.kind.as_str(), version, key.group.as_str()].join(".");
        *kinds.entry(name.trim_end_matches('.').to_owned()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(kind, objects)| format!("{kind} ({objects} {})", if objects == 1 { "object" } else { "objects" }))
        .collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "the API server does not serve {}; install the CRDs, and the {} goes on by itself",
            listed(&kinds, ", ", " and"),
            set.owner
        )
    })
}

/// That kinds are waited for.
pub(crate) fn awaited_kinds<'a>(kinds: impl Iterator<Item = &'a GroupKind>) -> String {
    let kinds: Vec<String> = kinds.map(ToString::to_string).collect();
    let noun = if kinds.len() == 1 { "kind" } else { "kinds" };
    format!(
        "waits until the API server serves the {noun} {}",
        listed(&kinds, ", ", " and")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("Secret {name}")).collect()
    }

    #[test]
    fn objects_with_the_same_reason_are_told_together() {
        let long = "x".repeat(300);
        let table: [(Vec<(&str, &str)>, String); 4] = [
            (vec![], String::new()),
            (vec![("a", &long)], format!("Secret a: {long}")),
            (
                vec![("a", "no"), ("b", "never"), ("c", "no"), ("d", "no"), ("e", "no")],
                "Secret a, Secret c, Secret d and 1 more: no; Secret b: never".to_owned(),
            ),
            (
                vec![("a", "1"), ("b", &long), ("c", "3"), ("d", "4"), ("e", "4")],
                format!("Secret a: 1; Secret b: {}...; Secret c: 3; and 2 more", "x".repeat(240)),
            ),
        ];
        for (input, expected) in table {
            let told = refusals(input.iter().map(|(name, reason)| (objects(&[name]).remove(0), *reason)));
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn kinds_are_counted_after_the_third() {
        let kinds: Vec<GroupKind> = ["A", "B", "C", "D"]
            .map(|kind| GroupKind::new("example.org", kind))
            .into();
        assert_eq!(
            (awaited_kinds(kinds[..1].iter()), awaited_kinds(kinds.iter())),
            (
                "waits until the API server serves the kind A.example.org".to_owned(),
                "waits until the API server serves the kinds A.example.org, B.example.org, C.example.org and 1 more"
                    .to_owned()
            )
        );
    }
}
