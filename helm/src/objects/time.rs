//! Times, durations, months, weekdays and zones as templates see them: Go's methods and their signatures.

use std::any::Any;
use std::cmp::Ordering;
use std::rc::Rc;

use crate::text;
use crate::time::{Duration, HOUR, Location, MINUTE, MONTHS, SECOND, Time, WEEKDAYS};
use crate::value::Type::{Bytes, Int, Named, Str};
use crate::value::{GoObject, IntType, Json, Shape, Signature, Type, Value};

pub(crate) const TIME: &str = "time.Time";
pub(crate) const DURATION: &str = "time.Duration";
const LOCATION: &str = "*time.Location";

const ONE_TIME: &[Type] = &[Named(TIME)];
const ONE_DURATION: &[Type] = &[Named(DURATION)];

type Called = Result<Value, String>;

/// A time as a value.
pub(crate) fn time(time: Time) -> Value {
    Value::Obj(Rc::new(TimeObject(time)))
}

/// A duration as a value.
pub(crate) fn duration(duration: Duration) -> Value {
    number(NumberType::Duration, duration.0)
}

/// The time in a value.
pub(crate) fn as_time(value: &Value) -> Option<&Time> {
    inside::<TimeObject>(value).map(|TimeObject(time)| time)
}

/// The number of a month or weekday, which conversions know; durations they do not.
pub(crate) fn as_calendar_number(value: &Value) -> Option<i64> {
    inside::<Number>(value)
        .filter(|number| number.number_type != NumberType::Duration)
        .map(|number| number.value)
}

/// The duration in a value.
pub(crate) fn as_duration(value: &Value) -> Option<Duration> {
    inside::<Number>(value)
        .filter(|number| number.number_type == NumberType::Duration)
        .map(|number| Duration(number.value))
}

/// Another number of the same type as a duration, a month or a weekday; the number alone for other values.
pub(crate) fn counted(value: &Value, to: i64) -> Value {
    inside::<Number>(value).map_or(Value::int(to), |like| number(like.number_type, to))
}

fn inside<T: 'static>(value: &Value) -> Option<&T> {
    let Value::Obj(object) = value else { return None };
    let object: &dyn Any = &**object;
    object.downcast_ref()
}

fn argument<T>(found: Option<T>) -> Result<T, String> {
    found.ok_or_else(|| "arguments contradict the signature".to_owned())
}

/// `time.Time`
struct TimeObject(Time);

impl GoObject for TimeObject {
    fn type_name(&self) -> String {
        TIME.to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Struct(Vec::new())
    }

    fn hidden_fields(&self) -> &'static [&'static str] {
        &["wall", "ext", "loc"]
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let parameters: &[Type] = match name {
            "Add" | "Round" | "Truncate" => ONE_DURATION,
            "AddDate" => &[Int, Int, Int],
            "After" | "Before" | "Compare" | "Equal" | "Sub" => ONE_TIME,
            "AppendBinary" | "AppendText" => &[Bytes],
            "AppendFormat" => &[Bytes, Str],
            "Format" => &[Str],
            "In" => &[Named(LOCATION)],
            "Clock" | "Date" | "Day" | "GoString" | "GobEncode" | "Hour" | "ISOWeek" | "IsDST" | "IsZero" | "Local"
            | "Location" | "MarshalBinary" | "MarshalJSON" | "MarshalText" | "Minute" | "Month" | "Nanosecond"
            | "Second" | "String" | "UTC" | "Unix" | "UnixMicro" | "UnixMilli" | "UnixNano" | "Weekday" | "Year"
            | "YearDay" | "Zone" | "ZoneBounds" => &[],
            _ => return None,
        };
        Some(Signature {
            parameters,
            variadic: false,
        })
    }

    fn uncallable(&self, name: &str) -> Option<String> {
        let second = match name {
            "Clock" | "Date" => {
                return Some(format!("function {name} has 3 return values; should be 1 or 2"));
            }
            "ISOWeek" | "Zone" => "int",
            "ZoneBounds" => TIME,
            _ => return None,
        };
        Some(format!(
            "invalid function signature for {name}: second return value should be error; is {second}"
        ))
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Called {
        match arguments {
            [] => self.told(name),
            [first, rest @ ..] => self.calculated(name, first, rest),
        }
    }

    fn string(&self) -> Option<String> {
        Some(text::lossy(&self.0.text()))
    }

    fn go_string(&self) -> Option<String> {
        Some(self.0.go_text())
    }

    fn is_comparable(&self) -> bool {
        true
    }

    fn is_same(&self, other: &dyn GoObject) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.is_same(&other.0))
    }

    fn is_alike(&self, other: &dyn GoObject) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.is_alike(&other.0))
    }

    fn json(&self) -> Option<Json> {
        Some(match self.0.strict() {
            Ok(text) => Json::Value(Value::from(text)),
            Err(problem) => Json::Refused(format!(
                "json: error calling MarshalJSON for type {TIME}: Time.MarshalJSON: {problem}"
            )),
        })
    }
}

impl TimeObject {
    /// Methods without arguments.
    fn told(&self, name: &str) -> Called {
        let Self(time) = self;
        let ([year, month, day], [hour, minute, second]) = time.parts();
        Ok(match name {
            "Year" => Value::int(year),
            "Month" => number(NumberType::Month, month),
            "Day" => Value::int(day),
            "Hour" => Value::int(hour),
            "Minute" => Value::int(minute),
            "Second" => Value::int(second),
            "Nanosecond" => Value::int(time.nanosecond()),
            "YearDay" => Value::int(time.day_of_year()),
            "Weekday" => number(
                NumberType::Weekday,
                (0..).zip(WEEKDAYS).nth(time.weekday()).map_or(0, |(day, _)| day),
            ),
            "Unix" => Value::int64(time.unix_seconds()),
            "UnixMilli" => Value::int64(time.unix_units(1_000)),
            "UnixMicro" => Value::int64(time.unix_units(1_000_000)),
            "UnixNano" => Value::int64(time.unix_units(SECOND)),
            "UTC" => self::time(time.told_in(Location::Utc)),
            "Local" => self::time(time.told_in(Location::Local)),
            "Location" => Value::Obj(Rc::new(LocationObject(time.location().clone()))),
            "IsZero" => Value::Bool(time.is_zero()),
            "IsDST" => Value::Bool(time.is_summer()),
            "String" => Value::from(time.text()),
            "GoString" => Value::from(time.go_text()),
            "MarshalBinary" | "GobEncode" => bytes(time.binary()?),
            "MarshalJSON" => {
                let text = time
                    .strict()
                    .map_err(|problem| format!("Time.MarshalJSON: {problem}"))?;
                bytes([b"\"", text.as_slice(), b"\""].concat())
            }
            _ => bytes(
                time.strict()
                    .map_err(|problem| format!("Time.MarshalText: {problem}"))?,
            ),
        })
    }

    /// Methods with arguments.
    fn calculated(&self, name: &str, first: &Value, rest: &[Value]) -> Called {
        let Self(time) = self;
        Ok(match name {
            "Add" => self::time(time.add(duration_argument(first)?)),
            "Round" => self::time(time.rounded(duration_argument(first)?)),
            "Truncate" => self::time(time.truncated(duration_argument(first)?)),
            "AddDate" => match (first, rest) {
                (Value::Int(years, _), [Value::Int(months, _), Value::Int(days, _)]) => {
                    self::time(time.add_date([*years, *months, *days]))
                }
                _ => argument(None)?,
            },
            "Format" => Value::from(time.format(argument(first.as_str())?)),
            "AppendFormat" => {
                let layout = argument(rest.first().and_then(Value::as_str))?;
                appended(first, &time.format(layout))
            }
            "AppendText" => {
                let text = time.strict().map_err(|problem| format!("Time.AppendText: {problem}"))?;
                appended(first, &text)
            }
            "AppendBinary" => appended(first, &time.binary()?),
            "In" => match inside::<LocationObject>(first) {
                Some(LocationObject(location)) => self::time(time.told_in(location.clone())),
                None => return Err("time: missing Location in call to Time.In".to_owned()),
            },
            "Sub" => duration(time.since(argument(as_time(first))?)),
            _ => {
                let ordering = time.compare(argument(as_time(first))?);
                match name {
                    "After" => Value::Bool(ordering == Ordering::Greater),
                    "Before" => Value::Bool(ordering == Ordering::Less),
                    "Equal" => Value::Bool(ordering == Ordering::Equal),
                    _ => Value::int(ordering as i64),
                }
            }
        })
    }
}

fn bytes(bytes: Vec<u8>) -> Value {
    Value::Bytes(bytes.into())
}

fn appended(first: &Value, more: &[u8]) -> Value {
    let Value::Bytes(first) = first else {
        return bytes(more.to_vec());
    };
    bytes([first, more].concat())
}

/// `*time.Location`
struct LocationObject(Location);

impl GoObject for LocationObject {
    fn type_name(&self) -> String {
        LOCATION.to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Pointer(Vec::new())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(Signature {
            parameters: &[],
            variadic: false,
        })
    }

    fn call(&self, _name: &str, _arguments: &[Value]) -> Called {
        Ok(Value::from(self.0.name()))
    }

    fn string(&self) -> Option<String> {
        Some(text::lossy(&self.0.name()))
    }

    fn copied(&self) -> Option<Value> {
        Some(Value::Obj(Rc::new(Self(Location::Unknown))))
    }

    fn is_same(&self, other: &dyn GoObject) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.is_same(&other.0))
    }

    fn is_alike(&self, other: &dyn GoObject) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.is_alike(&other.0))
    }
}

/// The named integer types of the package.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberType {
    Duration,
    Month,
    Weekday,
}

struct Number {
    number_type: NumberType,
    value: i64,
}

fn number(number_type: NumberType, value: i64) -> Value {
    Value::Obj(Rc::new(Number { number_type, value }))
}

fn duration_argument(value: &Value) -> Result<Duration, String> {
    argument(as_duration(value))
}

impl GoObject for Number {
    fn type_name(&self) -> String {
        match self.number_type {
            NumberType::Duration => DURATION,
            NumberType::Month => "time.Month",
            NumberType::Weekday => "time.Weekday",
        }
        .to_owned()
    }

    fn shape(&self) -> Shape {
        let int_type = match self.number_type {
            NumberType::Duration => IntType::Int64,
            NumberType::Month | NumberType::Weekday => IntType::Int,
        };
        Shape::Number(self.value, int_type)
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let parameters: &[Type] = match (self.number_type, name) {
            (_, "String")
            | (
                NumberType::Duration,
                "Abs" | "Hours" | "Microseconds" | "Milliseconds" | "Minutes" | "Nanoseconds" | "Seconds",
            ) => &[],
            (NumberType::Duration, "Round" | "Truncate") => ONE_DURATION,
            _ => return None,
        };
        Some(Signature {
            parameters,
            variadic: false,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Called {
        let this = Duration(self.value);
        if let [multiple] = arguments {
            let multiple = duration_argument(multiple)?;
            return Ok(duration(if name == "Round" {
                this.rounded(multiple)
            } else {
                this.truncated(multiple)
            }));
        }
        Ok(match name {
            "Abs" => duration(this.absolute()),
            "Hours" => Value::Float(this.in_units(HOUR)),
            "Minutes" => Value::Float(this.in_units(MINUTE)),
            "Seconds" => Value::Float(this.in_units(SECOND)),
            "Milliseconds" => Value::int64(self.value / 1_000_000),
            "Microseconds" => Value::int64(self.value / 1_000),
            "Nanoseconds" => Value::int64(self.value),
            _ => Value::from(self.text()),
        })
    }

    fn string(&self) -> Option<String> {
        Some(self.text())
    }

    fn is_same(&self, other: &dyn GoObject) -> bool {
        let other: &dyn Any = other;
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.number_type == other.number_type && self.value == other.value)
    }
}

impl Number {
    fn text(&self) -> String {
        let name = |names: &[&str], first: i64, type_name: &str| {
            let position = usize::try_from(self.value - first).ok();
            let name = position.and_then(|position| names.get(position));
            name.map_or_else(|| format!("%!{type_name}({})", self.value), |name| (*name).to_owned())
        };
        match self.number_type {
            NumberType::Duration => Duration(self.value).to_string(),
            NumberType::Month => name(&MONTHS, 1, "Month"),
            NumberType::Weekday => name(&WEEKDAYS, 0, "Weekday"),
        }
    }
}
