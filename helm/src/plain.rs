//! Template values as plain data, for template languages that know nothing of Go. Names stay those that Go templates use.

use std::collections::BTreeMap;

use crate::value::{List, Map, Shape, Value};
use crate::yaml::{MAX_DEPTH, Node};

/// The data of a value: fields of structs by their Go names, those of an embedded struct among them, whole numbers as integers.
/// What nests too deeply, or in itself, is cut off as null.
pub(crate) fn data(value: &Value) -> Node {
    at_depth(value, 0)
}

fn at_depth(value: &Value, depth: usize) -> Node {
    if depth > MAX_DEPTH {
        return Node::Null;
    }
    match value {
        Value::Nil => Node::Null,
        Value::Bool(value) => Node::Bool(*value),
        Value::Int(number, _) => Node::Int(*number),
        Value::Float(number) => whole(*number).map_or(Node::Float(*number), Node::Int),
        Value::Str(text) | Value::Bytes(text) => Node::Text(String::from_utf8_lossy(text).into_owned()),
        Value::List(list) => items(list, depth),
        Value::Map(map) => entries(map, depth),
        Value::Obj(object) => match object.shape() {
            Shape::Struct(fields) | Shape::Pointer(fields) => structure(&fields, depth),
            Shape::Map(map) => entries(&map, depth),
            Shape::List(list) => items(&list, depth),
        },
    }
}

fn items(list: &List, depth: usize) -> Node {
    Node::List(list.items().iter().map(|item| at_depth(item, depth + 1)).collect())
}

fn entries(map: &Map, depth: usize) -> Node {
    let entries = map.entries();
    let entries = entries
        .iter()
        .map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), at_depth(value, depth + 1)));
    Node::Map(entries.collect())
}

fn structure(fields: &[(&'static str, Value)], depth: usize) -> Node {
    let mut entries = BTreeMap::new();
    for (name, value) in fields {
        // The only embedded struct of the engine; its fields are reached without naming it.
        match (*name, at_depth(value, depth + 1)) {
            ("Metadata", Node::Map(embedded)) => entries.extend(embedded),
            (name, data) => {
                entries.insert(name.to_owned(), data);
            }
        }
    }
    Node::Map(entries)
}

/// A float that is an integer, within what 64 bits hold exactly enough.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    fits.then_some(number as i64)
}
