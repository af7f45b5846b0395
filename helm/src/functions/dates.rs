//! Times and durations: reading, shifting and writing them. Those that may ask what time it is, ask the render's answers.

use super::{Called, Function, mismatch};
use crate::answers::{Answer, Ask, wrong_kind};
use crate::objects::time::{TIME, as_time, time};
use crate::time::{self, Duration, HOUR, Location, MINUTE, SECOND, Time};
use crate::value::Type::{Any, Named, Str};
use crate::value::{IntType, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::asking("now", &[], |mut ask| now(&mut ask).map(time)),
    Function::asking("date", &[Str, Any], |ask| match ask.arguments {
        [Value::Str(layout), date] => formatted(ask, layout, date, b"Local"),
        _ => Err(mismatch()),
    }),
    Function::asking("dateInZone", &[Str, Any, Str], date_in_zone),
    Function::asking("date_in_zone", &[Str, Any, Str], date_in_zone),
    Function::asking("htmlDate", &[Any], |ask| match ask.arguments {
        [date] => formatted(ask, HTML, date, b"Local"),
        _ => Err(mismatch()),
    }),
    Function::asking("htmlDateInZone", &[Any, Str], |ask| match ask.arguments {
        [date, Value::Str(zone)] => formatted(ask, HTML, date, zone),
        _ => Err(mismatch()),
    }),
    Function::asking("ago", &[Any], ago),
    Function::new("dateModify", &[Str, Named(TIME)], date_modify),
    Function::new("date_modify", &[Str, Named(TIME)], date_modify),
    Function::new("mustDateModify", &[Str, Named(TIME)], must_date_modify),
    Function::new("must_date_modify", &[Str, Named(TIME)], must_date_modify),
    Function::new("toDate", &[Str, Str], |arguments| {
        Ok(time(parsed(arguments)?.unwrap_or(Time::ZERO)))
    }),
    Function::new("mustToDate", &[Str, Str], |arguments| parsed(arguments)?.map(time)),
    Function::new("unixEpoch", &[Named(TIME)], |arguments| match arguments {
        [date] => Ok(Value::from(shown(date)?.unix_seconds().to_string())),
        _ => Err(mismatch()),
    }),
    Function::new("duration", &[Any], duration),
    Function::asking("durationRound", &[Any], duration_round),
];

const HTML: &[u8] = b"2006-01-02";

/// What the clock says. It has a monotonic reading too, of which templates see that it is there.
fn now(ask: &mut Ask<'_>) -> Result<Time, String> {
    match ask.answer(|draw| Ok(Answer::Time(draw.now())))? {
        Answer::Time(moment) => {
            let seconds = i128::from(moment.seconds) * i128::from(SECOND);
            Ok(Time::now(seconds + i128::from(moment.nanoseconds), Some(0)))
        }
        other => Err(wrong_kind("a time", &other)),
    }
}

/// The time of a value: a time, or an integer of seconds since 1970.
fn of_value(value: &Value) -> Option<Time> {
    match value {
        Value::Int(seconds, IntType::Int | IntType::Int64 | IntType::Int32) => Some(Time::unix(*seconds)),
        value => as_time(value).cloned(),
    }
}

/// A date as text; of anything that is no time, the present one.
fn formatted(mut ask: Ask<'_>, layout: &[u8], date: &Value, zone: &[u8]) -> Called {
    let date = match of_value(date) {
        Some(date) => date,
        None => now(&mut ask)?,
    };
    let zone = Location::by_name(zone).unwrap_or(Location::Utc);
    Ok(Value::from(date.told_in(zone).format(layout)))
}

fn date_in_zone(ask: Ask<'_>) -> Called {
    match ask.arguments {
        [Value::Str(layout), date, Value::Str(zone)] => formatted(ask, layout, date, zone),
        _ => Err(mismatch()),
    }
}

fn ago(mut ask: Ask<'_>) -> Called {
    let [date] = ask.arguments else { return Err(mismatch()) };
    let then = of_value(date).filter(|_| !matches!(date, Value::Int(_, IntType::Int32)));
    let now = now(&mut ask)?;
    let since = then.map_or(Duration(0), |then| now.since(&then));
    Ok(Value::from(since.rounded(Duration(SECOND)).to_string()))
}

fn shown(value: &Value) -> Result<&Time, String> {
    as_time(value).ok_or_else(mismatch)
}

fn shifted(arguments: &[Value]) -> Result<(&Time, Result<Duration, String>), String> {
    let [Value::Str(text), date] = arguments else {
        return Err(mismatch());
    };
    Ok((shown(date)?, Duration::parse(text)))
}

fn date_modify(arguments: &[Value]) -> Called {
    let (date, duration) = shifted(arguments)?;
    Ok(time(
        duration.map_or_else(|_| date.clone(), |duration| date.add(duration)),
    ))
}

fn must_date_modify(arguments: &[Value]) -> Called {
    let (date, duration) = shifted(arguments)?;
    Ok(time(date.add(duration?)))
}

/// What `time.Parse` says, in the local zone.
fn parsed(arguments: &[Value]) -> Result<Result<Time, String>, String> {
    match arguments {
        [Value::Str(layout), Value::Str(text)] => Ok(time::parse(layout, text, &Location::Local)),
        _ => Err(mismatch()),
    }
}

/// The text of so many seconds.
fn duration(arguments: &[Value]) -> Called {
    let seconds = match arguments {
        [Value::Str(text)] => decimal(text),
        [Value::Int(seconds, IntType::Int64)] => *seconds,
        [_] => 0,
        _ => return Err(mismatch()),
    };
    Ok(Value::from(Duration(seconds.wrapping_mul(SECOND)).to_string()))
}

/// `strconv.ParseInt(text, 10, 64)`, which gives the end of the range for a number beyond it, and 0 for none.
fn decimal(text: &[u8]) -> i64 {
    let Some(text) = str::from_utf8(text).ok() else {
        return 0;
    };
    match text.parse::<i64>() {
        Ok(number) => number,
        Err(error) => match error.kind() {
            std::num::IntErrorKind::PosOverflow => i64::MAX,
            std::num::IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        },
    }
}

/// The largest unit of which a duration has more than one, rounded down.
fn duration_round(mut ask: Ask<'_>) -> Called {
    let duration = match ask.arguments {
        [Value::Str(text)] => Duration::parse(text).unwrap_or(Duration(0)),
        [Value::Int(nanoseconds, IntType::Int64)] => Duration(*nanoseconds),
        [value] => match as_time(value) {
            Some(then) => now(&mut ask)?.since(then),
            None => Duration(0),
        },
        _ => return Err(mismatch()),
    };
    let length = duration.0.unsigned_abs();
    let day = 24 * HOUR;
    let units = [
        (365 * day, "y"),
        (30 * day, "mo"),
        (day, "d"),
        (HOUR, "h"),
        (MINUTE, "m"),
        (SECOND, "s"),
    ];
    let found = units.into_iter().find(|(unit, _)| length > unit.unsigned_abs());
    Ok(Value::from(found.map_or("0s".to_owned(), |(unit, name)| {
        format!("{}{name}", length / unit.unsigned_abs())
    })))
}
