//! What counts as true in `if`, `with`, `and`, `or`, `not`.

use crate::value::{Shape, Value};

/// False are nil, false, 0, "" and empty lists and maps.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Nil => false,
        Value::Bool(flag) => *flag,
        Value::Int(number, _) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::Str(text) | Value::Bytes(text) => !text.is_empty(),
        Value::List(list) => !list.items().is_empty(),
        Value::Map(map) => !map.is_empty(),
        Value::Obj(object) => match object.shape() {
            Shape::Struct(_) | Shape::Pointer(_) => true,
            Shape::Map(map) => !map.is_empty(),
            Shape::List(list) => !list.items().is_empty(),
            Shape::Number(number, _) => number != 0,
            Shape::Complex(real, imaginary) => real != 0.0 || imaginary != 0.0,
        },
    }
}
