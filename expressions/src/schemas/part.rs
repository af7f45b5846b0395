//! The part of a document that is about some kinds: it is small enough to be kept, which the whole is not.

use serde_json::{Map, Value, json};

use super::{ObjectKind, json};

/// How a schema refers to another of its document.
const REFERENCE: &str = "#/components/schemas/";

/// What a document of `OpenAPI` v3 says of these kinds: their schemas and all that they refer to, however deep, as such a document and without prose; nothing if
/// it has none of the kinds. What [`check()`](crate::check()) finds with it is what it finds with the whole, of which nothing is copied.
pub fn part_of(mut document: Value, kinds: &[ObjectKind]) -> Option<Value> {
    let schemas = json::schemas_of(&document)?;
    let named = kinds.iter().filter_map(|kind| json::entry(schemas, kind));
    let mut wanted: Vec<String> = named.map(|(name, _)| name.clone()).collect();
    if wanted.is_empty() {
        return None;
    }
    let Some(Value::Object(mut schemas)) = document.pointer_mut("/components/schemas").map(Value::take) else {
        return None;
    };
    let mut kept = Map::new();
    while let Some(name) = wanted.pop() {
        if let Some(mut schema) = schemas.remove(&name) {
            strip(&mut schema, &mut wanted);
            kept.insert(name, schema);
        }
    }
    Some(json!({ "components": { "schemas": kept } }))
}

/// Takes the prose out of a schema. Notes what it refers to.
fn strip(value: &mut Value, wanted: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            // A field of this name has a schema and no text.
            fields.retain(|name, value| name != "description" || !value.is_string());
            for (name, value) in fields {
                if let ("$ref", Some(reference)) = (name.as_str(), value.as_str()) {
                    wanted.extend(reference.strip_prefix(REFERENCE).map(str::to_owned));
                }
                strip(value, wanted);
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| strip(element, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
