//! Releases whose list of sums the real cosign signs: in a directory, and on a web server.

use std::{fs, path::Path};

use rcgen::{PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519, PKCS_RSA_SHA256};
use release::{
    Digest, ErrorClass, Keys, KeysError, Release, SUMS, SUMS_BUNDLE, SUMS_SIGNATURE, SumsError, Trust, Unverified,
    Verdict,
    bundle::BundleError,
    source::{DirectorySource, ReleaseSource},
    verify,
};
use tempfile::TempDir;

use crate::{
    bundle_verdicts::keyless,
    cosign::Cosign,
    fixture::{TAG, chain, good_release, tag},
    github_source,
    http_source::{server, source},
    sigstore::{IDENTITY, ISSUER, Signing, Sigstore},
    source_contract::files_of,
};

/// Writes the list of a release as `sha256sum *` does.
fn list(directory: &Path) {
    let files = files_of(directory);
    let lines = files.iter().filter(|(name, _)| !name.starts_with(SUMS));
    let lines = lines.map(|(name, content)| format!("{}  {name}\n", Digest::of(content).hex()));
    fs::write(directory.join(SUMS), lines.collect::<String>()).unwrap();
}

async fn verdict(root: &Path, keys: &Trust) -> Verdict {
    let source = DirectorySource::new(root);
    let release = source.open(&tag(TAG)).await.unwrap();
    verify(&release, keys, &source.evidence_of(&tag(TAG)).await.unwrap())
}

#[tokio::test]
async fn release_with_a_signed_list_of_its_files_is_good_and_the_same_as_without() {
    let (root, cosign) = (TempDir::new().unwrap(), Cosign::new());
    let directory = good_release(root.path(), TAG);
    let digest = || Release::open(&directory, &tag(TAG)).unwrap().digest;
    let (unsigned, keys) = (digest(), cosign.key("ours").await);
    assert_eq!(verdict(root.path(), &keys).await, Err(Unverified::NotSigned));
    list(&directory);
    assert_eq!(verdict(root.path(), &keys).await, Err(Unverified::NotSigned));
    cosign.sign_file("ours", &directory.join(SUMS)).await;
    assert_eq!(digest(), unsigned);
    assert!(verdict(root.path(), &keys).await.is_ok());
    let stranger = cosign.key("stranger").await;
    let other = Unverified::OtherKey {
        looked: 1,
        is_cut: false,
    };
    assert_eq!(verdict(root.path(), &stranger).await, Err(other));
}

#[tokio::test]
async fn release_of_as_many_files_as_there_may_be_can_be_signed() {
    let (root, ours) = (TempDir::new().unwrap(), Sigstore::named("ours"));
    let directory = good_release(root.path(), TAG);
    for number in files_of(&directory).len()..64 {
        fs::write(directory.join(format!("more-{number}.yaml")), "").unwrap();
    }
    list(&directory);
    let sums = fs::read(directory.join(SUMS)).unwrap();
    fs::write(directory.join(SUMS_BUNDLE), ours.sign(&Signing::of(&sums)).to_string()).unwrap();
    fs::write(directory.join(SUMS_SIGNATURE), "AAAA").unwrap();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 67);
    assert!(verdict(root.path(), &keyless(&ours)).await.is_ok());
    fs::write(directory.join("one-more.yaml"), "").unwrap();
    let error = Release::open(&directory, &tag(TAG)).unwrap_err();
    assert!(error.to_string().contains("is one file too many"), "{error}");
}

#[tokio::test]
async fn list_that_does_not_fit_the_files_is_refused_by_the_name_of_the_file() {
    let (root, cosign) = (TempDir::new().unwrap(), Cosign::new());
    let directory = good_release(root.path(), TAG);
    let keys = cosign.key("ours").await;
    list(&directory);
    cosign.sign_file("ours", &directory.join(SUMS)).await;
    let values = directory.join("cluster-addon-values.yaml");
    let before = fs::read(&values).unwrap();

    fs::write(&values, "values: |\n  evil: true\n").unwrap();
    let changed = verdict(root.path(), &keys).await.unwrap_err();
    assert!(
        matches!(&changed, Unverified::Sums(SumsError::OtherDigest { file, .. }) if file == "cluster-addon-values.yaml")
    );
    assert_eq!(changed.class(), ErrorClass::Terminal);
    fs::write(&values, before).unwrap();

    fs::write(directory.join("more.yaml"), "").unwrap();
    let unnamed = verdict(root.path(), &keys).await.unwrap_err();
    assert_eq!(
        unnamed,
        Unverified::Sums(SumsError::Unnamed {
            file: "more.yaml".to_owned()
        })
    );
    list(&directory);
    // Nobody has signed the new list.
    assert!(matches!(
        verdict(root.path(), &keys).await,
        Err(Unverified::OtherKey { .. })
    ));
    cosign.sign_file("ours", &directory.join(SUMS)).await;
    fs::remove_file(directory.join("more.yaml")).unwrap();
    let gone = verdict(root.path(), &keys).await.unwrap_err();
    assert_eq!(
        gone,
        Unverified::Sums(SumsError::NotThere {
            file: "more.yaml".to_owned()
        })
    );
}

#[tokio::test]
async fn list_is_good_if_the_bundle_beside_it_is_by_the_trusted_identity_and_names_its_files() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    list(&directory);
    let ours = Sigstore::named("ours");
    let sums = fs::read(directory.join(SUMS)).unwrap();
    let bundle = ours.sign(&Signing::of(&sums)).to_string();
    fs::write(directory.join(SUMS_BUNDLE), &bundle).unwrap();
    let verified = verdict(root.path(), &keyless(&ours)).await.unwrap();
    assert_eq!(verified.signer().to_string(), format!("{IDENTITY} by {ISSUER}"));
    let stranger = verdict(root.path(), &keyless(&Sigstore::named("other")))
        .await
        .unwrap_err();
    assert_eq!(stranger.class(), ErrorClass::Waiting, "{stranger}");
    // A signature without a bundle cannot be by an identity.
    fs::remove_file(directory.join(SUMS_BUNDLE)).unwrap();
    fs::write(directory.join(SUMS_SIGNATURE), "AAAA").unwrap();
    assert_eq!(verdict(root.path(), &keyless(&ours)).await, Err(Unverified::NoBundle));
    fs::write(directory.join(SUMS_BUNDLE), &bundle).unwrap();
    fs::write(directory.join("more.yaml"), "more").unwrap();
    let unnamed = verdict(root.path(), &keyless(&ours)).await.unwrap_err();
    assert!(
        matches!(unnamed, Unverified::Sums(SumsError::Unnamed { .. })),
        "{unnamed}"
    );
}

#[tokio::test]
async fn signature_without_a_list_and_damaged_bundle_are_told() {
    let (root, cosign) = (TempDir::new().unwrap(), Cosign::new());
    let directory = good_release(root.path(), TAG);
    let keys = cosign.key("ours").await;
    fs::write(directory.join(SUMS_SIGNATURE), "AAAA").unwrap();
    let error = verdict(root.path(), &keys).await.unwrap_err();
    assert!(error.to_string().contains("what it is of is not there"), "{error}");
    fs::remove_file(directory.join(SUMS_SIGNATURE)).unwrap();
    list(&directory);
    fs::write(directory.join(SUMS_BUNDLE), "{}").unwrap();
    let error = verdict(root.path(), &keys).await.unwrap_err();
    assert!(
        matches!(error, Unverified::Bundle(BundleError::Damaged { .. })),
        "{error}"
    );
    for bad in [&b"no base64"[..], b"\xff\xff", b""] {
        fs::write(directory.join(SUMS_SIGNATURE), bad).unwrap();
        let error = verdict(root.path(), &keys).await.unwrap_err();
        assert!(matches!(error, Unverified::Damaged { .. }), "{error}");
    }
}

#[tokio::test]
async fn signature_that_is_a_link_or_endless_is_not_read() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let source = DirectorySource::new(root.path());
    fs::write(directory.join(SUMS), vec![b'a'; (64 << 10) + 1]).unwrap();
    let error = source.evidence_of(&tag(TAG)).await.unwrap_err();
    assert!(chain(&error).contains("has more than 65536 bytes"), "{error}");
    fs::remove_file(directory.join(SUMS)).unwrap();
    let secret = root.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    std::os::unix::fs::symlink(&secret, directory.join(SUMS)).unwrap();
    let error = source.evidence_of(&tag(TAG)).await.unwrap_err();
    assert!(chain(&error).contains("no regular file"), "{}", chain(&error));
}

#[tokio::test]
async fn web_server_gives_the_signature_beside_the_files_and_without_it_nothing_changes() {
    let (root, cosign) = (TempDir::new().unwrap(), Cosign::new());
    let directory = good_release(root.path(), TAG);
    let keys = cosign.key("ours").await;
    let whole = Release::open(&directory, &tag(TAG)).unwrap();
    list(&directory);
    cosign.sign_file("ours", &directory.join(SUMS)).await;
    let (stub, files) = server(&directory).await;
    let source = source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    assert_eq!(resolved.digest(), Some(whole.digest));
    let evidence = source.evidence(&resolved).await.unwrap();
    assert!(verify(&whole, &keys, &evidence).is_ok());
    files.lock().unwrap().remove(&format!("/stacks/{TAG}/{SUMS_SIGNATURE}"));
    let error = source.evidence(&resolved).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(error.to_string().contains(SUMS_SIGNATURE), "{error}");
}

#[tokio::test]
async fn assets_of_a_release_on_github_are_signed_by_two_more_assets() {
    let (root, cosign) = (TempDir::new().unwrap(), Cosign::new());
    let directory = good_release(root.path(), TAG);
    let keys = cosign.key("ours").await;
    let whole = Release::open(&directory, &tag(TAG)).unwrap();
    list(&directory);
    cosign.sign_file("ours", &directory.join(SUMS)).await;
    let (stub, _storage) = github_source::with_release(&directory).await;
    let source = github_source::source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    assert_eq!(resolved.digest(), Some(whole.digest));
    let evidence = source.evidence(&resolved).await.unwrap();
    assert!(verify(&whole, &keys, &evidence).is_ok());
}

#[tokio::test]
async fn keys_of_every_kind_that_cosign_takes_verify_what_it_signs() {
    let (root, cosign) = (TempDir::new().unwrap(), Cosign::new());
    let directory = good_release(root.path(), TAG);
    list(&directory);
    for (name, algorithm) in [
        ("p384", &PKCS_ECDSA_P384_SHA384),
        ("p521", &PKCS_ECDSA_P521_SHA512),
        ("ed25519", &PKCS_ED25519),
        ("rsa", &PKCS_RSA_SHA256),
    ] {
        let keys = cosign.key_of(name, algorithm).await;
        cosign.sign_file(name, &directory.join(SUMS)).await;
        let verdict = verdict(root.path(), &keys).await;
        assert!(verdict.is_ok(), "{name}: {verdict:?}");
    }
}

#[tokio::test]
async fn text_that_gives_no_keys_says_why() {
    let cosign = Cosign::new();
    cosign.key("ours").await;
    let good = cosign.public("ours");
    let private = String::from_utf8(cosign.private("ours")).unwrap();
    let plain = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let certificate = good.replace("PUBLIC KEY", "CERTIFICATE");
    let cut = good.replacen("MFkw", "MFgw", 1);
    for (text, expected) in [
        (String::new(), KeysError::NoKey),
        ("ssh-ed25519 AAAA".to_owned(), KeysError::NoKey),
        (private.clone(), KeysError::Private),
        (good.clone() + &private, KeysError::Private),
        (plain, KeysError::Private),
        (good.clone() + &certificate, KeysError::Foreign),
        (good.replace("PUBLIC KEY", "RSA PUBLIC KEY"), KeysError::Foreign),
        (good.replace("-----END PUBLIC KEY-----", ""), KeysError::Pem),
        (good.replacen("MFkw", "M(kw", 1), KeysError::Pem),
        (good.clone() + &cut, KeysError::Unsupported { number: 2 }),
        (good.repeat(9), KeysError::TooMany),
        ("a".repeat(1 << 20), KeysError::TooMany),
    ] {
        assert_eq!(Keys::from_pem(text.as_bytes()), Err(expected), "{text:.80}");
    }
    assert!(Keys::from_pem(good.repeat(8).as_bytes()).is_ok());
    assert!(!format!("{:?}", Keys::from_pem(good.as_bytes())).contains("MFkw"));
}
