//! Certificates of X.509 (RFC 5280) as sprig makes them: written here, and read as far as another one is signed by them.

use core::net::IpAddr;

use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use super::der::{self, Reader};
use super::{PrivateKey, pem};
use crate::answers::{Draw, Moment};
use crate::format;
use crate::sha1::sha1;
use crate::text;
use crate::time::Time;

/// What a certificate is made for.
pub(crate) struct Request<'a> {
    /// The common name of the subject.
    pub(crate) name: &'a [u8],
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) hosts: Vec<Vec<u8>>,
    pub(crate) days: i64,
    /// How others name its key, if they are signed by it.
    pub(crate) authority: Option<KeyName>,
}

/// How the name of the key of an authority follows from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyName {
    /// SHA-1, up to Go 1.24.
    Sha1,
    /// As many bytes of SHA-256 (RFC 7093).
    Sha256,
}

impl KeyName {
    fn of(self, public: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => sha1(public),
            Self::Sha256 => Sha256::digest(public)[..20].to_vec(),
        }
    }
}

/// Who signs.
#[derive(Clone, Copy)]
pub(crate) struct Signer<'a> {
    pub(crate) certificate: &'a Certificate,
    pub(crate) key: &'a PrivateKey,
}

/// What is read of a certificate.
pub(crate) struct Certificate {
    /// The name, as it is encoded.
    subject: Vec<u8>,
    /// Algorithm and bytes of the public key.
    public: (Vec<u8>, Vec<u8>),
    key_identifier: Option<Vec<u8>>,
}

const COMMON_NAME: &[u8] = b"\x55\x04\x03";
const SUBJECT_KEY_IDENTIFIER: &[u8] = b"\x55\x1d\x0e";
const KEY_USAGE: &[u8] = b"\x55\x1d\x0f";
const ALTERNATIVE_NAMES: &[u8] = b"\x55\x1d\x11";
const BASIC_CONSTRAINTS: &[u8] = b"\x55\x1d\x13";
const AUTHORITY_KEY_IDENTIFIER: &[u8] = b"\x55\x1d\x23";
const EXTENDED_KEY_USAGE: &[u8] = b"\x55\x1d\x25";
const SERVER: &[u8] = b"\x2b\x06\x01\x05\x05\x07\x03\x01";
const CLIENT: &[u8] = b"\x2b\x06\x01\x05\x05\x07\x03\x02";

const TRUE: &[u8] = &[0xff];
const NANOSECONDS: i64 = 1_000_000_000;
const NANOSECONDS_PER_DAY: i64 = 24 * 3_600 * NANOSECONDS;

impl Request<'_> {
    /// Makes a certificate for the public part of `key`, as PEM; signed by the key itself unless a signer is given. An error is Go's.
    pub(crate) fn certify(
        &self,
        draw: &mut Draw,
        key: &PrivateKey,
        signer: Option<Signer<'_>>,
    ) -> Result<String, String> {
        let serial = BigUint::from_bytes_be(&draw.bytes::<16>());
        let certificate = self.issue(&serial, draw.now(), key, signer)?;
        Ok(pem::encode("CERTIFICATE", &certificate))
    }

    /// The certificate as DER, with its number and the time from which on it holds.
    pub(super) fn issue(
        &self,
        serial: &BigUint,
        now: Moment,
        key: &PrivateKey,
        signer: Option<Signer<'_>>,
    ) -> Result<Vec<u8>, String> {
        let signing = signer.as_ref().map_or(key, |signer| signer.key);
        signing.check_signer()?;
        let (algorithm, public) = key.public()?;
        let subject = self.subject()?;
        let parent = signer.map(|signer| signer.certificate);
        if let Some(parent) = parent
            && signing.public()? != parent.public
        {
            return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
        }
        let issuer = parent.map_or(&subject, |parent| &parent.subject);
        let body = der::sequence(&[
            der::wrap(der::context(0), &[der::small(2)]),
            der::integer(serial),
            signing.algorithm(),
            issuer.clone(),
            self.validity(now)?,
            subject.clone(),
            der::sequence(&[algorithm, der::bits(&public)]),
            der::wrap(der::context(3), &[self.extensions(&subject, &public, parent)?]),
        ]);
        let signature = der::bits(&signing.sign(&body)?);
        Ok(der::sequence(&[body, signing.algorithm(), signature]))
    }

    fn subject(&self) -> Result<Vec<u8>, String> {
        if self.name.is_empty() {
            return Ok(der::sequence(&[]));
        }
        let tag = if self.name.iter().all(|byte| is_printable(*byte)) {
            der::PRINTABLE_STRING
        } else if std::str::from_utf8(self.name).is_ok() {
            der::UTF8_STRING
        } else {
            return Err("asn1: string not valid UTF-8".to_owned());
        };
        let name = der::sequence(&[der::object(COMMON_NAME), der::element(tag, self.name)]);
        Ok(der::sequence(&[der::wrap(der::SET, &[name])]))
    }

    /// From now on, for as many days. Like Go's durations, the days wrap around after 292 years.
    fn validity(&self, now: Moment) -> Result<Vec<u8>, String> {
        let duration = NANOSECONDS_PER_DAY.wrapping_mul(self.days);
        let end =
            i128::from(now.seconds) * i128::from(NANOSECONDS) + i128::from(now.nanoseconds) + i128::from(duration);
        let end = i64::try_from(end.div_euclid(i128::from(NANOSECONDS))).unwrap_or(i64::MAX);
        Ok(der::sequence(&[time(now.seconds)?, time(end)?]))
    }

    fn extensions(&self, subject: &[u8], public: &[u8], parent: Option<&Certificate>) -> Result<Vec<u8>, String> {
        let (usage, constraints): (&[u8], _) = if self.authority.is_some() {
            // Digital signatures, encipherment of keys, and signatures of certificates.
            (&[2, 0xa4], vec![der::element(der::BOOLEAN, TRUE)])
        } else {
            (&[5, 0xa0], Vec::new())
        };
        let mut extensions = vec![
            extension(KEY_USAGE, true, &der::element(der::BIT_STRING, usage)),
            extension(
                EXTENDED_KEY_USAGE,
                false,
                &der::sequence(&[der::object(SERVER), der::object(CLIENT)]),
            ),
            extension(BASIC_CONSTRAINTS, true, &der::sequence(&constraints)),
        ];
        if let Some(name) = self.authority {
            extensions.push(extension(SUBJECT_KEY_IDENTIFIER, false, &der::octets(&name.of(public))));
        }
        if let Some(parent) = parent
            && parent.subject != subject
            && let Some(identifier) = &parent.key_identifier
        {
            let identifier = der::sequence(&[der::element(der::implicit(0), identifier)]);
            extensions.push(extension(AUTHORITY_KEY_IDENTIFIER, false, &identifier));
        }
        if !self.hosts.is_empty() || !self.addresses.is_empty() {
            let is_only_name = self.name.is_empty();
            extensions.push(extension(ALTERNATIVE_NAMES, is_only_name, &self.alternative_names()?));
        }
        Ok(der::sequence(&extensions))
    }

    fn alternative_names(&self) -> Result<Vec<u8>, String> {
        let mut names = Vec::new();
        for host in &self.hosts {
            if !host.is_ascii() {
                let host = text::lossy(&format::quote(host));
                return Err(format!("x509: {host} cannot be encoded as an IA5String"));
            }
            names.push(der::element(der::implicit(2), host));
        }
        for address in &self.addresses {
            let bytes = match address.to_canonical() {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            names.push(der::element(der::implicit(7), &bytes));
        }
        Ok(der::sequence(&names))
    }
}

/// Whether Go writes a name with that byte as a `PrintableString`.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte)
}

fn extension(identifier: &[u8], is_critical: bool, content: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::object(identifier)];
    if is_critical {
        parts.push(der::element(der::BOOLEAN, TRUE));
    }
    parts.push(der::octets(content));
    der::sequence(&parts)
}

/// A time with two digits for the years that have them in certificates, with four for others.
fn time(seconds: i64) -> Result<Vec<u8>, String> {
    let ([year, month, day], [hour, minute, second]) = Time::unix(seconds).parts();
    let rest = format!("{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    match year {
        1950..2050 => Ok(der::element(
            der::UTC_TIME,
            format!("{:02}{rest}", year % 100).as_bytes(),
        )),
        0..10_000 => Ok(der::element(
            der::GENERALIZED_TIME,
            format!("{year:04}{rest}").as_bytes(),
        )),
        _ => Err("asn1: structure error: cannot represent time as GeneralizedTime".to_owned()),
    }
}

impl Certificate {
    /// Reads a certificate. An error is Go's; it does not look into names, times and most extensions.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, String> {
        let block = pem::decode(text).ok_or("unable to decode certificate")?;
        let read = read(&block.bytes).map_err(|problem| format!("x509: {problem}"));
        read.map_err(|error| format!("error parsing certificate: decodedCert.Bytes: {error}"))
    }
}

fn read(bytes: &[u8]) -> Result<Certificate, &'static str> {
    let mut outside = Reader(bytes);
    let mut parts = outside.sequence().ok_or("malformed certificate")?;
    let mut body = parts.sequence().ok_or("malformed tbs certificate")?;
    let version = match body.take(der::context(0)) {
        Some(version) => Reader(version.content).integer().ok_or("malformed version")?,
        None => BigUint::ZERO,
    };
    if version > BigUint::from(2u8) {
        return Err("invalid version");
    }
    let serial = body.take(der::INTEGER).ok_or("malformed serial number")?.content;
    if serial.first().is_none_or(|byte| *byte >= 0x80) {
        return Err("negative serial number");
    }
    let inner = body
        .take(der::SEQUENCE)
        .ok_or("malformed signature algorithm identifier")?;
    let outer = parts.take(der::SEQUENCE).ok_or("malformed algorithm identifier")?;
    if inner.content != outer.content {
        return Err("inner and outer signature algorithm identifiers don't match");
    }
    body.take(der::SEQUENCE).ok_or("malformed issuer")?;
    body.take(der::SEQUENCE).ok_or("malformed validity")?;
    let subject = body.take(der::SEQUENCE).ok_or("malformed issuer")?.whole.to_vec();
    let mut public = body.sequence().ok_or("malformed spki")?;
    let algorithm = public
        .take(der::SEQUENCE)
        .ok_or("malformed public key algorithm identifier")?;
    let public = public.bits().ok_or("malformed subjectPublicKey")?;
    let public = (algorithm.whole.to_vec(), public.to_vec());
    body.take(der::implicit(1));
    body.take(der::implicit(2));
    let key_identifier = match body.take(der::context(3)) {
        Some(extensions) => key_identifier(extensions.content)?,
        None => None,
    };
    parts.bits().ok_or("malformed signature")?;
    if !outside.is_empty() {
        return Err("trailing data");
    }
    Ok(Certificate {
        subject,
        public,
        key_identifier,
    })
}

/// Finds what the certificate calls its key.
fn key_identifier(extensions: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut extensions = Reader(extensions).sequence().ok_or("malformed extensions")?;
    let mut found = None;
    while !extensions.is_empty() {
        let mut extension = extensions.sequence().ok_or("malformed extension")?;
        let identifier = extension.take(der::OBJECT).ok_or("malformed extension OID field")?;
        extension.take(der::BOOLEAN);
        let value = extension
            .take(der::OCTET_STRING)
            .ok_or("malformed extension value field")?;
        if identifier.content == SUBJECT_KEY_IDENTIFIER {
            let value = Reader(value.content).take(der::OCTET_STRING);
            found = Some(value.ok_or("invalid subject key identifier")?.content.to_vec());
        }
    }
    Ok(found)
}
