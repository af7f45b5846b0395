//! `Time.Format`: a time by an example of how the reference time would look.

use super::calendar::{Date, MONTHS, WEEKDAYS};
use super::element::{Element, Offset, split};
use super::instant::Time;

/// Go's `time.RFC3339`.
pub(crate) const RFC_3339: &[u8] = b"2006-01-02T15:04:05Z07:00";

/// Go's `time.RFC3339Nano`.
pub(crate) const RFC_3339_NANO: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

/// What a layout can show of a time.
struct Shown<'t> {
    time: &'t Time,
    name: Vec<u8>,
    offset: i64,
    date: Date,
    /// Seconds of the day.
    seconds: i64,
    weekday: usize,
}

impl Time {
    /// The text of the time in a layout.
    pub(crate) fn format(&self, layout: &[u8]) -> Vec<u8> {
        let clock = self.clock();
        let (date, seconds) = self.local();
        let shown = Shown {
            time: self,
            name: clock.name,
            offset: clock.offset,
            date,
            seconds,
            weekday: self.weekday(),
        };
        let mut out = Vec::new();
        let mut rest = layout;
        while !rest.is_empty() {
            let split = split(rest);
            out.extend_from_slice(split.prefix);
            if let Some((element, _)) = split.element {
                shown.write(element, &mut out);
            }
            rest = split.rest;
        }
        out
    }
}

impl Shown<'_> {
    fn write(&self, element: Element, out: &mut Vec<u8>) {
        let Date { year, month, day } = self.date;
        let (hour, minute, second) = (self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60);
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        let month_name = MONTHS[usize::try_from(month - 1).unwrap_or_default()];
        let weekday_name = WEEKDAYS[self.weekday];
        match element {
            Element::LongMonth => out.extend_from_slice(month_name.as_bytes()),
            Element::Month => out.extend_from_slice(&month_name.as_bytes()[..3]),
            Element::NumMonth => number(out, month, 0),
            Element::ZeroMonth => number(out, month, 2),
            Element::LongWeekday => out.extend_from_slice(weekday_name.as_bytes()),
            Element::Weekday => out.extend_from_slice(&weekday_name.as_bytes()[..3]),
            Element::Day => number(out, day, 0),
            Element::UnderDay => padded(out, day, 2),
            Element::ZeroDay => number(out, day, 2),
            Element::UnderYearDay => padded(out, self.date.day_of_year(), 3),
            Element::ZeroYearDay => number(out, self.date.day_of_year(), 3),
            Element::Hour => number(out, hour, 2),
            Element::Hour12 => number(out, hour12, 0),
            Element::ZeroHour12 => number(out, hour12, 2),
            Element::Minute => number(out, minute, 0),
            Element::ZeroMinute => number(out, minute, 2),
            Element::Second => number(out, second, 0),
            Element::ZeroSecond => number(out, second, 2),
            Element::LongYear => number(out, year, 4),
            Element::Year => number(out, (year % 100).abs(), 2),
            Element::Upper => out.extend_from_slice(if hour >= 12 { b"PM" } else { b"AM" }),
            Element::Lower => out.extend_from_slice(if hour >= 12 { b"pm" } else { b"am" }),
            Element::Name if !self.name.is_empty() => out.extend_from_slice(&self.name),
            Element::Name => self.offset(numeric(2), out),
            Element::Offset(offset) if offset.has_z && self.offset == 0 => out.push(b'Z'),
            Element::Offset(offset) => self.offset(offset, out),
            Element::Fraction {
                digits,
                separator,
                trims,
            } => self.fraction(digits, separator, trims, out),
        }
    }

    fn offset(&self, form: Offset, out: &mut Vec<u8>) {
        // The sign is that of the minutes.
        let minutes = self.offset / 60;
        out.push(if minutes < 0 { b'-' } else { b'+' });
        let seconds = if minutes < 0 { -self.offset } else { self.offset };
        let parts = [minutes.abs() / 60, minutes.abs() % 60, seconds % 60];
        for (position, part) in parts.into_iter().take(form.parts).enumerate() {
            if position > 0 && form.has_colons {
                out.push(b':');
            }
            number(out, part, 2);
        }
    }

    fn fraction(&self, digits: usize, separator: u8, trims: bool, out: &mut Vec<u8>) {
        let nanoseconds = self.time.nanosecond();
        if trims && nanoseconds == 0 {
            return;
        }
        out.push(separator);
        let text = format!("{nanoseconds:09}");
        out.extend_from_slice(&text.as_bytes()[..digits.min(9)]);
        if trims {
            while out.last() == Some(&b'0') {
                out.pop();
            }
            if out.last() == Some(&separator) {
                out.pop();
            }
        }
    }
}

const fn numeric(parts: usize) -> Offset {
    Offset {
        has_z: false,
        has_colons: false,
        parts,
    }
}

/// A number with zeros in front up to a width, which its sign does not count to.
fn number(out: &mut Vec<u8>, number: i64, width: usize) {
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(format!("{:0width$}", number.unsigned_abs()).as_bytes());
}

fn padded(out: &mut Vec<u8>, number: i64, width: usize) {
    out.extend_from_slice(format!("{number:width$}").as_bytes());
}
