//! Bundles and trust roots that are hostile or useless: each is refused with its reason, within bounds, and without asking anybody.

use std::{env, fs::File, net::UdpSocket, process::Command, sync::LazyLock};

use proptest::{prelude::*, sample::Index, test_runner::RngSeed};
use release::bundle::{
    BundleError, Keyless, MAX_BUNDLE_BYTES, MAX_ROOT_BYTES, TrustRoot, TrustRootError, verify_bundle,
};
use release::{Keys, Trust};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::{Value, json};

use crate::{
    bundle_verdicts::{ARTIFACT, bytes, keyless, reason},
    sigstore::{IDENTITY, ISSUER, Key, Signing, Sigstore, sign_with},
};

fn by_key() -> Trust {
    Trust::Keys(Keys::from_pem(Key::named("ours").pem().as_bytes()).unwrap())
}

/// A good bundle of each kind, with those whom it shall convince.
fn good() -> [(Value, Trust); 4] {
    let (ours, key) = (Sigstore::named("ours"), Key::named("ours"));
    let signing = Signing::of(ARTIFACT);
    [
        (sign_with(&key, &signing), by_key()),
        (sign_with(&key, &signing.clone().stated()), by_key()),
        (ours.sign(&signing), keyless(&ours)),
        (ours.sign(&signing.stated()), keyless(&ours)),
    ]
}

/// One change of a text that was good.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Put(Index, Vec<u8>),
    Cut(Index, usize),
    Repeat(Index, usize, Index),
    /// A leaf of the JSON becomes what another leaf is.
    Exchange(Index, Index),
    /// A leaf of the JSON goes away with its name.
    Remove(Index),
    /// A leaf of the JSON becomes something of another type.
    Replace(Index, u8),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<Index>;
    prop_oneof![
        (place(), 1u8..).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        (place(), proptest::collection::vec(any::<u8>(), 1..4)).prop_map(|(at, bytes)| Mutation::Put(at, bytes)),
        (place(), 1usize..64).prop_map(|(at, count)| Mutation::Cut(at, count)),
        (place(), 1usize..64, place()).prop_map(|(from, count, to)| Mutation::Repeat(from, count, to)),
        (place(), place()).prop_map(|(from, to)| Mutation::Exchange(from, to)),
        place().prop_map(Mutation::Remove),
        (place(), any::<u8>()).prop_map(|(at, kind)| Mutation::Replace(at, kind)),
    ]
}

fn mutated(good: &Value, mutation: &Mutation) -> Vec<u8> {
    let mut text = bytes(good);
    let end = |start: usize, count: usize| (start + count).min(good.to_string().len());
    match mutation {
        Mutation::Flip(at, bits) => {
            let at = at.index(text.len());
            text[at] ^= bits;
        }
        Mutation::Put(at, bytes) => {
            let at = at.index(text.len());
            text.splice(at..at, bytes.iter().copied());
        }
        Mutation::Cut(at, count) => {
            let at = at.index(text.len());
            text.drain(at..end(at, *count));
        }
        Mutation::Repeat(from, count, to) => {
            let from = from.index(text.len());
            let part = text[from..end(from, *count)].to_vec();
            let to = to.index(text.len());
            text.splice(to..to, part);
        }
        Mutation::Exchange(from, to) => {
            let leaves = leaves(good);
            let (from, to) = (from.get(&leaves), to.get(&leaves));
            let mut json = good.clone();
            *json.pointer_mut(to).unwrap() = good.pointer(from).unwrap().clone();
            return bytes(&json);
        }
        Mutation::Remove(at) => {
            let leaves = leaves(good);
            let (parent, name) = at.get(&leaves).rsplit_once('/').unwrap();
            let mut json = good.clone();
            match json.pointer_mut(parent).unwrap() {
                Value::Object(fields) => drop(fields.remove(name)),
                Value::Array(items) => drop(items.remove(name.parse().unwrap())),
                _ => unreachable!("only these have leaves"),
            }
            return bytes(&json);
        }
        Mutation::Replace(at, kind) => {
            let leaves = leaves(good);
            let mut json = good.clone();
            let kinds = [
                json!(null),
                json!(""),
                json!("0"),
                json!(-1),
                json!(u64::MAX.to_string()),
                json!(i64::MAX.to_string()),
                json!({}),
                json!([]),
                json!("AAAA"),
                json!(true),
            ];
            let at: &String = at.get(&leaves);
            *json.pointer_mut(at).unwrap() = kinds[usize::from(*kind) % kinds.len()].clone();
            return bytes(&json);
        }
    }
    text
}

/// The places of everything in a JSON that is neither object nor list.
pub(crate) fn leaves(json: &Value) -> Vec<String> {
    let below = |name: String, value: &Value| leaves(value).into_iter().map(move |leaf| format!("/{name}{leaf}"));
    match json {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| below(name.clone(), value))
            .collect(),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(index, value)| below(index.to_string(), value))
                .collect()
        }
        _ => vec![String::new()],
    }
}

/// The same changes in every run. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` explore others.
fn config() -> ProptestConfig {
    let explores = |name| env::var_os(name).is_some();
    if explores("PROPTEST_CASES") || explores("PROPTEST_RNG_SEED") {
        return ProptestConfig::default();
    }
    ProptestConfig {
        cases: 600,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn mutated_bundle_is_refused_or_says_what_the_good_one_says(which in 0..4usize, mutation in mutation()) {
        let (good, trust) = &GOOD[which];
        let said = verify_bundle(&bytes(good), ARTIFACT, trust).unwrap();
        let bundle = mutated(good, &mutation);
        if let Ok(signer) = verify_bundle(&bundle, ARTIFACT, trust) {
            prop_assert_eq!(signer, said);
        }
        // Whatever it became, it vouches for nothing else.
        prop_assert!(verify_bundle(&bundle, b"something else", trust).is_err());
    }
}

static GOOD: LazyLock<[(Value, Trust); 4]> = LazyLock::new(good);

/// What these bytes are refused with, by those who trust a key and those who trust an identity.
#[track_caller]
fn refused(bundle: &[u8], expected: &str) {
    for trust in [by_key(), keyless(&Sigstore::named("ours"))] {
        assert_eq!(reason(verify_bundle(bundle, ARTIFACT, &trust)), expected, "{trust:?}");
    }
}

#[test]
fn bundle_beyond_the_bounds_is_refused_before_it_is_understood() {
    refused(&vec![b' '; MAX_BUNDLE_BYTES + 1], "BundleTooLarge");
    refused("[".repeat(MAX_BUNDLE_BYTES).as_bytes(), "BundleDamaged");
    refused(
        format!("{}{}", "[".repeat(500), "]".repeat(500)).as_bytes(),
        "BundleDamaged",
    );
    refused(b"", "BundleDamaged");
    refused(b"null", "BundleDamaged");
    refused(b"\xff\xfe", "BundleDamaged");
}

#[test]
fn statement_with_too_many_brackets_is_refused_before_it_is_understood() {
    use base64::{Engine, prelude::BASE64_STANDARD as BASE64};
    for (mut bundle, trust) in good() {
        if let Some(payload) = bundle.pointer_mut("/dsseEnvelope/payload") {
            *payload = BASE64.encode("[".repeat(100_000)).into();
            let error = verify_bundle(&bytes(&bundle), ARTIFACT, &trust).unwrap_err();
            assert_eq!(error.to_string().matches("too many brackets").count(), 1, "{error}");
        }
    }
}

#[test]
fn bundle_with_more_than_anybody_writes_is_refused() {
    let ours = Sigstore::named("ours");
    let bundle = ours.sign(&Signing::of(ARTIFACT));
    let trust = keyless(&ours);
    let with = |place: &str, value: Value| {
        let mut bundle = bundle.clone();
        *bundle.pointer_mut(place).unwrap() = value;
        verify_bundle(&bytes(&bundle), ARTIFACT, &trust)
            .unwrap_err()
            .to_string()
    };
    let entry = &bundle["verificationMaterial"]["tlogEntries"][0];
    let many = with("/verificationMaterial/tlogEntries", vec![entry.clone(); 9].into());
    assert!(many.contains("too many entries"), "{many}");
    let stamps = json!({"rfc3161Timestamps": vec![json!({"signedTimestamp": "AAAA"}); 9]});
    let many = with("/verificationMaterial/timestampVerificationData", stamps);
    assert!(many.contains("too many timestamps"), "{many}");
    let checkpoint = "/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope";
    let head = bundle.pointer(checkpoint).unwrap().as_str().unwrap();
    let seal = head.lines().last().unwrap();
    let long = with(checkpoint, format!("{head}{}", format!("{seal}\n").repeat(200)).into());
    assert!(long.contains("too long"), "{long}");
}

#[test]
fn words_of_a_bundle_are_short_in_messages() {
    let ours = Sigstore::named("ours");
    let trust = keyless(&ours);
    let endless = "x".repeat(100_000);
    let mut bundles = vec![
        ours.sign(&Signing {
            issuer: &endless[..60_000],
            ..Signing::of(ARTIFACT)
        }),
        ours.sign(&Signing {
            identity: &endless[..60_000],
            ..Signing::of(ARTIFACT)
        }),
        ours.sign(&Signing {
            statement: Some(&endless),
            ..Signing::of(ARTIFACT)
        }),
        ours.sign(&Signing::of(ARTIFACT)),
        ours.sign(&Signing::of(ARTIFACT)),
    ];
    bundles[3]["mediaType"] = json!(endless);
    bundles[4]["verificationMaterial"]["tlogEntries"][0]["kindVersion"]["kind"] = json!(endless);
    for bundle in bundles {
        let error = verify_bundle(&bytes(&bundle), ARTIFACT, &trust).unwrap_err();
        assert!(error.to_string().len() < 1_000, "{error}");
    }
}

/// Why this is no trust root.
fn refused_root(root: &[u8]) -> TrustRootError {
    TrustRoot::from_json(root).unwrap_err()
}

#[test]
fn trust_root_that_is_none_is_refused_with_the_reason() {
    let good = Sigstore::named("ours").trusted_root();
    let with = |place: &str, value: Value| {
        let mut root = good.clone();
        *root.pointer_mut(place).unwrap() = value;
        refused_root(&bytes(&root))
    };
    let damaged = |error: TrustRootError| matches!(error, TrustRootError::Damaged { .. });
    let unusable = |error: TrustRootError| matches!(error, TrustRootError::Unusable { .. });
    assert_eq!(
        refused_root(&vec![b' '; MAX_ROOT_BYTES + 1]),
        TrustRootError::TooLarge { limit: MAX_ROOT_BYTES }
    );
    assert!(damaged(refused_root(b"")));
    assert!(damaged(refused_root("[".repeat(2000).as_bytes())));
    assert!(damaged(with("/mediaType", json!("application/json"))));
    assert!(damaged(with("/tlogs/0/logId/keyId", json!("not base64"))));
    assert_eq!(
        with("/certificateAuthorities", json!([])),
        TrustRootError::NoCertificateAuthority
    );
    let mut timeless = good.clone();
    (timeless["tlogs"], timeless["timestampAuthorities"]) = (json!([]), json!([]));
    assert_eq!(refused_root(&bytes(&timeless)), TrustRootError::NoTime);
    assert!(unusable(with("/tlogs/0/publicKey/rawBytes", json!("AAAA"))));
    assert!(unusable(with("/ctlogs/0/publicKey/rawBytes", json!("AAAA"))));
    let certificate = "/certificateAuthorities/0/certChain/certificates/0/rawBytes";
    assert!(unusable(with(certificate, json!("AAAA"))));
    assert!(unusable(with(
        "/certificateAuthorities/0/certChain/certificates",
        json!([])
    )));
}

#[test]
fn root_of_the_public_sigstore_is_understood() {
    let root = sigstore_verify::trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT;
    TrustRoot::from_json(root.as_bytes()).unwrap();
}

/// The verdict on what our sigstore signs, of those who trust this root.
fn verdict_by(root: &Value) -> &'static str {
    let trust = Trust::Keyless(Keyless {
        issuer: ISSUER.to_owned(),
        identity: IDENTITY.to_owned(),
        root: TrustRoot::from_json(&bytes(root)).unwrap().into(),
    });
    let bundle = Sigstore::named("ours").sign(&Signing::of(ARTIFACT));
    reason(verify_bundle(&bytes(&bundle), ARTIFACT, &trust))
}

#[test]
fn what_the_root_does_not_know_of_the_time_of_signing_counts_for_nothing() {
    let good = Sigstore::named("ours").trusted_root();
    let until = |place: &str, end: &str| {
        let mut root = good.clone();
        root.pointer_mut(place).unwrap()["end"] = json!(end);
        verdict_by(&root)
    };
    let (before, after) = ("2024-03-01T11:00:00Z", "2024-03-01T13:00:00Z");
    for (place, expected) in [
        ("/tlogs/0/publicKey/validFor", "InvalidProofOfLog"),
        ("/ctlogs/0/publicKey/validFor", "UnloggedCertificate"),
        ("/certificateAuthorities/0/validFor", "UntrustedCertificate"),
    ] {
        assert_eq!(
            (until(place, before), until(place, after)),
            (expected, "good"),
            "{place}"
        );
    }
}

#[test]
fn root_without_a_log_of_certificates_does_without() {
    let mut root = Sigstore::named("ours").trusted_root();
    root["ctlogs"] = json!([]);
    assert_eq!(verdict_by(&root), "good");
}

const CHILD: &str = "BUNDLE_TEST_CHILD";

/// A process that can open nothing has no socket, and no file in which an answer may lie.
#[test]
fn bundles_are_verified_by_a_process_that_can_open_nothing() {
    let status = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "bundle_limits::child_that_can_open_nothing",
            "--ignored",
            "--test-threads=1",
        ])
        .env(CHILD, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "only as the child of another test"]
fn child_that_can_open_nothing() {
    assert!(env::var_os(CHILD).is_some(), "another test starts this");
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )
    .unwrap();
    UdpSocket::bind("127.0.0.1:0").expect_err("no socket can be opened");
    File::open("/dev/null").expect_err("no file can be opened");
    for (bundle, trust) in good() {
        verify_bundle(&bytes(&bundle), ARTIFACT, &trust).unwrap();
        let other = verify_bundle(&bytes(&bundle), b"something else", &trust).unwrap_err();
        assert!(matches!(other, BundleError::OtherDigest { .. }), "{other:?}");
    }
}
