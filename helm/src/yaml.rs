//! YAML as Helm reads and writes it: the go-yaml v2 dialect on the way through JSON. Decides nothing about charts.

mod convert;
mod decode;
mod dialect;
mod directives;
mod emit;
mod error;
mod go_tree;
mod lines;
mod node;
mod order;
mod pretty;
mod resolve;
mod scan;
mod simple;
mod style;
mod text;

pub use decode::Decoded;
pub use emit::emit;
pub use error::Error;
pub(crate) use lines::line_of;
pub use node::Node;
pub(crate) use pretty::to_yaml_pretty;
pub(crate) use simple::Skimmed;

use crate::bounds::{self, BoundError, check_document};
use crate::json;
use crate::value::Value;

/// Reads the first document of a text, integers kept as integers, as `sigs.k8s.io/yaml` gives it to Kubernetes clients.
pub fn read(text: &[u8]) -> Result<Decoded, Error> {
    if let Some(decoded) = simple::read(text) {
        let memory = decoded.node.memory();
        check_document(memory)
            .and_then(|()| bounds::read(memory))
            .map_err(Error::Bound)?;
        return Ok(decoded);
    }
    let decoded = decode::decode(&scan::Source::read(text)?)?;
    decode::refuse_infinite(&decoded.node)?;
    Ok(decoded)
}

/// Some entries of the mapping that a text holds, if the text is one that can be checked without reading the others.
pub(crate) fn skim(text: &[u8], wanted: fn(&str) -> bool) -> Option<Skimmed> {
    simple::skim(text, wanted)
}

/// Reads the first document of a text as chart values: every number is a float.
pub fn parse(text: &[u8]) -> Result<Node, Error> {
    Ok(read(text)?.node.with_float_numbers())
}

/// The function `toYaml`: the YAML of the JSON of a value, without the last line break. Templates see "" for what Go refuses.
pub fn to_yaml(value: &Value) -> Result<String, json::Error> {
    let node = match convert::node(value) {
        Some(node) => node,
        None => through_json(value)?,
    };
    let mut text = emit(&node);
    text.pop();
    Ok(text)
}

fn through_json(value: &Value) -> Result<Node, json::Error> {
    let json = json::encode(value, json::Escape::Html)?;
    let decoded = scan::Source::read(json.as_bytes()).and_then(|source| decode::decode(&source));
    match decoded {
        Ok(decoded) => Ok(decoded.node),
        Err(Error::Bound(bound)) => Err(json::Error::Bound(bound)),
        Err(error) => Err(json::Error::Refused(error.to_string())),
    }
}

/// The function `fromYaml`: the mapping that a text holds, or a mapping with the only key `Error`.
pub fn from_yaml(text: &[u8]) -> Result<Value, BoundError> {
    Ok(match unmarshalled(text)? {
        Ok(Node::Null) => Node::empty_map().to_value(),
        Ok(node @ Node::Map(_)) => node.to_value(),
        Ok(node) => error_map(wrong_kind(&node, "map[string]interface {}")),
        Err(error) => error_map(error),
    })
}

/// The function `fromYamlArray`: the sequence that a text holds, or a sequence with the error as its only item.
pub fn from_yaml_array(text: &[u8]) -> Result<Value, BoundError> {
    Ok(match unmarshalled(text)? {
        Ok(Node::Null) => Node::List(Vec::new()).to_value(),
        Ok(node @ Node::List(_)) => node.to_value(),
        Ok(node) => error_list(wrong_kind(&node, "[]interface {}")),
        Err(error) => error_list(error),
    })
}

/// The document, or what Go says of it.
fn unmarshalled(text: &[u8]) -> Result<Result<Node, String>, BoundError> {
    match parse(text) {
        Ok(node) => Ok(Ok(node)),
        Err(Error::Bound(bound)) => Err(bound),
        Err(error) => Ok(Err(convert_error(error))),
    }
}

fn wrong_kind(node: &Node, type_name: &str) -> String {
    let kind = json::kind(node);
    format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type {type_name}"
    )
}

/// How `sigs.k8s.io/yaml` wraps what go-yaml says.
#[expect(clippy::needless_pass_by_value, reason = "used as a function in map_err")]
pub(crate) fn convert_error(error: Error) -> String {
    format!("error converting YAML to JSON: {error}")
}

fn error_map(error: String) -> Value {
    Node::from([("Error", Node::Text(error))]).to_value()
}

fn error_list(error: String) -> Value {
    Node::List(vec![Node::Text(error)]).to_value()
}
