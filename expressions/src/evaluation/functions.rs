//! The functions of the standard library.

use super::{
    budget::Budget,
    conversions,
    operators::{Applied, Problem},
    patterns,
    value::Value,
};

/// What a function gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    Type,
    /// Its argument.
    Same,
}

/// A function by its name, the number of its arguments without what it is called on, and what it gives.
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) fewest: usize,
    pub(crate) most: usize,
    pub(crate) gives: Gives,
}

const fn signature(name: &'static str, fewest: usize, most: usize, gives: Gives) -> Signature {
    Signature {
        name,
        fewest,
        most,
        gives,
    }
}

/// Functions that are called with all their arguments.
pub(crate) const FUNCTIONS: [Signature; 12] = [
    signature("bool", 1, 1, Gives::Bool),
    signature("bytes", 1, 1, Gives::Bytes),
    signature("double", 1, 1, Gives::Double),
    signature("duration", 1, 1, Gives::Duration),
    signature("dyn", 1, 1, Gives::Same),
    signature("int", 1, 1, Gives::Int),
    signature("matches", 2, 2, Gives::Bool),
    signature("size", 1, 1, Gives::Int),
    signature("string", 1, 1, Gives::Text),
    signature("timestamp", 1, 1, Gives::Timestamp),
    signature("type", 1, 1, Gives::Type),
    signature("uint", 1, 1, Gives::Uint),
];

/// Functions that are called on something.
pub(crate) const METHODS: [Signature; 15] = [
    signature("contains", 1, 1, Gives::Bool),
    signature("endsWith", 1, 1, Gives::Bool),
    signature("getDate", 0, 1, Gives::Int),
    signature("getDayOfMonth", 0, 1, Gives::Int),
    signature("getDayOfWeek", 0, 1, Gives::Int),
    signature("getDayOfYear", 0, 1, Gives::Int),
    signature("getFullYear", 0, 1, Gives::Int),
    signature("getHours", 0, 1, Gives::Int),
    signature("getMilliseconds", 0, 1, Gives::Int),
    signature("getMinutes", 0, 1, Gives::Int),
    signature("getMonth", 0, 1, Gives::Int),
    signature("getSeconds", 0, 1, Gives::Int),
    signature("matches", 1, 1, Gives::Bool),
    signature("size", 0, 0, Gives::Int),
    signature("startsWith", 1, 1, Gives::Bool),
];

/// Calls a function; what it is called on, if anything, is the first of the operands.
pub(super) fn call<'a>(budget: &Budget, function: &str, is_method: bool, operands: &[Value<'a>]) -> Applied<'a> {
    match (function, is_method, operands) {
        ("size", _, [of]) => size(budget, of),
        ("matches", _, [Value::Text(text), Value::Text(pattern)]) => {
            Ok(Value::Bool(patterns::matches(budget, text, pattern)?))
        }
        ("contains" | "startsWith" | "endsWith", true, [Value::Text(text), Value::Text(part)]) => {
            budget.take_bytes(text.len().saturating_add(part.len()))?;
            Ok(Value::Bool(match function {
                "contains" => text.contains(&**part),
                "startsWith" => text.starts_with(&**part),
                _ => text.ends_with(&**part),
            }))
        }
        (_, true, [of, zone @ ..]) => match of {
            Value::Timestamp(moment) => {
                let moment = match zone {
                    [] => moment.in_zone("UTC"),
                    [Value::Text(name)] => moment.in_zone(name),
                    _ => return Err(unfit(function, operands)),
                };
                let moment = moment.ok_or_else(|| "names a time zone that does not exist".to_owned())?;
                let part = moment.part(function).map(Value::Int);
                part.ok_or_else(|| unfit(function, operands))
            }
            Value::Duration(nanoseconds) if zone.is_empty() => {
                of_duration(function, *nanoseconds).ok_or_else(|| unfit(function, operands))
            }
            _ => Err(unfit(function, operands)),
        },
        ("dyn", false, [of]) => Ok(of.clone()),
        ("type", false, [of]) => Ok(Value::Type(of.type_name())),
        (_, false, [of]) => conversions::convert(budget, function, of)?.ok_or_else(|| unfit(function, operands)),
        _ => Err(unfit(function, operands)),
    }
}

fn unfit(function: &str, operands: &[Value<'_>]) -> Problem {
    let types: Vec<_> = operands.iter().map(Value::type_name).collect();
    Problem::Operands(format!(
        "calls {function}() with {}, for which there is none",
        types.join(", ")
    ))
}

/// Characters of a text, bytes, elements or keys.
fn size<'a>(budget: &Budget, of: &Value<'a>) -> Applied<'a> {
    let size = match of {
        Value::Text(text) => {
            budget.take_bytes(text.len())?;
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(entries) => entries.len(),
        _ => return Err(unfit("size", std::slice::from_ref(of))),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// A duration in whole units.
fn of_duration<'a>(function: &str, nanoseconds: i64) -> Option<Value<'a>> {
    let milliseconds = nanoseconds / 1_000_000;
    Some(Value::Int(match function {
        "getHours" => milliseconds / 3_600_000,
        "getMinutes" => milliseconds / 60_000,
        "getSeconds" => milliseconds / 1000,
        "getMilliseconds" => milliseconds,
        _ => return None,
    }))
}
