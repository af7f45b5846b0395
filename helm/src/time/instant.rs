//! `time.Time`: an instant with nanoseconds, told somewhere.

use std::cmp::Ordering;

use super::calendar::{Date, MONTHS, narrow};
use super::duration::{Duration, SECOND};
use super::quote;
use super::zone::{Clock, Location};

/// Seconds from the year 1 to 1970.
const UNIX: i64 = 62_135_596_800;
/// Seconds from the year from which Go counts to the year 1.
const ABSOLUTE: i64 = 9_223_371_966_606_163_200;
const DAY: i64 = 86_400;
/// Where the 33 bits begin that hold the seconds of a time with a monotonic reading: the year 1885.
const MONOTONIC_START: i64 = 59_453_308_800;

/// An instant. Arithmetic wraps and saturates where Go's does.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    /// Seconds since the first day of the year 1, in UTC.
    seconds: i64,
    /// From 0 to 999 999 999.
    nanoseconds: i64,
    location: Location,
    /// Nanoseconds of the clock that only goes forward, where the time was read from one. It is shown, never calculated with: the
    /// two clocks of a render agree.
    monotonic: Option<i64>,
}

impl Time {
    /// The first instant of the year 1 in UTC, which is Go's zero value.
    pub(crate) const ZERO: Self = Self {
        seconds: 0,
        nanoseconds: 0,
        location: Location::Utc,
        monotonic: None,
    };

    /// `time.Unix`: so many seconds after 1970, in the local zone.
    pub(crate) fn unix(seconds: i64) -> Self {
        Self {
            seconds: seconds.wrapping_add(UNIX),
            location: Location::Local,
            ..Self::ZERO
        }
    }

    /// What a clock says: nanoseconds since 1970, and of a clock that only goes forward.
    pub(crate) fn now(nanoseconds: i128, monotonic: Option<i64>) -> Self {
        Self {
            nanoseconds: narrow(nanoseconds.rem_euclid(i128::from(SECOND))),
            monotonic,
            ..Self::unix(narrow(nanoseconds.div_euclid(i128::from(SECOND))))
        }
    }

    /// `time.Date`: the numbers need not lie within their usual ranges.
    pub(crate) fn date(date: [i64; 3], seconds: i128, nanoseconds: i64, location: &Location) -> Self {
        let [year, month, day] = date.map(i128::from);
        let year = year + (month - 1).div_euclid(12);
        let month = (month - 1).rem_euclid(12) + 1;
        let days = Date::days(year, month, day);
        let told = narrow(days * i128::from(DAY) + seconds);
        let offset = location.clock(told.wrapping_sub(UNIX)).offset;
        // The offset that holds then, which is another one close to a change of clocks.
        let offset = location.clock(told.wrapping_sub(UNIX).wrapping_sub(offset)).offset;
        Self {
            seconds: told.wrapping_sub(offset),
            nanoseconds,
            location: location.clone(),
            monotonic: None,
        }
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The same instant, told elsewhere.
    pub(crate) fn told_in(&self, location: Location) -> Self {
        Self {
            location,
            monotonic: None,
            ..self.clone()
        }
    }

    /// Seconds since 1970.
    pub(crate) fn unix_seconds(&self) -> i64 {
        self.seconds.wrapping_sub(UNIX)
    }

    /// Units since 1970 of which a second has so many.
    pub(crate) fn unix_units(&self, per_second: i64) -> i64 {
        let whole = self.unix_seconds().wrapping_mul(per_second);
        whole.wrapping_add(self.nanoseconds / (SECOND / per_second))
    }

    pub(crate) fn nanosecond(&self) -> i64 {
        self.nanoseconds
    }

    pub(super) fn clock(&self) -> Clock {
        self.location.clock(self.unix_seconds())
    }

    /// Seconds east of UTC.
    pub(crate) fn offset(&self) -> i64 {
        self.clock().offset
    }

    pub(crate) fn is_summer(&self) -> bool {
        self.clock().is_summer
    }

    /// Seconds since Go's first year, as clocks show them.
    fn absolute(&self) -> u64 {
        let told = self.seconds.wrapping_add(self.clock().offset);
        told.wrapping_add(ABSOLUTE).cast_unsigned()
    }

    /// The date and the seconds of the day.
    pub(super) fn local(&self) -> (Date, i64) {
        let absolute = i128::from(self.absolute());
        let days = absolute / i128::from(DAY) - i128::from(ABSOLUTE / DAY);
        (Date::of_days(narrow(days)), narrow(absolute % i128::from(DAY)))
    }

    /// Year, month, day, and hour, minute, second.
    pub(crate) fn parts(&self) -> ([i64; 3], [i64; 3]) {
        let (Date { year, month, day }, seconds) = self.local();
        ([year, month, day], [seconds / 3600, seconds / 60 % 60, seconds % 60])
    }

    pub(crate) fn day_of_year(&self) -> i64 {
        self.local().0.day_of_year()
    }

    /// From Sunday, which is 0.
    pub(crate) fn weekday(&self) -> usize {
        let days = i128::from(self.absolute()) / i128::from(DAY) - i128::from(ABSOLUTE / DAY);
        usize::try_from((days + 1).rem_euclid(7)).unwrap_or_default()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.seconds == 0 && self.nanoseconds == 0
    }

    pub(crate) fn without_monotonic(&self) -> Self {
        Self {
            monotonic: None,
            ..self.clone()
        }
    }

    /// The time so much later.
    pub(crate) fn add(&self, duration: Duration) -> Self {
        let mut seconds = duration.0 / SECOND;
        let mut nanoseconds = self.nanoseconds + duration.0 % SECOND;
        if nanoseconds >= SECOND {
            seconds += 1;
            nanoseconds -= SECOND;
        } else if nanoseconds < 0 {
            seconds -= 1;
            nanoseconds += SECOND;
        }
        let later = self.later(seconds);
        Self {
            nanoseconds,
            monotonic: later.monotonic.and_then(|monotonic| monotonic.checked_add(duration.0)),
            ..later
        }
    }

    /// The time so many seconds later, at the end of the range where that lies beyond it.
    pub(super) fn later(&self, seconds: i64) -> Self {
        let end = if seconds > 0 { i64::MAX } else { -i64::MAX };
        let seconds = self.seconds.checked_add(seconds).unwrap_or(end);
        let has_room = (0..1 << 33).contains(&seconds.wrapping_sub(MONOTONIC_START));
        Self {
            seconds,
            monotonic: self.monotonic.filter(|_| has_room),
            ..self.clone()
        }
    }

    /// How long after another time this one is, as far as a duration reaches.
    pub(crate) fn since(&self, other: &Self) -> Duration {
        let span = self.exact() - other.exact();
        Duration(narrow(span.clamp(i128::from(i64::MIN), i128::from(i64::MAX))))
    }

    /// Nanoseconds since the year 1.
    fn exact(&self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanoseconds)
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.exact().cmp(&other.exact())
    }

    /// The date so many years, months and days later at the same time of day.
    pub(crate) fn add_date(&self, [years, months, days]: [i64; 3]) -> Self {
        let (Date { year, month, day }, seconds) = self.local();
        let date = [
            year.wrapping_add(years),
            month.wrapping_add(months),
            day.wrapping_add(days),
        ];
        Self::date(date, i128::from(seconds), self.nanoseconds, &self.location)
    }

    /// Rounded down to a multiple of a duration since the year 1.
    pub(crate) fn truncated(&self, multiple: Duration) -> Self {
        let time = self.without_monotonic();
        if multiple.0 <= 0 {
            return time;
        }
        time.add(Duration(-time.rest(multiple)))
    }

    /// Rounded to the nearest multiple of a duration since the year 1, halves up.
    pub(crate) fn rounded(&self, multiple: Duration) -> Self {
        let time = self.without_monotonic();
        if multiple.0 <= 0 {
            return time;
        }
        let rest = time.rest(multiple);
        let is_low = rest.unsigned_abs() * 2 < multiple.0.unsigned_abs();
        time.add(Duration(if is_low { -rest } else { multiple.0 - rest }))
    }

    fn rest(&self, multiple: Duration) -> i64 {
        narrow(self.exact().rem_euclid(i128::from(multiple.0)))
    }

    /// Whether `==` holds in Go, which compares how times are stored.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is_stored_alike(other) && self.location.is_same(&other.location)
    }

    /// Whether all parts are equal, as `reflect.DeepEqual` sees it.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        self.is_stored_alike(other) && self.location.is_alike(&other.location)
    }

    fn is_stored_alike(&self, other: &Self) -> bool {
        self.exact() == other.exact() && self.monotonic == other.monotonic
    }

    /// What `String()` gives.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = self.format(b"2006-01-02 15:04:05.999999999 -0700 MST");
        if let Some(monotonic) = self.monotonic {
            let sign = if monotonic < 0 { '-' } else { '+' };
            let (seconds, rest) = (
                monotonic.unsigned_abs() / SECOND.unsigned_abs(),
                monotonic.unsigned_abs() % SECOND.unsigned_abs(),
            );
            text.extend_from_slice(format!(" m={sign}{seconds}.{rest:09}").as_bytes());
        }
        text
    }

    /// What `GoString()` gives.
    pub(crate) fn go_text(&self) -> String {
        let ([year, month, day], [hour, minute, second]) = self.parts();
        let month = MONTHS[usize::try_from(month - 1).unwrap_or_default()];
        let location = match &self.location {
            Location::Utc => "time.UTC".to_owned(),
            Location::Local => "time.Local".to_owned(),
            other => format!("time.Location({})", quote(&other.name())),
        };
        let nanosecond = self.nanoseconds;
        format!("time.Date({year}, time.{month}, {day}, {hour}, {minute}, {second}, {nanosecond}, {location})")
    }

    /// What `MarshalBinary()` gives.
    pub(crate) fn binary(&self) -> Result<Vec<u8>, String> {
        let offset = self.offset();
        let (version, minutes, seconds) = match &self.location {
            Location::Utc => (1, -1, 0),
            _ => (if offset % 60 == 0 { 1 } else { 2 }, offset / 60, offset % 60),
        };
        let minutes = i16::try_from(minutes)
            .ok()
            .filter(|minutes| *minutes != -1 || matches!(self.location, Location::Utc))
            .ok_or("Time.MarshalBinary: unexpected zone offset")?;
        let mut bytes = vec![version];
        bytes.extend_from_slice(&self.seconds.to_be_bytes());
        bytes.extend_from_slice(&self.nanoseconds.to_be_bytes()[4..]);
        bytes.extend_from_slice(&minutes.to_be_bytes());
        if version == 2 {
            bytes.push(seconds.to_be_bytes()[7]);
        }
        Ok(bytes)
    }

    /// The form of RFC 3339, refused where that does not reach; the error is Go's, without the name of who asked.
    pub(crate) fn strict(&self) -> Result<Vec<u8>, &'static str> {
        let text = self.format(super::RFC_3339_NANO);
        if text.get(4) != Some(&b'-') {
            return Err("year outside of range [0,9999]");
        }
        if let [.., sign, tens, ones, b':', _, _] = text.as_slice()
            && (sign.is_ascii_digit() || (tens - b'0') * 10 + (ones - b'0') >= 24)
        {
            return Err("timezone hour outside of range [0,23]");
        }
        Ok(text)
    }
}
