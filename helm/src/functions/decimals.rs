//! Arithmetic on decimal fractions: `addf 0.1 0.2` is 0.3. Computed exactly, then turned into the nearest float.

use num_bigint::BigInt;

use super::numbers::to_float64;
use super::{Called, Function, mismatch};
use crate::bounds::beyond;
use crate::value::Type::Any;
use crate::value::Value;

/// How many digits a number may have. Any two floats have their sum, product and quotient within it.
const MAX_DIGITS: u64 = 4_000;

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

fn fold(arguments: &[Value], combine: fn(&Decimal, &Decimal) -> Result<Decimal, String>) -> Called {
    let [first, others @ ..] = arguments else {
        return Err(mismatch());
    };
    let mut result = Decimal::of(to_float64(first))?;
    for other in others {
        result = combine(&result, &Decimal::of(to_float64(other))?)?;
    }
    result.to_float().map(Value::Float)
}

/// `digits` times ten to the power of `exponent`.
struct Decimal {
    digits: BigInt,
    exponent: i32,
}

/// Exact results beyond the bound are refused rather than rounded.
fn too_long() -> String {
    beyond(format!("decimal number has more than {MAX_DIGITS} digits"))
}

fn power_of_ten(exponent: i32) -> Result<BigInt, String> {
    let exponent = u32::try_from(exponent)
        .ok()
        .filter(|exponent| u64::from(*exponent) <= MAX_DIGITS);
    Ok(BigInt::from(10).pow(exponent.ok_or_else(too_long)?))
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
        let written = crate::number::shortest(value);
        let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let places = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa.replace('.', "").parse().map_err(|_| too_long())?;
        let exponent: i32 = exponent.parse().map_err(|_| too_long())?;
        Self {
            digits,
            exponent: exponent - i32::try_from(places).map_err(|_| too_long())?,
        }
        .checked()
    }

    /// Three and a third bits are a digit.
    fn checked(self) -> Result<Self, String> {
        if self.digits.bits() > MAX_DIGITS * 10 / 3 {
            Err(too_long())
        } else {
            Ok(self)
        }
    }

    fn digits_at(&self, exponent: i32) -> Result<BigInt, String> {
        if self.digits == BigInt::ZERO {
            return Ok(BigInt::ZERO);
        }
        Ok(&self.digits * power_of_ten(self.exponent - exponent)?)
    }

    fn add(&self, other: &Self) -> Result<Self, String> {
        let exponent = match (self.digits == BigInt::ZERO, other.digits == BigInt::ZERO) {
            (true, _) => other.exponent,
            (_, true) => self.exponent,
            _ => self.exponent.min(other.exponent),
        };
        let digits = self.digits_at(exponent)? + other.digits_at(exponent)?;
        Self { digits, exponent }.checked()
    }

    fn sub(&self, other: &Self) -> Result<Self, String> {
        self.add(&Self {
            digits: -&other.digits,
            exponent: other.exponent,
        })
    }

    fn mul(&self, other: &Self) -> Result<Self, String> {
        Self {
            digits: &self.digits * &other.digits,
            exponent: self.exponent + other.exponent,
        }
        .checked()
    }

    /// Rounds half away from zero.
    fn div(&self, other: &Self) -> Result<Self, String> {
        if other.digits == BigInt::ZERO {
            return Err("decimal division by 0".to_owned());
        }
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let (dividend, divisor) = if shift >= 0 {
            (&self.digits * power_of_ten(shift)?, other.digits.clone())
        } else {
            (self.digits.clone(), &other.digits * power_of_ten(-shift)?)
        };
        let (quotient, remainder) = (&dividend / &divisor, &dividend % &divisor);
        let rounds = remainder.magnitude() * 2u8 >= *divisor.magnitude();
        let away = if dividend.sign() == divisor.sign() { 1 } else { -1 };
        Self {
            digits: quotient + if rounds { away } else { 0 },
            exponent: -DIVISION_PLACES,
        }
        .checked()
    }

    fn to_float(&self) -> Result<f64, String> {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .map_err(|_| too_long())
    }
}
