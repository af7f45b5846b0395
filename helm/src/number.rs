//! Numbers as text, by the rules of Go's `strconv`. Decides digits and exponents; knows no values and no documents.

use crate::format::quoted;

/// The shortest text that reads back as the same `f64`: `strconv.FormatFloat(x, 'g', -1, 64)`.
///
/// The exponent form begins at 1e+06 and below 1e-04, as `{{ }}`, `print` and the YAML emitter show floats.
pub(crate) fn format_float(value: f64) -> String {
    general(value, &shortest(value))
}

/// The fewest digits that read back as the same number, with an exponent. Of two that are equally near, Go takes the even ones and Rust the
/// greater.
pub(crate) fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    even_of_two(value, &text).unwrap_or(text)
}

/// The digits below those of a text, if the number lies in the middle between them and they are even.
fn even_of_two(value: f64, text: &str) -> Option<String> {
    /// Two texts of fewer digits never lie as near.
    const DIGITS: usize = 16;
    /// A number that has only zeros that far has nothing else.
    const FAR: usize = 30;
    let (digits, exponent) = text.split_once('e')?;
    let places = digits.split_once('.')?.1.len();
    let last = digits.as_bytes().last().filter(|last| *last % 2 == 1)?;
    if places + 1 < DIGITS {
        return None;
    }
    let even = format!("{}{}", &digits[..digits.len() - 1], char::from(last - 1));
    let middle = format!("{even}5{}e{exponent}", "0".repeat(FAR));
    let exact = format!("{value:.*e}", places + 1 + FAR);
    let even = format!("{even}e{exponent}");
    (exact == middle && even.parse() == Ok(value)).then_some(even)
}

/// The same for a number that Go narrows to 32 bits first: a float where a string field of a chart was expected.
#[expect(clippy::cast_possible_truncation, reason = "narrowing is the documented behaviour")]
pub(crate) fn format_float32(value: f64) -> String {
    let narrowed = value as f32;
    general(f64::from(narrowed), &format!("{narrowed:e}"))
}

/// A float as `encoding/json` writes it: plain digits between 1e-6 and 1e21, an exponent outside. Finite numbers only.
pub(crate) fn format_json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = exponent_form(&shortest(value));
        // Go shortens e-07 to e-7 here, and only here.
        return match text.split_once("e-0") {
            Some((digits, exponent)) => format!("{digits}e-{exponent}"),
            None => text,
        };
    }
    plain(value)
}

/// The fewest digits without an exponent.
pub(crate) fn plain(value: f64) -> String {
    let scientific = shortest(value);
    match exponent(&scientific) {
        Some(exponent) => plain_form(&scientific, exponent),
        None => scientific,
    }
}

fn exponent(scientific: &str) -> Option<i32> {
    scientific.split_once('e')?.1.parse().ok()
}

/// Chooses between plain and exponent form for the scientific text that Rust gives (`-1.25e3`).
fn general(value: f64, scientific: &str) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let exponent = exponent(scientific).unwrap_or_default();
    if (-4..SHORTEST_PRECISION).contains(&exponent) {
        plain_form(scientific, exponent)
    } else {
        exponent_form(scientific)
    }
}

/// The precision that Go assumes for the shortest form.
const SHORTEST_PRECISION: i32 = 6;

fn exponent_form(scientific: &str) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

fn plain_form(scientific: &str, exponent: i32) -> String {
    let mantissa = scientific.split_once('e').map_or(scientific, |(digits, _)| digits);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let mut digits = mantissa.replace('.', "");
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or_default());
        return format!("{sign}0.{zeros}{digits}");
    };
    while digits.len() <= whole {
        digits.push('0');
    }
    let (before, after) = digits.split_at(whole + 1);
    if after.is_empty() {
        format!("{sign}{before}")
    } else {
        format!("{sign}{before}.{after}")
    }
}

/// `strconv.ParseInt(text, 0, 64)` of a text without underscores: the base follows from the prefix.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(rest) => {
            let magnitude = parse_uint(rest)?;
            (magnitude <= i64::MIN.unsigned_abs()).then(|| 0i64.wrapping_sub_unsigned(magnitude))
        }
        None => i64::try_from(parse_uint(text.strip_prefix('+').unwrap_or(text))?).ok(),
    }
}

/// `strconv.Atoi`. The error is Go's.
pub(crate) fn parse_decimal(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let problem = if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse()
        .map_err(|_| format!("strconv.Atoi: parsing {}: {problem}", quoted(text)))
}

/// `strconv.ParseUint(text, 0, 64)` of a text without underscores.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let (digits, base) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // Rust would take a second sign here.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_go_prints_them() {
        for (value, text, json) in [
            (0.0, "0", "0"),
            (3.0, "3", "3"),
            (999_999.0, "999999", "999999"),
            (1_000_000.0, "1e+06", "1000000"),
            (1_234_567.8, "1.2345678e+06", "1234567.8"),
            (123_456.7, "123456.7", "123456.7"),
            (12_345_678_901.0, "1.2345678901e+10", "12345678901"),
            (9_007_199_254_740_992.0, "9.007199254740992e+15", "9007199254740992"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (1e-10, "1e-10", "1e-10"),
            (1e20, "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (-0.5, "-0.5", "-0.5"),
            (-1e100, "-1e+100", "-1e+100"),
            // In the middle between two texts.
            (121_183_531_555_830.63, "1.2118353155583062e+14", "121183531555830.62"),
            (121_183_531_555_830.38, "1.2118353155583038e+14", "121183531555830.38"),
        ] {
            assert_eq!(format_float(value), text);
            assert_eq!(format_json_float(value), json);
        }
        assert_eq!(format_float32(0.1), "0.1");
        assert_eq!(format_float32(1.123_456_789), "1.1234568");
        assert_eq!(format_float32(-1e100), "-Inf");
    }

    #[test]
    fn integers_take_their_base_from_the_prefix() {
        for (text, value) in [
            ("0777", Some(511)),
            ("0o17", Some(15)),
            ("0x1F", Some(31)),
            ("-0x1", Some(-1)),
            ("0b101", Some(5)),
            ("+7", Some(7)),
            ("0", Some(0)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("08", None),
            ("0x", None),
            ("", None),
            ("--1", None),
            ("0x-1", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(parse_int(text), value, "{text}");
        }
        assert_eq!(parse_uint("18446744073709551615"), Some(u64::MAX));
    }
}
