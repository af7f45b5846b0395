//! Drawn keys and certificates: read, compared in what is said in them, and verified against each other.

use std::collections::BTreeSet;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _, RsaKeyPair,
};
use x509_parser::{
    certificate::X509Certificate,
    extensions::X509Extension,
    oid_registry::{OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER, OID_X509_EXT_SUBJECT_KEY_IDENTIFIER},
    prelude::FromDer as _,
};

use super::{Unlike, align::Value, pem::Pem};

/// The renders of one comparison follow each other more closely.
const NEAR_SECONDS: i64 = 600;

/// Something that is said in a block, by the name of what it is said of.
type Fact = (String, String);

/// What the blocks of one answer have to do with each other, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    /// The first is a certificate that the key of the second has signed.
    SignedBy(usize, usize),
    /// The first is the private key of the second, a certificate.
    KeyOf(usize, usize),
}

enum Document<'a> {
    Certificate(Box<X509Certificate<'a>>),
    PrivateKey {
        algorithm: &'static str,
        public: Vec<u8>,
    },
    /// Nothing that is looked into: of DSA, encrypted, of another program.
    Other,
}

/// Compares what is in blocks that are laid out alike.
pub(super) fn compare(values: &[Value]) -> Result<(), Unlike> {
    let blocks: Vec<_> = values
        .iter()
        .filter_map(|value| value.pems().map(|(theirs, ours)| (value, theirs, ours)))
        .collect();
    for (value, theirs, ours) in &blocks {
        facts_agree(theirs, ours).map_err(|reason| value.unlike(reason))?;
    }
    let Some(answers) = blocks.first().map(|(_, theirs, _)| theirs.len()) else {
        return Ok(());
    };
    let ours = relations(blocks.iter().map(|(_, _, ours)| ours));
    let mut expected = relations(blocks.iter().map(|(_, theirs, _)| &theirs[0]));
    for answer in 1..answers {
        let theirs = relations(blocks.iter().map(|(_, theirs, _)| &theirs[answer]));
        expected.retain(|relation| theirs.contains(relation));
    }
    match expected.difference(&ours).next() {
        None => Ok(()),
        Some(Relation::SignedBy(certificate, _)) => Err(blocks[*certificate]
            .0
            .unlike("the certificate is not signed by the one that signs it in Helm's answers")),
        Some(Relation::KeyOf(key, _)) => Err(blocks[*key]
            .0
            .unlike("the private key does not belong to the certificate that it belongs to in Helm's answers")),
    }
}

/// Whether a value is a block whose content is looked into.
pub(super) fn is_read(value: &Value) -> bool {
    value
        .pems()
        .is_some_and(|(_, ours)| !matches!(Document::read(&ours), Document::Other))
}

/// What all real blocks say, ours must say.
fn facts_agree(theirs: &[Pem<'_>], ours: &Pem<'_>) -> Result<(), String> {
    let theirs: Vec<_> = theirs.iter().map(facts).collect();
    let ours = facts(ours);
    let mut expected = theirs[0].clone();
    expected.retain(|fact| theirs.iter().all(|facts| facts.contains(fact)));
    for (name, said) in &expected {
        let found = ours.iter().find(|(other, _)| other == name).map(|(_, said)| said);
        if found != Some(said) {
            let found = found.map_or("nothing", String::as_str);
            return Err(format!("{name}: Helm has {said:?}, we have {found:?}"));
        }
    }
    Ok(())
}

fn facts(block: &Pem<'_>) -> Vec<Fact> {
    let fact = |name: &str, said: &str| (name.to_owned(), said.to_owned());
    let mut facts = vec![fact("label", &String::from_utf8_lossy(block.label))];
    match Document::read(block) {
        Document::Other => facts.push(fact("content", "unknown")),
        Document::PrivateKey { algorithm, public } => {
            facts.push(fact("algorithm of the key", algorithm));
            facts.push(fact("length of the key", &public.len().to_string()));
        }
        Document::Certificate(certificate) => facts.extend(said_in(&certificate)),
    }
    facts
}

fn said_in(certificate: &X509Certificate<'_>) -> Vec<Fact> {
    let validity = certificate.validity();
    let [begin, end] = [validity.not_before, validity.not_after].map(|time| time.timestamp());
    let now = jiff::Timestamp::now().as_second();
    let key = certificate.public_key();
    let said = [
        ("version", format!("{:?}", certificate.version())),
        ("issuer", certificate.issuer().to_string()),
        ("subject", certificate.subject().to_string()),
        ("signature", certificate.signature_algorithm.algorithm.to_id_string()),
        ("key", format!("{:?}", key.algorithm)),
        ("length of the key", key.subject_public_key.data.len().to_string()),
        ("valid from now on", ((begin - now).abs() <= NEAR_SECONDS).to_string()),
        // Helm reads the clock twice.
        ("valid for minutes", ((end - begin + 30) / 60).to_string()),
    ];
    let said = said.into_iter().map(|(name, said)| (name.to_owned(), said));
    said.chain(certificate.extensions().iter().map(extension)).collect()
}

/// Identifiers of keys are digests of what is drawn.
fn extension(extension: &X509Extension<'_>) -> Fact {
    let drawn = [
        OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
        OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
    ];
    let said = if drawn.contains(&extension.oid) {
        format!("{} bytes", extension.value.len())
    } else {
        hex::encode(extension.value)
    };
    let critical = if extension.critical { "critical " } else { "" };
    (format!("extension {}", extension.oid), format!("{critical}{said}"))
}

impl<'a> Document<'a> {
    fn read(block: &'a Pem<'_>) -> Self {
        match block.label {
            b"CERTIFICATE" => X509Certificate::from_der(&block.der)
                .ok()
                .filter(|(rest, _)| rest.is_empty())
                .map_or(Self::Other, |(_, certificate)| Self::Certificate(Box::new(certificate))),
            label if label.ends_with(b"PRIVATE KEY") => private_key(&block.der).unwrap_or(Self::Other),
            _ => Self::Other,
        }
    }
}

/// In PKCS #1, SEC 1 or PKCS #8.
fn private_key(der: &[u8]) -> Option<Document<'static>> {
    let key = |algorithm, public: &[u8]| Document::PrivateKey {
        algorithm,
        public: public.to_vec(),
    };
    if let Ok(pair) = RsaKeyPair::from_der(der).or_else(|_| RsaKeyPair::from_pkcs8(der)) {
        return Some(key("RSA", pair.public_key().as_ref()));
    }
    for (name, algorithm) in [
        ("P-256", &ECDSA_P256_SHA256_ASN1_SIGNING),
        ("P-384", &ECDSA_P384_SHA384_ASN1_SIGNING),
        ("P-521", &ECDSA_P521_SHA512_ASN1_SIGNING),
    ] {
        if let Ok(pair) = EcdsaKeyPair::from_private_key_der(algorithm, der) {
            return Some(key(name, pair.public_key().as_ref()));
        }
    }
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()?;
    Some(key("Ed25519", pair.public_key().as_ref()))
}

fn relations<'a>(blocks: impl Iterator<Item = &'a Pem<'a>>) -> BTreeSet<Relation> {
    let documents: Vec<_> = blocks.map(Document::read).collect();
    let certificates = || documents.iter().enumerate().filter_map(certificate);
    let mut relations = BTreeSet::new();
    for (place, signer) in certificates() {
        for (other, document) in documents.iter().enumerate() {
            match document {
                Document::Certificate(signed)
                    if signed.issuer() == signer.subject()
                        && signed.verify_signature(Some(signer.public_key())).is_ok() =>
                {
                    relations.insert(Relation::SignedBy(other, place));
                }
                Document::PrivateKey { public, .. } if *public == *signer.public_key().subject_public_key.data => {
                    relations.insert(Relation::KeyOf(other, place));
                }
                _ => {}
            }
        }
    }
    relations
}

fn certificate<'a, 'd>((place, document): (usize, &'d Document<'a>)) -> Option<(usize, &'d X509Certificate<'a>)> {
    match document {
        Document::Certificate(certificate) => Some((place, certificate)),
        _ => None,
    }
}
