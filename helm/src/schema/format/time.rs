//! Formats of dates and times.

use super::{leading_digits, refuse};
use crate::format::quote_char;
use crate::time::{self, Location};

pub(super) fn date(text: &str) -> Result<(), String> {
    time::parse(b"2006-01-02", text.as_bytes(), &Location::Utc).map(|_| ())
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
    let parts: Vec<i32> = clock
        .splitn(3, ':')
        .map(|part| number(part, "hour/min/sec"))
        .collect::<Result<_, _>>()?;
    let [hour, minute, second] = *parts else {
        return refuse("missing hour/min/sec");
    };
    if hour > 23 || minute > 59 || second > 60 {
        return refuse("hour/min/sec out of range");
    }
    let zone = match zone.strip_prefix('.') {
        Some(fraction) if leading_digits(fraction) == 0 => return refuse("no digits in second fraction"),
        Some(fraction) => &fraction[leading_digits(fraction)..],
        None => zone,
    };
    let minutes = (hour * 60 + minute - offset(zone)?).rem_euclid(24 * 60);
    if second == 60 && minutes != 24 * 60 - 1 {
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
    let number = |part| number(part, "hour/min in offset");
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return Err("hour/min in offset out of range".to_owned());
    }
    Ok(sign * (hours * 60 + minutes))
}

fn number(text: &str, name: &str) -> Result<i32, String> {
    match text.parse::<i32>() {
        Ok(number @ 0..) => Ok(number),
        Ok(_) => Err(format!("non-positive {name}")),
        Err(_) => Err(format!("invalid {name}")),
    }
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
        // Go takes the first byte for a character.
        let Some(unit) = rest.bytes().next().map(char::from) else {
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
        rest = &rest[1..];
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
