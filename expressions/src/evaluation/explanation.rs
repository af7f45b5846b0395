//! Words for whoever waits: which values made a part false.

use std::fmt::Write;

use super::{
    Side, conversions, durations,
    value::{Entries, List, Value},
    walk::{Scope, Walk},
};
use crate::{
    syntax::{Kind, Node},
    words::{LONGEST, cut},
};

/// How many operands are shown.
const MOST_SIDES: usize = 6;

/// The operands of the comparisons of which a part consists, with their values. What is unknown by now is left out.
pub(super) fn sides<'a>(walk: &Walk<'a>, node: &'a Node) -> Vec<Side> {
    let mut found = Vec::new();
    collect(walk, node, &mut found);
    found
}

fn collect<'a>(walk: &Walk<'a>, node: &'a Node, found: &mut Vec<Side>) {
    match &node.kind {
        Kind::Or(operands) | Kind::And(operands) => {
            for operand in operands {
                collect(walk, operand, found);
            }
        }
        Kind::Not(operand) if !matches!(operand.kind, Kind::Name(_) | Kind::Select { .. }) => {
            collect(walk, operand, found);
        }
        Kind::Binary { operator, left, right } if operator.compares() => {
            show(walk, left, found);
            show(walk, right, found);
        }
        Kind::Call { target, arguments, .. } => {
            for operand in target.as_deref().into_iter().chain(arguments) {
                show(walk, operand, found);
            }
        }
        Kind::Macro { range, .. } => show(walk, range, found),
        Kind::Name(_) | Kind::Select { .. } | Kind::Not(_) | Kind::Index { .. } => show(walk, node, found),
        Kind::Choice {
            condition,
            then,
            otherwise,
        } => {
            collect(walk, condition, found);
            match walk.value(condition, Scope::TOP) {
                Ok(Value::Bool(true)) => collect(walk, then, found),
                Ok(Value::Bool(false)) => collect(walk, otherwise, found),
                _ => {}
            }
        }
        Kind::Literal(_) | Kind::Has { .. } | Kind::List(_) | Kind::Map(_) | Kind::Negate(_) | Kind::Binary { .. } => {}
    }
}

fn show<'a>(walk: &Walk<'a>, node: &'a Node, found: &mut Vec<Side>) {
    if found.len() == MOST_SIDES || is_written_out(node) {
        return;
    }
    let text = cut(walk.expression.written(node));
    if found.iter().any(|side| side.text == text) {
        return;
    }
    if let Ok(value) = walk.value(node, Scope::TOP) {
        let value = cut(&told(&value));
        found.push(Side { text, value });
    }
}

/// Whether it says its value itself.
fn is_written_out(node: &Node) -> bool {
    match &node.kind {
        Kind::Literal(_) => true,
        Kind::List(_) | Kind::Map(_) | Kind::Negate(_) => node.kind.children().into_iter().all(is_written_out),
        _ => false,
    }
}

/// A value as JSON, so far as it is shown.
fn told(value: &Value<'_>) -> String {
    let mut told = String::new();
    tell(value, &mut told);
    told
}

fn tell(value: &Value<'_>, told: &mut String) {
    // Some bytes for each character: the rest is cut away.
    if told.len() > 4 * LONGEST {
        return;
    }
    match value {
        Value::Null => told.push_str("null"),
        Value::Bool(value) => told.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => told.push_str(&value.to_string()),
        Value::Uint(value) => told.push_str(&value.to_string()),
        Value::Double(value) => told.push_str(&conversions::written(*value)),
        Value::Text(text) => {
            let shown: String = text.chars().take(LONGEST).collect();
            let _ = write!(told, "{shown:?}");
        }
        Value::Bytes(bytes) => {
            let _ = write!(told, "{} bytes", bytes.len());
        }
        Value::Duration(nanoseconds) => told.push_str(&durations::written(*nanoseconds)),
        Value::Timestamp(timestamp) => told.push_str(&timestamp.to_string()),
        Value::Type(name) => told.push_str(name),
        Value::List(list) => tell_list(list, told),
        Value::Map(entries) => tell_map(entries, told),
    }
}

/// So many elements can be seen before the text is cut.
const SHOWN: usize = LONGEST / 2;

fn tell_list(list: &List<'_>, told: &mut String) {
    told.push('[');
    for place in 0..list.len().min(SHOWN) {
        if place > 0 {
            told.push(',');
        }
        if let Some(element) = list.get(place) {
            tell(&element, told);
        }
    }
    told.push(']');
}

fn tell_map(entries: &Entries<'_>, told: &mut String) {
    told.push('{');
    let entries: Vec<_> = match entries {
        Entries::Json(entries) => entries
            .iter()
            .take(SHOWN)
            .map(|(key, value)| (Value::borrowed(key), Value::of_json(value)))
            .collect(),
        Entries::Made(entries) => entries.iter().take(SHOWN).cloned().collect(),
    };
    for (place, (key, value)) in entries.iter().enumerate() {
        if place > 0 {
            told.push(',');
        }
        tell(key, told);
        told.push(':');
        tell(value, told);
    }
    told.push('}');
}
