//! Reads the constants of templates: numbers, characters and quoted strings, by the rules of Go's `strconv`.

use super::syntax::Number;
use crate::number;
use crate::text::{push_char, replace_all};

const INVALID: &str = "invalid syntax";

/// What a quoted string or a raw string stands for.
pub(super) fn unquote(quoted: &[u8]) -> Result<Vec<u8>, String> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).ok_or(INVALID)?;
    if quoted.starts_with(b"`") {
        // Go drops carriage returns in raw strings.
        return Ok(replace_all(inner, b"\r", b""));
    }
    if memchr::memchr2(b'\\', b'"', inner).is_none() && str::from_utf8(inner).is_ok() {
        return Ok(inner.to_vec());
    }
    let mut value = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        rest = unquote_one(rest, b'"', &mut value)?.1;
    }
    Ok(value)
}

/// Reads one character or escape, appends its bytes; gives its number and what follows.
fn unquote_one<'a>(text: &'a [u8], quote: u8, value: &mut Vec<u8>) -> Result<(u32, &'a [u8]), String> {
    match text {
        [] | [b'\\'] => Err(INVALID.to_owned()),
        [byte, ..] if *byte == quote => Err(INVALID.to_owned()),
        [b'\\', escape, rest @ ..] => unquote_escape(*escape, rest, quote, value),
        [..] => {
            let rune = crate::text::first_rune(text).ok_or(INVALID)?;
            push_char(value, rune.or_replacement());
            Ok((rune.or_replacement() as u32, &text[rune.bytes.len()..]))
        }
    }
}

fn unquote_escape<'a>(escape: u8, rest: &'a [u8], quote: u8, value: &mut Vec<u8>) -> Result<(u32, &'a [u8]), String> {
    let byte = match escape {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' => b'\\',
        b'\'' | b'"' if escape == quote => escape,
        b'x' => {
            let (code, rest) = digits(rest, 2, 16)?;
            value.push(u8::try_from(code).map_err(|_| INVALID)?);
            return Ok((code, rest));
        }
        b'u' | b'U' => {
            let (code, rest) = digits(rest, if escape == b'u' { 4 } else { 8 }, 16)?;
            push_char(value, char::from_u32(code).ok_or(INVALID)?);
            return Ok((code, rest));
        }
        b'0'..=b'7' => {
            let (code, rest) = digits(rest, 2, 8)?;
            let code = u32::from(escape - b'0') * 64 + code;
            value.push(u8::try_from(code).map_err(|_| INVALID)?);
            return Ok((code, rest));
        }
        _ => return Err(INVALID.to_owned()),
    };
    value.push(byte);
    Ok((u32::from(byte), rest))
}

fn digits(text: &[u8], count: usize, radix: u32) -> Result<(u32, &[u8]), String> {
    let (digits, rest) = text.split_at_checked(count).ok_or(INVALID)?;
    let code = digits.iter().try_fold(0u32, |code, digit| {
        char::from(*digit)
            .to_digit(radix)
            .map(|digit| code.wrapping_mul(radix).wrapping_add(digit))
    });
    Ok((code.ok_or(INVALID)?, rest))
}

/// A character constant; its readings as int, uint and float are the number of the character.
pub(super) fn character(text: &[u8]) -> Result<Number, String> {
    let (code, tail) = unquote_one(&text[1..], b'\'', &mut Vec::new())?;
    if tail != b"'" {
        return Err(format!("malformed character constant: {}", crate::text::lossy(text)));
    }
    Ok(Number {
        int: Some(code.into()),
        uint: Some(code.into()),
        float: Some(code.into()),
        ..Number::default()
    })
}

/// A number constant. An integral float also reads as an integer, an integer also as a float.
#[expect(clippy::cast_precision_loss, reason = "Go converts the same way")]
pub(super) fn number(text: &[u8]) -> Result<Number, String> {
    let text = str::from_utf8(text).map_err(|_| INVALID)?;
    if let Some(imaginary) = text.strip_suffix('i').and_then(parse_float) {
        return Ok(complex_number(0.0, imaginary));
    }
    let mut number = Number::default();
    if let Some(digits) = without_underscores(text) {
        let unsigned = if text.starts_with(['+', '-']) {
            None
        } else {
            number::parse_uint(&digits)
        };
        number.uint = unsigned;
        number.int = number::parse_int(&digits);
        if number.int == Some(0) {
            number.uint = Some(0);
        }
    }
    number.float = match (number.int, number.uint) {
        (Some(int), _) => Some(int as f64),
        (None, Some(uint)) => Some(uint as f64),
        (None, None) => None,
    };
    if number.float.is_none()
        && let Some(float) = parse_float(text)
    {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {text:?}"));
        }
        number.float = Some(float);
        number.int = integral(float);
        number.uint = number.int.and_then(|int| u64::try_from(int).ok());
    }
    if number.float.is_none() {
        return Err(format!("illegal number syntax: {text:?}"));
    }
    Ok(number)
}

/// A constant with a real and an imaginary part, `1+2i`.
pub(super) fn complex(text: &[u8]) -> Result<Number, String> {
    let text = str::from_utf8(text).map_err(|_| INVALID)?;
    let is_sign =
        |at: &usize| matches!(text.as_bytes()[*at], b'+' | b'-') && !text[..*at].ends_with(['e', 'E', 'p', 'P']);
    let parts = (1..text.len()).find(is_sign).map(|at| text.split_at(at));
    let read = |(real, imaginary): (&str, &str)| {
        let imaginary = imaginary.strip_suffix('i')?;
        Some(complex_number(parse_float(real)?, parse_float(imaginary)?))
    };
    parts
        .and_then(read)
        .ok_or_else(|| "syntax error scanning complex number".to_owned())
}

/// Without an imaginary part it also reads as a number of another kind.
fn complex_number(real: f64, imaginary: f64) -> Number {
    let float = (imaginary == 0.0).then_some(real);
    let int = float.and_then(integral);
    Number {
        float,
        int,
        uint: int.and_then(|int| u64::try_from(int).ok()),
        complex: Some((real, imaginary)),
        ..Number::default()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the comparison tells what was lost"
)]
fn integral(float: f64) -> Option<i64> {
    let int = float as i64;
    #[expect(clippy::float_cmp, reason = "exactness is the question")]
    let is_exact = int as f64 == float && int != i64::MAX;
    is_exact.then_some(int)
}

/// Removes the underscores of a Go number; nothing when one does not stand between digits. A prefix counts as a digit.
pub(crate) fn without_underscores(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    let has_prefix = matches!(unsigned.as_bytes(), [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', ..]);
    let body = if has_prefix { &unsigned[2..] } else { unsigned };
    let mut follows_digit = has_prefix;
    let mut follows_underscore = false;
    for byte in body.bytes() {
        let is_underscore = byte == b'_';
        let is_digit = byte.is_ascii_digit() || (has_prefix && byte.is_ascii_hexdigit());
        if (is_underscore && !follows_digit) || (follows_underscore && !is_digit) {
            return None;
        }
        (follows_digit, follows_underscore) = (is_digit, is_underscore);
    }
    (!follows_underscore).then(|| text.replace('_', ""))
}

/// `strconv.ParseFloat` of finite numbers, hexadecimal ones included.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let digits = without_underscores(text).map(|_| digits.replace('_', ""))?;
        let magnitude = parse_hexadecimal_float(&digits)?;
        return Some(if text.starts_with('-') { -magnitude } else { magnitude });
    }
    let value: f64 = without_underscores(text)?.parse().ok()?;
    // Rust overflows to infinity where Go reports an error, and knows more spellings of the special values.
    let is_spelled = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    (value.is_finite() && is_spelled).then_some(value)
}

#[expect(clippy::cast_precision_loss, reason = "as many digits as a float holds")]
fn parse_hexadecimal_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.len() > 15 {
        return None;
    }
    let value = u64::from_str_radix(&digits, 16).ok()? as f64;
    let exponent = exponent.parse::<i32>().ok()? - 4 * i32::try_from(fraction.len()).ok()?;
    let value = value * 2f64.powi(exponent);
    value.is_finite().then_some(value)
}
