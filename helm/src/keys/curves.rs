//! Keys on the elliptic curves of NIST (FIPS 186-5), and what they sign. Signatures follow from key and message (RFC 6979).

use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// A curve. That of 224 bits is not there: no finished release of its crate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    /// Of 256 bits, which charts get unless they bring a key.
    P256,
    /// Of 384 bits.
    P384,
    /// Of 521 bits.
    P521,
}

/// The curve that is not there.
pub(super) const P224: &[u8] = b"\x2b\x81\x04\x00\x21";
const P256: &[u8] = b"\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384: &[u8] = b"\x2b\x81\x04\x00\x22";
const P521: &[u8] = b"\x2b\x81\x04\x00\x23";

const WITH_SHA256: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03\x02";
const WITH_SHA384: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03\x03";
const WITH_SHA512: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03\x04";

/// What a secret gives on one curve; nothing if it is 0 or beyond the order.
struct Arithmetic {
    public: fn(&[u8]) -> Option<Vec<u8>>,
    sign: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
}

macro_rules! arithmetic {
    ($curve:ident) => {
        Arithmetic {
            public: |secret| {
                let key = $curve::ecdsa::SigningKey::from_slice(secret).ok()?;
                Some(key.verifying_key().to_sec1_point(false).as_bytes().to_vec())
            },
            sign: |secret, digest| {
                let key = $curve::ecdsa::SigningKey::from_slice(secret).ok()?;
                let signature: $curve::ecdsa::Signature = key.sign_prehash(digest).ok()?;
                Some(signature.to_der().as_bytes().to_vec())
            },
        }
    };
}

impl Curve {
    const ALL: [Self; 3] = [Self::P256, Self::P384, Self::P521];

    /// The curve that an encoded object identifier names.
    pub(super) fn of_identifier(identifier: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.identifier() == identifier)
    }

    /// The encoded object identifier.
    pub(super) const fn identifier(self) -> &'static [u8] {
        match self {
            Self::P256 => P256,
            Self::P384 => P384,
            Self::P521 => P521,
        }
    }

    /// The encoded object identifier of a signature.
    pub(super) const fn algorithm(self) -> &'static [u8] {
        match self {
            Self::P256 => WITH_SHA256,
            Self::P384 => WITH_SHA384,
            Self::P521 => WITH_SHA512,
        }
    }

    /// The bytes of a secret.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// The public point of a secret, uncompressed; nothing if the secret is 0 or beyond the order of the curve.
    pub(super) fn public(self, secret: &[u8]) -> Option<Vec<u8>> {
        (self.arithmetic().public)(secret)
    }

    /// Signs a message; nothing where there is no public point.
    pub(super) fn sign(self, secret: &[u8], message: &[u8]) -> Option<Vec<u8>> {
        let digest = match self {
            Self::P256 => Sha256::digest(message).to_vec(),
            Self::P384 => Sha384::digest(message).to_vec(),
            Self::P521 => Sha512::digest(message).to_vec(),
        };
        (self.arithmetic().sign)(secret, &digest)
    }

    const fn arithmetic(self) -> Arithmetic {
        match self {
            Self::P256 => arithmetic!(p256),
            Self::P384 => arithmetic!(p384),
            Self::P521 => arithmetic!(p521),
        }
    }
}
