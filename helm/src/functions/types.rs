//! What a value is, whether two are the same, and copies of them.

use super::{Called, Function, mismatch};
use crate::bounds::{BoundError, Walk, read};
use crate::text;
use crate::value::Type::{Any, Str};
use crate::value::{List, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("typeOf", &[Any], |arguments| {
        of_one(arguments, |value| Value::from(value.type_name()))
    }),
    Function::new("kindOf", &[Any], |arguments| {
        of_one(arguments, |value| Value::from(value.kind_name()))
    }),
    Function::new("typeIs", &[Str, Any], |arguments| {
        is_called(arguments, |name, value| name == value.type_name())
    }),
    Function::new("typeIsLike", &[Str, Any], |arguments| {
        is_called(arguments, |name, value| {
            let type_name = value.type_name();
            name == type_name || format!("*{name}") == type_name
        })
    }),
    Function::new("kindIs", &[Str, Any], |arguments| {
        is_called(arguments, |name, value| name == value.kind_name())
    }),
    Function::new("deepEqual", &[Any, Any], |arguments| {
        let [first, second] = arguments else {
            return Err(mismatch());
        };
        deep_equal(first, second, &mut Walk::looking()).map(Value::Bool)
    }),
    Function::new("deepCopy", &[Any], deep_copy),
    Function::new("mustDeepCopy", &[Any], deep_copy),
];

fn of_one(arguments: &[Value], describe: impl Fn(&Value) -> Value) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    Ok(describe(value))
}

fn is_called(arguments: &[Value], matches: impl Fn(&str, &Value) -> bool) -> Called {
    let [Value::Str(name), value] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::Bool(matches(&text::lossy(name), value)))
}

/// Go's `reflect.DeepEqual`: the types must be the same too, so 1 and 1.0 differ.
///
/// Lists compare item by item, so many comparisons share one walk.
pub(super) fn deep_equal(first: &Value, second: &Value, walk: &mut Walk) -> Result<bool, String> {
    Ok(equal_at(first, second, walk, 0)?)
}

#[expect(clippy::float_cmp, reason = "Go compares exactly")]
fn equal_at(first: &Value, second: &Value, walk: &mut Walk, depth: usize) -> Result<bool, BoundError> {
    walk.visit(depth)?;
    match (first, second) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Bool(first), Value::Bool(second)) => Ok(first == second),
        (Value::Int(first, first_type), Value::Int(second, second_type)) => {
            Ok(first == second && first_type == second_type)
        }
        (Value::Float(first), Value::Float(second)) => Ok(first == second),
        (Value::Str(first), Value::Str(second)) | (Value::Bytes(first), Value::Bytes(second)) => {
            if first.len() != second.len() || std::rc::Rc::ptr_eq(first, second) {
                return Ok(first.len() == second.len());
            }
            read(first.len())?;
            Ok(first == second)
        }
        (Value::List(first), Value::List(second)) => {
            let alike = first.element() == second.element() && first.is_nil() == second.is_nil();
            if !alike || first.items().len() != second.items().len() {
                return Ok(false);
            }
            all_equal(first.items().iter().zip(second.items()), walk, depth)
        }
        (Value::Map(first), Value::Map(second)) => maps_equal(first, second, walk, depth),
        (Value::Obj(first), Value::Obj(second)) => Ok(std::rc::Rc::ptr_eq(first, second) || first.is_alike(&**second)),
        _ => Ok(false),
    }
}

fn maps_equal(first: &Map, second: &Map, walk: &mut Walk, depth: usize) -> Result<bool, BoundError> {
    let alike = first.type_name() == second.type_name() && first.is_nil() == second.is_nil();
    if !alike || first.len() != second.len() {
        return Ok(false);
    }
    if first.is_same(second) {
        return Ok(true);
    }
    let (first, second) = (first.entries(), second.entries());
    for (first, second) in first.keys().zip(second.keys()) {
        read(first.len())?;
        if first != second {
            return Ok(false);
        }
    }
    all_equal(first.values().zip(second.values()), walk, depth)
}

fn all_equal<'a>(
    mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>,
    walk: &mut Walk,
    depth: usize,
) -> Result<bool, BoundError> {
    pairs.try_fold(true, |equal, (first, second)| {
        Ok(equal && equal_at(first, second, walk, depth + 1)?)
    })
}

fn deep_copy(arguments: &[Value]) -> Called {
    match arguments {
        [Value::Nil] => Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        [value] => Ok(copy_at(value, &mut Walk::copying(), 0)?),
        _ => Err(mismatch()),
    }
}

fn copy_at(value: &Value, walk: &mut Walk, depth: usize) -> Result<Value, BoundError> {
    walk.visit(depth)?;
    match value {
        Value::List(list) => {
            let items: Result<Vec<_>, _> = list.items().iter().map(|item| copy_at(item, walk, depth + 1)).collect();
            Ok(Value::List(List::of(list.element(), items?)))
        }
        Value::Map(map) => {
            let copy = Map::of(map.element());
            for (key, value) in map.to_vec() {
                copy.insert(key, copy_at(&value, walk, depth + 1)?);
            }
            Ok(Value::Map(
                map.name().map_or_else(|| copy.clone(), |name| copy.named(name)),
            ))
        }
        Value::Obj(object) => Ok(object.copied().unwrap_or_else(|| value.clone())),
        other => Ok(other.clone()),
    }
}
