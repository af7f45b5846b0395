//! What must hold of everything that vouches for a release: no verdict is good that nobody signed for, whatever the bytes are.
//!
//! There is one release, of which `fuzzing/` has the two statements that may be signed, and whom to trust. The halves of the keys that sign are
//! in tests alone: whatever an input has been changed to, it can only be good by what the signers signed.

#![expect(
    clippy::missing_panics_doc,
    reason = "to panic is how they say that something does not hold"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use super::{
    Evidence, Keys, MAX_SIGNATURES, MAX_WRITTEN, Signer, Statement, Trust, Unverified, Verification, admit,
    bundle::{Keyless, TrustRoot, verify_bundle},
    sums::{self, SumsError},
    verify,
};
use crate::{
    Digest, ErrorClass, FileRef, Release, files,
    fuzzing::{Outcome, refused},
    source::fuzzing::files_of_manifest,
};

const LIST: &[u8] = include_bytes!("fuzzing/sha256sums.txt");
const MANIFEST: &[u8] = include_bytes!("fuzzing/manifest.json");
const TRUSTED_KEY: &[u8] = include_bytes!("fuzzing/trusted.pub");
const TRUSTED_ROOT: &[u8] = include_bytes!("fuzzing/trusted_root.json");
const OTHER_KEY: &[u8] = include_bytes!("fuzzing/other.pub");
const OTHER_ROOT: &[u8] = include_bytes!("fuzzing/other_root.json");
/// The list, signed with the trusted key, and by the trusted identity.
const SIGNED_BY_KEY: &[u8] = include_bytes!("fuzzing/signed-by-key.json");
const SIGNED_BY_IDENTITY: &[u8] = include_bytes!("fuzzing/signed-by-identity.json");
const ISSUER: &str = "https://token.forge.example.com";
const IDENTITY: &str = "https://forge.example.com/stacks/release.yaml@refs/heads/main";

/// The release that is signed.
static SIGNED: LazyLock<Option<Arc<Release>>> = LazyLock::new(|| release(false).map(Arc::new));
/// The same, but for a byte of one file.
static UNSIGNED: LazyLock<Option<Arc<Release>>> = LazyLock::new(|| release(true).map(Arc::new));
/// Whose signatures are good.
static TRUSTED: LazyLock<Vec<Trust>> = LazyLock::new(|| {
    [keys(TRUSTED_KEY), keyless(TRUSTED_ROOT, IDENTITY)]
        .into_iter()
        .flatten()
        .collect()
});
/// Those of nobody who signed.
static OTHERS: LazyLock<Vec<Trust>> = LazyLock::new(|| {
    let stranger = IDENTITY.replace("main", "mine");
    let others = [
        keys(OTHER_KEY),
        keyless(OTHER_ROOT, IDENTITY),
        keyless(TRUSTED_ROOT, &stranger),
    ];
    others.into_iter().flatten().collect()
});

/// Who signed what is signed.
static TRUSTED_SIGNER: LazyLock<Option<Signer>> =
    LazyLock::new(|| verify_bundle(SIGNED_BY_KEY, LIST, &keys(TRUSTED_KEY)?).ok());
static TRUSTED_IDENTITY: LazyLock<Option<Signer>> =
    LazyLock::new(|| verify_bundle(SIGNED_BY_IDENTITY, LIST, &keyless(TRUSTED_ROOT, IDENTITY)?).ok());
/// So many bytes of a secret may be found in an error, for our own words have them: `TransparencyLog`.
const LONGEST_TOLD: usize = 16;

fn keys(pem: &[u8]) -> Option<Trust> {
    Keys::from_pem(pem).ok().map(Trust::Keys)
}

fn keyless(root: &[u8], identity: &str) -> Option<Trust> {
    Some(Trust::Keyless(Keyless {
        issuer: ISSUER.to_owned(),
        identity: identity.to_owned(),
        root: TrustRoot::from_json(root).ok()?.into(),
    }))
}

fn release(is_changed: bool) -> Option<Release> {
    let tag = "docker-harbor-1-34-v1".parse().ok()?;
    let mut files = files_of_manifest(&tag, MANIFEST)?;
    if is_changed {
        files.first_mut()?.sha256 = Digest::of(b"changed");
    }
    files::fuzzing::release(&tag, files)
}

/// A list of sums beside a release.
pub fn sums(input: &[u8]) -> Outcome {
    if let Ok(signed) = sums::read(input) {
        let files: Vec<FileRef> = signed.iter().map(|(name, sha256)| file(name, *sha256)).collect();
        assert_eq!(sums::check(input, &files), Ok(()));
        assert_eq!(sums::read(&list(&signed)), Ok(signed));
    }
    let Some(release) = SIGNED.as_deref() else {
        return Outcome::Refused;
    };
    match sums::check(input, &release.files) {
        Ok(()) => {
            // It is of every file, as it is, and of no other.
            for (position, file) in release.files.iter().enumerate() {
                let mut files = release.files.clone();
                files[position].sha256 = Digest::of(b"changed");
                assert!(matches!(sums::check(input, &files), Err(SumsError::OtherDigest { .. })));
                files.remove(position);
                let missing = SumsError::NotThere {
                    file: file.name.clone(),
                };
                assert_eq!(sums::check(input, &files), Err(missing));
            }
            Outcome::Accepted
        }
        Err(error) => {
            let error = Unverified::Sums(error);
            refused(&error, error.class(), error.reason())
        }
    }
}

fn file(name: &str, sha256: Digest) -> FileRef {
    FileRef {
        name: name.to_owned(),
        size: 0,
        sha256,
    }
}

fn list(signed: &BTreeMap<&str, Digest>) -> Vec<u8> {
    let lines = signed
        .iter()
        .map(|(name, sha256)| format!("{}  {name}\n", sha256.hex()));
    let list = lines.collect::<String>();
    // Nothing at all is no list; a line for itself says nothing.
    if list.is_empty() {
        return format!("{}  {}\n", Digest::of(b"").hex(), sums::SUMS).into_bytes();
    }
    list.into_bytes()
}

/// Evidence as the store has it written down.
pub fn evidence(input: &[u8]) -> Outcome {
    let Some(evidence) = Evidence::read(input) else {
        return Outcome::Refused;
    };
    assert!(evidence.count() <= MAX_SIGNATURES);
    let written = serde_json::to_vec(&evidence).unwrap_or_default();
    assert!(written.len() <= MAX_WRITTEN);
    assert_eq!(Evidence::read(&written).as_ref(), Some(&evidence));
    let (Some(signed), Some(unsigned)) = (&*SIGNED, &*UNSIGNED) else {
        return Outcome::Refused;
    };
    let mut outcome = Outcome::Refused;
    for trust in TRUSTED.iter() {
        let verdict = verify(signed, trust, &evidence);
        match admit(Arc::clone(signed), Verification::Require(verdict.clone())) {
            Ok(admitted) => {
                let is_stated = evidence.statement(Statement::Sums).is_some_and(is_list)
                    || evidence.statement(Statement::Manifest) == Some(MANIFEST);
                assert!(is_stated, "admitted by a statement that nobody signed");
                assert!(admitted.signer().is_some_and(is_trusted));
                outcome = Outcome::Accepted;
            }
            Err(error) => {
                refused(&error, error.class(), error.reason());
            }
        }
        assert!(
            verify(unsigned, trust, &evidence).is_err(),
            "nobody signed this release"
        );
        assert!(admit(Arc::clone(unsigned), Verification::Require(verdict)).is_err());
    }
    for trust in OTHERS.iter() {
        assert!(verify(signed, trust, &evidence).is_err(), "{trust:?} signed nothing");
    }
    outcome
}

fn is_list(statement: &[u8]) -> bool {
    statement == LIST
}

fn is_trusted(signer: &Signer) -> bool {
    match signer {
        Signer::Key(_) => true,
        Signer::Identity { issuer, identity, .. } => issuer == ISSUER && identity == IDENTITY,
    }
}

/// A bundle of sigstore.
pub fn bundle(input: &[u8]) -> Outcome {
    let mut outcome = Outcome::Refused;
    assert_eq!((TRUSTED.len(), OTHERS.len()), (2, 3), "whom to trust is damaged");
    for trust in TRUSTED.iter() {
        match verify_bundle(input, LIST, trust) {
            Ok(signer) => {
                assert!(is_trusted(&signer));
                outcome = Outcome::Accepted;
            }
            Err(error) => {
                refused(&error, error.class(), error.reason());
            }
        }
        assert!(
            verify_bundle(input, b"something else", trust).is_err(),
            "nobody signed this"
        );
    }
    for trust in OTHERS.iter() {
        assert!(verify_bundle(input, LIST, trust).is_err(), "{trust:?} signed nothing");
    }
    outcome
}

/// Public keys, as a Secret has them.
pub fn keys_of_secret(input: &[u8]) -> Outcome {
    match Keys::from_pem(input) {
        Ok(keys) => {
            assert_eq!(Keys::from_pem(input).as_ref(), Ok(&keys));
            signs_nothing_else(&Trust::Keys(keys), SIGNED_BY_KEY, TRUSTED_SIGNER.as_ref());
            Outcome::Accepted
        }
        Err(error) => {
            tells_nothing_of(input, &error.to_string());
            refused(&error, ErrorClass::Terminal, "InvalidKeys")
        }
    }
}

/// A trust root, as a Secret or a file has it.
pub fn root_of_secret(input: &[u8]) -> Outcome {
    match TrustRoot::from_json(input) {
        Ok(root) => {
            let root = Arc::new(root);
            let of = |identity: &str| {
                Trust::Keyless(Keyless {
                    issuer: ISSUER.to_owned(),
                    identity: identity.to_owned(),
                    root: root.clone(),
                })
            };
            signs_nothing_else(&of(IDENTITY), SIGNED_BY_IDENTITY, TRUSTED_IDENTITY.as_ref());
            let stranger = verify_bundle(SIGNED_BY_IDENTITY, LIST, &of("somebody@example.com"));
            assert!(stranger.is_err(), "an identity that did not sign");
            Outcome::Accepted
        }
        Err(error) => {
            tells_nothing_of(input, &error.to_string());
            refused(&error, error.class(), error.reason())
        }
    }
}

/// Whatever was read as whom to trust: who signed is who it was, and signed that list alone.
fn signs_nothing_else(trust: &Trust, bundle: &[u8], signer: Option<&Signer>) {
    assert!(signer.is_some(), "whom to trust is damaged");
    if let Ok(found) = verify_bundle(bundle, LIST, trust) {
        assert_eq!(Some(&found), signer);
    }
    assert!(
        verify_bundle(bundle, b"something else", trust).is_err(),
        "nobody signed this"
    );
}

/// What a Secret holds may be another's password that was put there by mistake: no longer word of it is in an error.
fn tells_nothing_of(input: &[u8], message: &str) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte);
    for word in input.split(|byte| !is_word(byte)) {
        for part in word.windows(LONGEST_TOLD) {
            let part = String::from_utf8_lossy(part);
            assert!(!message.contains(&*part), "{message:?} tells {part:?}");
        }
    }
}
