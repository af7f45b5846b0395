//! Functions between values and YAML or JSON text. Most of them swallow errors, as in Helm.

use super::{Called, Function, mismatch};
use crate::json::{self, Escape};
use crate::value::Type::{Any, Str};
use crate::value::{List, Map, Value};
use crate::yaml::{self, Node};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("toYaml", &[Any], |arguments| {
        or_empty(encoded(arguments, yaml::to_yaml))
    }),
    Function::new("fromYaml", &[Str], |arguments| {
        decoded(arguments, |text| Ok(yaml::from_yaml(text)))
    }),
    Function::new("fromYamlArray", &[Str], |arguments| {
        decoded(arguments, |text| Ok(yaml::from_yaml_array(text)))
    }),
    Function::new("toJson", &[Any], |arguments| or_empty(encoded(arguments, compact))),
    Function::new("mustToJson", &[Any], |arguments| encoded(arguments, compact)),
    Function::new("toPrettyJson", &[Any], |arguments| or_empty(encoded(arguments, pretty))),
    Function::new("mustToPrettyJson", &[Any], |arguments| encoded(arguments, pretty)),
    Function::new("toRawJson", &[Any], |arguments| encoded(arguments, raw)),
    Function::new("mustToRawJson", &[Any], |arguments| encoded(arguments, raw)),
    Function::new("fromJson", &[Str], |arguments| {
        decoded(arguments, |text| Ok(from_json(text)))
    }),
    Function::new("fromJsonArray", &[Str], |arguments| {
        decoded(arguments, |text| Ok(from_json_array(text)))
    }),
    Function::new("mustFromJson", &[Str], |arguments| {
        decoded(arguments, |text| json::decode(text).map(|node| node.to_value()))
    }),
];

fn compact(value: &Value) -> Result<String, String> {
    json::encode(value, Escape::Html)
}

fn pretty(value: &Value) -> Result<String, String> {
    json::encode_pretty(value, Escape::Html)
}

fn raw(value: &Value) -> Result<String, String> {
    json::encode(value, Escape::Minimal)
}

fn encoded(arguments: &[Value], encode: impl Fn(&Value) -> Result<String, String>) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    encode(value).map(Value::from)
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a function")]
fn or_empty(encoded: Called) -> Called {
    Ok(encoded.unwrap_or_else(|_| Value::from("")))
}

fn decoded(arguments: &[Value], decode: impl Fn(&[u8]) -> Called) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    decode(text)
}

fn not_a(type_name: &str, node: &Node) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type {type_name}",
        json::kind(node)
    )
}

/// The object that a text holds, or one with the only key `Error`.
fn from_json(text: &[u8]) -> Value {
    let object = match json::decode(text) {
        Ok(Node::Null) => return Value::Map(Map::new()),
        Ok(node @ Node::Map(_)) => return node.to_value(),
        Ok(node) => not_a("map[string]interface {}", &node),
        Err(error) => error,
    };
    Value::Map([("Error", object)].into_iter().collect())
}

/// The array that a text holds, or one with the error as its only item.
fn from_json_array(text: &[u8]) -> Value {
    let error = match json::decode(text) {
        Ok(Node::Null) => return Value::List(List::default()),
        Ok(node @ Node::List(_)) => return node.to_value(),
        Ok(node) => not_a("[]interface {}", &node),
        Err(error) => error,
    };
    Value::List(List::new(vec![Value::from(error)]))
}
