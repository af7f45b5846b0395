//! `time.Duration`: spans of time in nanoseconds, read and written as `1h2m3.5s`.

use super::{leading_number, quote};

pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;

const LIMIT: u64 = 1 << 63;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duration(pub(crate) i64);

impl Duration {
    /// Reads a text such as `-1h2.5m`; the error is Go's text.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let invalid = || format!("time: invalid duration {}", quote(text));
        let (is_negative, mut rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if rest == b"0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut sum = 0u64;
        while !rest.is_empty() {
            let (number, unit, after) = part(text, rest)?;
            let part = number.scaled(unit).ok_or_else(invalid)?;
            sum = sum.checked_add(part).filter(|sum| *sum <= LIMIT).ok_or_else(invalid)?;
            rest = after;
        }
        if is_negative {
            return Ok(Self(0i64.wrapping_sub_unsigned(sum)));
        }
        i64::try_from(sum).map(Self).map_err(|_| invalid())
    }

    /// So many units of a length, with a fraction.
    #[expect(clippy::cast_precision_loss, reason = "both parts are converted alone, as in Go")]
    pub(crate) fn in_units(self, unit: i64) -> f64 {
        (self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64
    }

    /// Rounded toward zero to a multiple.
    pub(crate) fn truncated(self, multiple: Self) -> Self {
        if multiple.0 <= 0 {
            return self;
        }
        Self(self.0 - self.0 % multiple.0)
    }

    /// Rounded to the nearest multiple, halves away from zero; the ends of the range where that does not fit.
    pub(crate) fn rounded(self, multiple: Self) -> Self {
        if multiple.0 <= 0 {
            return self;
        }
        let rest = self.0 % multiple.0;
        let is_low = rest.unsigned_abs() * 2 < multiple.0.unsigned_abs();
        Self(match (is_low, self.0 < 0) {
            (true, _) => self.0 - rest,
            (false, true) => self.0.checked_sub(rest + multiple.0).unwrap_or(i64::MIN),
            (false, false) => self.0.checked_add(multiple.0 - rest).unwrap_or(i64::MAX),
        })
    }

    /// Without its sign.
    pub(crate) fn absolute(self) -> Self {
        Self(self.0.checked_abs().unwrap_or(i64::MAX))
    }
}

impl std::fmt::Display for Duration {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanoseconds = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let with_fraction = |unit: u64| {
            let width = unit.ilog10() as usize;
            let fraction = format!("{:0width$}", nanoseconds % unit);
            let text = format!("{}.{fraction}", nanoseconds / unit);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match nanoseconds {
            0 => return formatter.write_str("0s"),
            1..1_000 => return write!(formatter, "{sign}{nanoseconds}ns"),
            1_000..1_000_000 => return write!(formatter, "{sign}{}µs", with_fraction(1_000)),
            1_000_000..1_000_000_000 => return write!(formatter, "{sign}{}ms", with_fraction(1_000_000)),
            _ => {}
        }
        let minutes = nanoseconds / MINUTE.unsigned_abs();
        let seconds = Self((nanoseconds % MINUTE.unsigned_abs()).cast_signed()).seconds_text();
        match (minutes / 60, minutes % 60) {
            (0, 0) => write!(formatter, "{sign}{seconds}s"),
            (0, minutes) => write!(formatter, "{sign}{minutes}m{seconds}s"),
            (hours, minutes) => write!(formatter, "{sign}{hours}h{minutes}m{seconds}s"),
        }
    }
}

impl Duration {
    /// The seconds of less than a minute, with as many digits after the point as are needed.
    fn seconds_text(self) -> String {
        let text = format!("{}.{:09}", self.0 / SECOND, self.0 % SECOND);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// A number with a fraction.
struct Decimal {
    whole: u64,
    /// Digits after the point, as many as fit.
    fraction: u64,
    /// Ten to the number of those digits.
    scale: f64,
}

impl Decimal {
    /// So many units in nanoseconds, nothing when that is too long.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Go calculates the fraction of a unit as a float"
    )]
    fn scaled(&self, unit: u64) -> Option<u64> {
        let mut nanoseconds = self.whole.checked_mul(unit).filter(|whole| *whole <= LIMIT)?;
        if self.fraction > 0 {
            nanoseconds += (self.fraction as f64 * (unit as f64 / self.scale)) as u64;
        }
        (nanoseconds <= LIMIT).then_some(nanoseconds)
    }
}

/// The first number with its unit in nanoseconds, and what follows.
fn part<'t>(whole: &[u8], text: &'t [u8]) -> Result<(Decimal, u64, &'t [u8]), String> {
    let problem = |problem: &str| format!("time: {problem} {}", quote(whole));
    let starts_number = matches!(text, [b'.' | b'0'..=b'9', ..]);
    let number = leading_number(text).filter(|_| starts_number);
    let (number, after) = number.ok_or_else(|| problem("invalid duration"))?;
    let has_whole = after.len() < text.len();
    let mut decimal = Decimal {
        whole: number,
        fraction: 0,
        scale: 1.0,
    };
    let (mut rest, mut has_fraction) = (after, false);
    if let [b'.', digits @ ..] = after {
        rest = decimal.read_fraction(digits);
        has_fraction = rest.len() < digits.len();
    }
    if !has_whole && !has_fraction {
        return Err(problem("invalid duration"));
    }
    let end = rest.iter().position(|byte| matches!(byte, b'.' | b'0'..=b'9'));
    let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if unit.is_empty() {
        return Err(problem("missing unit in duration"));
    }
    let length = match unit {
        b"ns" => 1,
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => SECOND.unsigned_abs(),
        b"m" => MINUTE.unsigned_abs(),
        b"h" => HOUR.unsigned_abs(),
        _ => return Err(problem(&format!("unknown unit {} in duration", quote(unit)))),
    };
    Ok((decimal, length, rest))
}

impl Decimal {
    /// Reads digits after the point; those that do not fit are skipped.
    fn read_fraction<'t>(&mut self, digits: &'t [u8]) -> &'t [u8] {
        let mut rest = digits;
        let mut is_full = false;
        while let [digit @ b'0'..=b'9', after @ ..] = rest {
            rest = after;
            is_full |= self.fraction > (LIMIT - 1) / 10;
            if is_full {
                continue;
            }
            let longer = self.fraction * 10 + u64::from(digit - b'0');
            if longer > LIMIT {
                is_full = true;
                continue;
            }
            self.fraction = longer;
            self.scale *= 10.0;
        }
        rest
    }
}
