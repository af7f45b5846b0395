//! What a source has to show for a release, as bytes: nothing of it is believed before it is [verified](super::verify), wherever it was kept.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Digest;

/// Most signatures of one release that are looked at.
pub(crate) const MAX_SIGNATURES: usize = 32;
/// Most bytes of a list of sums: 64 files with the longest names that file systems have need a third of it.
pub(crate) const MAX_STATEMENT: usize = 64 << 10;
/// Most bytes of what a classic signature is of; real ones have 250, and what somebody annotated.
pub(crate) const MAX_PAYLOAD: usize = 64 << 10;
/// Most bytes of a signature in base64; that of the longest RSA key has 1,368.
pub(crate) const MAX_SIGNATURE: usize = 4 << 10;
/// Most bytes of all that is kept for one release.
const MAX_BYTES: usize = 1 << 20;
/// Most bytes of it as it is written down: bytes in base64, texts as they are counted, and a few more around each signature.
pub(crate) const MAX_WRITTEN: usize = 2 * MAX_BYTES;

/// What a source has to show for one release: what is signed, and signatures, at most 32 of them and 1 MiB in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    manifest: Option<Bytes>,
    sums: Option<Bytes>,
    signatures: Vec<Signature>,
    is_cut: bool,
}

/// Something that names every file of a release by its digest, and therefore can be signed for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Statement {
    /// The manifest under which a registry has it.
    Manifest,
    /// The list of sums beside its files.
    Sums,
}

/// One signature, as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signature {
    pub(super) of: Statement,
    pub(super) proof: Proof,
}

/// A signature in one of the forms in which cosign makes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Proof {
    /// Of a text that names the statement by its digest: what `cosign sign` put under the tag `sha256-….sig` before there were bundles.
    SimpleSigning {
        /// The text.
        payload: Bytes,
        /// Its signature in base64.
        signature: String,
    },
    /// Of the statement itself, in base64: what `cosign sign-blob` writes without a bundle.
    Detached(String),
    /// A bundle of sigstore, which has all in itself.
    Bundle(Bytes),
}

/// Bytes of somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Evidence {
    /// Reads what was written down; none where it is no evidence, or more than may be.
    pub(crate) fn read(written: &[u8]) -> Option<Self> {
        if written.len() > MAX_WRITTEN {
            return None;
        }
        let evidence: Self = serde_json::from_slice(written).ok()?;
        (evidence.count() <= MAX_SIGNATURES && evidence.bytes() <= MAX_BYTES).then_some(evidence)
    }

    /// Notes what is signed, which no signature is of use without: the last ones make room for it.
    pub(crate) fn state(&mut self, statement: Statement, bytes: Vec<u8>) {
        let place = match statement {
            Statement::Manifest => &mut self.manifest,
            Statement::Sums => &mut self.sums,
        };
        *place = Some(Bytes(bytes));
        while self.bytes() > MAX_BYTES && self.signatures.pop().is_some() {
            self.is_cut = true;
        }
    }

    /// Notes a signature, if there is room for it; whether there was.
    pub(crate) fn add(&mut self, of: Statement, proof: Proof) -> bool {
        let has_room = self.signatures.len() < MAX_SIGNATURES && self.bytes() + proof.bytes() <= MAX_BYTES;
        if has_room {
            self.signatures.push(Signature { of, proof });
        } else {
            self.is_cut = true;
        }
        has_room
    }

    /// Notes that there are more signatures than are looked at.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// How many signatures there are.
    pub(crate) fn count(&self) -> usize {
        self.signatures.len()
    }

    /// Changes with everything that is in it.
    pub fn digest(&self) -> Digest {
        // A struct of texts and numbers is always JSON.
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Whether there is no signature at all.
    pub fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }

    /// Whether there are, or may be, more signatures than were looked at.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What both have to show, as far as there is room, first what is in this one. A signature is of use with its own statement alone: where the
    /// other one has another statement of a kind, signatures of it count only if this one has none of that kind.
    #[must_use]
    pub fn united(&self, other: &Self) -> Self {
        let mut united = self.clone();
        united.is_cut |= other.is_cut;
        for of in [Statement::Manifest, Statement::Sums] {
            if other.statement(of) != self.statement(of) {
                if self.signatures.iter().any(|signature| signature.of == of) {
                    continue;
                }
                if let Some(statement) = other.statement(of) {
                    if united.bytes() + statement.len() > MAX_BYTES {
                        united.cut();
                        continue;
                    }
                    united.state(of, statement.to_vec());
                }
            }
            for signature in other.signatures.iter().filter(|signature| signature.of == of) {
                if !united.signatures.contains(signature) {
                    united.add(of, signature.proof.clone());
                }
            }
        }
        united
    }

    /// Whether all signatures of the other one are here, with what they are of.
    pub fn has_all_of(&self, other: &Self) -> bool {
        other.signatures.iter().all(|signature| {
            self.statement(signature.of) == other.statement(signature.of) && self.signatures.contains(signature)
        })
    }

    pub(super) fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    pub(super) fn statement(&self, statement: Statement) -> Option<&[u8]> {
        let bytes = match statement {
            Statement::Manifest => &self.manifest,
            Statement::Sums => &self.sums,
        };
        bytes.as_ref().map(|Bytes(bytes)| bytes.as_slice())
    }

    fn bytes(&self) -> usize {
        let statements = [&self.manifest, &self.sums].into_iter().flatten();
        let statements: usize = statements.map(|Bytes(bytes)| bytes.len()).sum();
        statements
            + self
                .signatures
                .iter()
                .map(|signature| signature.proof.bytes())
                .sum::<usize>()
    }
}

impl Proof {
    fn bytes(&self) -> usize {
        match self {
            Self::SimpleSigning { payload, signature } => payload.0.len() + written(signature),
            Self::Detached(signature) => written(signature),
            Self::Bundle(Bytes(bytes)) => bytes.len(),
        }
    }
}

/// Bytes of a text as it is written down: strangers may fill one with what takes six times as much there.
fn written(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' => 2,
        byte if byte.is_ascii_control() => 6,
        _ => 1,
    });
    bytes.sum()
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&base64::display::Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::MAX_BUNDLE_BYTES;

    #[test]
    fn evidence_is_what_it_was_after_it_was_written_down() {
        let mut evidence = Evidence::default();
        evidence.state(Statement::Manifest, b"{}\xff".to_vec());
        evidence.state(Statement::Sums, b"sums".to_vec());
        let payload = Bytes(b"payload".to_vec());
        let signature = "AA==".to_owned();
        evidence.add(Statement::Manifest, Proof::SimpleSigning { payload, signature });
        evidence.add(Statement::Sums, Proof::Detached("AA==".to_owned()));
        evidence.add(Statement::Sums, Proof::Bundle(Bytes(b"{}".to_vec())));
        let written = serde_json::to_vec(&evidence).unwrap();
        assert_eq!(serde_json::from_slice::<Evidence>(&written).unwrap(), evidence);
    }

    /// Of a list of sums.
    fn shown(sums: &str, signatures: impl IntoIterator<Item = String>) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.state(Statement::Sums, sums.into());
        for signature in signatures {
            evidence.add(Statement::Sums, Proof::Detached(signature));
        }
        evidence
    }

    fn numbered(numbers: std::ops::Range<usize>) -> Evidence {
        shown("sums", numbers.map(|number| number.to_string()))
    }

    #[test]
    fn signatures_of_one_statement_are_united_within_the_bounds_the_first_ones_first() {
        assert_eq!(numbered(0..3).united(&numbered(1..5)), numbered(0..5));
        assert_eq!(numbered(0..3).united(&Evidence::default()), numbered(0..3));
        assert_eq!(Evidence::default().united(&numbered(0..3)), numbered(0..3));
        let full = numbered(0..30).united(&numbered(30..40));
        assert!(full.is_cut());
        assert_eq!(full.signatures(), numbered(0..MAX_SIGNATURES).signatures());
        assert!(full.has_all_of(&numbered(30..32)) && !full.has_all_of(&numbered(30..33)));
        assert_eq!(full.united(&numbered(50..60)), full, "it changes no more");

        let mut large = Evidence::default();
        for number in 0..16 {
            large.add(Statement::Manifest, Proof::Bundle(Bytes(vec![number; MAX_BYTES / 16])));
        }
        let united = large.united(&numbered(0..3));
        assert!(Evidence::read(&serde_json::to_vec(&united).unwrap()).is_some());
    }

    #[test]
    fn signatures_of_another_statement_do_not_come_among_those_of_the_first() {
        let (ours, theirs) = (numbered(0..1), shown("other", ["1".to_owned()]));
        assert_eq!(ours.united(&theirs), ours);
        assert!(!ours.has_all_of(&theirs));
        assert_eq!(shown("sums", []).united(&theirs), theirs);
        let mut of_manifest = Evidence::default();
        of_manifest.state(Statement::Manifest, b"manifest".to_vec());
        of_manifest.add(Statement::Manifest, Proof::Detached("2".to_owned()));
        let both = ours.united(&of_manifest);
        assert!(both.has_all_of(&ours) && both.has_all_of(&of_manifest));
    }

    #[test]
    fn signatures_are_bounded_in_number_and_in_bytes_together() {
        let mut many = Evidence::default();
        for _ in 0..=MAX_SIGNATURES {
            many.add(Statement::Sums, Proof::Detached(String::new()));
        }
        assert_eq!((many.count(), many.is_cut()), (MAX_SIGNATURES, true));

        let mut large = Evidence::default();
        for _ in 0..MAX_SIGNATURES {
            large.add(Statement::Sums, Proof::Bundle(Bytes(vec![0; MAX_BUNDLE_BYTES])));
        }
        assert_eq!((large.count(), large.is_cut()), (MAX_BYTES / MAX_BUNDLE_BYTES, true));
        assert!(serde_json::to_vec(&large).unwrap().len() <= MAX_WRITTEN);
    }

    /// Whether it is the same after it was written down.
    fn is_kept(evidence: &Evidence) -> bool {
        Evidence::read(&serde_json::to_vec(evidence).unwrap()).as_ref() == Some(evidence)
    }

    #[test]
    fn what_is_signed_has_its_room_also_when_it_comes_after_as_many_signatures_as_fit() {
        let mut evidence = Evidence::default();
        for number in 0..4 {
            assert!(evidence.add(
                Statement::Manifest,
                Proof::Bundle(Bytes(vec![number; MAX_BUNDLE_BYTES]))
            ));
        }
        let first = evidence.signatures()[0].clone();
        evidence.state(Statement::Manifest, b"manifest".to_vec());
        assert!(is_kept(&evidence));
        assert_eq!((evidence.count(), evidence.is_cut()), (3, true));
        assert_eq!(evidence.signatures()[0], first);
        // Also in the place of a shorter one.
        evidence.state(Statement::Manifest, vec![0; MAX_BUNDLE_BYTES + 1]);
        assert_eq!(evidence.count(), 2);
        assert!(is_kept(&evidence));
    }

    #[test]
    fn texts_that_are_longer_when_they_are_written_down_are_bounded_as_they_are_there() {
        for stranger in ["\u{1}", "\"", "\\", "\u{7f}", "\u{fffd}", "a"] {
            let mut kept = Evidence::default();
            for number in 0..MAX_SIGNATURES {
                let text = format!("{number}{}", stranger.repeat(MAX_STATEMENT / stranger.len() - 2));
                kept = kept.united(&shown("sums", [text]));
            }
            assert!(is_kept(&kept), "{stranger:?}");
        }
    }
}
