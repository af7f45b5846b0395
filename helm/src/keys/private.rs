//! Private keys of every kind: made, read from PEM, written, and used to sign.

use ed25519_dalek::Signer as _;
use num_bigint::BigUint;

use super::curves::{self, Curve};
use super::der::{self, Reader};
use super::read::{field, structure};
use super::rsa::RsaKey;
use super::{dsa, pem};
use crate::answers::Draw;
use crate::bounds::{BoundError, note_work};

/// A private key.
#[derive(Clone)]
pub(crate) enum PrivateKey {
    Rsa(RsaKey),
    Elliptic {
        curve: Curve,
        secret: Vec<u8>,
        /// The public point.
        point: Vec<u8>,
    },
    Edwards(ed25519_dalek::SigningKey),
    /// A key that Go reads but makes no certificate with. Has Go's name of the type of the public key.
    Mute(&'static str),
}

const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
const RSA_WITH_SHA256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b";
const ELLIPTIC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
const ED25519: &[u8] = b"\x2b\x65\x70";
const X25519: &[u8] = b"\x2b\x65\x6e";

/// Bits of the longest key that is read. Longer ones would sign for minutes.
const MAX_RSA_BITS: u64 = 16_384;
/// Bits of the shortest key that Go signs with.
const MIN_RSA_BITS: u64 = 1_024;

const UNSIGNABLE: &str = "x509: certificate private key does not implement crypto.Signer";

/// A new key of a type as `genPrivateKey` names it, as PEM. Nothing for other types.
pub(crate) fn generate(draw: &mut Draw, kind: &[u8]) -> Result<Option<String>, BoundError> {
    let key = match kind {
        b"" | b"rsa" => PrivateKey::Rsa(RsaKey::generate(draw, 4_096)?),
        b"dsa" => return Ok(Some(pem::encode("DSA PRIVATE KEY", &dsa::generate(draw)?))),
        b"ecdsa" => loop {
            // A secret beyond the order of the curve is drawn once in 2^32 times.
            let secret: [u8; 32] = draw.bytes();
            if let Ok(key) = PrivateKey::elliptic(Curve::P256, &secret) {
                break key;
            }
        },
        b"ed25519" => PrivateKey::Edwards(ed25519_dalek::SigningKey::from_bytes(&draw.bytes())),
        _ => return Ok(None),
    };
    Ok(Some(key.to_pem()))
}

impl PrivateKey {
    /// The key that charts get for a certificate unless they bring one.
    pub(crate) fn for_certificate(draw: &mut Draw) -> Result<Self, BoundError> {
        RsaKey::generate(draw, 2_048).map(Self::Rsa)
    }

    fn elliptic(curve: Curve, secret: &[u8]) -> Result<Self, String> {
        note_work(10_000);
        let point = curve.public(secret);
        Ok(Self::Elliptic {
            curve,
            secret: secret.to_vec(),
            point: point.ok_or("x509: invalid elliptic curve private key value")?,
        })
    }

    /// Reads a key as sprig does. An error is its text.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, String> {
        let pem::Block { label, bytes } = pem::decode(text).ok_or("no PEM data in input")?;
        if label == "PRIVATE KEY" {
            return read_pkcs8(&bytes).map_err(|error| format!("decoding PEM as PKCS#8: {error}"));
        }
        let Some(kind) = label.strip_suffix(" PRIVATE KEY") else {
            return Err(format!("no private key data in PEM block of type {label}"));
        };
        let key = match kind {
            "RSA" => read_pkcs1(&bytes),
            "EC" => read_sec1(&bytes, None),
            "DSA" => dsa_fields(&bytes).map(|()| Self::Mute("*dsa.PublicKey")),
            _ => return Err(format!("invalid private key type {label}")),
        };
        key.map_err(|error| format!("parsing {kind} private key from PEM: {error}"))
    }

    /// The key as PEM, in the format that Go writes for its kind.
    pub(crate) fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => pem::encode("RSA PRIVATE KEY", &key.to_pkcs1()),
            Self::Elliptic { curve, secret, point } => {
                let bytes = der::sequence(&[
                    der::small(1),
                    der::octets(secret),
                    der::wrap(der::context(0), &[der::object(curve.identifier())]),
                    der::wrap(der::context(1), &[der::bits(point)]),
                ]);
                pem::encode("EC PRIVATE KEY", &bytes)
            }
            Self::Edwards(key) => {
                let algorithm = der::sequence(&[der::object(ED25519)]);
                let secret = der::octets(&der::octets(key.as_bytes()));
                pem::encode("PRIVATE KEY", &der::sequence(&[der::small(0), algorithm, secret]))
            }
            Self::Mute(_) => String::new(),
        }
    }

    /// The algorithm and the bytes of the public key, as certificates have them.
    pub(super) fn public(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        match self {
            Self::Rsa(key) => Ok((der::sequence(&[der::object(RSA), der::null()]), key.to_public())),
            Self::Elliptic { curve, point, .. } => {
                let algorithm = der::sequence(&[der::object(ELLIPTIC), der::object(curve.identifier())]);
                Ok((algorithm, point.clone()))
            }
            Self::Edwards(key) => Ok((
                der::sequence(&[der::object(ED25519)]),
                key.verifying_key().as_bytes().to_vec(),
            )),
            Self::Mute(type_name) => Err(format!("x509: unsupported public key type: {type_name}")),
        }
    }

    /// Whether Go would sign with the key; if not, its error.
    pub(super) fn check_signer(&self) -> Result<(), String> {
        match self {
            Self::Mute(_) => Err(UNSIGNABLE.to_owned()),
            Self::Rsa(_) | Self::Elliptic { .. } | Self::Edwards(_) => Ok(()),
        }
    }

    /// The algorithm that [`PrivateKey::sign`] uses, as certificates name it.
    pub(super) fn algorithm(&self) -> Vec<u8> {
        match self {
            Self::Rsa(_) => der::sequence(&[der::object(RSA_WITH_SHA256), der::null()]),
            Self::Elliptic { curve, .. } => der::sequence(&[der::object(curve.algorithm())]),
            Self::Edwards(_) | Self::Mute(_) => der::sequence(&[der::object(ED25519)]),
        }
    }

    /// Signs a message. The same key and message always give the same signature.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Rsa(key) if key.modulus.bits() < MIN_RSA_BITS => Err(format!(
                "crypto/rsa: {}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)",
                key.modulus.bits()
            )),
            Self::Rsa(key) => {
                note_work(500 * (key.modulus.bits() / 1_024).pow(3));
                Ok(key.sign(message))
            }
            Self::Elliptic { curve, secret, .. } => {
                note_work(10_000);
                curve.sign(secret, message).ok_or_else(|| UNSIGNABLE.to_owned())
            }
            Self::Edwards(key) => Ok(key.sign(message).to_bytes().to_vec()),
            Self::Mute(_) => Err(UNSIGNABLE.to_owned()),
        }
    }
}

/// The numbers of an `RSAPrivateKey`, of which six are always there, and what follows the structure.
fn rsa_fields(bytes: &[u8]) -> Result<(Vec<BigUint>, &[u8]), String> {
    let (mut fields, rest) = structure(bytes, "pkcs1PrivateKey")?;
    let mut numbers = Vec::new();
    for name in ["int", "", "int", "", "", ""] {
        let content = field(&mut fields, der::INTEGER, name)?;
        if content.is_empty() {
            return Err("asn1: structure error: empty integer".to_owned());
        }
        // The sign is looked at by nobody but the check for it: a negative number becomes 0.
        let is_negative = content[0] >= 0x80;
        numbers.push(if is_negative {
            BigUint::ZERO
        } else {
            BigUint::from_bytes_be(content)
        });
    }
    while let Some(number) = fields.integer() {
        numbers.push(number);
    }
    Ok((numbers, rest))
}

/// An `ECPrivateKey`.
struct EllipticFields<'a> {
    version: &'a [u8],
    secret: &'a [u8],
    curve: Option<&'a [u8]>,
}

fn elliptic_fields(bytes: &[u8]) -> Result<EllipticFields<'_>, String> {
    let (mut fields, _) = structure(bytes, "ecPrivateKey")?;
    let version = field(&mut fields, der::INTEGER, "int")?;
    let secret = field(&mut fields, der::OCTET_STRING, "")?;
    let curve = fields.take(der::context(0));
    let curve = curve.and_then(|curve| Reader(curve.content).take(der::OBJECT));
    Ok(EllipticFields {
        version,
        secret,
        curve: curve.map(|curve| curve.content),
    })
}

fn pkcs8_fields(bytes: &[u8]) -> Result<(Reader<'_>, &[u8]), String> {
    let (mut fields, _) = structure(bytes, "pkcs8")?;
    field(&mut fields, der::INTEGER, "int")?;
    let algorithm = field(&mut fields, der::SEQUENCE, "AlgorithmIdentifier")?;
    let key = field(&mut fields, der::OCTET_STRING, "")?;
    Ok((Reader(algorithm), key))
}

fn dsa_fields(bytes: &[u8]) -> Result<(), String> {
    let (mut fields, _) = structure(bytes, "DSAKeyFormat")?;
    for name in ["int", "", "", "", "", ""] {
        field(&mut fields, der::INTEGER, name)?;
    }
    Ok(())
}

fn use_instead(function: &str) -> String {
    format!("x509: failed to parse private key (use {function} instead for this key format)")
}

fn read_pkcs1(bytes: &[u8]) -> Result<PrivateKey, String> {
    let (numbers, rest) = rsa_fields(bytes).map_err(|error| {
        if elliptic_fields(bytes).is_ok() {
            use_instead("ParseECPrivateKey")
        } else if pkcs8_fields(bytes).is_ok() {
            use_instead("ParsePKCS8PrivateKey")
        } else {
            error
        }
    })?;
    if !rest.is_empty() {
        return Err("asn1: syntax error: trailing data".to_owned());
    }
    let [version, modulus, public, private, first, second, exponents @ ..] = numbers.as_slice() else {
        return Err("asn1: syntax error: sequence truncated".to_owned());
    };
    if *version > BigUint::from(1u8) {
        return Err("x509: unsupported private key version".to_owned());
    }
    if *version == BigUint::from(1u8) {
        return Err("keys of more than two primes are not supported".to_owned());
    }
    if [modulus, private, first, second]
        .into_iter()
        .chain(exponents)
        .any(|number| *number == BigUint::ZERO)
    {
        return Err("x509: private key contains zero or negative value".to_owned());
    }
    if modulus.bits() > MAX_RSA_BITS {
        return Err(format!(
            "keys of RSA of more than {MAX_RSA_BITS} bits are not supported"
        ));
    }
    let key = RsaKey {
        modulus: modulus.clone(),
        public: public.clone(),
        private: private.clone(),
        primes: [first.clone(), second.clone()],
    };
    key.check(exponents)?;
    Ok(PrivateKey::Rsa(key))
}

/// `named` is the curve that stands outside of the structure.
fn read_sec1(bytes: &[u8], named: Option<&[u8]>) -> Result<PrivateKey, String> {
    let EllipticFields {
        version,
        secret,
        curve: own,
    } = elliptic_fields(bytes).map_err(|error| {
        if pkcs8_fields(bytes).is_ok() {
            use_instead("ParsePKCS8PrivateKey")
        } else if rsa_fields(bytes).is_ok() {
            use_instead("ParsePKCS1PrivateKey")
        } else {
            format!("x509: failed to parse EC private key: {error}")
        }
    })?;
    if version != [1] {
        let version = BigUint::from_bytes_be(version);
        return Err(format!("x509: unknown EC private key version {version}"));
    }
    if named.or(own) == Some(curves::P224) {
        return Err("keys on the elliptic curve P-224 are not supported".to_owned());
    }
    let curve = named.or(own).and_then(Curve::of_identifier);
    let curve = curve.ok_or("x509: unknown elliptic curve")?;
    let zeros = secret.iter().take_while(|byte| **byte == 0).count();
    let digits = &secret[zeros..];
    let missing = curve.size().checked_sub(digits.len());
    let missing = missing.ok_or("x509: invalid private key length")?;
    PrivateKey::elliptic(curve, &[&vec![0; missing], digits].concat())
}

fn read_pkcs8(bytes: &[u8]) -> Result<PrivateKey, String> {
    let (mut algorithm, key) = pkcs8_fields(bytes).map_err(|error| {
        if elliptic_fields(bytes).is_ok() {
            use_instead("ParseECPrivateKey")
        } else if rsa_fields(bytes).is_ok() {
            use_instead("ParsePKCS1PrivateKey")
        } else {
            error
        }
    })?;
    let identifier = algorithm.take(der::OBJECT).map(|element| element.content);
    match identifier.unwrap_or_default() {
        RSA => read_pkcs1(key)
            .map_err(|error| format!("x509: failed to parse RSA private key embedded in PKCS#8: {error}")),
        ELLIPTIC => {
            let curve = algorithm.take(der::OBJECT).map(|element| element.content);
            read_sec1(key, curve)
                .map_err(|error| format!("x509: failed to parse EC private key embedded in PKCS#8: {error}"))
        }
        ED25519 => seed(algorithm, key, "Ed25519")
            .map(|seed| PrivateKey::Edwards(ed25519_dalek::SigningKey::from_bytes(&seed))),
        X25519 => seed(algorithm, key, "X25519").map(|_| PrivateKey::Mute("*ecdh.PublicKey")),
        other => Err(format!(
            "x509: PKCS#8 wrapping contained private key with unknown algorithm: {}",
            dotted(other)
        )),
    }
}

fn seed(parameters: Reader<'_>, key: &[u8], name: &str) -> Result<[u8; 32], String> {
    if !parameters.is_empty() {
        return Err(format!("x509: invalid {name} private key parameters"));
    }
    let content = field(&mut Reader(key), der::OCTET_STRING, "");
    let content = content.map_err(|error| format!("x509: invalid {name} private key: {error}"))?;
    let seed = content.try_into();
    seed.map_err(|_| format!("x509: invalid {name} private key length: {}", content.len()))
}

/// An object identifier as people write it.
fn dotted(identifier: &[u8]) -> String {
    let (mut parts, mut part) = (Vec::new(), 0u64);
    for byte in identifier {
        part = part << 7 | u64::from(byte & 0x7f);
        if *byte < 0x80 {
            if parts.is_empty() {
                let first = (part / 40).min(2);
                parts.push(first.to_string());
                part -= first * 40;
            }
            parts.push(part.to_string());
            part = 0;
        }
    }
    parts.join(".")
}
