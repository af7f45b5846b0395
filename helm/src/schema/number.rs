//! Numbers of schemas and values as exact decimals, and how Helm's messages write them.

use std::cmp::Ordering;
use std::fmt;

use crate::number;

/// A decimal number: digits without zeros at either end, times a power of ten. Zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Where Go stops to read exponents.
const MAX_EXPONENT: i64 = 1_000_000;

/// The longest divisor whose remainders fit a machine word.
const MAX_DIVISOR_DIGITS: usize = 36;

impl Decimal {
    /// Reads a JSON number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let mut exponent: i64 = exponent.parse().ok()?;
        if exponent.abs() > MAX_EXPONENT {
            return None;
        }
        let is_negative = mantissa.starts_with('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        exponent -= i64::try_from(fraction.len()).ok()?;
        let written = whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
        let mut digits: Vec<u8> = written
            .map(|digit| digit - b'0')
            .skip_while(|digit| *digit == 0)
            .collect();
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        if digits.is_empty() {
            exponent = 0;
        }
        Some(Self {
            is_negative: is_negative && !digits.is_empty(),
            digits,
            exponent,
        })
    }

    /// Reads a string as Go reads a number in decimal digits.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let digits = mantissa.replacen('.', "", 1);
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        (is_number(&digits) && is_number(exponent_digits)).then(|| Self::parse(text))?
    }

    pub(super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The number as a count, if it is one: of those beyond 64 bits the lowest, as in Go.
    pub(super) fn as_count(&self) -> Option<i64> {
        if !self.is_integer() {
            return None;
        }
        let zeros = usize::try_from(self.exponent).unwrap_or(usize::MAX).min(64);
        let digits = self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros));
        let count = digits.fold(0i64, |count, digit| {
            count.wrapping_mul(10).wrapping_add(i64::from(digit))
        });
        Some(if self.is_negative { count.wrapping_neg() } else { count })
    }

    /// Whether divisions by the number are supported.
    pub(super) fn is_divisor(&self) -> bool {
        !self.digits.is_empty() && self.digits.len() <= MAX_DIVISOR_DIGITS
    }

    /// Whether the number is a whole multiple of a divisor.
    pub(super) fn is_multiple_of(&self, divisor: &Self) -> bool {
        if self.digits.is_empty() {
            return true;
        }
        // The digits end with another digit than zero, so they have no power of ten in them.
        let Ok(zeros) = usize::try_from(self.exponent - divisor.exponent) else {
            return false;
        };
        let modulus = divisor
            .digits
            .iter()
            .fold(0u128, |number, digit| number * 10 + u128::from(*digit));
        let digits = self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros));
        digits.fold(0u128, |rest, digit| (rest * 10 + u128::from(digit)) % modulus) == 0
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        let height = |number: &Self| match number.digits.len() {
            0 => i64::MIN,
            length => i64::try_from(length)
                .unwrap_or(i64::MAX)
                .saturating_add(number.exponent),
        };
        height(self)
            .cmp(&height(other))
            .then_with(|| self.digits.cmp(&other.digits))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// A number in a message: English, so thousands have commas, and exponents stand above the line.
pub(super) fn localized(text: &str) -> String {
    let is_zero = Decimal::parse(text).is_some_and(|number| number.digits.is_empty());
    let float = if is_zero { 0.0 } else { text.parse().unwrap_or_default() };
    let plain = number::format_float(float);
    match plain.split_once('e') {
        Some((digits, exponent)) => format!("{digits}×10{}", exponent.chars().filter_map(raised).collect::<String>()),
        None => grouped(&plain),
    }
}

/// A count in a message.
pub(super) fn localized_count(count: impl fmt::Display) -> String {
    grouped(&format!("{count}"))
}

fn raised(character: char) -> Option<char> {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match character {
        '-' => Some('⁻'),
        _ => DIGITS.get(character.to_digit(10)? as usize).copied(),
    }
}

fn grouped(plain: &str) -> String {
    let (sign, rest) = plain.strip_prefix('-').map_or(("", plain), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut text = sign.to_owned();
    for (position, digit) in whole.char_indices() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn decimals_compare_exactly() {
        for (less, more) in [
            ("1", "2"),
            ("-2", "-1"),
            ("-1", "0"),
            ("0", "1e-5"),
            ("9007199254740992", "9007199254740993"),
            ("0.1", "0.10000000000000000000000000001"),
            ("99", "1e2"),
            ("1.5", "15"),
        ] {
            assert!(decimal(less) < decimal(more), "{less} {more}");
        }
        assert_eq!(decimal("1e2"), decimal("100.0"));
        assert_eq!(decimal("-0"), decimal("0.00e7"));
        assert!(Decimal::parse("1e1000001").is_none());
    }

    #[test]
    fn multiples_are_exact() {
        for (number, divisor, is_multiple) in [
            ("0.3", "0.1", true),
            ("0.35", "0.1", false),
            ("7", "2", false),
            ("1e20", "3", false),
            ("9e20", "3", true),
            ("0", "5", true),
            ("10", "0.01", true),
            ("1.1", "10", false),
        ] {
            assert_eq!(
                decimal(number).is_multiple_of(&decimal(divisor)),
                is_multiple,
                "{number} {divisor}"
            );
        }
    }

    #[test]
    fn numbers_in_messages_are_english() {
        for (text, expected) in [
            ("999", "999"),
            ("1000", "1,000"),
            ("-65536", "-65,536"),
            ("123456.789", "123,456.789"),
            ("1000000", "1×10⁰⁶"),
            ("1234567", "1.234567×10⁰⁶"),
            ("0.00001", "1×10⁻⁰⁵"),
            ("1.5e300", "1.5×10³⁰⁰"),
            ("0.0001", "0.0001"),
        ] {
            assert_eq!(localized(text), expected);
        }
        assert_eq!(localized_count(1_234_567), "1,234,567");
    }
}
