//! Arithmetic on decimal fractions: `addf 0.1 0.2` is 0.3. Computed exactly, then turned into the nearest float.

use super::numbers::to_float64;
use super::{Called, Function, mismatch};
use crate::value::Type::Any;
use crate::value::Value;

/// Digits after the point that a division keeps.
const DIVISION_PLACES: i32 = 16;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("add1f", &[Any], |arguments| {
        fold(&[arguments, &[Value::int(1)]].concat(), Decimal::add)
    }),
    Function::variadic("addf", &[Any], |arguments| {
        fold(&[&[Value::int(0)], arguments].concat(), Decimal::add)
    }),
    Function::variadic("subf", &[Any, Any], |arguments| fold(arguments, Decimal::sub)),
    Function::variadic("mulf", &[Any, Any], |arguments| fold(arguments, Decimal::mul)),
    Function::variadic("divf", &[Any, Any], |arguments| fold(arguments, Decimal::div)),
];

fn fold(arguments: &[Value], combine: fn(Decimal, Decimal) -> Result<Decimal, String>) -> Called {
    let [first, others @ ..] = arguments else {
        return Err(mismatch());
    };
    let mut result = Decimal::of(to_float64(first))?;
    for other in others {
        result = combine(result, Decimal::of(to_float64(other))?)?;
    }
    result.to_float().map(Value::Float)
}

/// `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Exact results beyond 38 digits are refused rather than rounded.
fn too_long() -> String {
    "decimal number has too many digits".to_owned()
}

fn power_of_ten(exponent: i32) -> Result<i128, String> {
    u32::try_from(exponent)
        .ok()
        .and_then(|exponent| 10i128.checked_pow(exponent))
        .ok_or_else(too_long)
}

impl Decimal {
    /// The shortest decimal that reads back as the float.
    fn of(value: f64) -> Result<Self, String> {
        if !value.is_finite() {
            return Err(format!(
                "Cannot create a Decimal from {}",
                crate::number::format_float(value)
            ));
        }
        let written = format!("{value:e}");
        let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let places = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits: i128 = mantissa.replace('.', "").parse().map_err(|_| too_long())?;
        let exponent: i32 = exponent.parse().map_err(|_| too_long())?;
        Ok(Self {
            digits,
            exponent: exponent - i32::try_from(places).map_err(|_| too_long())?,
        })
    }

    fn digits_at(self, exponent: i32) -> Result<i128, String> {
        if self.digits == 0 {
            return Ok(0);
        }
        self.digits
            .checked_mul(power_of_ten(self.exponent - exponent)?)
            .ok_or_else(too_long)
    }

    fn add(self, other: Self) -> Result<Self, String> {
        let exponent = match (self.digits, other.digits) {
            (0, _) => other.exponent,
            (_, 0) => self.exponent,
            _ => self.exponent.min(other.exponent),
        };
        let digits = self
            .digits_at(exponent)?
            .checked_add(other.digits_at(exponent)?)
            .ok_or_else(too_long)?;
        Ok(Self { digits, exponent })
    }

    fn sub(self, other: Self) -> Result<Self, String> {
        self.add(Self {
            digits: -other.digits,
            ..other
        })
    }

    fn mul(self, other: Self) -> Result<Self, String> {
        let digits = self.digits.checked_mul(other.digits).ok_or_else(too_long)?;
        Ok(Self {
            digits,
            exponent: self.exponent + other.exponent,
        })
    }

    /// Rounds half away from zero.
    fn div(self, other: Self) -> Result<Self, String> {
        if other.digits == 0 {
            return Err("decimal division by 0".to_owned());
        }
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let (dividend, divisor) = if shift >= 0 {
            (
                self.digits.checked_mul(power_of_ten(shift)?).ok_or_else(too_long)?,
                other.digits,
            )
        } else {
            (
                self.digits,
                other.digits.checked_mul(power_of_ten(-shift)?).ok_or_else(too_long)?,
            )
        };
        let (quotient, remainder) = (dividend / divisor, dividend % divisor);
        let rounds = remainder.unsigned_abs().saturating_mul(2) >= divisor.unsigned_abs();
        let away = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
        Ok(Self {
            digits: quotient + if rounds { away } else { 0 },
            exponent: -DIVISION_PLACES,
        })
    }

    fn to_float(self) -> Result<f64, String> {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .map_err(|_| too_long())
    }
}
