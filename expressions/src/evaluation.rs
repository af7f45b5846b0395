//! Whether an expression holds of objects, and if it does not, for want of what.

mod budget;
mod conversions;
mod durations;
mod explanation;
mod functions;
mod operators;
mod patterns;
#[cfg(test)]
mod tests;
mod timestamps;
mod value;
mod walk;

use std::collections::BTreeMap;

use self::{
    budget::Budget,
    explanation::sides,
    value::Value,
    walk::{Failure, Scope, Walk},
};
pub(crate) use self::{
    functions::{FUNCTIONS, Gives, METHODS, Signature},
    patterns::is_pattern,
    value::TYPES,
};
use crate::{
    syntax::{Expression, Kind, Node},
    words::cut,
};

/// How much an evaluation may do, for conditions of stages. A step is the visit of one part of the expression, or of one element of a list or map, or
/// of sixteen bytes. All of them take a fraction of a second and at most some ten megabytes; an expression over the conditions of a Deployment takes
/// some dozens.
pub const STEPS: u64 = 1_000_000;

/// What became of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is true.
    Holds,
    /// It is false.
    Fails {
        /// The first part of the top-level `&&` that is false, as it is written, on one line and of bounded length.
        conjunct: String,
        /// What the operands of its comparisons are at the moment; literals are left out.
        sides: Vec<Side>,
    },
    /// It cannot be said yet: something is not there. What there is to do is wait.
    Missing(Missing),
    /// It is neither true nor false, or costs more than it may. Waiting helps only if the type of a field changes.
    Wrong {
        /// What is wrong with which part.
        message: String,
    },
}

/// One operand of a comparison and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// As it is written.
    pub text: String,
    /// As JSON would say it, of bounded length.
    pub value: String,
}

/// What is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The object itself.
    Object {
        /// Its key.
        object: String,
    },
    /// A field, a key or an element.
    Path {
        /// Its whole path, from the key of the object on, as far as it begins at one.
        path: String,
    },
}

/// Evaluates an expression over objects by their keys; `None` is an object that does not exist.
///
/// As with the Go operator nothing holds until every object exists, whether the expression asks it something or not. A field that is not there makes the
/// expression [`Outcome::Missing`], unless the other side of an `&&` or `||` decides, or another element of `all()` or `exists()` does. Numbers
/// of JSON that are whole and fit into 64 bits with a sign are `int`, others `double`.
///
/// Ends after at most `steps`, see [`STEPS`].
pub fn evaluate(expression: &Expression, objects: &BTreeMap<String, Option<serde_json::Value>>, steps: u64) -> Outcome {
    if let Some((object, _)) = objects.iter().find(|(_, value)| value.is_none()) {
        let object = object.clone();
        return Outcome::Missing(Missing::Object { object });
    }
    let budget = Budget::new(steps);
    let walk = Walk::new(expression, objects, &budget);
    let mut first_failure = None;
    for conjunct in conjuncts(&expression.root) {
        match walk.value(conjunct, Scope::TOP) {
            Ok(Value::Bool(true)) => {}
            Ok(Value::Bool(false)) => {
                let sides = sides(&walk, conjunct);
                let conjunct = cut(expression.written(conjunct));
                return Outcome::Fails { conjunct, sides };
            }
            Ok(other) => {
                let failure = walk.wrong(conjunct, &format!("is of type {} and not bool", other.type_name()));
                first_failure.get_or_insert(failure);
            }
            Err(Failure::TooMuch) => return Failure::TooMuch.outcome(),
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    first_failure.map_or(Outcome::Holds, Failure::outcome)
}

/// The parts of the top-level `&&`, also of those in brackets.
fn conjuncts(node: &Node) -> Vec<&Node> {
    match &node.kind {
        Kind::And(nodes) => nodes.iter().flat_map(conjuncts).collect(),
        _ => vec![node],
    }
}
