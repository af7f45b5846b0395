//! Numbers and dates of a TOML text.

use super::Dialect;
use super::cursor::{Cursor, Problem, Read};
use super::strings::shown;
use crate::format::quoted;
use crate::number::parse_int;
use crate::objects::time::time;
use crate::text::lossy;
use crate::time::{self, Location};
use crate::value::Value;

/// Names of the zones of times that are written without one.
const LOCAL_DATE_TIME: &[u8] = b"datetime-local";
const LOCAL_DATE: &[u8] = b"date-local";
const LOCAL_TIME: &[u8] = b"time-local";

/// Layouts of times, each with the name of the zone where it says none. The last three are of TOML 1.1.
const LAYOUTS: [(&str, &[u8]); 7] = [
    ("2006-01-02T15:04:05.999999999Z07:00", b""),
    ("2006-01-02T15:04:05.999999999", LOCAL_DATE_TIME),
    ("2006-01-02", LOCAL_DATE),
    ("15:04:05.999999999", LOCAL_TIME),
    ("2006-01-02T15:04Z07:00", b""),
    ("2006-01-02T15:04", LOCAL_DATE_TIME),
    ("15:04", LOCAL_TIME),
];
const LAYOUTS_OF_1_0: usize = 4;

/// The layout of a time in a zone without an offset, nothing for other zones.
pub(super) fn local_layout(location: &Location) -> Option<&'static str> {
    let Location::Fixed(fixed) = location else { return None };
    let (layout, _) = LAYOUTS[1..LAYOUTS_OF_1_0].iter().find(|(_, zone)| *zone == fixed.0)?;
    Some(layout)
}

/// Reads a number or a time that begins with a digit.
pub(super) fn unsigned(cursor: &mut Cursor<'_>, dialect: Dialect) -> Read<Value> {
    let start = cursor.position();
    if cursor.next()? == '0' {
        match cursor.peek()? {
            '0'..='9' => {}
            base @ ('b' | 'o' | 'x') => return with_base(cursor, start, base),
            _ => return decimal(cursor, start),
        }
    }
    match cursor.skip(|character| character.is_ascii_digit())? {
        '-' | ':' => date(cursor, start, dialect),
        _ => decimal(cursor, start),
    }
}

/// Reads a number behind the sign that was passed.
pub(super) fn signed(cursor: &mut Cursor<'_>) -> Read<Value> {
    let start = cursor.position() - 1;
    let first = cursor.next()?;
    match first {
        'i' | 'n' => {
            let rest = if first == 'i' { ['n', 'f'] } else { ['a', 'n'] };
            for letter in rest {
                if !cursor.accept(letter)? {
                    return Err(cursor.wrong(format!("invalid float: '{}'", lossy(cursor.since(start)))));
                }
            }
            float(cursor, start)
        }
        '0' if matches!(cursor.peek()?, 'b' | 'o' | 'x') => {
            let (number, base) = (lossy(cursor.since(start)), cursor.peek()?);
            Err(cursor.wrong(format!("cannot use sign with non-decimal numbers: '{number}{base}'")))
        }
        '0'..='9' => decimal(cursor, start),
        '.' => Err(cursor.wrong("floats must start with a digit, not '.'")),
        other => Err(cursor.wrong_about(other, format!("expected a digit but got {}", shown(other)))),
    }
}

/// Reads an integer behind its first zero.
fn with_base(cursor: &mut Cursor<'_>, start: usize, base: char) -> Read<Value> {
    cursor.next()?;
    let (radix, words) = match base {
        'b' => (2, "a binary"),
        'o' => (8, "an octal"),
        _ => (16, "a hexadecimal"),
    };
    let first = cursor.peek()?;
    if !first.is_digit(radix) {
        let prefix = lossy(cursor.since(start));
        return Err(cursor.wrong(format!("not {words} number: '{prefix}{first}'")));
    }
    cursor.skip(|character| character == '_' || character.is_digit(radix))?;
    integer(cursor, start)
}

/// Reads on behind the first digits of a number.
fn decimal(cursor: &mut Cursor<'_>, start: usize) -> Read<Value> {
    match cursor.skip(|character| character == '_' || character.is_ascii_digit())? {
        '.' | 'e' | 'E' => {
            cursor.skip(|character| {
                character.is_ascii_digit() || matches!(character, '_' | '.' | '-' | '+' | 'e' | 'E')
            })?;
            float(cursor, start)
        }
        _ => integer(cursor, start),
    }
}

/// The integer from a position up to here.
fn integer(cursor: &Cursor<'_>, start: usize) -> Read<Value> {
    let text = lossy(cursor.since(start));
    check_underscores(cursor, &text, &text, "integer")?;
    check_zeroes(cursor, &text, &text, "integer")?;
    match parse_int(&text.replace('_', "")) {
        Some(number) => Ok(Value::int64(number)),
        None => Err(cursor.wrong(format!("{text} is out of range for int64"))),
    }
}

/// The float from a position up to here.
pub(super) fn float(cursor: &Cursor<'_>, start: usize) -> Read<Value> {
    let text = lossy(cursor.since(start));
    let parts: Vec<&str> = text.split(['.', 'e', 'E']).filter(|part| !part.is_empty()).collect();
    for part in &parts {
        check_underscores(cursor, part, &text, "float")?;
    }
    if let Some(first) = parts.first() {
        check_zeroes(cursor, first, &text, "float")?;
    }
    let is_point_alone =
        |(position, _): (usize, &str)| !text[position + 1..].starts_with(|character: char| character.is_ascii_digit());
    if text.match_indices('.').any(is_point_alone) {
        let problem = format!(
            "Invalid float {}: '.' must be followed by one or more digits",
            quoted(&text)
        );
        return Err(cursor.wrong(problem));
    }
    let digits = text.replace('_', "");
    let magnitude = digits.trim_start_matches(['+', '-']);
    match digits.parse::<f64>() {
        _ if magnitude == "nan" => Ok(Value::Float(f64::NAN.copysign(if digits.starts_with('-') {
            -1.0
        } else {
            1.0
        }))),
        Ok(number) if number.is_infinite() && magnitude != "inf" => {
            Err(cursor.wrong(format!("{text} is out of range for float64")))
        }
        Ok(number) => Ok(Value::Float(number)),
        Err(_) => Err(cursor.wrong(format!("Invalid float value: {}", quoted(&text)))),
    }
}

/// Whether every underscore has digits on both sides.
fn check_underscores(cursor: &Cursor<'_>, part: &str, text: &str, kind: &str) -> Read<()> {
    if matches!(part.trim_start_matches(['+', '-']), "nan" | "inf") && part.len() <= 4 {
        return Ok(());
    }
    let mut is_digit = false;
    for character in part.chars() {
        if character == '_' && !is_digit {
            break;
        }
        is_digit = character.is_ascii_hexdigit();
    }
    if is_digit {
        return Ok(());
    }
    Err(cursor.wrong(format!(
        "Invalid {kind} {}: underscores must be surrounded by digits",
        quoted(text)
    )))
}

fn check_zeroes(cursor: &Cursor<'_>, part: &str, text: &str, kind: &str) -> Read<()> {
    let starts_with_zero = match part.as_bytes() {
        [b'0', base, ..] => !matches!(base, b'b' | b'o' | b'x'),
        [b'+' | b'-', b'0', _, ..] => true,
        _ => false,
    };
    if starts_with_zero {
        let problem = format!("Invalid {kind} {}: cannot have leading zeroes", quoted(text));
        return Err(cursor.wrong(problem));
    }
    Ok(())
}

fn date(cursor: &mut Cursor<'_>, start: usize, dialect: Dialect) -> Read<Value> {
    cursor.skip(|character| {
        character.is_ascii_digit() || matches!(character, '-' | ':' | 'T' | 't' | ' ' | '.' | 'Z' | 'z' | '+')
    })?;
    let text = lossy(cursor.since(start));
    let text = text.trim().replace('z', "Z").replace(['t', ' '], "T");
    let layouts = match dialect {
        Dialect::V1_0 => &LAYOUTS[..LAYOUTS_OF_1_0],
        Dialect::V1_1 => &LAYOUTS,
    };
    let problem = || -> Problem { cursor.wrong(format!("invalid datetime: {}", quoted(&text))) };
    for (layout, zone) in layouts {
        let location = if zone.is_empty() {
            Location::Local
        } else {
            Location::fixed(zone, 0)
        };
        if let Ok(found) = time::parse(layout.as_bytes(), text.as_bytes(), &location) {
            return if is_short(&text, layout) {
                Err(problem())
            } else {
                Ok(time(found))
            };
        }
    }
    Err(problem())
}

/// Whether a number is written with fewer digits than in the layout, which only its separators tell.
fn is_short(text: &str, layout: &str) -> bool {
    let fixed = layout.bytes().take_while(|byte| !matches!(byte, b'.' | b'Z'));
    let mut pairs = fixed.zip(text.bytes());
    pairs.any(|(expected, found)| !expected.is_ascii_digit() && expected != found)
}
