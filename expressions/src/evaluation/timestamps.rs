//! Moments, from the year 1 to the year 9999, and the time zones in which they are read.

use std::fmt;

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Weekday, datetime},
    tz::{Offset, TimeZoneDatabase},
};

/// A moment and the distance from UTC with which it was written. Not the library's own type of moments, which ends a day before the year 9999 does: "never" is
/// written as the last second of that year.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    utc: DateTime,
    /// Seconds.
    offset: i32,
}

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);

impl Moment {
    fn new(utc: DateTime, offset: i32) -> Option<Self> {
        (1..=9999).contains(&utc.year()).then_some(Self { utc, offset })
    }

    pub(super) fn of_seconds(seconds: i64) -> Option<Self> {
        let utc = EPOCH.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Self::new(utc, 0)
    }

    /// Whole seconds since 1970, rounded down.
    pub(super) fn seconds(self) -> i64 {
        let since = self.utc.duration_since(EPOCH);
        since.as_secs() - i64::from(since.subsec_nanos() < 0)
    }

    /// What orders moments and makes them the same.
    pub(super) fn utc(self) -> DateTime {
        self.utc
    }

    pub(super) fn plus(self, nanoseconds: i64) -> Option<Self> {
        let utc = self.utc.checked_add(SignedDuration::from_nanos(nanoseconds)).ok()?;
        Self::new(utc, self.offset)
    }

    /// Nanoseconds from another until this one.
    pub(super) fn since(self, other: Self) -> Option<i64> {
        i64::try_from(self.utc.duration_since(other.utc).as_nanos()).ok()
    }

    /// The same moment, read in a time zone: its name, or its distance from UTC in hours and minutes.
    pub(super) fn in_zone(self, name: &str) -> Option<Self> {
        let offset = match name.split_once(':') {
            Some((hours, minutes)) => {
                let (whole, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
                if !(-23..=23).contains(&whole) || !(0..=59).contains(&minutes) {
                    return None;
                }
                let seconds = (whole.abs() * 60 + minutes) * 60;
                if hours.starts_with('-') { -seconds } else { seconds }
            }
            None if matches!(name, "" | "UTC") => 0,
            None => {
                let zone = TimeZoneDatabase::bundled().get(name).ok()?;
                // The last day has no other rules than the one before.
                let moment = Offset::UTC.to_timestamp(self.utc).unwrap_or(Timestamp::MAX);
                zone.to_offset(moment).seconds()
            }
        };
        Some(Self { offset, ..self })
    }

    /// What a calendar and a clock show; they stop with the year 9999.
    fn local(self) -> DateTime {
        let offset = SignedDuration::from_secs(i64::from(self.offset));
        self.utc.saturating_add(offset)
    }

    /// A part of the date or time. Months, days of the month and days of the year begin with zero, as the language has it; `getDate` with one.
    pub(super) fn part(self, function: &str) -> Option<i64> {
        let local = self.local();
        Some(i64::from(match function {
            "getFullYear" => local.year(),
            "getMonth" => i16::from(local.month()) - 1,
            "getDate" => i16::from(local.day()),
            "getDayOfMonth" => i16::from(local.day()) - 1,
            "getDayOfYear" => local.day_of_year() - 1,
            "getDayOfWeek" => i16::from(local.weekday().since(Weekday::Sunday)),
            "getHours" => i16::from(local.hour()),
            "getMinutes" => i16::from(local.minute()),
            "getSeconds" => i16::from(local.second()),
            "getMilliseconds" => local.millisecond(),
            _ => return None,
        }))
    }

    /// Reads what RFC 3339 has and no more: a date, `T`, a time to the second or finer, and `Z` or an offset.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if separators
            .iter()
            .any(|(at, separator)| bytes.get(*at) != Some(separator))
        {
            return None;
        }
        let year: i16 = digits(text, 0, 4)?.parse().ok()?;
        let small = |from: usize| -> Option<i8> { digits(text, from, from + 2)?.parse().ok() };
        let (hour, minute, second) = (small(11)?, small(14)?, small(17)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (nanoseconds, rest) = fraction(text.get(19..)?)?;
        let offset = if rest == "Z" { 0 } else { offset(rest)? };
        let local = Date::new(year, small(5)?, small(8)?)
            .ok()?
            .at(hour, minute, second, nanoseconds);
        let utc = local.checked_sub(SignedDuration::from_secs(i64::from(offset))).ok()?;
        Self::new(utc, offset)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.local())?;
        let minutes = self.offset.abs() / 60;
        match self.offset {
            0 => formatter.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

/// This part of a text, if it is all digits.
fn digits(text: &str, from: usize, to: usize) -> Option<&str> {
    text.get(from..to)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Nanoseconds behind the point, if there is one, and what follows.
fn fraction(text: &str) -> Option<(i32, &str)> {
    let Some(behind) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let length = behind.bytes().take_while(u8::is_ascii_digit).count();
    let nine: String = behind[..length].chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds = nine.parse().ok().filter(|_| length > 0)?;
    Some((nanoseconds, &behind[length..]))
}

/// `+02:00`, in seconds.
fn offset(text: &str) -> Option<i32> {
    let is_plain = text.len() == 6 && text.starts_with(['+', '-']) && text.as_bytes().get(3) == Some(&b':');
    let hours: i32 = digits(text, 1, 3)?.parse().ok()?;
    let minutes: i32 = digits(text, 4, 6)?.parse().ok()?;
    if !is_plain || hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    Some(if text.starts_with('-') { -seconds } else { seconds })
}
