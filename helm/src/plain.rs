//! Template values as plain data, for template languages that know nothing of Go. Names stay those that Go templates use.

use std::collections::BTreeMap;

use crate::bounds::{BoundError, Walk};
use crate::value::{List, Map, Shape, Value};
use crate::yaml::Node;

/// The data of a value: fields of structs by their Go names, those of an embedded struct among them, whole numbers as integers.
pub(crate) fn data(value: &Value) -> Result<Node, BoundError> {
    copied(value, &mut Walk::copying(), 0)
}

fn copied(value: &Value, walk: &mut Walk, depth: usize) -> Result<Node, BoundError> {
    walk.visit(depth)?;
    Ok(match value {
        Value::Nil => Node::Null,
        Value::Bool(value) => Node::Bool(*value),
        Value::Int(bits, int_type) => Node::integer(*bits, *int_type),
        Value::Float(number) => whole(*number).map_or(Node::Float(*number), Node::Int),
        Value::Str(text) | Value::Bytes(text) => Node::Text(String::from_utf8_lossy(text).into_owned()),
        Value::List(list) => items(list, walk, depth)?,
        Value::Map(map) => entries(map, walk, depth)?,
        Value::Obj(object) => match object.shape() {
            Shape::Struct(fields) | Shape::Pointer(fields) => structure(&fields, walk, depth)?,
            Shape::Map(map) => entries(&map, walk, depth)?,
            Shape::List(list) => items(&list, walk, depth)?,
            Shape::Number(bits, int_type) => Node::integer(bits, int_type),
            Shape::Complex(real, _) => Node::Float(real),
        },
    })
}

fn items(list: &List, walk: &mut Walk, depth: usize) -> Result<Node, BoundError> {
    let items = list.items().iter().map(|item| copied(item, walk, depth + 1));
    Ok(Node::List(items.collect::<Result<_, _>>()?))
}

fn entries(map: &Map, walk: &mut Walk, depth: usize) -> Result<Node, BoundError> {
    let entries = map.entries();
    let entries = entries.iter().map(|(key, value)| {
        let key = String::from_utf8_lossy(key).into_owned();
        Ok((key, copied(value, walk, depth + 1)?))
    });
    Ok(Node::Map(entries.collect::<Result<_, _>>()?))
}

fn structure(fields: &[(&'static str, Value)], walk: &mut Walk, depth: usize) -> Result<Node, BoundError> {
    let mut entries = BTreeMap::new();
    for (name, value) in fields {
        // The only embedded struct of the engine; its fields are reached without naming it.
        match (*name, copied(value, walk, depth + 1)?) {
            ("Metadata", Node::Map(embedded)) => entries.extend(embedded),
            (name, data) => {
                entries.insert(name.to_owned(), data);
            }
        }
    }
    Ok(Node::Map(entries))
}

/// A float that is an integer, within what 64 bits hold exactly enough.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    fits.then_some(number as i64)
}
