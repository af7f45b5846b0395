//! Functions between values and YAML or JSON text. Most of them swallow errors, as in Helm.

use std::collections::BTreeMap;

use super::{Called, Function, FunctionSet, mismatch};
use crate::json::{self, Escape};
use crate::toml::{self, Dialect};
use crate::value::Type::{Any, Str};
use crate::value::{Element, List, Map, Value};
use crate::yaml::{self, Node};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("toYaml", &[Any], |arguments| encoded_or_empty(arguments, yaml::to_yaml)),
    Function::new("mustToYaml", &[Any], must_to_yaml).since(FunctionSet::V4_0),
    Function::new("toToml", &[Any], |arguments| to_toml(arguments, Dialect::V1_0)),
    Function::new("toToml", &[Any], |arguments| to_toml(arguments, Dialect::V1_1)).since(FunctionSet::V4_0),
    Function::new("mustToToml", &[Any], must_to_toml).since(FunctionSet::V4_2),
    Function::new("fromToml", &[Str], |arguments| from_toml(arguments, Dialect::V1_0)),
    Function::new("fromToml", &[Str], |arguments| from_toml(arguments, Dialect::V1_1)).since(FunctionSet::V4_0),
    Function::new("toYamlPretty", &[Any], |arguments| match arguments {
        [value] => yaml::to_yaml_pretty(value).map(Value::from),
        _ => Err(mismatch()),
    }),
    Function::new("fromYaml", &[Str], |arguments| {
        decoded(arguments, |text| Ok(yaml::from_yaml(text)?))
    }),
    Function::new("fromYamlArray", &[Str], |arguments| {
        decoded(arguments, |text| Ok(yaml::from_yaml_array(text)?))
    }),
    Function::new("toJson", &[Any], |arguments| encoded_or_empty(arguments, compact)),
    Function::new("mustToJson", &[Any], |arguments| encoded(arguments, compact)),
    Function::new("toPrettyJson", &[Any], |arguments| encoded_or_empty(arguments, pretty)),
    Function::new("mustToPrettyJson", &[Any], |arguments| encoded(arguments, pretty)),
    Function::new("toRawJson", &[Any], |arguments| encoded(arguments, raw)),
    Function::new("mustToRawJson", &[Any], |arguments| encoded(arguments, raw)),
    Function::new("fromJson", &[Str], |arguments| decoded(arguments, from_json)),
    Function::new("fromJsonArray", &[Str], |arguments| decoded(arguments, from_json_array)),
    Function::new("mustFromJson", &[Str], |arguments| decoded(arguments, from_any_json)),
];

/// It takes any JSON, and gives nil for what is none. Numbers out of range are nil where they stand.
pub(super) const FROM_JSON_OF_LIBRARY: Function = Function::new("fromJson", &[Str], |arguments| {
    decoded(arguments, |text| match json::decode_partly(text) {
        Ok((node, _)) => Ok(node.to_value()),
        Err(json::Error::Refused(_)) => Ok(Value::Nil),
        Err(json::Error::Bound(bound)) => Err(bound.to_string()),
    })
});

type Encoded = Result<String, json::Error>;

fn compact(value: &Value) -> Encoded {
    json::encode(value, Escape::Html)
}

fn pretty(value: &Value) -> Encoded {
    json::encode_pretty(value, Escape::Html)
}

fn raw(value: &Value) -> Encoded {
    json::encode(value, Escape::Minimal)
}

fn encoded(arguments: &[Value], encode: impl Fn(&Value) -> Encoded) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    encode(value).map(Value::from).map_err(|error| error.to_string())
}

/// The text goes through JSON, and an error says so.
fn must_to_yaml(arguments: &[Value]) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    yaml::to_yaml(value).map(Value::from).map_err(|error| match error {
        json::Error::Refused(problem) => format!("error marshaling into JSON: {problem}"),
        json::Error::Bound(bound) => bound.to_string(),
    })
}

/// Nothing for what Go refuses. What we refuse is never taken for nothing.
fn encoded_or_empty(arguments: &[Value], encode: impl Fn(&Value) -> Encoded) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    match encode(value) {
        Ok(text) => Ok(Value::from(text)),
        Err(json::Error::Refused(_)) => Ok(Value::from("")),
        Err(json::Error::Bound(bound)) => Err(bound.to_string()),
    }
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

/// A text that is nothing but a number out of range was a number.
fn or_number(node: Node, out_of_range: Option<&str>) -> Node {
    match node {
        Node::Null if out_of_range.is_some() => Node::Float(f64::INFINITY),
        node => node,
    }
}

fn from_any_json(text: &[u8]) -> Called {
    let decoded = json::decode(text).map_err(|error| error.to_string())?;
    Ok(decoded.to_value())
}

/// The object that a text holds; what is wrong with the text is its key `Error`.
fn from_json(text: &[u8]) -> Called {
    let (map, error) = match json::decode_partly(text) {
        Ok((Node::Map(entries), error)) => (entries, error),
        Ok((Node::Null, None)) => return Ok(Value::Map(Map::nil(Element::Any))),
        Ok((node, error)) => (
            BTreeMap::new(),
            Some(not_a("map[string]interface {}", &or_number(node, error.as_deref()))),
        ),
        Err(json::Error::Refused(error)) => (BTreeMap::new(), Some(error)),
        Err(json::Error::Bound(bound)) => return Err(bound.to_string()),
    };
    let map: Map = map.iter().map(|(key, node)| (key.as_str(), node.to_value())).collect();
    if let Some(error) = error {
        map.insert("Error", error);
    }
    Ok(Value::Map(map))
}

/// The array that a text holds, or one with the error as its only item.
fn from_json_array(text: &[u8]) -> Called {
    let error = match json::decode_partly(text) {
        Ok((Node::List(items), None)) => return Ok(Node::List(items).to_value()),
        Ok((Node::List(_), Some(error))) | Err(json::Error::Refused(error)) => error,
        Ok((Node::Null, None)) => return Ok(Value::List(List::nil(Element::Any))),
        Ok((node, error)) => not_a("[]interface {}", &or_number(node, error.as_deref())),
        Err(json::Error::Bound(bound)) => return Err(bound.to_string()),
    };
    Ok(Value::List(List::new(vec![Value::from(error)])))
}

/// The text of a value, or that of the encoder's error.
fn to_toml(arguments: &[Value], dialect: Dialect) -> Called {
    match toml_of(arguments, dialect) {
        Ok(text) => Ok(Value::from(text)),
        Err(toml::Error::Refused(problem)) => Ok(Value::from(problem)),
        Err(toml::Error::Unsupported(problem)) => Err(problem),
    }
}

fn must_to_toml(arguments: &[Value]) -> Called {
    match toml_of(arguments, Dialect::V1_1) {
        Ok(text) => Ok(Value::from(text)),
        Err(toml::Error::Refused(problem)) => Err(problem.to_owned()),
        Err(toml::Error::Unsupported(problem)) => Err(problem),
    }
}

fn toml_of(arguments: &[Value], dialect: Dialect) -> Result<Vec<u8>, toml::Error> {
    match arguments {
        [Value::Nil] => Err(toml::Error::Unsupported(
            "reflect: call of reflect.Value.Type on zero Value".to_owned(),
        )),
        [value] => toml::encode(value, dialect),
        _ => Err(toml::Error::Unsupported(mismatch())),
    }
}

/// The table that a text holds, or one with the only key `Error`.
fn from_toml(arguments: &[Value], dialect: Dialect) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    match toml::read(text, dialect) {
        Ok(table) => Ok(Value::Map(table)),
        Err(toml::Unread::Wrong(error)) => Ok(Value::Map([("Error", error)].into_iter().collect())),
        Err(toml::Unread::Failed(problem)) => Err(problem),
    }
}
