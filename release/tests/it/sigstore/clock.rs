//! A timestamp authority (RFC 3161): it signs that it saw something at a time.

use jiff::Timestamp;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, Issuer, KeyUsagePurpose, SerialNumber};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    Key, authority,
    der::{INTEGER, OCTETS, SEQUENCE, SET, TIME, ZERO, constant, der},
};

/// What a certificate is for, and the only thing: timestamps.
const PURPOSE: &str = "300a06082b06010505070308";
const PURPOSE_EXTENSION: [u64; 4] = [2, 5, 29, 37];
const SHA256: &str = "300b0609608648016503040201";
const ECDSA_WITH_SHA256: &str = "300a06082a8648ce3d040302";
const SIGNED_DATA: &str = "06092a864886f70d010702";
const TIMESTAMP: &str = "060b2a864886f70d0109100104";
const CONTENT_TYPE: &str = "06092a864886f70d010903";
const MESSAGE_DIGEST: &str = "06092a864886f70d010904";
const SIGNING_CERTIFICATE: &str = "060b2a864886f70d010910022f";
/// Any will do.
const POLICY: &str = "06032a0304";

/// The authority: who vouches for the clock, and the clock.
#[derive(Clone)]
pub(crate) struct Clock {
    authority: Key,
    key: Key,
}

impl Clock {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            authority: Key::named(&format!("{name}: authority of the clock")),
            key: Key::named(&format!("{name}: clock")),
        }
    }

    /// The certificates in their DER form, the one of the clock first.
    pub(crate) fn chain(&self) -> [Vec<u8>; 2] {
        let root = authority("clocks").self_signed(&self.authority).unwrap();
        let mut description = CertificateParams::default();
        description.distinguished_name = DistinguishedName::new();
        description.distinguished_name.push(DnType::CommonName, "clock");
        description.serial_number = Some(SerialNumber::from(3));
        description.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let mut purpose = CustomExtension::from_oid_content(&PURPOSE_EXTENSION, constant(PURPOSE));
        purpose.set_criticality(true);
        description.custom_extensions = vec![purpose];
        let issuer = Issuer::new(authority("clocks"), self.authority.clone());
        let leaf = description.signed_by(&self.key, &issuer).unwrap();
        [leaf.der().to_vec(), root.der().to_vec()]
    }

    /// The answer to somebody who shows something at a time, in Unix time.
    pub(crate) fn stamp(&self, shown: &[u8], at: i64) -> Vec<u8> {
        let time = Timestamp::from_second(at)
            .unwrap()
            .strftime("%Y%m%d%H%M%SZ")
            .to_string();
        let said = der(
            SEQUENCE,
            &[
                &der(INTEGER, &[&[1]]),
                &constant(POLICY),
                &der(SEQUENCE, &[&constant(SHA256), &der(OCTETS, &[&Sha256::digest(shown)])]),
                &der(INTEGER, &[&[7]]),
                &der(TIME, &[time.as_bytes()]),
            ],
        );
        let signed_data = der(
            SEQUENCE,
            &[
                &der(INTEGER, &[&[3]]),
                &der(SET, &[&constant(SHA256)]),
                &der(SEQUENCE, &[&constant(TIMESTAMP), &der(ZERO, &[&der(OCTETS, &[&said])])]),
                &der(ZERO, &[&self.chain()[0]]),
                &der(SET, &[&self.signature(&said)]),
            ],
        );
        let token = der(SEQUENCE, &[&constant(SIGNED_DATA), &der(ZERO, &[&signed_data])]);
        let granted = der(SEQUENCE, &[&der(INTEGER, &[&[0]])]);
        der(SEQUENCE, &[&granted, &token])
    }

    /// Who signed what was said (RFC 5652, section 5.3).
    fn signature(&self, said: &[u8]) -> Vec<u8> {
        let [leaf, _] = self.chain();
        let certificate_id = der(SEQUENCE, &[&der(OCTETS, &[&Sha256::digest(&leaf)])]);
        let certificates = der(SEQUENCE, &[&der(SEQUENCE, &[&certificate_id])]);
        let mut attributes = [
            (CONTENT_TYPE, constant(TIMESTAMP)),
            (MESSAGE_DIGEST, der(OCTETS, &[&Sha256::digest(said)])),
            (SIGNING_CERTIFICATE, certificates),
        ]
        .map(|(name, value)| der(SEQUENCE, &[&constant(name), &der(SET, &[&value])]));
        attributes.sort();
        let attributes = attributes.concat();
        let (_, leaf) = X509Certificate::from_der(&leaf).unwrap();
        der(
            SEQUENCE,
            &[
                &der(INTEGER, &[&[1]]),
                &der(SEQUENCE, &[leaf.issuer().as_raw(), &der(INTEGER, &[leaf.raw_serial()])]),
                &constant(SHA256),
                &der(ZERO, &[&attributes]),
                &constant(ECDSA_WITH_SHA256),
                &der(OCTETS, &[&self.key.sign(&der(SET, &[&attributes]))]),
            ],
        )
    }
}
