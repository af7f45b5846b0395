//! Whole numbers: conversions and arithmetic. Every operand is converted, whatever it is; what does not convert is 0.

use super::{Called, Function, mismatch};
use crate::bounds::check_items;
use crate::format;
use crate::number::parse_int;
use crate::objects::time::as_calendar_number;
use crate::template::literal::{parse_float, without_underscores};
use crate::text;
use crate::value::Type::{Any, Float64, Int, Str};
use crate::value::{Element, List, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("int", &[Any], |arguments| {
        of_one(arguments, |value| Value::int(to_int64(value)))
    }),
    Function::new("int64", &[Any], |arguments| {
        of_one(arguments, |value| Value::int64(to_int64(value)))
    }),
    Function::new("float64", &[Any], |arguments| {
        of_one(arguments, |value| Value::Float(to_float64(value)))
    }),
    Function::new("atoi", &[Str], atoi),
    Function::new("toDecimal", &[Any], to_decimal),
    Function::new("add1", &[Any], |arguments| {
        of_one(arguments, |value| Value::int64(to_int64(value).wrapping_add(1)))
    }),
    Function::variadic("add", &[Any], |arguments| {
        Ok(fold(Some(0), arguments, i64::wrapping_add))
    }),
    Function::new("sub", &[Any, Any], |arguments| {
        Ok(fold(None, arguments, i64::wrapping_sub))
    }),
    Function::variadic("mul", &[Any, Any], |arguments| {
        Ok(fold(None, arguments, i64::wrapping_mul))
    }),
    Function::variadic("max", &[Any, Any], |arguments| Ok(fold(None, arguments, i64::max))),
    Function::variadic("biggest", &[Any, Any], |arguments| Ok(fold(None, arguments, i64::max))),
    Function::variadic("min", &[Any, Any], |arguments| Ok(fold(None, arguments, i64::min))),
    Function::new("div", &[Any, Any], |arguments| divide(arguments, i64::wrapping_div)),
    Function::new("mod", &[Any, Any], |arguments| divide(arguments, i64::wrapping_rem)),
    Function::variadic("maxf", &[Any, Any], |arguments| Ok(fold_floats(arguments, go_max))),
    Function::variadic("minf", &[Any, Any], |arguments| Ok(fold_floats(arguments, go_min))),
    Function::new("floor", &[Any], |arguments| {
        of_one(arguments, |value| Value::Float(to_float64(value).floor()))
    }),
    Function::new("ceil", &[Any], |arguments| {
        of_one(arguments, |value| Value::Float(to_float64(value).ceil()))
    }),
    Function::variadic("round", &[Any, Int, Float64], round),
    Function::new("until", &[Int], until),
    Function::new("untilStep", &[Int, Int, Int], until_step),
    Function::variadic("seq", &[Int], seq),
];

fn of_one(arguments: &[Value], convert: impl Fn(&Value) -> Value) -> Called {
    let [value] = arguments else { return Err(mismatch()) };
    Ok(convert(value))
}

/// Go's conversion of a float on amd64: what does not fit is the smallest integer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is dropped on purpose, the range is checked"
)]
fn truncated(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// A whole number from whatever value; strings may have a prefix for their base and a fraction of zeros.
pub(super) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Int(number, _) => *number,
        Value::Float(number) => truncated(*number),
        Value::Bool(flag) => i64::from(*flag),
        Value::Str(text) => str::from_utf8(text)
            .ok()
            .and_then(|text| without_underscores(without_zero_fraction(text)))
            .and_then(|text| parse_int(&text))
            .unwrap_or(0),
        other => as_calendar_number(other).unwrap_or(0),
    }
}

/// `3.00` reads as `3`.
fn without_zero_fraction(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}

#[expect(clippy::cast_precision_loss, reason = "Go converts the same way")]
pub(super) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Int(bits, int_type) => int_type.number(*bits) as f64,
        Value::Float(number) => *number,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Str(text) => str::from_utf8(text).ok().and_then(float_of_text).unwrap_or(0.0),
        other => as_calendar_number(other).map_or(0.0, |number| number as f64),
    }
}

pub(super) fn float_of_text(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    let special = match &*unsigned {
        "inf" | "infinity" => f64::INFINITY,
        "nan" if unsigned.len() == text.len() => f64::NAN,
        _ => return parse_float(text),
    };
    Some(if text.starts_with('-') { -special } else { special })
}

fn atoi(arguments: &[Value]) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    // Go gives the nearest number when a text is out of range, and 0 when it is no number.
    let text = text::lossy(text);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = match text.parse::<i64>() {
        Ok(number) => number,
        Err(_) if !is_number => 0,
        Err(_) if text.starts_with('-') => i64::MIN,
        Err(_) => i64::MAX,
    };
    Ok(Value::int(number))
}

/// Reads the printed value as an octal number.
fn to_decimal(arguments: &[Value]) -> Called {
    let printed = text::lossy(&format::sprint(arguments).map_err(|error| error.to_string())?);
    Ok(Value::int64(i64::from_str_radix(&printed, 8).unwrap_or(0)))
}

fn fold(start: Option<i64>, arguments: &[Value], combine: impl Fn(i64, i64) -> i64) -> Value {
    let mut numbers = arguments.iter().map(to_int64);
    let first = start.or_else(|| numbers.next()).unwrap_or(0);
    Value::int64(numbers.fold(first, combine))
}

fn divide(arguments: &[Value], divide: impl Fn(i64, i64) -> i64) -> Called {
    let [first, second] = arguments else {
        return Err(mismatch());
    };
    match to_int64(second) {
        0 => Err("runtime error: integer divide by zero".to_owned()),
        divisor => Ok(Value::int64(divide(to_int64(first), divisor))),
    }
}

fn fold_floats(arguments: &[Value], combine: impl Fn(f64, f64) -> f64) -> Value {
    Value::Float(arguments.iter().map(to_float64).reduce(combine).unwrap_or(0.0))
}

/// Unlike in Rust, what is no number wins, but not over infinity, and zero is larger than minus zero.
fn go_max(first: f64, second: f64) -> f64 {
    if first == f64::INFINITY || second == f64::INFINITY {
        f64::INFINITY
    } else if first.is_nan() || second.is_nan() {
        f64::NAN
    } else if first.total_cmp(&second).is_ge() {
        first
    } else {
        second
    }
}

fn go_min(first: f64, second: f64) -> f64 {
    -go_max(-first, -second)
}

/// Rounds up when the fraction is at least the third argument, one half by default. A negative fraction never is.
fn round(arguments: &[Value]) -> Called {
    let [value, Value::Int(places, _), options @ ..] = arguments else {
        return Err(mismatch());
    };
    let threshold = options.first().map_or(0.5, to_float64);
    let power = 10f64.powi(i32::try_from(*places).unwrap_or(i32::MAX));
    let scaled = power * to_float64(value);
    let rounded = if scaled.fract() >= threshold {
        scaled.ceil()
    } else {
        scaled.floor()
    };
    Ok(Value::Float(rounded / power))
}

fn until(arguments: &[Value]) -> Called {
    let [Value::Int(count, _)] = arguments else {
        return Err(mismatch());
    };
    Ok(integers(&range(0, *count, if *count < 0 { -1 } else { 1 })?))
}

fn until_step(arguments: &[Value]) -> Called {
    let [Value::Int(start, _), Value::Int(end, _), Value::Int(step, _)] = arguments else {
        return Err(mismatch());
    };
    Ok(integers(&range(*start, *end, *step)?))
}

fn integers(numbers: &[i64]) -> Value {
    let items = numbers.iter().map(|number| Value::int(*number)).collect();
    Value::List(List::of(Element::Int, items))
}

/// The numbers from `start` up or down to, but not including, `end`.
fn range(start: i64, end: i64, step: i64) -> Result<Vec<i64>, String> {
    let is_down = end < start;
    if (is_down && step >= 0) || (!is_down && step <= 0) {
        return Ok(Vec::new());
    }
    let count = (i128::from(end) - i128::from(start)) / i128::from(step);
    check_items(usize::try_from(count).unwrap_or(usize::MAX))?;
    let mut numbers = Vec::new();
    let mut number = start;
    while (is_down && number > end) || (!is_down && number < end) {
        numbers.push(number);
        number = number.saturating_add(step);
    }
    Ok(numbers)
}

/// The numbers up to and including the last one, as text.
fn seq(arguments: &[Value]) -> Called {
    let numbers: Vec<i64> = arguments.iter().map(to_int64).collect();
    let (start, step, end) = match *numbers {
        [end] => (1, None, end),
        [start, end] => (start, None, end),
        [start, step, end] if end >= start || step <= 0 => (start, Some(step), end),
        _ => return Ok(Value::from("")),
    };
    let direction = if end < start { -1 } else { 1 };
    let numbers = range(start, end.saturating_add(direction), step.unwrap_or(direction))?;
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(Value::from(texts.join(" ")))
}
