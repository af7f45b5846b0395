//! Floats under a verb: forms, digits, the sharp flag, signs and padding.

use super::Printer;
use crate::number::format_float;

impl Printer {
    /// A float under a verb; false when the verb does not fit.
    pub(super) fn float(&mut self, value: f64, verb: char) -> bool {
        let precision = self.flags.precision;
        let magnitude = value.abs();
        let unsigned = match verb {
            'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' if value.is_nan() => "NaN".to_owned(),
            'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' if value.is_infinite() => "Inf".to_owned(),
            'v' | 'g' | 'G' => match precision {
                None => format_float(magnitude),
                Some(precision) => general(magnitude, precision.max(1)),
            },
            'e' | 'E' => exponent_form(magnitude, precision.unwrap_or(6)),
            'f' | 'F' => format!("{magnitude:.*}", precision.unwrap_or(6)),
            'b' => binary_form(magnitude),
            'x' | 'X' => hexadecimal_form(magnitude, precision),
            _ => return false,
        };
        let unsigned = if matches!(verb, 'E' | 'G' | 'X') && value.is_finite() {
            unsigned.to_uppercase()
        } else {
            unsigned
        };
        let unsigned = if self.flags.sharp && verb != 'b' && value.is_finite() {
            with_point(&unsigned, verb, precision)
        } else {
            unsigned
        };
        self.signed_float(value, &unsigned);
        true
    }

    /// A complex number under a verb; false when the verb does not fit.
    pub(super) fn complex(&mut self, real: f64, imaginary: f64, verb: char) -> bool {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return false;
        }
        self.out.push(b'(');
        self.float(real, verb);
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float(imaginary, verb);
        self.flags.plus = plus;
        self.out.extend_from_slice(b"i)");
        true
    }

    fn signed_float(&mut self, value: f64, unsigned: &str) {
        let is_negative = value.is_sign_negative() && !value.is_nan();
        let sign = match (is_negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) if value.is_infinite() => "+",
            (false, false, false) => "",
        };
        let written = format!("{sign}{unsigned}");
        if !value.is_finite() {
            self.pad_with_spaces(written.as_bytes());
        } else if !sign.is_empty() && self.flags.zero && !self.flags.minus {
            // The sign stands before the zeros.
            self.out.extend_from_slice(sign.as_bytes());
            let missing = self.flags.width.unwrap_or(0).saturating_sub(written.len());
            self.padding(missing);
            self.out.extend_from_slice(unsigned.as_bytes());
        } else {
            self.pad(written.as_bytes());
        }
    }
}

/// Rust's exponent form with Go's exponent: a sign and at least two digits.
fn exponent_form(value: f64, precision: usize) -> String {
    let written = format!("{value:.precision$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g` with a precision: so many significant digits, without the zeros at the end.
fn general(value: f64, precision: usize) -> String {
    let scientific = exponent_form(value, precision - 1);
    let (mantissa, exponent_text) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let exponent: i32 = exponent_text.parse().unwrap_or(0);
    let whole_digits = usize::try_from(exponent + 1).unwrap_or(0);
    // The threshold is the number of digits when all of them stand before the point.
    let threshold = if precision > digits.len() && digits.len() >= whole_digits {
        digits.len()
    } else {
        precision
    };
    if exponent < -4 || usize::try_from(exponent).is_ok_and(|exponent| exponent >= threshold) {
        let mantissa = if mantissa.contains('.') {
            trim_fraction(mantissa)
        } else {
            mantissa
        };
        return format!("{mantissa}e{exponent_text}");
    }
    let decimals = usize::try_from(i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent).unwrap_or(0);
    let plain = format!("{value:.decimals$}");
    if plain.contains('.') {
        trim_fraction(&plain).to_owned()
    } else {
        plain
    }
}

fn trim_fraction(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

/// The mantissa as a whole number and the power of two that it is multiplied by.
fn parts(value: f64) -> (u64, i32) {
    const MANTISSA_BITS: u32 = 52;
    const LEAST_EXPONENT: i32 = -1074;
    let bits = value.abs().to_bits();
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    match i32::try_from(bits >> MANTISSA_BITS) {
        Ok(biased @ 1..) => (mantissa | 1 << MANTISSA_BITS, biased - 1 + LEAST_EXPONENT),
        _ => (mantissa, LEAST_EXPONENT),
    }
}

/// `4503599627370496p-52`: the parts as they are.
fn binary_form(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    format!("{mantissa}p{exponent:+}")
}

/// `0x1.8p+01`: one hexadecimal digit before the point, as many after it as the precision says or the number needs.
fn hexadecimal_form(value: f64, precision: Option<usize>) -> String {
    /// Sixteen digits: one bit before the point, fifteen digits after it.
    const POINT: i32 = 60;
    let (mantissa, exponent) = parts(value);
    if mantissa == 0 {
        let zeros = "0".repeat(precision.unwrap_or(0));
        let point = if zeros.is_empty() { "" } else { "." };
        return format!("0x0{point}{zeros}p+00");
    }
    let shift = mantissa.leading_zeros().saturating_sub(3);
    let mut digits = mantissa << shift;
    let mut exponent = exponent + POINT - i32::try_from(shift).unwrap_or(0);
    if let Some(dropped) = precision.and_then(|precision| 15_usize.checked_sub(precision)) {
        let unit = 1_u64 << (4 * dropped);
        let (rest, half) = (digits % unit, unit / 2);
        let is_odd = digits / unit % 2 == 1;
        digits -= rest;
        if rest > half || (rest == half && is_odd && rest > 0) {
            digits += unit;
        }
        if digits >= 1 << (POINT + 1) {
            digits >>= 1;
            exponent += 1;
        }
    }
    let written = format!("{digits:016x}");
    let (whole, fraction) = written.split_at(1);
    let fraction = match precision {
        None => fraction.trim_end_matches('0').to_owned(),
        Some(precision) => format!("{fraction:0<precision$}")[..precision].to_owned(),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{whole}{point}{fraction}p{sign}{:02}", exponent.abs())
}

/// The sharp flag: always a decimal point, and `%g` keeps the zeros at the end.
fn with_point(number: &str, verb: char, precision: Option<usize>) -> String {
    let is_hexadecimal = matches!(verb, 'x' | 'X');
    let exponent_at = if is_hexadecimal {
        number.find(['p', 'P'])
    } else {
        number.find(['e', 'E'])
    };
    let (digits, tail) = number.split_at(exponent_at.unwrap_or(number.len()));
    let wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    // Go counts the x of 0x among the digits.
    let significant = digits
        .chars()
        .filter(|digit| *digit != '.')
        .skip_while(|digit| *digit == '0')
        .count();
    let mut written = digits.to_owned();
    let mut missing = wanted.saturating_sub(significant);
    if !digits.contains('.') {
        if digits == "0" {
            missing = missing.saturating_sub(1);
        }
        written.push('.');
    }
    written.push_str(&"0".repeat(missing));
    written.push_str(tail);
    written
}
