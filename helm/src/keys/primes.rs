//! Large primes.

use num_bigint::BigUint;

use crate::answers::Draw;
use crate::bounds::{BoundError, spend};

/// Small primes that most numbers are divided by one of.
const SMALL: u32 = 8_192;

/// A prime of exactly that many bits whose two highest bits are set, so that the product of two such has all its bits.
pub(super) fn prime(draw: &mut Draw, bits: u64) -> Result<BigUint, BoundError> {
    let small = small_primes();
    loop {
        let mut candidate = number(draw, bits);
        candidate.set_bit(bits - 2, true);
        candidate.set_bit(bits - 1, true);
        candidate.set_bit(0, true);
        if is_prime(&candidate, &small, draw)? {
            return Ok(candidate);
        }
    }
}

/// A number of at most that many bits.
pub(super) fn number(draw: &mut Draw, bits: u64) -> BigUint {
    let mut bytes = vec![0; usize::try_from(bits.div_ceil(8)).unwrap_or(0)];
    draw.fill(&mut bytes);
    BigUint::from_bytes_be(&bytes) >> (bytes.len() as u64 * 8 - bits)
}

/// A number from 1 to below `end`.
pub(super) fn below(draw: &mut Draw, end: &BigUint) -> BigUint {
    loop {
        let number = number(draw, end.bits());
        if number < *end && number != BigUint::ZERO {
            return number;
        }
    }
}

/// The odd primes below [`SMALL`].
pub(super) fn small_primes() -> Vec<u32> {
    let mut primes: Vec<u32> = Vec::new();
    for number in (3..SMALL).step_by(2) {
        if primes
            .iter()
            .take_while(|prime| *prime * *prime <= number)
            .all(|prime| number % prime != 0)
        {
            primes.push(number);
        }
    }
    primes
}

/// Whether an odd number above [`SMALL`] is prime, by the test of Miller and Rabin. A random number that is not passes with a chance below
/// 2^-100 (FIPS 186-5, table B.1). Only an error when the render was cancelled: whoever draws primes has paid for them.
pub(super) fn is_prime(number: &BigUint, small: &[u32], draw: &mut Draw) -> Result<bool, BoundError> {
    if small.iter().any(|prime| number % *prime == BigUint::ZERO) {
        return Ok(false);
    }
    let rounds = if number.bits() < 1_024 { 32 } else { 8 };
    let one = BigUint::from(1u8);
    let before = number - &one;
    let twos = before.trailing_zeros().unwrap_or(0);
    let odd = &before >> twos;
    for _ in 0..rounds {
        spend(0)?;
        let base = below(draw, &before);
        let mut power = base.modpow(&odd, number);
        let is_witness = power != one
            && power != before
            && !(1..twos).any(|_| {
                power = &power * &power % number;
                power == before
            });
        if is_witness {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::Moment;

    #[test]
    fn primes_are_told_from_products() {
        let now = Moment {
            seconds: 0,
            nanoseconds: 0,
        };
        let (mut draw, small) = (Draw::new([1; 32], now), small_primes());
        assert_eq!(small.len(), 1_027);
        for (number, expected) in [
            // 2^89 - 1 and 2^107 - 1 are primes, 2^101 - 1 is a product of two large ones.
            ((BigUint::from(1u8) << 89) - 1u8, true),
            ((BigUint::from(1u8) << 107) - 1u8, true),
            ((BigUint::from(1u8) << 101) - 1u8, false),
            (BigUint::from(1_000_003u32) * 1_000_033u32, false),
        ] {
            assert_eq!(is_prime(&number, &small, &mut draw), Ok(expected), "{number}");
        }
        assert_eq!(prime(&mut draw, 256).map(|prime| prime.bits()), Ok(256));
    }
}
