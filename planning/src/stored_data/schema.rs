//! Two structural schemas of one place: what the second would drop that the first keeps.

use std::collections::BTreeSet;

use serde_json::Value;

const INT_OR_STRING: &str = "an integer or a string";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Fields of every whole object, which the API server keeps without a description.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What whole objects of `version` lose, each as a place that people find (`v1.spec.nodes[].name`) and what becomes of it.
pub(super) fn of_objects(before: &Value, after: &Value, version: &str, losses: &mut BTreeSet<String>) {
    let mut found = Vec::new();
    Place { before, after }.compare(version, true, &mut found);
    losses.extend(found.into_iter().map(|(place, what)| format!("{place} {what}")));
}

/// A place in both. What is not there is null.
#[derive(Clone, Copy)]
struct Place<'a> {
    before: &'a Value,
    after: &'a Value,
}

impl Place<'_> {
    /// Goes as deep as schemas do, which whoever reads their JSON bounds.
    fn compare(self, path: &str, whole: bool, losses: &mut Vec<(String, String)>) {
        let Self { before, after } = self;
        let mut tell = |path: &str, what: &str| losses.push((path.to_owned(), what.to_owned()));
        if let Some((old, new)) = self.retyped() {
            return tell(path, &format!("is {old} and becomes {new}"));
        }
        if keeps_unknown(after) && after["properties"].is_null() && values(after).is_none() {
            return;
        }
        if keeps_unknown(before) && !keeps_unknown(after) {
            tell(path, "keeps fields that nobody described, which would be dropped");
        }
        let embedded = |schema| is(schema, EMBEDDED);
        if embedded(before) && !embedded(after) && !keeps_unknown(after) {
            tell(
                path,
                "is a whole object, whose apiVersion, kind and metadata would be dropped",
            );
        }
        if values(before).is_some() && values(after).is_none() && !keeps_unknown(after) {
            tell(path, "is a map, whose other keys would be dropped");
        }
        for (path, place) in self.below(path, whole) {
            if place.after.is_null() {
                losses.push((path, "would be dropped".to_owned()));
            } else {
                place.compare(&path, false, losses);
            }
        }
    }

    /// Its type and the other one that it would get, which what is stored may not have.
    fn retyped(self) -> Option<(String, String)> {
        let (old, new) = (kind(self.before)?, kind(self.after)?);
        let wider = match new {
            "number" => old == "integer",
            INT_OR_STRING => old == "integer" || old == "string",
            _ => false,
        };
        (old != new && !wider).then(|| (old.to_owned(), new.to_owned()))
    }

    /// All places below this one that are described now and matter. `whole`: this is the root of an object.
    fn below(self, path: &str, whole: bool) -> Vec<(String, Self)> {
        let Self { before, after } = self;
        let whole = whole || is(after, EMBEDDED);
        let mut below = Vec::new();
        let mut add = |path, before, after| below.push((path, Self { before, after }));
        if let (Some(before), Some(after)) = (values(before), values(after)) {
            add(format!("{path}.*"), before, after);
        }
        if !before["items"].is_null() {
            add(format!("{path}[]"), &before["items"], &after["items"]);
        }
        for (name, old) in before["properties"].as_object().into_iter().flatten() {
            match after["properties"].get(name).or_else(|| values(after)) {
                Some(new) => add(format!("{path}.{name}"), old, new),
                None if keeps_unknown(after) || whole && OF_OBJECTS.contains(&name.as_str()) => {}
                None => add(format!("{path}.{name}"), old, &Value::Null),
            }
        }
        below
    }
}

fn kind(schema: &Value) -> Option<&str> {
    if is(schema, "x-kubernetes-int-or-string") {
        return Some(INT_OR_STRING);
    }
    schema["type"].as_str().filter(|kind| !kind.is_empty())
}

fn is(schema: &Value, mark: &str) -> bool {
    schema[mark] == true
}

/// `additionalProperties: true` says the same of a map.
fn keeps_unknown(schema: &Value) -> bool {
    is(schema, "x-kubernetes-preserve-unknown-fields") || is(schema, "additionalProperties")
}

/// The schema of the values of a map.
fn values(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}
