//! Certificates of the real helms, made again from their keys, numbers and times: `tests/certificates/PROFILE.yaml`, which
//! `tests/certificates/template.txt` gave.

use core::net::IpAddr;

use num_bigint::BigUint;
use p384::ecdsa::signature::hazmat::PrehashVerifier as _;
use sha2::{Digest as _, Sha384, Sha512};

use super::certificate::{Certificate, KeyName, Request, Signer};
use super::der::{self, Reader};
use super::{PrivateKey, pem};
use crate::answers::Moment;
use crate::time::{self, Location};
use crate::yaml::{self, Node};

/// A call of the template: the entry, the name, addresses, hosts and days given, and the entry that signs.
type Call = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    i64,
    Option<&'static str>,
);

const CALLS: &[Call] = &[
    ("authority", "authority", &[], &[], 365, None),
    ("second", "second", &[], &[], 2, None),
    ("third", "third: é", &[], &[], 30_000, None),
    (
        "alone",
        "svc.ns.svc",
        &["10.0.0.1", "::1", "::ffff:1.2.3.4"],
        &["a.b", "*.c.d"],
        30,
        None,
    ),
    ("signed", "signed by RSA", &[], &["x.y"], 9_000, Some("authority")),
    ("nameless", "", &[], &["only.name"], 40_000, None),
    ("empty", "", &[], &[], 0, Some("second")),
    ("curve", "curve", &["1.2.3.4"], &[], -1, Some("authority")),
    ("large", "large", &[], &[], 106_752, None),
    ("same-name", "second", &[], &[], 1, Some("second")),
    ("by-curve", "by-curve", &[], &[""], 1, Some("third")),
    ("by-edwards", "by*edwards", &[], &[], 1, Some("second")),
];

const AUTHORITIES: [&str; 3] = ["authority", "second", "third"];

/// Certificate and key of an entry, as PEM.
fn entry<'n>(recorded: &'n Node, name: &str) -> (&'n [u8], &'n [u8]) {
    let entry = recorded.get(name).unwrap();
    let text = |part: &str| entry.get(part).unwrap().as_text().unwrap().as_bytes();
    (text("certificate"), text("key"))
}

/// The number of a certificate and the second from which on it holds.
fn number_and_start(certificate: &[u8]) -> (BigUint, i64) {
    let mut body = Reader(certificate).sequence().unwrap().sequence().unwrap();
    body.take(der::context(0)).unwrap();
    let serial = body.integer().unwrap();
    body.take(der::SEQUENCE).unwrap();
    body.take(der::SEQUENCE).unwrap();
    let start = body.sequence().unwrap().take(der::UTC_TIME).unwrap().content;
    let start = time::parse(b"060102150405Z0700", start, &Location::Utc).unwrap();
    (serial, start.unix_seconds())
}

/// What is signed, and the signature.
fn parts(certificate: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = Reader(certificate).sequence().unwrap();
    let body = parts.take(der::SEQUENCE).unwrap().whole;
    parts.take(der::SEQUENCE).unwrap();
    (body, parts.bits().unwrap())
}

/// Whether the key made the signature, which is another each time.
fn has_signed(key: &PrivateKey, body: &[u8], signature: &[u8]) -> bool {
    let PrivateKey::Elliptic { point, .. } = key else {
        return false;
    };
    if point.len() == 97 {
        let signature = p384::ecdsa::Signature::from_der(signature).unwrap();
        let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(point).unwrap();
        key.verify_prehash(&Sha384::digest(body), &signature).is_ok()
    } else {
        let signature = p521::ecdsa::Signature::from_der(signature).unwrap();
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point).unwrap();
        key.verify_prehash(&Sha512::digest(body), &signature).is_ok()
    }
}

fn check(recorded: &Node, key_name: KeyName, (name, subject, addresses, hosts, days, signer): Call) {
    let (certificate, key_text) = entry(recorded, name);
    let theirs = pem::decode(certificate).unwrap().bytes;
    assert_eq!(pem::encode("CERTIFICATE", &theirs).as_bytes(), certificate);
    let key = PrivateKey::from_pem(key_text).unwrap();
    assert_eq!(key.to_pem().as_bytes(), key_text, "{name}");
    let request = Request {
        name: subject.as_bytes(),
        addresses: addresses
            .iter()
            .map(|address| address.parse::<IpAddr>().unwrap())
            .collect(),
        hosts: hosts.iter().map(|host| host.as_bytes().to_vec()).collect(),
        days,
        authority: AUTHORITIES.contains(&name).then_some(key_name),
    };
    let authority = signer.map(|signer| {
        let (certificate, key) = entry(recorded, signer);
        (
            Certificate::from_pem(certificate).unwrap(),
            PrivateKey::from_pem(key).unwrap(),
        )
    });
    let (serial, seconds) = number_and_start(&theirs);
    // Days that wrap around end within a second, and of the second of the start nothing else is known.
    let ours = [0, 999_999_999].map(|nanoseconds| {
        let signer = authority.as_ref().map(|(certificate, key)| Signer { certificate, key });
        request
            .issue(&serial, Moment { seconds, nanoseconds }, &key, signer)
            .unwrap()
    });
    let signing = authority.as_ref().map_or(&key, |(_, key)| key);
    let is_same = if matches!(signing, PrivateKey::Elliptic { .. }) {
        let (body, signature) = parts(&theirs);
        assert!(has_signed(signing, body, signature), "{name}");
        ours.iter().any(|ours| {
            let (our_body, our_signature) = parts(ours);
            our_body == body && has_signed(signing, our_body, our_signature)
        })
    } else {
        ours.contains(&theirs)
    };
    assert!(is_same, "{name}: {}\n{}", hex::encode(&theirs), hex::encode(&ours[0]));
}

#[test]
fn certificates_of_helm_are_made_again_byte_for_byte() {
    for (text, key_name) in [
        (include_str!("../../tests/certificates/v3.19.yaml"), KeyName::Sha1),
        (include_str!("../../tests/certificates/v4.1.yaml"), KeyName::Sha256),
        (include_str!("../../tests/certificates/v4.2.yaml"), KeyName::Sha256),
        (include_str!("../../tests/certificates/v4.3.yaml"), KeyName::Sha256),
    ] {
        let recorded = yaml::parse(text.as_bytes()).unwrap();
        for call in CALLS {
            check(&recorded, key_name, *call);
        }
    }
}
