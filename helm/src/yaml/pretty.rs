//! The function `toYamlPretty`: a value by go-yaml v3, without the way through JSON that `toYaml` takes.

use super::emit::{Version, emit_as};
use super::node::Node;
use crate::bounds::Walk;
use crate::objects::time::as_duration;
use crate::text;
use crate::value::{Json, Map, Shape, Value};

/// The YAML of a value, without the last line break. What is not supported is an error, never another text.
pub(crate) fn to_yaml_pretty(value: &Value) -> Result<String, String> {
    let mut text = emit_as(Version::V3, &node(value, &mut Walk::copying(), 0)?);
    text.pop();
    Ok(text)
}

fn node(value: &Value, walk: &mut Walk, depth: usize) -> Result<Node, String> {
    walk.visit(depth)?;
    Ok(match value {
        Value::Nil => Node::Null,
        Value::Bool(value) => Node::Bool(*value),
        Value::Int(bits, int_type) => Node::integer(*bits, *int_type),
        Value::Float(number) => Node::Float(*number),
        Value::Str(text) => match str::from_utf8(text) {
            Ok(text) => Node::from(text),
            Err(_) => Node::Bytes(text.to_vec()),
        },
        Value::Bytes(bytes) => Node::List(bytes.iter().map(|byte| Node::Int(i64::from(*byte))).collect()),
        Value::List(list) => items(list.items(), walk, depth)?,
        Value::Map(map) => entries(map, walk, depth)?,
        Value::Obj(object) => match (object.shape(), object.json()) {
            (Shape::Number(bits, int_type), _) => as_duration(value)
                .map_or(Node::integer(bits, int_type), |duration| {
                    Node::Text(duration.to_string())
                }),
            (Shape::Map(map), None) => entries(&map, walk, depth)?,
            (Shape::List(list), None) => items(list.items(), walk, depth)?,
            (Shape::Pointer(_), Some(Json::Value(Value::Str(text)))) => Node::Text(text::lossy(&text)),
            _ => return Err(format!("toYamlPretty of {} is not supported", object.type_name())),
        },
    })
}

fn key(key: &[u8]) -> Result<String, String> {
    let key = str::from_utf8(key).map_err(|_| "toYamlPretty of a key that is not UTF-8 is not supported")?;
    Ok(key.to_owned())
}

fn items(items: &[Value], walk: &mut Walk, depth: usize) -> Result<Node, String> {
    let items = items.iter().map(|item| node(item, walk, depth + 1));
    Ok(Node::List(items.collect::<Result<_, _>>()?))
}

fn entries(map: &Map, walk: &mut Walk, depth: usize) -> Result<Node, String> {
    let entries = map.entries();
    let entries = entries
        .iter()
        .map(|(key, value)| Ok((self::key(key)?, node(value, walk, depth + 1)?)));
    Ok(Node::Map(entries.collect::<Result<_, String>>()?))
}
