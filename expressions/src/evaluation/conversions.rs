//! Values as values of another type. How numbers and times are written is Go's way.

use super::{
    budget::Budget,
    durations,
    operators::{Problem, out_of_range},
    timestamps::Moment,
    value::{Text, Value},
};

type Converted<'a> = Result<Option<Value<'a>>, Problem>;

/// Converts to the type whose name the function has; nothing if the language has no such conversion.
pub(super) fn convert<'a>(budget: &Budget, function: &str, of: &Value<'a>) -> Converted<'a> {
    match (function, of) {
        ("bool", Value::Bool(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("double", Value::Double(_))
        | ("string", Value::Text(_))
        | ("bytes", Value::Bytes(_))
        | ("duration", Value::Duration(_))
        | ("timestamp", Value::Timestamp(_)) => Ok(Some(of.clone())),
        ("string", _) => Ok(text(budget, of)?.map(Value::text)),
        (_, Value::Text(text)) => {
            budget.take_bytes(text.len())?;
            from_text(function, text)
        }
        ("int" | "uint" | "double", _) => number(function, of),
        ("timestamp", Value::Int(seconds)) => {
            let timestamp = Moment::of_seconds(*seconds).ok_or_else(out_of_range)?;
            Ok(Some(Value::Timestamp(timestamp)))
        }
        _ => Ok(None),
    }
}

fn from_text<'a>(function: &str, text: &Text<'a>) -> Converted<'a> {
    let value = match function {
        "bool" => truth(text).map(Value::Bool),
        "int" => text.parse().ok().map(Value::Int),
        "uint" => text.parse().ok().filter(|_| !text.starts_with('+')).map(Value::Uint),
        "double" => double(text).map(Value::Double),
        "bytes" => Some(Value::Bytes(text.as_bytes().into())),
        "duration" => durations::parse(text).map(Value::Duration),
        "timestamp" => Moment::parse(text).map(Value::Timestamp),
        _ => return Ok(None),
    };
    let value = value.ok_or_else(|| Problem::Operands(format!("makes {function}() of a text that says none")))?;
    Ok(Some(value))
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// A number too large for the type is none, unless infinity was meant.
fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (!value.is_infinite() || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(value)
}

/// Two to the power of 63 and of 64: the first numbers that a whole number cannot be.
const END_OF_INT: f64 = 9_223_372_036_854_775_808.0;
const END_OF_UINT: f64 = 18_446_744_073_709_551_616.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the language cuts off what is behind the point, and ranges are looked at before"
)]
fn number<'a>(function: &str, of: &Value<'a>) -> Converted<'a> {
    let value = match (function, of) {
        ("int", Value::Uint(value)) => i64::try_from(*value).ok().map(Value::Int),
        ("int", Value::Double(value)) => {
            let fits = *value > -END_OF_INT && *value < END_OF_INT;
            fits.then_some(Value::Int(*value as i64))
        }
        ("int", Value::Timestamp(timestamp)) => Some(Value::Int(timestamp.seconds())),
        ("int", Value::Duration(nanoseconds)) => Some(Value::Int(*nanoseconds)),
        ("uint", Value::Int(value)) => u64::try_from(*value).ok().map(Value::Uint),
        ("uint", Value::Double(value)) => {
            let fits = *value >= 0.0 && *value < END_OF_UINT;
            fits.then_some(Value::Uint(*value as u64))
        }
        ("double", Value::Int(value)) => Some(Value::Double(*value as f64)),
        ("double", Value::Uint(value)) => Some(Value::Double(*value as f64)),
        _ => return Ok(None),
    };
    value.map(Some).ok_or_else(|| out_of_range().into())
}

fn text(budget: &Budget, of: &Value<'_>) -> Result<Option<String>, Problem> {
    Ok(Some(match of {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => written(*value),
        Value::Bytes(bytes) => {
            budget.take_bytes(bytes.len())?;
            let text = String::from_utf8(bytes.to_vec());
            text.map_err(|_| "makes a text of bytes that are not UTF-8".to_owned())?
        }
        Value::Duration(nanoseconds) => durations::written(*nanoseconds),
        Value::Timestamp(timestamp) => timestamp.to_string(),
        _ => return Ok(None),
    }))
}

/// The shortest text that is this number, with an exponent below 0.0001 and from a million on, as Go's `FormatFloat` writes it.
pub(super) fn written(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    value.to_string()
}
