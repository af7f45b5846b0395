//! From template values to the data that YAML is written from, as the way through JSON gives it, but without the JSON.
//!
//! Like `simple`, it knows no errors and gives up at what is unusual: the way through JSON decides.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::node::Node;
use super::resolve::{Resolved, resolve};
use super::simple::is_simple_text;
use crate::number;
use crate::plain::whole;
use crate::value::Value;

const MAX_DEPTH: usize = 100;

/// Longer keys are wrong in YAML.
const MAX_KEY: usize = 1_000;

/// How much is copied before the way through JSON counts what is too much.
const MAX_COST: usize = 1 << 18;

/// What reading the JSON of a value as YAML gives.
pub(super) fn node(value: &Value) -> Option<Node> {
    Converter { cost: 0 }.node(value, 0)
}

struct Converter {
    /// Parts and bytes so far.
    cost: usize,
}

impl Converter {
    fn node(&mut self, value: &Value, depth: usize) -> Option<Node> {
        self.spend(1)?;
        Some(match value {
            Value::Nil => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Int(bits, int_type) => Node::integer(*bits, *int_type),
            Value::Float(number) => float(*number)?,
            Value::Str(text) => Node::Text(self.text(text)?),
            Value::Bytes(bytes) => {
                self.spend(bytes.len())?;
                Node::Text(STANDARD.encode(bytes))
            }
            _ if depth > MAX_DEPTH => return None,
            Value::List(list) if list.is_nil() => Node::Null,
            Value::Map(map) if map.is_nil() => Node::Null,
            Value::List(list) => {
                let items = list.items().iter().map(|item| self.node(item, depth + 1));
                Node::List(items.collect::<Option<_>>()?)
            }
            Value::Map(map) => {
                let entries = map.entries();
                let entries = entries.iter().map(|(key, value)| {
                    let key = self.text(key).filter(|key| key.len() <= MAX_KEY)?;
                    Some((key, self.node(value, depth + 1)?))
                });
                Node::Map(entries.collect::<Option<BTreeMap<_, _>>>()?)
            }
            Value::Obj(_) => return None,
        })
    }

    fn text(&mut self, text: &[u8]) -> Option<String> {
        self.spend(text.len())?;
        let text = str::from_utf8(text).ok().filter(|text| is_simple_text(text))?;
        Some(text.to_owned())
    }

    fn spend(&mut self, cost: usize) -> Option<()> {
        self.cost += cost;
        (self.cost <= MAX_COST).then_some(())
    }
}

fn float(number: f64) -> Option<Node> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(integer) = whole(number).filter(|_| number.abs() < EXACT) {
        return Some(Node::Int(integer));
    }
    if !number.is_finite() {
        return None;
    }
    match resolve(&number::format_json_float(number)) {
        Resolved::Node(node) => Some(node),
        _ => None,
    }
}
