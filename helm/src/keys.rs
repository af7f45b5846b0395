//! Private keys and certificates, made from the randomness of an answer alone: the same bytes in, the same keys out, in every build.
//!
//! Knows no templates. The numbers of RSA and DSA are computed in time that depends on them; what is made here goes into manifests as plain
//! text, on a machine where nobody else can time it, and nothing is ever decrypted with it.

pub(crate) mod certificate;
mod curves;
mod der;
mod dsa;
pub(crate) mod pem;
mod primes;
mod private;
mod read;
mod rsa;
#[cfg(test)]
mod tests;

pub(crate) use private::{PrivateKey, generate};
