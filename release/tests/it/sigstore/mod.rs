//! A sigstore of our own: an authority that makes certificates for identities, a log of certificates, a log of signatures, a timestamp
//! authority, and the trust root that names them. It makes whatever it is told, also what no honest one would; the same words give the
//! same bytes.
//!
//! It needs nothing of the rooms, so that journeys can include this folder.

mod clock;
mod der;

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
use p256::ecdsa::{DerSignature, signature::Signer};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
    SerialNumber, SignatureAlgorithm, SigningKey, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

pub(crate) use self::clock::Clock;
use self::der::{OCTETS, TEXT, constant, der, pem};

/// When the signatures here are made, in Unix time: 2024-03-01T12:00:00Z.
pub(crate) const SIGNED_AT: i64 = 1_709_294_400;
/// How long a certificate is good, in seconds.
pub(crate) const VALIDITY: i64 = 600;
/// Who signs, when nobody else is named.
pub(crate) const IDENTITY: &str = "https://forge.example.com/stacks/release.yaml@refs/heads/main";
/// Who vouches for identities, when nobody else is named.
pub(crate) const ISSUER: &str = "https://token.forge.example.com";
/// What `cosign sign` states.
pub(crate) const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// From when everything in the trust root is good.
const FOUNDED: &str = "2024-01-01T00:00:00Z";
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Issuer of an identity in a certificate of Fulcio: as bare text, and as text of DER.
const ISSUER_EXTENSIONS: [[u64; 9]; 2] = [[1, 3, 6, 1, 4, 1, 57264, 1, 1], [1, 3, 6, 1, 4, 1, 57264, 1, 8]];
/// Where a certificate has its promises of certificate logs.
const PROMISES: [u64; 10] = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
/// What stands before a point of P-256 in a public key.
const P256_KEY: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";

/// A key of P-256 that follows from its name.
#[derive(Clone)]
pub(crate) struct Key {
    secret: p256::ecdsa::SigningKey,
    point: Vec<u8>,
}

impl Key {
    pub(crate) fn named(name: &str) -> Self {
        let secret = p256::ecdsa::SigningKey::from_slice(&Sha256::digest(name)).unwrap();
        let point = secret.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        Self { secret, point }
    }

    /// The public key in its DER form.
    pub(crate) fn public(&self) -> Vec<u8> {
        [constant(P256_KEY), self.point.clone()].concat()
    }

    /// The public key in its PEM form.
    pub(crate) fn pem(&self) -> String {
        pem("PUBLIC KEY", &self.public())
    }

    /// SHA-256 of the public key, by which logs are known.
    fn id(&self) -> Vec<u8> {
        Sha256::digest(self.public()).to_vec()
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: DerSignature = self.secret.sign(message);
        signature.as_bytes().to_vec()
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.point
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(Self::sign(self, message))
    }
}

/// Who is trusted, with their secrets.
#[derive(Clone)]
pub(crate) struct Sigstore {
    /// The key of the authority that makes certificates.
    pub(crate) authority: Key,
    /// The key of the log of certificates.
    pub(crate) certificate_log: Key,
    /// The key of the log of signatures.
    pub(crate) log: Key,
    pub(crate) clock: Clock,
}

/// How a log says when it had a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// With its own promise (Rekor 1).
    First,
    /// Not at all, so that a timestamp authority has to (Rekor 2).
    Second,
}

/// What one signature is to be. A bundle that is not good is made by saying something else than [`Signing::of`].
#[derive(Clone)]
pub(crate) struct Signing<'a> {
    /// The artifact.
    pub(crate) artifact: &'a [u8],
    /// Sign a statement of this type about the artifact instead of its bytes.
    pub(crate) statement: Option<&'a str>,
    pub(crate) identity: &'a str,
    pub(crate) issuer: &'a str,
    /// From when the certificate is good, in Unix time.
    pub(crate) certified_at: i64,
    /// Which kind of log has the signature.
    pub(crate) log: Log,
    /// When log or timestamp authority have the signature, in Unix time.
    pub(crate) logged_at: i64,
}

impl<'a> Signing<'a> {
    /// Signed as it should be.
    pub(crate) fn of(artifact: &'a [u8]) -> Self {
        Self {
            artifact,
            statement: None,
            identity: IDENTITY,
            issuer: ISSUER,
            certified_at: SIGNED_AT,
            log: Log::First,
            logged_at: SIGNED_AT + 10,
        }
    }

    /// The same as a statement, as `cosign sign` makes it.
    pub(crate) fn stated(self) -> Self {
        Self {
            statement: Some(SIGN),
            ..self
        }
    }

    /// What is signed, word for word.
    fn message(&self) -> Vec<u8> {
        match self.payload() {
            Some(payload) => pre_authentication_encoding(&payload),
            None => self.artifact.to_vec(),
        }
    }

    fn payload(&self) -> Option<Vec<u8>> {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "predicateType": self.statement?,
            "predicate": {},
            "subject": [{"digest": {"sha256": hex::encode(Sha256::digest(self.artifact))}}],
        });
        Some(statement.to_string().into_bytes())
    }

    /// The part of a bundle that is neither certificate nor log.
    fn content(&self, signature: &[u8]) -> (&'static str, Value) {
        match self.payload() {
            Some(payload) => (
                "dsseEnvelope",
                json!({
                    "payload": BASE64.encode(payload),
                    "payloadType": IN_TOTO,
                    "signatures": [{"sig": BASE64.encode(signature)}],
                }),
            ),
            None => (
                "messageSignature",
                json!({
                    "messageDigest": {
                        "algorithm": "SHA2_256",
                        "digest": BASE64.encode(Sha256::digest(self.artifact)),
                    },
                    "signature": BASE64.encode(signature),
                }),
            ),
        }
    }
}

impl Sigstore {
    /// Another name gives another one of everything.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            authority: Key::named(&format!("{name}: authority")),
            certificate_log: Key::named(&format!("{name}: certificate log")),
            log: Key::named(&format!("{name}: log")),
            clock: Clock::named(name),
        }
    }

    /// The `trusted_root.json`.
    pub(crate) fn trusted_root(&self) -> Value {
        let since = json!({"start": FOUNDED});
        let log = |url: &str, key: &Key| {
            json!({
                "baseUrl": url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": BASE64.encode(key.public()),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": since,
                },
                "logId": {"keyId": BASE64.encode(key.id())},
            })
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log("https://log.example.com", &self.log)],
            "ctlogs": [log("https://certificates.example.com", &self.certificate_log)],
            "certificateAuthorities": [{
                "subject": {"organization": "example.com", "commonName": "authority"},
                "uri": "https://authority.example.com",
                "certChain": {"certificates": [{"rawBytes": BASE64.encode(self.root().der())}]},
                "validFor": since,
            }],
            "timestampAuthorities": [{
                "subject": {"organization": "example.com", "commonName": "clocks"},
                "uri": "https://clock.example.com",
                "certChain": {
                    "certificates": self.clock.chain().map(|certificate| json!({"rawBytes": BASE64.encode(certificate)})),
                },
                "validFor": since,
            }],
        })
    }

    /// A bundle, keyless.
    pub(crate) fn sign(&self, signing: &Signing) -> Value {
        let key = Key::named("one signature");
        let signature = key.sign(&signing.message());
        let certificate = self.certificate(&key, signing);
        let (form, content) = signing.content(&signature);
        let stamps = match signing.log {
            Log::First => json!({}),
            Log::Second => {
                let stamp = self.clock.stamp(&signature, signing.logged_at);
                json!({"rfc3161Timestamps": [{"signedTimestamp": BASE64.encode(stamp)}]})
            }
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": BASE64.encode(&certificate)},
                "tlogEntries": [self.entry(signing, &signature, &certificate)],
                "timestampVerificationData": stamps,
            },
            form: content,
        })
    }

    fn root(&self) -> Certificate {
        authority("identities").self_signed(&self.authority).unwrap()
    }

    /// The certificate of an identity, as Fulcio makes it, in its DER form.
    fn certificate(&self, key: &Key, signing: &Signing) -> Vec<u8> {
        let issuer = Issuer::new(authority("identities"), self.authority.clone());
        let mut description = CertificateParams::default();
        description.distinguished_name = DistinguishedName::new();
        description.serial_number = Some(SerialNumber::from(2));
        description.not_before = date_time_ymd(1970, 1, 1) + seconds(signing.certified_at);
        description.not_after = description.not_before + seconds(VALIDITY);
        description.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        description.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        description.use_authority_key_identifier_extension = true;
        description.subject_alt_names = vec![if signing.identity.contains("://") {
            SanType::URI(signing.identity.try_into().unwrap())
        } else {
            SanType::Rfc822Name(signing.identity.try_into().unwrap())
        }];
        let [bare, text] = ISSUER_EXTENSIONS;
        let issuer_name = signing.issuer.as_bytes();
        description.custom_extensions = vec![
            CustomExtension::from_oid_content(&bare, issuer_name.to_vec()),
            CustomExtension::from_oid_content(&text, der(TEXT, &[issuer_name])),
        ];
        // The certificate log promises the certificate without its promise.
        let promised = description.signed_by(key, &issuer).unwrap();
        let (_, promised) = X509Certificate::from_der(promised.der()).unwrap();
        let promise = self.promise(promised.tbs_certificate.as_ref(), signing.certified_at);
        description
            .custom_extensions
            .push(CustomExtension::from_oid_content(&PROMISES, der(OCTETS, &[&promise])));
        description.signed_by(key, &issuer).unwrap().der().to_vec()
    }

    /// The list with the one promise of the certificate log (RFC 6962, section 3.3).
    fn promise(&self, certificate: &[u8], at: i64) -> Vec<u8> {
        let version = [0];
        let milliseconds = (at * 1000).to_be_bytes();
        let no_extensions = [0, 0];
        let signed = [
            &version[..],
            &[0],
            &milliseconds,
            &[0, 1],
            &Sha256::digest(self.authority.public()),
            &sized::<3>(certificate),
            &no_extensions,
        ];
        let ecdsa_with_sha256 = [4, 3];
        let promise = [
            &version[..],
            &self.certificate_log.id(),
            &milliseconds,
            &no_extensions,
            &ecdsa_with_sha256,
            &sized::<2>(&self.certificate_log.sign(&signed.concat())),
        ];
        sized::<2>(&sized::<2>(&promise.concat()))
    }

    /// The second of three entries in the log, with the log's proof, and its promise if it makes promises.
    fn entry(&self, signing: &Signing, signature: &[u8], certificate: &[u8]) -> Value {
        let (kind, version, body) = body(signing, signature, certificate);
        let (name, global_index) = match signing.log {
            Log::First => ("log.example.com - 1234", 1001),
            Log::Second => ("log.example.com", 1),
        };
        let [first, second, third] = [&b"first"[..], &body, b"third"].map(|entry| node(0, &[entry]));
        let root = node(1, &[&node(1, &[&first, &second]), &third]);
        let head = format!("{name}\n3\n{}\n", BASE64.encode(&root));
        let sealed = [&self.log.id()[..4], &self.log.sign(head.as_bytes())].concat();
        let mut entry = json!({
            "logIndex": global_index.to_string(),
            "logId": {"keyId": BASE64.encode(self.log.id())},
            "kindVersion": {"kind": kind, "version": version},
            "inclusionProof": {
                "logIndex": "1",
                "treeSize": "3",
                "rootHash": BASE64.encode(root),
                "hashes": [BASE64.encode(first), BASE64.encode(third)],
                "checkpoint": {"envelope": format!("{head}\n— log.example.com {}\n", BASE64.encode(sealed))},
            },
            "canonicalizedBody": BASE64.encode(&body),
        });
        if signing.log == Log::First {
            let promise = format!(
                r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{global_index}}}"#,
                BASE64.encode(&body),
                signing.logged_at,
                hex::encode(self.log.id())
            );
            let promise = BASE64.encode(self.log.sign(promise.as_bytes()));
            entry["integratedTime"] = json!(signing.logged_at.to_string());
            entry["inclusionPromise"] = json!({"signedEntryTimestamp": promise});
        }
        entry
    }
}

/// The description of an authority that makes certificates of others.
fn authority(name: &str) -> CertificateParams {
    let mut description = CertificateParams::default();
    description.distinguished_name = DistinguishedName::new();
    description
        .distinguished_name
        .push(DnType::OrganizationName, "example.com");
    description.distinguished_name.push(DnType::CommonName, name);
    description.serial_number = Some(SerialNumber::from(1));
    description.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    description.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    description
}

/// A bundle by a key, without a log.
pub(crate) fn sign_with(key: &impl SigningKey, signing: &Signing) -> Value {
    let signature = key.sign(&signing.message()).unwrap();
    let (form, content) = signing.content(&signature);
    json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": BASE64.encode(Sha256::digest(key.subject_public_key_info()))}},
        form: content,
    })
}

/// What the log says of a signature: its kind and version, and what stands in the log.
fn body(signing: &Signing, signature: &[u8], certificate: &[u8]) -> (&'static str, &'static str, Vec<u8>) {
    let sha256 = |bytes: &[u8]| json!({"algorithm": "sha256", "value": hex::encode(Sha256::digest(bytes))});
    let text = BASE64.encode(pem("CERTIFICATE", certificate));
    let (kind, version, spec) = match (signing.log, signing.payload()) {
        (Log::First, Some(payload)) => (
            "dsse",
            "0.0.1",
            json!({
                "envelopeHash": sha256(&payload),
                "payloadHash": sha256(&payload),
                "signatures": [{"signature": BASE64.encode(signature), "verifier": text}],
            }),
        ),
        (Log::First, None) => (
            "hashedrekord",
            "0.0.1",
            json!({
                "data": {"hash": sha256(signing.artifact)},
                "signature": {"content": BASE64.encode(signature), "publicKey": {"content": text}},
            }),
        ),
        (Log::Second, _) => (
            "hashedrekord",
            "0.0.2",
            json!({
                "hashedRekordV002": {
                    "data": {"algorithm": "SHA2_256", "digest": BASE64.encode(Sha256::digest(signing.message()))},
                    "signature": {
                        "content": BASE64.encode(signature),
                        "verifier": {
                            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                            "x509Certificate": {"rawBytes": BASE64.encode(certificate)},
                        },
                    },
                },
            }),
        ),
    };
    // In the order of the alphabet, as what logs hash has to be.
    let body = json!({"apiVersion": version, "kind": kind, "spec": spec});
    (kind, version, body.to_string().into_bytes())
}

/// What is signed of a payload in an envelope (DSSE).
fn pre_authentication_encoding(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {IN_TOTO} {} ", IN_TOTO.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// A node in the tree of a log (RFC 6962, section 2.1): 0 before a leaf, 1 before two nodes.
fn node(prefix: u8, parts: &[&[u8]]) -> Vec<u8> {
    Sha256::digest([&[prefix], &parts.concat()[..]].concat()).to_vec()
}

/// Bytes after their length in so many bytes.
fn sized<const WIDTH: usize>(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len().to_be_bytes();
    [&length[length.len() - WIDTH..], bytes].concat()
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.try_into().unwrap())
}
