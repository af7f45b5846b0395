//! Bundles of signatures, good and bad: our verdict is the real cosign's, and says why.

use std::path::Path;

use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize,
};
use release::{
    Digest, ErrorClass, Keys, Signer, Trust,
    bundle::{BundleError, Keyless, TrustRoot, verify_bundle},
};
use serde_json::{Value, json};

use crate::{
    bundle_limits::leaves,
    cosign::Cosign,
    sigstore::{IDENTITY, ISSUER, Key, Log, SIGN, SIGNED_AT, Signing, Sigstore, VALIDITY, sign_with},
};

pub(crate) const ARTIFACT: &[u8] = b"what is signed";
pub(crate) fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}

pub(crate) fn keyless(sigstore: &Sigstore) -> Trust {
    Trust::Keyless(Keyless {
        issuer: ISSUER.to_owned(),
        identity: IDENTITY.to_owned(),
        root: TrustRoot::from_json(&bytes(&sigstore.trusted_root())).unwrap().into(),
    })
}

pub(crate) fn reason(verdict: Result<Signer, BundleError>) -> &'static str {
    match verdict {
        Ok(_) => "good",
        Err(error) => error.reason(),
    }
}

/// The bundle with something else at a place in it.
fn with(mut bundle: Value, place: &str, harm: impl FnOnce(&mut Value)) -> Value {
    harm(bundle.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")));
    bundle
}

fn taken_away(bundle: &Value, place: &str, name: &str) -> Value {
    with(bundle.clone(), place, |parent| {
        parent.as_object_mut().unwrap().remove(name).unwrap();
    })
}

/// Another first character of base64.
fn damaged(text: &mut Value) {
    let good = text.as_str().unwrap();
    let other = if good.starts_with('A') { "B" } else { "A" };
    *text = format!("{other}{}", &good[1..]).into();
}

const ENTRY: &str = "/verificationMaterial/tlogEntries/0";

/// What is wrong with a bundle, the bundle, and our reason.
type Row = (&'static str, Vec<u8>, &'static str);

fn row(harm: &'static str, bundle: &Value, expected: &'static str) -> Row {
    (harm, bytes(bundle), expected)
}

fn truncated(bundle: &Value) -> Vec<u8> {
    let mut bytes = bytes(bundle);
    bytes.truncate(bytes.len() - 10);
    bytes
}

/// Bundles of honest signers, logs and authorities, among them those whom we do not trust.
fn signed_by_somebody(ours: &Sigstore, log: Log) -> Vec<Row> {
    let other = Sigstore::named("other");
    let signing = Signing {
        log,
        ..Signing::of(ARTIFACT)
    };
    let with = |change: &dyn Fn(&mut Signing<'static>)| {
        let mut changed = signing.clone();
        change(&mut changed);
        ours.sign(&changed)
    };
    let by = |change: &dyn Fn(&mut Sigstore)| {
        let mut changed = ours.clone();
        change(&mut changed);
        changed.sign(&signing)
    };
    let (first, last) = (SIGNED_AT, SIGNED_AT + VALIDITY);
    vec![
        row("nothing, signed as a blob", &ours.sign(&signing), "good"),
        row(
            "nothing, signed as a statement",
            &ours.sign(&signing.clone().stated()),
            "good",
        ),
        row("logged in the last second", &with(&|it| it.logged_at = last), "good"),
        row(
            "logged when expired",
            &with(&|it| it.logged_at = last + 1),
            "CertificateOutsideValidity",
        ),
        row(
            "logged too early",
            &with(&|it| it.logged_at = first - 1),
            "CertificateOutsideValidity",
        ),
        row(
            "other identity",
            &with(&|it| it.identity = "somebody@example.com"),
            "OtherIdentity",
        ),
        row(
            "longer identity",
            &with(&|it| it.identity = LONGER_IDENTITY),
            "OtherIdentity",
        ),
        row(
            "other issuer",
            &with(&|it| it.issuer = "https://issuer.example.com"),
            "OtherIssuer",
        ),
        row(
            "other authority",
            &by(&|it| it.authority = other.authority.clone()),
            "UntrustedCertificate",
        ),
        row(
            "other log of certificates",
            &by(&|it| it.certificate_log = other.certificate_log.clone()),
            "UnloggedCertificate",
        ),
        row("other log", &by(&|it| it.log = other.log.clone()), "OtherLog"),
        row("other sigstore", &other.sign(&signing), "OtherLog"),
        row(
            "other artifact",
            &with(&|it| it.artifact = OTHER_ARTIFACT),
            "SignatureOfOtherDigest",
        ),
        row(
            "statement about another artifact",
            &with(&|it| (it.artifact, it.statement) = (OTHER_ARTIFACT, Some(SIGN))),
            "SignatureOfOtherDigest",
        ),
    ]
}

const OTHER_ARTIFACT: &[u8] = b"something else";
/// Begins with the trusted one.
const LONGER_IDENTITY: &str = "https://forge.example.com/stacks/release.yaml@refs/heads/main2";

/// Bundles that were good before somebody changed them.
fn changed_by_somebody(ours: &Sigstore, log: Log) -> Vec<Row> {
    let signing = Signing {
        log,
        ..Signing::of(ARTIFACT)
    };
    let of_other = Signing {
        artifact: OTHER_ARTIFACT,
        ..signing.clone()
    };
    let (good, of_other) = (ours.sign(&signing), ours.sign(&of_other));
    let stated = ours.sign(&signing.clone().stated());
    // Where a timestamp says when, it is of the signature that was there.
    let of_no_signature = match log {
        Log::First => "BadSignature",
        Log::Second => "InvalidTimestamp",
    };
    let log = Sigstore::named("other").log;
    let in_other_log = Sigstore { log, ..ours.clone() }.sign(&signing);
    let by_other_key = sign_with(&Key::named("somebody else"), &signing);
    let taken =
        |place: &str, from: &Value| with(good.clone(), place, |part| *part = from.pointer(place).unwrap().clone());
    let other_digest = with(of_other.clone(), DIGEST, |digest| {
        *digest = good.pointer(DIGEST).unwrap().clone();
    });
    let two_contents = with(good.clone(), "", |all| {
        all["dsseEnvelope"] = stated["dsseEnvelope"].clone();
    });
    let two_materials = with(good.clone(), "/verificationMaterial", |all| {
        all["publicKey"] = json!({"hint": ""});
    });
    let twice = with(good.clone(), "/verificationMaterial/tlogEntries", |entries| {
        let entries = entries.as_array_mut().unwrap();
        entries.push(entries[0].clone());
    });
    let other_index = |index: &mut Value| *index = "2".into();
    vec![
        ("truncated", truncated(&good), "BundleDamaged"),
        ("no JSON", b"good".to_vec(), "BundleDamaged"),
        row(
            "no log entry",
            &taken_away(&good, "/verificationMaterial", "tlogEntries"),
            "NoProofOfLog",
        ),
        row(
            "no inclusion proof",
            &taken_away(&good, ENTRY, "inclusionProof"),
            "NoProofOfLog",
        ),
        row("two contents", &two_contents, "BundleDamaged"),
        row("two materials", &two_materials, "BundleDamaged"),
        row("the same log entry twice", &twice, "BundleDamaged"),
        row("digest of this, signature of another", &other_digest, "BadSignature"),
        row(
            "signature by another key",
            &taken(SIGNATURE, &by_other_key),
            of_no_signature,
        ),
        row(
            "log entry of another signature",
            &taken(ENTRY, &of_other),
            "InvalidProofOfLog",
        ),
        row(
            "damaged proof",
            &with(good.clone(), &at("/inclusionProof/hashes/0"), damaged),
            "InvalidProofOfLog",
        ),
        row(
            "other place in the log",
            &with(
                with(good.clone(), &at("/inclusionProof/logIndex"), other_index),
                &at("/logIndex"),
                other_index,
            ),
            "InvalidProofOfLog",
        ),
        row(
            "head sealed by another log",
            &taken(&at("/inclusionProof/checkpoint"), &in_other_log),
            "InvalidProofOfLog",
        ),
        row("a key instead of an identity", &by_other_key, "NotByIdentity"),
    ]
}

const DIGEST: &str = "/messageSignature/messageDigest";
const SIGNATURE: &str = "/messageSignature/signature";
const STAMPS: &str = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps";

/// Bundles with something wrong in what says when they were signed.
fn badly_timed(ours: &Sigstore) -> Vec<Row> {
    let signing = Signing::of(ARTIFACT);
    let logged = ours.sign(&signing);
    let too_late = ours.sign(&Signing {
        logged_at: SIGNED_AT + VALIDITY + 1,
        ..signing.clone()
    });
    let in_time = |time: &mut Value| *time = (SIGNED_AT + 1).to_string().into();
    let stamping = Signing {
        log: Log::Second,
        ..signing
    };
    let stamped = ours.sign(&stamping);
    let clock = Sigstore::named("other").clock;
    let by_other_clock = Sigstore { clock, ..ours.clone() }.sign(&stamping);
    let of_other = ours.sign(&Signing {
        artifact: OTHER_ARTIFACT,
        ..stamping
    });
    let stamps_of = |other: &Value| {
        with(stamped.clone(), STAMPS, |stamps| {
            *stamps = other.pointer(STAMPS).unwrap().clone();
        })
    };
    vec![
        row(
            "no promise of the log",
            &taken_away(&logged, ENTRY, "inclusionPromise"),
            "NoTimeOfSigning",
        ),
        row(
            "damaged promise",
            &with(logged.clone(), &at(PROMISE), damaged),
            "InvalidProofOfLog",
        ),
        row(
            "other time than promised",
            &with(too_late, &at("/integratedTime"), in_time),
            "InvalidProofOfLog",
        ),
        row(
            "no timestamp",
            &with(stamped.clone(), STAMPS, |stamps| stamps.as_array_mut().unwrap().clear()),
            "NoTimeOfSigning",
        ),
        row("timestamp by another authority", &by_other_clock, "InvalidTimestamp"),
        row(
            "timestamp of another signature",
            &stamps_of(&of_other),
            "InvalidTimestamp",
        ),
        row(
            "damaged timestamp",
            &with(stamped.clone(), &format!("{STAMPS}/0/signedTimestamp"), damaged),
            "InvalidTimestamp",
        ),
    ]
}

const PROMISE: &str = "/inclusionPromise/signedEntryTimestamp";

fn at(place: &str) -> String {
    format!("{ENTRY}{place}")
}

fn keyless_flags(root: &Path) -> Vec<String> {
    vec![
        format!("--trusted-root={}", root.display()),
        format!("--certificate-identity={IDENTITY}"),
        format!("--certificate-oidc-issuer={ISSUER}"),
    ]
}

#[tokio::test]
async fn keyless_verdict_is_that_of_cosign_and_names_the_reason() {
    let (cosign, ours) = (Cosign::new(), Sigstore::named("ours"));
    let trust = keyless(&ours);
    let root = cosign.file("root.json", bytes(&ours.trusted_root()));
    let flags = keyless_flags(&root);
    let rows = [Log::First, Log::Second].into_iter().flat_map(|log| {
        let rows = signed_by_somebody(&ours, log).into_iter();
        rows.chain(changed_by_somebody(&ours, log))
    });
    for (harm, bundle, expected) in rows.chain(badly_timed(&ours)) {
        let verdict = verify_bundle(&bundle, ARTIFACT, &trust);
        let (good, words) = cosign.verdict(&bundle, ARTIFACT, &flags).await;
        assert_eq!(good, verdict.is_ok(), "{harm}: {verdict:?}, but cosign: {words}");
        assert_eq!(reason(verdict), expected, "{harm}");
    }
}

#[test]
fn signature_that_a_log_saw_some_seconds_ahead_of_our_clock_is_good_when_they_have_passed() {
    let ours = Sigstore::named("ours");
    let now = jiff::Timestamp::now().as_second();
    let bundle = bytes(&ours.sign(&Signing {
        certified_at: now,
        logged_at: now + 3,
        ..Signing::of(ARTIFACT)
    }));
    let verdict = || verify_bundle(&bundle, ARTIFACT, &keyless(&ours));
    let Err(early @ BundleError::InTheFuture { at }) = verdict() else {
        panic!("{:?}", verdict());
    };
    assert_eq!((early.class(), at.as_second()), (ErrorClass::Waiting, now + 3));
    assert!(early.to_string().contains(&at.to_string()), "{early}");
    while jiff::Timestamp::now() <= at {
        std::thread::yield_now();
    }
    assert_eq!(reason(verdict()), "good");
}

fn bundles_by_key(cosign: &Cosign) -> Vec<Row> {
    let json = |name: &str| serde_json::from_slice::<Value>(&cosign.read(name)).unwrap();
    let (good, stated) = (json("good.json"), json("stated.json"));
    let (of_other, about_other) = (json("other-artifact.json"), json("other-statement.json"));
    let taken = |into: &Value, place: &str, from: &Value| {
        with(into.clone(), place, |part| *part = from.pointer(place).unwrap().clone())
    };
    let put = |into: &Value, place: &str, text: &str| with(into.clone(), place, |part| *part = text.into());
    vec![
        row("nothing, signed as a blob", &good, "good"),
        row("nothing, signed as a statement", &stated, "good"),
        row(
            "other hint at the key",
            &put(&good, "/verificationMaterial/publicKey/hint", "x"),
            "good",
        ),
        row("other artifact", &of_other, "SignatureOfOtherDigest"),
        row(
            "statement about another artifact",
            &about_other,
            "SignatureOfOtherDigest",
        ),
        row("other key", &json("other-key.json"), "OtherKey"),
        ("truncated", truncated(&good), "BundleDamaged"),
        ("truncated statement", truncated(&stated), "BundleDamaged"),
        row("damaged signature", &with(good.clone(), SIGNATURE, damaged), "OtherKey"),
        row(
            "damaged statement",
            &with(stated.clone(), "/dsseEnvelope/payload", damaged),
            "OtherKey",
        ),
        row(
            "other type of payload",
            &put(&stated, "/dsseEnvelope/payloadType", "text/plain"),
            "OtherKey",
        ),
        row(
            "digest of this, signature of another",
            &taken(&good, SIGNATURE, &of_other),
            "OtherKey",
        ),
        row(
            "statement of this, signature of another",
            &taken(&stated, SEALS, &about_other),
            "OtherKey",
        ),
        row(
            "an identity instead of a key",
            &Sigstore::named("ours").sign(&Signing::of(ARTIFACT)),
            "NotByKey",
        ),
    ]
}

const SEALS: &str = "/dsseEnvelope/signatures";

#[tokio::test]
async fn verdict_on_what_cosign_signs_with_a_key_is_that_of_cosign() {
    let cosign = Cosign::new();
    for name in ["ours", "other"] {
        let prefix = format!("--output-key-prefix={name}");
        cosign.does(&["generate-key-pair", &prefix]).await;
    }
    cosign.file("artifact", ARTIFACT);
    cosign.file("other-artifact", "something else");
    cosign.file("predicate", "{}");
    let (sign, state) = (
        ["sign-blob"].as_slice(),
        ["attest-blob", "--predicate=predicate", TYPE].as_slice(),
    );
    for (how, key, artifact, bundle) in [
        (sign, "ours", "artifact", "good.json"),
        (state, "ours", "artifact", "stated.json"),
        (sign, "ours", "other-artifact", "other-artifact.json"),
        (state, "ours", "other-artifact", "other-statement.json"),
        (sign, "other", "artifact", "other-key.json"),
    ] {
        let (key, bundle) = (format!("--key={key}.key"), format!("--bundle={bundle}"));
        let offline = ["--yes", "--tlog-upload=false", "--use-signing-config=false"];
        cosign.does(&[how, &offline, &[&key, &bundle, artifact]].concat()).await;
    }
    let keys = [Key::named("retired").pem().into_bytes(), cosign.read("ours.pub")].concat();
    let trust = Trust::Keys(Keys::from_pem(&keys).unwrap());
    let flags = ["--key=ours.pub", "--insecure-ignore-tlog=true"];
    for (harm, bundle, expected) in bundles_by_key(&cosign) {
        let verdict = verify_bundle(&bundle, ARTIFACT, &trust);
        let (good, words) = cosign.verdict(&bundle, ARTIFACT, &flags).await;
        assert_eq!(good, verdict.is_ok(), "{harm}: {verdict:?}, but cosign: {words}");
        assert_eq!(reason(verdict), expected, "{harm}");
    }
}

/// What makes the statement of `cosign attest-blob` that of `cosign sign`.
const TYPE: &str = "--type=https://sigstore.dev/cosign/sign/v1";

#[test]
fn every_kind_of_key_is_understood() {
    let pairs = [
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyPair::generate_for(&PKCS_ED25519),
        KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
    ];
    for pair in pairs {
        let pair = pair.unwrap();
        let fingerprint = Digest::of(&pair.subject_public_key_info());
        let trust = Trust::Keys(Keys::from_pem(pair.public_key_pem().as_bytes()).unwrap());
        for signing in [Signing::of(ARTIFACT), Signing::of(ARTIFACT).stated()] {
            let bundle = bytes(&sign_with(&pair, &signing));
            let verdict = verify_bundle(&bundle, ARTIFACT, &trust);
            assert_eq!(verdict, Ok(Signer::Key(fingerprint)), "{pair:?}");
            let verdict = verify_bundle(&bundle, b"something else", &trust);
            assert_eq!(reason(verdict), "SignatureOfOtherDigest", "{pair:?}");
        }
    }
}

/// Cosign takes any statement of the artifact for a signature of it.
#[tokio::test]
async fn statement_that_is_no_signature_is_refused_though_cosign_accepts_it() {
    let (cosign, ours) = (Cosign::new(), Sigstore::named("ours"));
    let signing = Signing {
        statement: Some("https://slsa.dev/provenance/v1"),
        ..Signing::of(ARTIFACT)
    };
    let key = Key::named("ours");
    let public = cosign.file("cosign.pub", key.pem());
    let root = cosign.file("root.json", bytes(&ours.trusted_root()));
    let by_key = Trust::Keys(Keys::from_pem(key.pem().as_bytes()).unwrap());
    for (bundle, trust, flags) in [
        (
            sign_with(&key, &signing),
            by_key,
            vec![
                format!("--key={}", public.display()),
                "--insecure-ignore-tlog=true".to_owned(),
            ],
        ),
        (ours.sign(&signing), keyless(&ours), keyless_flags(&root)),
    ] {
        let bundle = bytes(&bundle);
        let (good, words) = cosign.verdict(&bundle, ARTIFACT, &flags).await;
        assert!(good, "{words}");
        let error = verify_bundle(&bundle, ARTIFACT, &trust).unwrap_err();
        let predicate_type = "https://slsa.dev/provenance/v1".to_owned();
        assert_eq!(error, BundleError::OtherStatement { predicate_type });
    }
}

/// Who has no log trusts a timestamp alone.
#[tokio::test]
async fn timestamp_is_enough_where_the_root_has_no_log_as_for_cosign() {
    let (cosign, ours) = (Cosign::new(), Sigstore::named("ours"));
    let mut root = ours.trusted_root();
    root["tlogs"] = json!([]);
    let trust = Trust::Keyless(Keyless {
        issuer: ISSUER.to_owned(),
        identity: IDENTITY.to_owned(),
        root: TrustRoot::from_json(&bytes(&root)).unwrap().into(),
    });
    let mut flags = keyless_flags(&cosign.file("root.json", bytes(&root)));
    flags.extend(["--insecure-ignore-tlog=true", "--use-signed-timestamps"].map(str::to_owned));
    let signing = Signing {
        log: Log::Second,
        ..Signing::of(ARTIFACT)
    };
    let stamped = |signing: &Signing| taken_away(&ours.sign(signing), "/verificationMaterial", "tlogEntries");
    let too_late = Signing {
        logged_at: SIGNED_AT + VALIDITY + 1,
        ..signing.clone()
    };
    for (harm, bundle, expected) in [
        row("nothing", &stamped(&signing), "good"),
        row(
            "stamped when expired",
            &stamped(&too_late),
            "CertificateOutsideValidity",
        ),
        row(
            "other artifact",
            &stamped(&Signing {
                artifact: OTHER_ARTIFACT,
                ..signing.clone()
            }),
            "SignatureOfOtherDigest",
        ),
        row(
            "no timestamp",
            &with(stamped(&signing), STAMPS, |stamps| {
                stamps.as_array_mut().unwrap().clear();
            }),
            "NoTimeOfSigning",
        ),
    ] {
        let verdict = verify_bundle(&bundle, ARTIFACT, &trust);
        let (good, words) = cosign.verdict(&bundle, ARTIFACT, &flags).await;
        assert_eq!(good, verdict.is_ok(), "{harm}: {verdict:?}, but cosign: {words}");
        assert_eq!(reason(verdict), expected, "{harm}");
    }
}

/// Every value of a bundle goes away once and becomes something else once; those that we still find good, cosign finds good.
#[tokio::test]
async fn what_cosign_refuses_after_one_change_is_refused() {
    let (cosign, ours) = (Cosign::new(), Sigstore::named("ours"));
    let trust = keyless(&ours);
    let flags = keyless_flags(&cosign.file("root.json", bytes(&ours.trusted_root())));
    let (mut asked, mut disputed) = (0, Vec::new());
    for log in [Log::First, Log::Second] {
        let signing = Signing {
            log,
            ..Signing::of(ARTIFACT)
        };
        for good in [ours.sign(&signing), ours.sign(&signing.clone().stated())] {
            for (change, bundle) in changes(&good) {
                if verify_bundle(&bytes(&bundle), ARTIFACT, &trust).is_ok() {
                    asked += 1;
                    let (good, words) = cosign.verdict(&bytes(&bundle), ARTIFACT, &flags).await;
                    if !good {
                        disputed.push(format!("{change}: {words}"));
                    }
                }
            }
        }
    }
    assert!(
        asked > 0,
        "cosign was asked nothing, though some values of a bundle mean nothing"
    );
    assert!(disputed.is_empty(), "{disputed:#?}");
}

/// The bundle without each of its values, and with another one.
fn changes(good: &Value) -> Vec<(String, Value)> {
    let others = [json!(null), json!(""), json!("2"), json!({}), json!([]), json!("AAAA")];
    let mut changes = Vec::new();
    for place in leaves(good) {
        let (parent, name) = place.rsplit_once('/').unwrap();
        if let Some(fields) = good.pointer(parent).unwrap().as_object() {
            let mut left = fields.clone();
            left.remove(name);
            changes.push((
                format!("no {place}"),
                with(good.clone(), parent, |part| *part = left.into()),
            ));
        }
        for other in &others {
            let change = format!("{other} at {place}");
            changes.push((change, with(good.clone(), &place, |part| *part = other.clone())));
        }
    }
    changes
}
