//! What to take when a value is empty.

use super::{Called, Function, mismatch};
use crate::template::is_true;
use crate::value::Type::{Any, Bool};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("default", &[Any, Any], default),
    Function::new("empty", &[Any], |arguments| {
        Ok(Value::Bool(arguments.iter().all(is_empty)))
    }),
    Function::variadic("coalesce", &[Any], |arguments| {
        let given = arguments.iter().find(|argument| !is_empty(argument));
        Ok(given.cloned().unwrap_or_default())
    }),
    Function::variadic("all", &[Any], |arguments| {
        Ok(Value::Bool(!arguments.iter().any(is_empty)))
    }),
    Function::variadic("any", &[Any], |arguments| {
        Ok(Value::Bool(!arguments.iter().all(is_empty)))
    }),
    Function::new("ternary", &[Any, Any, Bool], ternary),
];

/// Empty is what a template takes for false.
pub(super) fn is_empty(value: &Value) -> bool {
    !is_true(value)
}

fn default(arguments: &[Value]) -> Called {
    let [default, given @ ..] = arguments else {
        return Err(mismatch());
    };
    Ok(given
        .first()
        .filter(|given| !is_empty(given))
        .unwrap_or(default)
        .clone())
}

fn ternary(arguments: &[Value]) -> Called {
    let [if_true, if_false, Value::Bool(condition)] = arguments else {
        return Err(mismatch());
    };
    Ok(if *condition { if_true.clone() } else { if_false.clone() })
}
