//! Server-side apply: what a manager sends is set and its own, what it sent before and sends no more goes unless it is also another's. Lists are
//! atomic, but for owners and finalizers.
//!
//! Who writes in other ways owns nothing here, and takes what he changes from those who own it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Names the fields of a JSON pointer's way. An item of a list that is not atomic is named as the API server does it: `k:` and its keys, `v:` and
/// itself.
type Path = Vec<String>;

/// The object after an apply; `live` is null where there is none.
pub(super) fn applied(live: &Value, intent: &Value, manager: &str) -> Value {
    let mut wanted = Vec::new();
    leaves(intent, &mut Vec::new(), &mut wanted);
    let mut after = if live.is_null() { json!({}) } else { live.clone() };
    let wanted_paths: BTreeSet<&Path> = wanted.iter().map(|(path, _)| path).collect();
    let others = entries(live).filter(|entry| !is_of(entry, manager));
    let others: BTreeSet<Path> = others.flat_map(paths_of).collect();
    for path in owned(live, manager) {
        if !wanted_paths.contains(&path) && !others.contains(&path) {
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
    let others = entries(live).filter(|entry| !is_of(entry, manager));
    let mut shares = kept(others, |path| !taken.contains(path));
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

/// Takes what somebody changed who does not apply from those who do.
pub(super) fn written_over(before: &Value, after: &mut Value) {
    if before.pointer("/metadata/managedFields").is_some() {
        let shares = kept(entries(before), |path| at(before, path) == at(after, path));
        after["metadata"]["managedFields"] = shares.into();
    }
}

/// What is left to managers of their fields; whoever has none left is not named.
fn kept<'a>(entries: impl Iterator<Item = &'a Value>, is_kept: impl Fn(&Path) -> bool) -> Vec<Value> {
    let kept = entries.filter_map(|entry| {
        let fields = fields_of(paths_of(entry).into_iter().filter(&is_kept));
        let mut entry = entry.clone();
        entry["fieldsV1"] = fields;
        (entry["fieldsV1"] != json!({})).then_some(entry)
    });
    kept.collect()
}

/// A cause for every field that others own and that this apply would change.
pub(super) fn conflicts(live: &Value, intent: &Value, manager: &str) -> Vec<Value> {
    let mut wanted = Vec::new();
    leaves(intent, &mut Vec::new(), &mut wanted);
    let others: Vec<(&Value, Vec<Path>)> = entries(live)
        .filter(|entry| !is_of(entry, manager))
        .map(|entry| (entry, paths_of(entry)))
        .collect();
    let changed = wanted.iter().filter(|(path, value)| at(live, path) != Some(value));
    let conflict = |path: &Path| {
        let owners = others.iter().filter(|(_, paths)| paths.contains(path));
        let causes = owners.map(|(entry, _)| {
            let (owner, version) = (entry["manager"].as_str(), entry["apiVersion"].as_str());
            json!({
                "reason": "FieldManagerConflict", "field": format!(".{}", path.join(".")),
                "message": format!("conflict with {:?} using {}", owner.unwrap_or_default(), version.unwrap_or_default()),
            })
        });
        causes.collect::<Vec<_>>()
    };
    changed.flat_map(|(path, _)| conflict(path)).collect()
}

/// The API server's notation of what somebody owns.
fn fields_of(paths: impl Iterator<Item = Path>) -> Value {
    let mut fields = json!({});
    for path in paths {
        let mut place = &mut fields;
        for name in path {
            let name = if is_item(&name) { name } else { format!("f:{name}") };
            place = &mut place[name];
            if place.is_null() {
                *place = json!({});
            }
        }
    }
    fields
}

/// What an item of a list is called, where the list is not atomic.
fn item(path: &Path, item: &Value) -> Option<String> {
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["metadata", "ownerReferences"] => Some(format!("k:{}", json!({ "uid": item["uid"] }))),
        ["metadata", "finalizers"] => Some(format!("v:{item}")),
        _ => None,
    }
}

fn is_item(name: &str) -> bool {
    name.starts_with("k:") || name.starts_with("v:")
}

/// Whether this is the item of a list that has this name.
fn is_called(item: &Value, name: &str) -> bool {
    match name.split_once(':') {
        Some(("k", _)) => name == format!("k:{}", json!({ "uid": item["uid"] })),
        _ => name == format!("v:{item}"),
    }
}

fn paths_of(entry: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    leaves(&entry["fieldsV1"], &mut Vec::new(), &mut paths);
    let name = |name: String| name.trim_start_matches("f:").to_owned();
    let paths = paths.into_iter().map(|(path, _)| path);
    paths.map(|path| path.into_iter().map(name).collect()).collect()
}

fn at<'a>(object: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, name| match object.as_array() {
        Some(items) => items.iter().find(|item| is_called(item, name)),
        None => object.get(name),
    })
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
        ["apiVersion" | "kind"] | ["metadata", "name" | "namespace" | "uid" | "resourceVersion"]
    )
}

fn owned(live: &Value, manager: &str) -> Vec<Path> {
    entries(live)
        .filter(|entry| is_of(entry, manager))
        .flat_map(paths_of)
        .collect()
}

/// Everything that is no map with something in it, and the items of lists that are not atomic.
fn leaves(value: &Value, path: &mut Path, found: &mut Vec<(Path, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                path.push(name.clone());
                leaves(value, path, found);
                path.pop();
            }
        }
        Value::Array(items) if item(path, &Value::Null).is_some() => {
            let named = items.iter().filter_map(|value| Some((item(path, value)?, value)));
            found.extend(named.map(|(name, value)| ([path.as_slice(), &[name]].concat(), value.clone())));
        }
        _ => found.push((path.clone(), value.clone())),
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
        [name] if is_item(name) => {
            if !target.is_array() {
                *target = json!([]);
            }
            let items = target.as_array_mut().expect("it is a list");
            match items.iter_mut().find(|item| is_called(item, name)) {
                Some(item) => *item = value.clone(),
                None => items.push(value.clone()),
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
        [list, name] if is_item(name) => {
            if let Some(items) = target.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !is_called(item, name));
            }
            if target.get(list).is_some_and(|items| items == &json!([])) {
                remove(target, &path[..1]);
            }
        }
        [first, rest @ ..] => {
            if let Some(inner) = target.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}
