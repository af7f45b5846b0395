//! Keys of DSA (FIPS 186-4), of 2,048 and 256 bits. They sign nothing here: no certificate of Go's can be signed with one.

use num_bigint::BigUint;

use super::{der, primes};
use crate::answers::Draw;
use crate::bounds::{BoundError, spend};

const PRIME_BITS: u64 = 2_048;
const ORDER_BITS: u64 = 256;
const STEPS: u64 = 250_000;

/// A new key, as OpenSSL writes it: there is no standard.
pub(super) fn generate(draw: &mut Draw) -> Result<Vec<u8>, BoundError> {
    spend(STEPS)?;
    let order = primes::prime(draw, ORDER_BITS)?;
    let prime = prime_above(draw, &order)?;
    let one = BigUint::from(1u8);
    let exponent = (&prime - &one) / &order;
    let mut base = BigUint::from(2u8);
    let generator = loop {
        let generator = base.modpow(&exponent, &prime);
        if generator != one {
            break generator;
        }
        base += 1u8;
    };
    let private = primes::below(draw, &order);
    let public = generator.modpow(&private, &prime);
    let numbers = [prime, order, generator, public, private];
    let numbers = numbers.iter().map(der::integer);
    Ok(der::sequence(
        &[der::small(0)].into_iter().chain(numbers).collect::<Vec<_>>(),
    ))
}

/// A prime that is one more than a multiple of twice the order.
fn prime_above(draw: &mut Draw, order: &BigUint) -> Result<BigUint, BoundError> {
    let small = primes::small_primes();
    let step = order << 1;
    loop {
        let mut start = primes::number(draw, PRIME_BITS);
        start.set_bit(PRIME_BITS - 1, true);
        let candidate: BigUint = &start - &start % &step + 1u8;
        if candidate.bits() == PRIME_BITS && primes::is_prime(&candidate, &small, draw)? {
            return Ok(candidate);
        }
    }
}
