//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`: only values of the same basic kind can be compared.

use std::cmp::Ordering;

use super::{Called, Function, FunctionSet, mismatch};
use crate::format;
use crate::text;
use crate::value::Type::Reflect;
use crate::value::{Shape, Value};

pub(super) const FUNCTIONS: &[Function] = &functions::<false>();

/// Newer Go names the types that do not go together.
pub(super) const FUNCTIONS_THAT_NAME_TYPES: &[Function] = &functions::<true>();

const fn functions<const NAMES: bool>() -> [Function; 6] {
    let since = if NAMES { FunctionSet::V4_0 } else { FunctionSet::V3_19 };
    [
        Function::variadic("eq", &[Reflect, Reflect], eq::<NAMES>).since(since),
        Function::new("ne", &[Reflect, Reflect], ne::<NAMES>).since(since),
        Function::new("lt", &[Reflect, Reflect], |arguments| {
            compared::<NAMES>(arguments, Ordering::is_lt)
        })
        .since(since),
        Function::new("le", &[Reflect, Reflect], |arguments| {
            compared::<NAMES>(arguments, Ordering::is_le)
        })
        .since(since),
        Function::new("gt", &[Reflect, Reflect], |arguments| {
            compared::<NAMES>(arguments, Ordering::is_gt)
        })
        .since(since),
        Function::new("ge", &[Reflect, Reflect], |arguments| {
            compared::<NAMES>(arguments, Ordering::is_ge)
        })
        .since(since),
    ]
}

const BAD_TYPE: &str = "invalid type for comparison";

fn incompatible<const NAMES: bool>(first: &Value, second: &Value) -> String {
    let words = "incompatible types for comparison";
    if NAMES {
        format!("{words}: {} and {}", first.type_name(), second.type_name())
    } else {
        words.to_owned()
    }
}

/// The classes between which Go's templates do not convert. Signed and unsigned integers compare by their number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Integer,
    Float,
    Str,
    Complex,
}

fn basic(value: &Value) -> Option<Basic> {
    match value {
        Value::Obj(_) if integer(value).is_some() => Some(Basic::Integer),
        Value::Obj(object) if matches!(object.shape(), Shape::Complex(..)) => Some(Basic::Complex),
        Value::Bool(_) => Some(Basic::Bool),
        Value::Int(..) => Some(Basic::Integer),
        Value::Float(_) => Some(Basic::Float),
        Value::Str(_) => Some(Basic::Str),
        _ => None,
    }
}

/// The number of an integer of any type.
fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(bits, int_type) => Some(int_type.number(*bits)),
        Value::Obj(object) => match object.shape() {
            Shape::Number(bits, int_type) => Some(int_type.number(bits)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the first argument equals any of the others.
fn eq<const NAMES: bool>(arguments: &[Value]) -> Called {
    let [first, others @ ..] = arguments else {
        return Err(mismatch());
    };
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        if equal::<NAMES>(first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn ne<const NAMES: bool>(arguments: &[Value]) -> Called {
    let [first, second] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::Bool(!equal::<NAMES>(first, second)?))
}

#[expect(clippy::float_cmp, reason = "Go compares exactly")]
fn equal<const NAMES: bool>(first: &Value, second: &Value) -> Result<bool, String> {
    match (first, second) {
        (Value::Bool(first), Value::Bool(second)) => Ok(first == second),
        (first, second) if let (Some(first), Some(second)) = (integer(first), integer(second)) => Ok(first == second),
        (Value::Float(first), Value::Float(second)) => Ok(first == second),
        (Value::Str(first), Value::Str(second)) => Ok(first == second),
        (Value::Nil, other) | (other, Value::Nil) => Ok(is_nil(other)),
        _ if basic(first) != basic(second) => Err(incompatible::<NAMES>(first, second)),
        (first, second) if first.kind_name() != second.kind_name() => Err(format!(
            "non-comparable types {}: {}, {}: {}",
            printed(first, b"%s")?,
            first.type_name(),
            second.type_name(),
            printed(second, b"%v")?
        )),
        (first, second) if is_nil(first) || is_nil(second) => Ok(is_nil(first) == is_nil(second)),
        (Value::Obj(first), Value::Obj(second)) if first.is_comparable() => {
            Ok(std::rc::Rc::ptr_eq(first, second) || first.is_same(&**second))
        }
        (_, second) => Err(format!(
            "non-comparable type {}: {}",
            printed(second, b"%s")?,
            second.type_name()
        )),
    }
}

/// A list or a map that was never made is nil too.
fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

/// Go's reflection prints values with the verbs of its own error texts.
fn printed(value: &Value, verb: &[u8]) -> Result<String, String> {
    match format::sprintf(verb, std::slice::from_ref(value)) {
        Ok(printed) => Ok(text::lossy(&printed)),
        Err(error) => Err(error.to_string()),
    }
}

fn compared<const NAMES: bool>(arguments: &[Value], is_wanted: fn(Ordering) -> bool) -> Called {
    let [first, second] = arguments else {
        return Err(mismatch());
    };
    let (Some(first_kind), Some(second_kind)) = (basic(first), basic(second)) else {
        return Err(BAD_TYPE.to_owned());
    };
    if first_kind != second_kind {
        return Err(incompatible::<NAMES>(first, second));
    }
    let ordering = match (first, second) {
        (first, second) if let (Some(first), Some(second)) = (integer(first), integer(second)) => {
            Some(first.cmp(&second))
        }
        (Value::Float(first), Value::Float(second)) => first.partial_cmp(second),
        (Value::Str(first), Value::Str(second)) => Some(first.cmp(second)),
        _ => return Err(BAD_TYPE.to_owned()),
    };
    Ok(Value::Bool(ordering.is_some_and(is_wanted)))
}
