//! Formats of dates and times.

use super::{leading_digits, refuse};
use crate::format::{quote_char, quoted};

/// As Go's `time.Parse("2006-01-02", …)` reads it.
pub(super) fn date(text: &str) -> Result<(), String> {
    let start = format!("parsing time {}", quoted(text));
    let expected =
        |rest: &str, part: &str| format!("{start} as \"2006-01-02\": cannot parse {} as \"{part}\"", quoted(rest));
    let mut rest = text;
    let mut numbers = [0u32; 3];
    for (index, (part, length)) in [("2006", 4), ("01", 2), ("02", 2)].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').ok_or_else(|| expected(rest, "-"))?;
        }
        if leading_digits(rest) < length {
            return Err(expected(rest, part));
        }
        numbers[index] = rest[..length].parse().map_err(|_| expected(rest, part))?;
        rest = &rest[length..];
        if index == 1 && !(1..=12).contains(&numbers[1]) {
            return Err(format!("{start}: month out of range"));
        }
    }
    if !rest.is_empty() {
        return Err(format!("{start}: extra text: {}", quoted(rest)));
    }
    let [year, month, day] = numbers;
    if (1..=days(year, month)).contains(&day) {
        Ok(())
    } else {
        Err(format!("{start}: day out of range"))
    }
}

fn days(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

pub(super) fn date_time(text: &str) -> Result<(), String> {
    if text.len() < 20 {
        return refuse("less than 20 characters long");
    }
    if !matches!(text.as_bytes()[10], b't' | b'T') {
        return refuse("11th character must be t or T");
    }
    let (day, hour) = (&text[..10], &text[11..]);
    date(day).map_err(|problem| format!("invalid date element: {problem}"))?;
    time(hour).map_err(|problem| format!("invalid time element: {problem}"))
}

pub(super) fn time(text: &str) -> Result<(), String> {
    if text.len() < 9 {
        return refuse("less than 9 characters long");
    }
    let bytes = text.as_bytes();
    if bytes[2] != b':' || bytes[5] != b':' {
        return refuse("missing colon in correct place");
    }
    let (clock, zone) = text.split_at_checked(8).unwrap_or((text, ""));
    let parts = clock.splitn(3, ':').map(number).collect::<Option<Vec<_>>>();
    let Some([hour, minute, second]) = parts.as_deref() else {
        return refuse("invalid hour/min/sec");
    };
    if *hour > 23 || *minute > 59 || *second > 60 {
        return refuse("hour/min/sec out of range");
    }
    let zone = match zone.strip_prefix('.') {
        Some(fraction) if leading_digits(fraction) == 0 => return refuse("no digits in second fraction"),
        Some(fraction) => &fraction[leading_digits(fraction)..],
        None => zone,
    };
    let minutes = (hour * 60 + minute - offset(zone)?).rem_euclid(24 * 60);
    if *second == 60 && minutes != 24 * 60 - 1 {
        return refuse("invalid leap second");
    }
    Ok(())
}

/// The minutes that a zone is ahead.
fn offset(zone: &str) -> Result<i32, String> {
    if matches!(zone, "z" | "Z") {
        return Ok(0);
    }
    if zone.len() != 6 {
        return Err("offset must be 6 characters long".to_owned());
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return Err("offset must begin with plus/minus".to_owned()),
    };
    let Some((hours, minutes)) = zone[1..].split_once(':').filter(|(hours, _)| hours.len() == 2) else {
        return Err("missing colon in offset in correct place".to_owned());
    };
    let (Some(hours), Some(minutes)) = (number(hours), number(minutes)) else {
        return Err("invalid hour/min in offset".to_owned());
    };
    if hours > 23 || minutes > 59 {
        return Err("hour/min in offset out of range".to_owned());
    }
    Ok(sign * (hours * 60 + minutes))
}

fn number(text: &str) -> Option<i32> {
    text.parse().ok().filter(|number| *number >= 0)
}

pub(super) fn duration(text: &str) -> Result<(), String> {
    let Some(text) = text.strip_prefix('P') else {
        return refuse("must start with P");
    };
    if text.is_empty() {
        return refuse("nothing after P");
    }
    if let Some(weeks) = text.strip_suffix('W') {
        return match weeks {
            "" => refuse("no number in week"),
            _ if leading_digits(weeks) < weeks.len() => refuse("invalid week"),
            _ => Ok(()),
        };
    }
    for (index, part) in text.split('T').enumerate() {
        if index > 0 && part.is_empty() {
            return refuse("no time elements");
        }
        match index {
            0 => elements(part, "YMD")?,
            1 => elements(part, "HMS")?,
            _ => return refuse("more than one T"),
        }
    }
    Ok(())
}

fn elements(text: &str, all_units: &str) -> Result<(), String> {
    let (mut rest, mut units) = (text, all_units);
    while !rest.is_empty() {
        let digits = leading_digits(rest);
        if digits == 0 {
            return refuse("missing number");
        }
        rest = &rest[digits..];
        let Some(unit) = rest.chars().next() else {
            return refuse("missing unit");
        };
        let Some((_, later)) = units.split_once(unit) else {
            let unit = quote_char(unit);
            return Err(if all_units.contains(&unit[1..unit.len() - 1]) {
                format!("unit {unit} out of order")
            } else {
                format!("invalid unit {unit}")
            });
        };
        units = later;
        rest = &rest[unit.len_utf8()..];
    }
    Ok(())
}

pub(super) fn period(text: &str) -> Result<(), String> {
    let Some((start, end)) = text.split_once('/') else {
        return refuse("missing slash");
    };
    let is_duration = |part: &str| part.starts_with('P');
    let start_as_duration = is_duration(start);
    if start_as_duration {
        duration(start).map_err(|problem| format!("invalid start duration: {problem}"))?;
    } else {
        date_time(start).map_err(|problem| format!("invalid start date-time: {problem}"))?;
    }
    if is_duration(end) && !start_as_duration {
        duration(end).map_err(|problem| format!("invalid end duration: {problem}"))
    } else {
        date_time(end).map_err(|problem| format!("invalid end date-time: {problem}"))
    }
}
