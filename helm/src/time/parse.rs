//! `time.Parse`: from a text to a time by a layout, with Go's errors.

use super::calendar::{MONTHS, WEEKDAYS, days_in_month, is_leap};
use super::element::{Element, Offset, split};
use super::instant::Time;
use super::zone::Location;
use super::{leading_number, quote};

/// Reads a text in a layout; a text without a zone is in the given one. The error is Go's text.
pub(crate) fn parse(layout: &[u8], text: &[u8], location: &Location) -> Result<Time, String> {
    let mut reader = Reader::new(text);
    let mut rest_of_layout = layout;
    loop {
        let split = split(rest_of_layout);
        let wrong = |value: &[u8], element: &[u8]| {
            format!(
                "parsing time {} as {}: cannot parse {} as {}",
                quote(text),
                quote(layout),
                quote(value),
                quote(element)
            )
        };
        if !reader.skip(split.prefix) {
            return Err(wrong(reader.rest, split.prefix));
        }
        let Some((element, element_text)) = split.element else {
            break;
        };
        rest_of_layout = split.rest;
        let before = reader.rest;
        match reader.read(element, rest_of_layout) {
            Ok(()) => {}
            Err(Problem::Bad) => return Err(wrong(before, element_text)),
            Err(Problem::Range(what)) => return Err(format!("parsing time {}: {what} out of range", quote(text))),
        }
    }
    if !reader.rest.is_empty() {
        return Err(format!(
            "parsing time {}: extra text: {}",
            quote(text),
            quote(reader.rest)
        ));
    }
    reader
        .finish(location)
        .map_err(|problem| format!("parsing time {}: {problem}", quote(text)))
}

/// Why an element cannot be read.
enum Problem {
    Bad,
    /// What is out of its range.
    Range(&'static str),
}

type Read<T> = Result<T, Problem>;

enum Zone {
    None,
    Utc,
}

/// What was read of a text, and what is left of it.
struct Reader<'t> {
    rest: &'t [u8],
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
    /// Whether the text says afternoon or morning.
    is_afternoon: Option<bool>,
    zone: Zone,
    offset: Option<i64>,
    zone_name: &'t [u8],
}

impl<'t> Reader<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self {
            rest: text,
            year: 0,
            month: None,
            day: None,
            day_of_year: None,
            hour: 0,
            minute: 0,
            second: 0,
            nanosecond: 0,
            is_afternoon: None,
            zone: Zone::None,
            offset: None,
            zone_name: b"",
        }
    }

    /// Skips a prefix; spaces stand for any number of spaces.
    fn skip(&mut self, mut prefix: &[u8]) -> bool {
        while let Some((first, rest)) = prefix.split_first() {
            if *first == b' ' {
                if self.rest.first().is_some_and(|byte| *byte != b' ') {
                    return false;
                }
                prefix = without_spaces(prefix);
                self.rest = without_spaces(self.rest);
                continue;
            }
            match self.rest.split_first() {
                Some((byte, after)) if byte == first => self.rest = after,
                _ => return false,
            }
            prefix = rest;
        }
        true
    }

    /// Reads one element; `after` is the layout behind it.
    fn read(&mut self, element: Element, after: &[u8]) -> Read<()> {
        match element {
            Element::LongMonth => self.month = Some(self.name(&MONTHS, usize::MAX)? + 1),
            Element::Month => self.month = Some(self.name(&MONTHS, 3)? + 1),
            Element::LongWeekday => drop(self.name(&WEEKDAYS, usize::MAX)?),
            Element::Weekday => drop(self.name(&WEEKDAYS, 3)?),
            Element::NumMonth => self.month = Some(within(self.number(false)?, 1..13, "month")?),
            Element::ZeroMonth => self.month = Some(within(self.number(true)?, 1..13, "month")?),
            Element::Day => self.day = Some(self.number(false)?),
            Element::ZeroDay => self.day = Some(self.number(true)?),
            Element::UnderDay => {
                self.one_space();
                self.day = Some(self.number(false)?);
            }
            Element::UnderYearDay => {
                self.one_space();
                self.one_space();
                self.day_of_year = Some(self.three_digits(false)?);
            }
            Element::ZeroYearDay => self.day_of_year = Some(self.three_digits(true)?),
            Element::Hour => self.hour = within(self.number(false)?, 0..24, "hour")?,
            Element::Hour12 => self.hour = within(self.number(false)?, 0..13, "hour")?,
            Element::ZeroHour12 => self.hour = within(self.number(true)?, 0..13, "hour")?,
            Element::Minute => self.minute = within(self.number(false)?, 0..60, "minute")?,
            Element::ZeroMinute => self.minute = within(self.number(true)?, 0..60, "minute")?,
            Element::Second => self.second(false, after)?,
            Element::ZeroSecond => self.second(true, after)?,
            Element::Year => {
                let year = signed(self.take(2)?)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
            }
            Element::LongYear if self.rest.first().is_some_and(u8::is_ascii_digit) => {
                self.year = signed(self.take(4)?)?;
            }
            Element::LongYear => return Err(Problem::Bad),
            Element::Upper => self.half_day(b"AM", b"PM")?,
            Element::Lower => self.half_day(b"am", b"pm")?,
            Element::Name => self.zone_name()?,
            Element::Offset(offset) => self.offset(offset)?,
            Element::Fraction { trims: true, .. } => self.any_fraction()?,
            Element::Fraction { digits, .. } => {
                let text = self.take(digits + 1)?;
                self.nanosecond = nanoseconds(text)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Read<&'t [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Problem::Bad)?;
        self.rest = rest;
        Ok(taken)
    }

    fn one_space(&mut self) {
        self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
    }

    /// The position of the name that comes next, of which only the first letters may be written.
    fn name(&mut self, names: &[&str], letters: usize) -> Read<i64> {
        for (position, name) in (0..).zip(names) {
            let name = &name.as_bytes()[..name.len().min(letters)];
            if let Some((text, rest)) = self.rest.split_at_checked(name.len())
                && text.eq_ignore_ascii_case(name)
            {
                self.rest = rest;
                return Ok(position);
            }
        }
        Err(Problem::Bad)
    }

    /// One or two digits.
    fn number(&mut self, is_fixed: bool) -> Read<i64> {
        let digit = |byte: u8| i64::from(byte - b'0');
        match self.rest {
            [tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] => {
                self.rest = rest;
                Ok(digit(*tens) * 10 + digit(*ones))
            }
            [ones @ b'0'..=b'9', rest @ ..] if !is_fixed => {
                self.rest = rest;
                Ok(digit(*ones))
            }
            _ => Err(Problem::Bad),
        }
    }

    fn three_digits(&mut self, is_fixed: bool) -> Read<i64> {
        let digits = self
            .rest
            .iter()
            .take(3)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 || is_fixed && digits != 3 {
            return Err(Problem::Bad);
        }
        signed(self.take(digits)?)
    }

    /// A fraction may follow that the layout does not have.
    fn second(&mut self, is_fixed: bool, after: &[u8]) -> Read<()> {
        self.second = within(self.number(is_fixed)?, 0..60, "second")?;
        let next = split(after).element.map(|(element, _)| element);
        if matches!(self.rest, [b'.' | b',', b'0'..=b'9', ..]) && !matches!(next, Some(Element::Fraction { .. })) {
            self.any_fraction()?;
        }
        Ok(())
    }

    /// As many digits as there are, or none.
    fn any_fraction(&mut self) -> Read<()> {
        let [b'.' | b',', digits @ ..] = self.rest else {
            return Ok(());
        };
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 {
            let text = self.take(length + 1)?;
            self.nanosecond = nanoseconds(text)?;
        }
        Ok(())
    }

    fn half_day(&mut self, morning: &[u8], afternoon: &[u8]) -> Read<()> {
        let text = self.take(2)?;
        if text != morning && text != afternoon {
            return Err(Problem::Bad);
        }
        // Once said, afternoon wins.
        self.is_afternoon = Some(text == afternoon || self.is_afternoon == Some(true));
        Ok(())
    }

    fn zone_name(&mut self) -> Read<()> {
        if let Some(rest) = self.rest.strip_prefix(b"UTC") {
            self.rest = rest;
            self.zone = Zone::Utc;
            return Ok(());
        }
        let length = zone_name_length(self.rest).ok_or(Problem::Bad)?;
        self.zone_name = self.take(length)?;
        Ok(())
    }

    fn offset(&mut self, form: Offset) -> Read<()> {
        if form.has_z
            && let Some(rest) = self.rest.strip_prefix(b"Z")
        {
            self.rest = rest;
            self.zone = Zone::Utc;
            return Ok(());
        }
        let step = if form.has_colons { 3 } else { 2 };
        let text = self.take(form.parts * step + usize::from(!form.has_colons))?;
        if form.has_colons && (1..form.parts).any(|position| text[position * step] != b':') {
            return Err(Problem::Bad);
        }
        let mut parts = [0; 3];
        let mut is_bad = false;
        for (position, part) in parts.iter_mut().take(form.parts).enumerate() {
            let start = 1 + position * step;
            if !is_bad {
                match Reader::new(&text[start..start + 2]).number(true) {
                    Ok(number) => *part = number,
                    Err(_) => is_bad = true,
                }
            }
        }
        let [hours, minutes, seconds] = parts;
        within(hours, 0..25, "time zone offset hour")?;
        within(minutes, 0..61, "time zone offset minute")?;
        within(seconds, 0..61, "time zone offset second")?;
        let offset = (hours * 60 + minutes) * 60 + seconds;
        self.offset = Some(match text[0] {
            b'+' => offset,
            b'-' => -offset,
            _ => return Err(Problem::Bad),
        });
        if is_bad { Err(Problem::Bad) } else { Ok(()) }
    }

    /// The time that was read; the error is Go's, without the text.
    fn finish(self, location: &Location) -> Result<Time, &'static str> {
        let (month, day) = self.month_and_day()?;
        if day < 1 || day > days_in_month(self.year, month) {
            return Err("day out of range");
        }
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let seconds = i128::from((hour * 60 + self.minute) * 60 + self.second);
        let date = |location: &Location| Time::date([self.year, month, day], seconds, self.nanosecond, location);
        if let Zone::Utc = self.zone {
            return Ok(date(&Location::Utc));
        }
        // Go takes one second west of UTC for no offset.
        if let Some(offset) = self.offset.filter(|offset| *offset != -1) {
            let time = date(&Location::Utc).later(-offset);
            let clock = location.clock(time.unix_seconds());
            let is_local = clock.offset == offset && (self.zone_name.is_empty() || clock.name == self.zone_name);
            return Ok(time.told_in(if is_local {
                location.clone()
            } else {
                Location::fixed(self.zone_name, offset)
            }));
        }
        if self.zone_name.is_empty() {
            return Ok(date(location));
        }
        // The local zone has no name but UTC, which was read before.
        let hours = self.zone_name.strip_prefix(b"GMT").map_or(Ok(0), signed).unwrap_or(0);
        Ok(date(&Location::Utc).told_in(Location::fixed(self.zone_name, hours * 3600)))
    }

    fn month_and_day(&self) -> Result<(i64, i64), &'static str> {
        let Some(mut day_of_year) = self.day_of_year else {
            return Ok((self.month.unwrap_or(1), self.day.unwrap_or(1)));
        };
        // A leap day is found by its number; other days as in other years.
        let is_leap_day = is_leap(self.year) && day_of_year == 60;
        if is_leap(self.year) && day_of_year > 60 {
            day_of_year -= 1;
        }
        if !(1..=365).contains(&day_of_year) {
            return Err("day-of-year out of range");
        }
        let (mut month, mut day) = (1, day_of_year);
        while day > days_in_month(1, month) {
            day -= days_in_month(1, month);
            month += 1;
        }
        if is_leap_day {
            (month, day) = (2, 29);
        }
        if self.month.is_some_and(|read| read != month) {
            return Err("day-of-year does not match month");
        }
        if self.day.is_some_and(|read| read != day) {
            return Err("day-of-year does not match day");
        }
        Ok((month, day))
    }
}

fn without_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    &text[spaces..]
}

fn within(number: i64, range: std::ops::Range<i64>, what: &'static str) -> Read<i64> {
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(Problem::Range(what))
    }
}

/// A number that may have a sign, and nothing else.
fn signed(text: &[u8]) -> Read<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, text),
    };
    match leading_number(digits) {
        Some((number, [])) => {
            let number = number.cast_signed();
            Ok(if is_negative { number.wrapping_neg() } else { number })
        }
        _ => Err(Problem::Bad),
    }
}

/// A dot or comma and digits, of which nine count.
fn nanoseconds(text: &[u8]) -> Read<i64> {
    let [b'.' | b',', digits @ ..] = text else {
        return Err(Problem::Bad);
    };
    let digits = &digits[..digits.len().min(9)];
    let number = signed(digits)?;
    if number < 0 {
        return Err(Problem::Range("fractional second"));
    }
    let missing = u32::try_from(9 - digits.len()).unwrap_or_default();
    Ok(number * 10i64.pow(missing))
}

/// How long the abbreviation of a zone is that a text begins with.
fn zone_name_length(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_hours_length(rest));
    }
    if matches!(text[0], b'+' | b'-') {
        return Some(signed_hours_length(text)).filter(|length| *length > 0);
    }
    let letters = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    match letters {
        5 if text[4] == b'T' => Some(5),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// How long a sign with hours up to 23 is; 0 when there is none.
fn signed_hours_length(text: &[u8]) -> usize {
    let [b'+' | b'-', digits @ ..] = text else { return 0 };
    match leading_number(digits) {
        Some((hours, rest)) if rest.len() < digits.len() && hours <= 23 => text.len() - rest.len(),
        _ => 0,
    }
}
