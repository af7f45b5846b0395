//! Functions on maps. `set`, `unset` and the merges change the map they are given.

use super::merge::merge;
use super::{Body, Called, Function, mismatch};
use crate::bounds::{check_items, spend};
use crate::format;
use crate::value::Type::{Any, Map as MapType, Str};
use crate::value::{List, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("dict", &[Any], dict),
    Function::new("get", &[MapType, Str], get),
    Function::with("set", &[MapType, Str, Any], false, Body::Changing(set)),
    Function::new("unset", &[MapType, Str], unset),
    Function::new("hasKey", &[MapType, Str], has_key),
    Function::variadic("pluck", &[Str, MapType], pluck),
    Function::variadic("keys", &[MapType], keys),
    Function::new("values", &[MapType], values),
    Function::variadic("pick", &[MapType, Str], pick),
    Function::variadic("omit", &[MapType, Str], omit),
    Function::variadic("dig", &[Any], dig),
    Function::with("merge", &[MapType, MapType], true, MERGE),
    Function::with("mustMerge", &[MapType, MapType], true, MERGE),
    Function::with("mergeOverwrite", &[MapType, MapType], true, MERGE_OVERWRITE),
    Function::with("mustMergeOverwrite", &[MapType, MapType], true, MERGE_OVERWRITE),
];

/// How many keys are compared in about the time of a step.
const COMPARISONS_PER_STEP: u64 = 64;

const MERGE: Body = Body::Changing(|arguments| merged(arguments, false));
const MERGE_OVERWRITE: Body = Body::Changing(|arguments| merged(arguments, true));

/// The map given, or an empty one for a nil map, which reads as empty.
fn map_of(value: &Value) -> Result<Map, String> {
    match value {
        Value::Map(map) => Ok(map.clone()),
        Value::Nil => Ok(Map::new()),
        _ => Err(mismatch()),
    }
}

fn key_of(value: &Value) -> Result<&[u8], String> {
    value.as_str().ok_or_else(mismatch)
}

fn dict(arguments: &[Value]) -> Called {
    let map = Map::new();
    for pair in arguments.chunks(2) {
        let key = format::to_text(&pair[0]).map_err(|error| error.to_string())?;
        map.insert(&*key, pair.get(1).cloned().unwrap_or_else(|| Value::from("")));
    }
    Ok(Value::Map(map))
}

fn get(arguments: &[Value]) -> Called {
    let [map, key] = arguments else { return Err(mismatch()) };
    Ok(map_of(map)?.get(key_of(key)?).unwrap_or_else(|| Value::from("")))
}

fn set(arguments: &[Value]) -> Called {
    let [map, key, value] = arguments else {
        return Err(mismatch());
    };
    let Value::Map(map) = map else {
        return Err("assignment to entry in nil map".to_owned());
    };
    map.insert(key_of(key)?, value.clone());
    Ok(Value::Map(map.clone()))
}

fn unset(arguments: &[Value]) -> Called {
    let [map, key] = arguments else { return Err(mismatch()) };
    map_of(map)?.remove(key_of(key)?);
    Ok(map.clone())
}

fn has_key(arguments: &[Value]) -> Called {
    let [map, key] = arguments else { return Err(mismatch()) };
    Ok(Value::Bool(map_of(map)?.contains(key_of(key)?)))
}

fn pluck(arguments: &[Value]) -> Called {
    let [key, maps @ ..] = arguments else {
        return Err(mismatch());
    };
    let mut found = Vec::new();
    for map in maps {
        found.extend(map_of(map)?.get(key_of(key)?));
    }
    Ok(Value::List(List::new(found)))
}

/// The keys in order. Go gives them in no order, so nobody can rely on one.
fn keys(arguments: &[Value]) -> Called {
    let mut keys = Vec::new();
    for map in arguments {
        keys.extend(map_of(map)?.entries().keys().cloned());
        check_items(keys.len())?;
    }
    Ok(Value::List(List::strings(keys)))
}

fn values(arguments: &[Value]) -> Called {
    let [map] = arguments else { return Err(mismatch()) };
    Ok(Value::List(List::new(
        map_of(map)?.entries().values().cloned().collect(),
    )))
}

fn pick(arguments: &[Value]) -> Called {
    let [map, keys @ ..] = arguments else {
        return Err(mismatch());
    };
    let (map, picked) = (map_of(map)?, Map::new());
    for key in keys {
        let key = key_of(key)?;
        if let Some(value) = map.get(key) {
            picked.insert(key, value);
        }
    }
    Ok(Value::Map(picked))
}

fn omit(arguments: &[Value]) -> Called {
    let [map, keys @ ..] = arguments else {
        return Err(mismatch());
    };
    let kept = Map::new();
    let entries = map_of(map)?.to_vec();
    spend(entries.len().saturating_mul(keys.len()) as u64 / COMPARISONS_PER_STEP)?;
    for (key, value) in entries {
        if !keys.iter().any(|omitted| omitted.as_str() == Some(&*key)) {
            kept.insert(key, value);
        }
    }
    Ok(Value::Map(kept))
}

/// Follows a path of keys; the last but one argument is the default, the last one the map.
fn dig(arguments: &[Value]) -> Called {
    let [path @ .., default, map] = arguments else {
        return Err("dig needs at least three arguments".to_owned());
    };
    if path.is_empty() {
        return Err("dig needs at least three arguments".to_owned());
    }
    let mut map = plain_map(map)?;
    let keys: Result<Vec<&[u8]>, String> = path
        .iter()
        .map(|key| key.as_str().ok_or_else(|| conversion(key, "string")))
        .collect();
    let keys = keys?;
    for (index, key) in keys.iter().enumerate() {
        match map.get(key) {
            None => return Ok(default.clone()),
            Some(found) if index + 1 == keys.len() => return Ok(found),
            Some(found) => map = plain_map(&found)?,
        }
    }
    Ok(default.clone())
}

/// Only `map[string]interface {}` itself will do, not a named type such as that of `.Values`.
fn plain_map(value: &Value) -> Result<Map, String> {
    match value {
        Value::Map(map) if map.type_name() == "map[string]interface {}" => Ok(map.clone()),
        _ => Err(conversion(value, "map[string]interface {}")),
    }
}

fn conversion(value: &Value, wanted: &str) -> String {
    let found = if matches!(value, Value::Nil) {
        "nil".to_owned()
    } else {
        value.type_name()
    };
    format!("interface conversion: interface {{}} is {found}, not {wanted}")
}

fn merged(arguments: &[Value], overwrites: bool) -> Called {
    let [target, sources @ ..] = arguments else {
        return Err(mismatch());
    };
    let target = map_of(target)?;
    for source in sources {
        merge(&target, &map_of(source)?, overwrites)?;
    }
    Ok(Value::Map(target))
}
