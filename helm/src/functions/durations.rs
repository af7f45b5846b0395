//! Durations as numbers, of whatever a template has for one.

use super::numbers::float_of_text;
use super::{Called, Function, FunctionSet, mismatch};
use crate::format::quoted;
use crate::number::format_float;
use crate::objects::time::{as_calendar_number, as_duration, duration};
use crate::text::{lossy, trim_space};
use crate::time::{Duration, HOUR, MINUTE, SECOND};
use crate::value::Type::Any;
use crate::value::{Type, Value};

const SINCE: FunctionSet = FunctionSet::V4_3;

pub(super) const FUNCTIONS: &[Function] = &[
    new("mustToDuration", &[Any], |arguments| match arguments {
        [value] => read(value).map(duration),
        _ => Err(mismatch()),
    }),
    new("durationSeconds", &[Any], |arguments| in_units(arguments, SECOND, 1.0)),
    new("durationMinutes", &[Any], |arguments| in_units(arguments, MINUTE, 1.0)),
    new("durationHours", &[Any], |arguments| in_units(arguments, HOUR, 1.0)),
    new("durationDays", &[Any], |arguments| in_units(arguments, HOUR, 24.0)),
    new("durationWeeks", &[Any], |arguments| {
        match in_units(arguments, HOUR, 24.0)? {
            Value::Float(days) => Ok(Value::Float(days / 7.0)),
            other => Ok(other),
        }
    }),
    new("durationMilliseconds", &[Any], |arguments| {
        whole_units(arguments, 1_000_000)
    }),
    new("durationMicroseconds", &[Any], |arguments| {
        whole_units(arguments, 1_000)
    }),
    new("durationNanoseconds", &[Any], |arguments| whole_units(arguments, 1)),
    new("durationRoundTo", &[Any, Any], |arguments| {
        to_multiple(arguments, Duration::rounded)
    }),
    new("durationTruncateTo", &[Any, Any], |arguments| {
        to_multiple(arguments, Duration::truncated)
    }),
];

const fn new(name: &'static str, parameters: &'static [Type], body: fn(&[Value]) -> Called) -> Function {
    Function::new(name, parameters, body).since(SINCE)
}

/// A duration, a text with units, or a number of seconds, which may be a text too.
fn read(value: &Value) -> Result<Duration, String> {
    match value {
        Value::Nil => Err("invalid duration".to_owned()),
        Value::Str(text) => of_text(text),
        Value::Int(bits, int_type) => {
            let seconds = int_type.number(*bits);
            i64::try_from(seconds).map_or_else(|_| Err(format!("duration seconds overflow: {seconds}")), of_seconds)
        }
        Value::Float(seconds) => of_float(*seconds),
        other => match (as_duration(other), as_calendar_number(other)) {
            (Some(duration), _) => Ok(duration),
            (None, Some(seconds)) => of_seconds(seconds),
            (None, None) => Err(format!("unsupported duration type {}", other.type_name())),
        },
    }
}

fn of_text(text: &[u8]) -> Result<Duration, String> {
    let trimmed = trim_space(text);
    if trimmed.is_empty() {
        return Err("empty duration".to_owned());
    }
    if let Ok(duration) = Duration::parse(trimmed) {
        return Ok(duration);
    }
    match str::from_utf8(trimmed).ok().and_then(float_of_text) {
        Some(seconds) => of_float(seconds),
        None => Err(format!("could not parse duration {}", quoted(&lossy(text)))),
    }
}

fn of_seconds(seconds: i64) -> Result<Duration, String> {
    match seconds.checked_mul(SECOND) {
        Some(nanoseconds) => Ok(Duration(nanoseconds)),
        None => Err(format!("duration seconds overflow: {seconds}")),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a duration counts whole nanoseconds, and its ends are compared as floats"
)]
fn of_float(seconds: f64) -> Result<Duration, String> {
    if !seconds.is_finite() {
        return Err(format!("invalid duration seconds: {}", format_float(seconds)));
    }
    let (least, most) = (i64::MIN as f64, i64::MAX as f64);
    if seconds > most / SECOND as f64 || seconds < least / SECOND as f64 {
        return Err(format!("duration seconds overflow: {}", format_float(seconds)));
    }
    let nanoseconds = seconds * SECOND as f64;
    if nanoseconds > most || nanoseconds < least {
        return Err(format!("duration nanoseconds overflow: {}", format_float(nanoseconds)));
    }
    // The one float that is no int64 wraps around.
    Ok(Duration(if nanoseconds < most {
        nanoseconds as i64
    } else {
        i64::MIN
    }))
}

/// Nothing of what is no duration.
fn in_units(arguments: &[Value], unit: i64, divisor: f64) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    let units = read(value).map_or(0.0, |duration| duration.in_units(unit) / divisor);
    Ok(Value::Float(units))
}

fn whole_units(arguments: &[Value], unit: i64) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    Ok(Value::int64(read(value).map_or(0, |duration| duration.0 / unit)))
}

/// A duration as it is, where the multiple is no duration.
fn to_multiple(arguments: &[Value], change: fn(Duration, Duration) -> Duration) -> Called {
    let [value, multiple] = arguments else {
        return Err(mismatch());
    };
    let Ok(value) = read(value) else {
        return Ok(duration(Duration(0)));
    };
    Ok(duration(match read(multiple) {
        Ok(multiple) => change(value, multiple),
        Err(_) => value,
    }))
}
