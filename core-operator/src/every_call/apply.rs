//! Server-side apply with force: what a manager sends is set and its own, what it sent before and sends no more goes. Lists are atomic.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Names the fields of a JSON pointer's way.
type Path = Vec<String>;

/// The object after an apply; `live` is null where there is none.
pub(super) fn applied(live: &Value, intent: &Value, manager: &str) -> Value {
    let mut wanted = Vec::new();
    leaves(intent, &mut Vec::new(), &mut wanted);
    let mut after = if live.is_null() { json!({}) } else { live.clone() };
    let wanted_paths: BTreeSet<&Path> = wanted.iter().map(|(path, _)| path).collect();
    for path in owned(live, manager) {
        if !wanted_paths.contains(&path) {
            remove(&mut after, &path);
        }
    }
    for (path, value) in &wanted {
        set(&mut after, path, value);
    }
    let taken: BTreeSet<&Path> = wanted
        .iter()
        .filter(|(path, value)| at(live, path) != Some(value))
        .map(|(path, _)| path)
        .collect();
    let mut shares = Vec::new();
    for entry in entries(live).filter(|entry| !is_of(entry, manager)) {
        let kept = paths_of(entry).into_iter().filter(|path| !taken.contains(path));
        let fields = fields_of(kept);
        if fields != json!({}) {
            let mut entry = entry.clone();
            entry["fieldsV1"] = fields;
            shares.push(entry);
        }
    }
    let ours = wanted
        .iter()
        .map(|(path, _)| path.clone())
        .filter(|path| !is_identity(path));
    shares.push(json!({
        "manager": manager, "operation": "Apply", "apiVersion": intent["apiVersion"], "fieldsType": "FieldsV1", "fieldsV1": fields_of(ours),
    }));
    after["metadata"]["managedFields"] = shares.into();
    after
}

/// The API server's notation of what somebody owns.
fn fields_of(paths: impl Iterator<Item = Path>) -> Value {
    let mut fields = json!({});
    for path in paths {
        let path: Path = path.iter().map(|name| format!("f:{name}")).collect();
        set(&mut fields, &path, &json!({}));
    }
    fields
}

fn paths_of(entry: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    leaves(&entry["fieldsV1"], &mut Vec::new(), &mut paths);
    let name = |name: String| name.trim_start_matches("f:").to_owned();
    let paths = paths.into_iter().map(|(path, _)| path);
    paths.map(|path| path.into_iter().map(name).collect()).collect()
}

fn at<'a>(object: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, name| object.get(name))
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn is_of(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager && entry["operation"] == "Apply"
}

/// What nobody owns.
fn is_identity(path: &Path) -> bool {
    matches!(
        path.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        ["apiVersion" | "kind"] | ["metadata", "name" | "namespace" | "uid"]
    )
}

fn owned(live: &Value, manager: &str) -> Vec<Path> {
    entries(live)
        .filter(|entry| is_of(entry, manager))
        .flat_map(paths_of)
        .collect()
}

/// Everything that is no map with something in it.
fn leaves(value: &Value, path: &mut Path, found: &mut Vec<(Path, Value)>) {
    match value.as_object().filter(|map| !map.is_empty()) {
        Some(map) => {
            for (name, value) in map {
                path.push(name.clone());
                leaves(value, path, found);
                path.pop();
            }
        }
        None => found.push((path.clone(), value.clone())),
    }
}

fn set(target: &mut Value, path: &[String], value: &Value) {
    match path {
        [] => {
            // An empty map takes nothing away.
            let is_there = value.as_object().is_some_and(Map::is_empty) && target.is_object();
            if !is_there {
                *target = value.clone();
            }
        }
        [first, rest @ ..] => {
            if !target.is_object() {
                *target = json!({});
            }
            set(&mut target[first.as_str()], rest, value);
        }
    }
}

fn remove(target: &mut Value, path: &[String]) {
    match path {
        [] => {}
        [last] => {
            if let Some(map) = target.as_object_mut() {
                map.remove(last);
            }
        }
        [first, rest @ ..] => {
            if let Some(inner) = target.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}
