//! Keys of RSA (RFC 8017).

use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use super::{der, primes};
use crate::answers::Draw;
use crate::bounds::{BoundError, spend};

/// A private key of two primes.
#[derive(Clone)]
pub(crate) struct RsaKey {
    pub(super) modulus: BigUint,
    pub(super) public: BigUint,
    pub(super) private: BigUint,
    pub(super) primes: [BigUint; 2],
}

/// What a signature says about its digest: that it is SHA-256.
const SHA256_PREFIX: &[u8] = b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20";

/// What finding a key of 1,024 bits costs; more bits cost by their third power. Twenty keys of 4,096 bits are within the steps that a render
/// has by default, and about all that anybody can wait for.
const STEPS: u64 = 7_500;

impl RsaKey {
    /// A new key. Takes from a tenth of a second for 2,048 bits to seconds for 4,096; the render pays for it before.
    pub(crate) fn generate(draw: &mut Draw, bits: u64) -> Result<Self, BoundError> {
        spend(STEPS * (bits / 1_024).pow(3))?;
        let public = BigUint::from(65_537u32);
        let one = BigUint::from(1u8);
        loop {
            let (first, second) = (primes::prime(draw, bits / 2)?, primes::prime(draw, bits / 2)?);
            let order = (&first - &one) * (&second - &one);
            // No inverse when the public exponent, a prime, divides the order.
            if let Some(private) = public.modinv(&order)
                && first != second
            {
                return Ok(Self {
                    modulus: &first * &second,
                    public,
                    private,
                    primes: [first, second],
                });
            }
        }
    }

    /// Checks a key that was read: the product of its primes, and the exponents and the coefficient that came with it.
    pub(super) fn check(&self, given: &[BigUint]) -> Result<(), String> {
        let [first, second] = &self.primes;
        let one = BigUint::from(1u8);
        if *first == one || *second == one || first * second != self.modulus {
            return Err("crypto/rsa: p * q != n".to_owned());
        }
        for (exponent, prime) in given.iter().zip([first, second]) {
            if *exponent != self.reduced(prime) {
                return Err("crypto/rsa: invalid CRT exponent".to_owned());
            }
        }
        match given.get(2) {
            Some(coefficient) if *coefficient != self.coefficient() => {
                Err("crypto/rsa: invalid CRT coefficient".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The structure `RSAPrivateKey`.
    pub(super) fn to_pkcs1(&self) -> Vec<u8> {
        let [first, second] = &self.primes;
        let parts = [
            &self.modulus,
            &self.public,
            &self.private,
            first,
            second,
            &self.reduced(first),
            &self.reduced(second),
            &self.coefficient(),
        ];
        let numbers = parts.map(der::integer);
        der::sequence(&[&[der::small(0)], &numbers[..]].concat())
    }

    /// The structure `RSAPublicKey`.
    pub(super) fn to_public(&self) -> Vec<u8> {
        der::sequence(&[der::integer(&self.modulus), der::integer(&self.public)])
    }

    fn reduced(&self, prime: &BigUint) -> BigUint {
        &self.private % (prime - 1u8)
    }

    /// The inverse of the second prime modulo the first; there is one, because they are two primes.
    fn coefficient(&self) -> BigUint {
        let [first, second] = &self.primes;
        second.modinv(first).unwrap_or_default()
    }

    /// Signs with PKCS #1 v1.5 and SHA-256. The key has at least 1,024 bits.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let length = usize::try_from(self.modulus.bits().div_ceil(8)).unwrap_or(0);
        let digest = [SHA256_PREFIX, &Sha256::digest(message)].concat();
        let mut padded = vec![0xff; length.saturating_sub(digest.len() + 1)];
        padded[..2].copy_from_slice(&[0, 1]);
        padded.push(0);
        padded.extend_from_slice(&digest);
        let signature = self.power(&BigUint::from_bytes_be(&padded)).to_bytes_be();
        [vec![0; length.saturating_sub(signature.len())], signature].concat()
    }

    /// To the power of the private exponent, by the Chinese remainder theorem.
    fn power(&self, number: &BigUint) -> BigUint {
        let [first, second] = &self.primes;
        let by_first = number.modpow(&self.reduced(first), first);
        let by_second = number.modpow(&self.reduced(second), second);
        let difference = by_first + first - &by_second % first;
        let factor = self.coefficient() * difference % first;
        by_second + factor * second
    }
}
