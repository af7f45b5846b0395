//! The functions of Go's template language, and those with which Helm runs templates from templates.

use super::{Body, Called, Function, mismatch};
use crate::format;
use crate::template::{Executor, Failure, Operand, is_true, marked_error};
use crate::text;
use crate::value::Type::{Any, Reflect, Str};
use crate::value::{IntType, Map, Shape, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with("and", &[Reflect, Reflect], true, Body::And),
    Function::with("or", &[Reflect, Reflect], true, Body::Or),
    Function::new("not", &[Reflect], |arguments| {
        Ok(Value::Bool(!arguments.iter().all(is_true)))
    }),
    Function::with("len", &[Reflect], false, Body::Operands(len)),
    Function::variadic("index", &[Reflect, Reflect], index),
    Function::with("call", &[Reflect, Reflect], true, Body::Call),
    Function::variadic("print", &[Any], print),
    Function::variadic("printf", &[Str, Any], printf),
    Function::variadic("println", &[Any], println),
    Function::with("include", &[Str, Any], false, Body::Engine(include)),
    Function::with("tpl", &[Str, Any], false, Body::Engine(tpl)),
    Function::new("required", &[Str, Any], required),
    Function::new("fail", &[Str], fail),
];

fn print(arguments: &[Value]) -> Called {
    format::sprint(arguments)
        .map(Value::from)
        .map_err(|error| error.to_string())
}

fn println(arguments: &[Value]) -> Called {
    format::sprintln(arguments)
        .map(Value::from)
        .map_err(|error| error.to_string())
}

fn printf(arguments: &[Value]) -> Called {
    let [Value::Str(format), operands @ ..] = arguments else {
        return Err(mismatch());
    };
    format::sprintf(format, operands)
        .map(Value::from)
        .map_err(|error| error.to_string())
}

fn include(executor: &mut Executor<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let [Value::Str(name), data] = arguments else {
        return Err(Failure::from(mismatch()));
    };
    executor.include(name, data.clone())
}

fn tpl(executor: &mut Executor<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let [Value::Str(template), data] = arguments else {
        return Err(Failure::from(mismatch()));
    };
    executor.expand(template, data.clone())
}

fn required(arguments: &[Value]) -> Called {
    let [Value::Str(message), value] = arguments else {
        return Err(mismatch());
    };
    match value {
        Value::Nil => Err(marked_error(message)),
        Value::Str(text) if text.is_empty() => Err(marked_error(message)),
        _ => Ok(value.clone()),
    }
}

/// Its message is an error like any other.
pub(super) const FAIL_OF_LIBRARY: Function = Function::new("fail", &[Str], |arguments| match arguments {
    [Value::Str(message)] => Err(text::lossy(message)),
    _ => Err(mismatch()),
});

fn fail(arguments: &[Value]) -> Called {
    let [Value::Str(message)] = arguments else {
        return Err(mismatch());
    };
    Err(marked_error(message))
}

fn count(length: usize) -> Called {
    i64::try_from(length).map(Value::int).map_err(|error| error.to_string())
}

fn len(arguments: &[Operand]) -> Called {
    let [item] = arguments else { return Err(mismatch()) };
    match &item.value {
        Value::Nil if item.is_boxed => Err("len of nil pointer".to_owned()),
        Value::Nil => Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        Value::Str(text) | Value::Bytes(text) => count(text.len()),
        Value::List(list) => count(list.items().len()),
        Value::Map(map) => count(map.len()),
        Value::Obj(object) => match object.shape() {
            Shape::Map(map) => count(map.len()),
            Shape::List(list) => count(list.items().len()),
            Shape::Struct(_) | Shape::Pointer(_) | Shape::Number(..) | Shape::Complex(..) => {
                Err(format!("len of type {}", pointed_at(&object.type_name())))
            }
        },
        other => Err(format!("len of type {}", other.type_name())),
    }
}

/// The type that a pointer leads to: Go follows it before it looks.
fn pointed_at(type_name: &str) -> &str {
    type_name.strip_prefix('*').unwrap_or(type_name)
}

fn index(arguments: &[Value]) -> Called {
    let [item, indexes @ ..] = arguments else {
        return Err(mismatch());
    };
    if matches!(item, Value::Nil) {
        return Err("index of untyped nil".to_owned());
    }
    let mut item = item.clone();
    for index in indexes {
        item = index_one(&item, index)?;
    }
    Ok(item)
}

fn index_one(item: &Value, index: &Value) -> Called {
    match item {
        Value::Nil => Err("index of nil pointer".to_owned()),
        Value::Str(bytes) | Value::Bytes(bytes) => {
            let what = if matches!(item, Value::Str(_)) {
                "string"
            } else {
                "slice"
            };
            let at = position(index, bytes.len(), what)?;
            Ok(Value::Int(i64::from(bytes[at]), IntType::Uint8))
        }
        Value::List(list) => {
            let at = position(index, list.items().len(), "slice")?;
            Ok(list.items()[at].clone())
        }
        Value::Map(map) => entry(map, index),
        Value::Obj(object) => match object.shape() {
            Shape::Map(map) => entry(&map, index),
            Shape::List(list) => index_one(&Value::List(list), index),
            Shape::Struct(_) | Shape::Pointer(_) | Shape::Number(..) | Shape::Complex(..) => {
                Err(format!("can't index item of type {}", pointed_at(&object.type_name())))
            }
        },
        other => Err(format!("can't index item of type {}", other.type_name())),
    }
}

fn entry(map: &Map, index: &Value) -> Called {
    match index {
        Value::Str(key) => Ok(map.get(key).unwrap_or_else(|| map.element().zero())),
        Value::Nil => Err("value is nil; should be of type string".to_owned()),
        other => Err(format!("value has type {}; should be string", other.type_name())),
    }
}

fn position(index: &Value, length: usize, what: &str) -> Result<usize, String> {
    let number = match index {
        Value::Int(number, _) => *number,
        Value::Nil => return Err("cannot index slice/array with nil".to_owned()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name())),
    };
    match usize::try_from(number) {
        Ok(position) if position < length => Ok(position),
        // Go's own check lets the length itself pass; its reflection then panics.
        Ok(position) if position == length => Err(format!("reflect: {what} index out of range")),
        _ => Err(format!("index out of range: {number}")),
    }
}
