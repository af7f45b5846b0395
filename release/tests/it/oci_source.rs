//! The OCI source against a real registry: what publishers push with real tools is what the source gives.

use std::{collections::BTreeMap, fs};

use release::{
    Digest, ErrorClass, Release,
    http::SecretString,
    source::{
        ListedRelease, ReleaseSource, SourceError,
        oci::{ManifestError, OciError, OciOptions, OciSource},
    },
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::{
    fixture::{TAG, chain, good_release, tag},
    registry::{PAGE, Registry, Way, network, password},
    source_contract::{assert_keeps_the_contract, files_of},
    stub::{self, NAMES, Stub},
    tokens::Issuer,
};

/// The error of the registry itself.
pub(crate) fn oci(error: SourceError) -> OciError {
    match error {
        SourceError::Oci(error) => *error,
        other => panic!("not an error of a registry: {other:?}"),
    }
}

/// What a release has in the registry, as a directory.
async fn downloaded(source: &OciSource, text: &str) -> BTreeMap<String, Vec<u8>> {
    let resolved = source.resolve(&tag(text)).await.unwrap();
    let mut files = BTreeMap::new();
    for file in resolved.files() {
        let mut content = Vec::new();
        source
            .fetch(file)
            .await
            .unwrap()
            .read_to_end(&mut content)
            .await
            .unwrap();
        files.insert(file.name.clone(), content);
    }
    files
}

#[tokio::test]
async fn registry_keeps_the_contract_of_sources() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    registry
        .push(&directory, &format!("kaas/stacks:{TAG}"), Way::Csctl)
        .await;
    assert_keeps_the_contract(&registry.source("kaas/stacks"), &directory).await;
}

#[tokio::test]
async fn release_is_the_same_however_it_was_pushed() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    for (name, content) in [("hashes.json", "{}"), ("csctl.yaml", "config: {}\n")] {
        fs::write(directory.join(name), content).unwrap();
    }
    let expected = Release::open(&directory, &tag(TAG)).unwrap().digest;
    for (name, way) in [
        ("csctl", Way::Csctl),
        ("script", Way::BuildScript),
        ("plain", Way::Plain),
        ("old", Way::OldPlain),
    ] {
        registry.push(&directory, &format!("{name}:{TAG}"), way).await;
        let source = registry.source(name);
        let resolved = source.resolve(&tag(TAG)).await.unwrap();
        assert_eq!(resolved.digest(), Some(expected), "{way:?}");
        assert_eq!(downloaded(&source, TAG).await, files_of(&directory), "{way:?}");
    }
}

#[tokio::test]
async fn tags_of_all_pages_are_listed_and_foreign_ones_apart() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    let releases: Vec<String> = (1..=3 * PAGE)
        .map(|number| format!("docker-harbor-1-34-v{number}"))
        .collect();
    let foreign = ["latest", "v1.2.3", "docker-harbor-1-34-v01"];
    let signature = format!("sha256-{}.sig", Digest::of(b"").hex());
    let tags = releases
        .iter()
        .map(String::as_str)
        .chain(foreign)
        .chain([signature.as_str()]);
    let tags: Vec<_> = tags.collect();
    registry
        .push(&directory, &format!("kaas/stacks:{}", tags.join(",")), Way::Csctl)
        .await;

    let listing = registry.source("kaas/stacks").list().await.unwrap();
    let mut expected: Vec<ListedRelease> = releases
        .iter()
        .map(|text| ListedRelease {
            tag: tag(text),
            published_at: None,
            identity: None,
            digest: None,
        })
        .collect();
    expected.sort_by(|left, right| left.tag.cmp(&right.tag));
    assert_eq!(listing.releases, expected);
    assert_eq!(listing.foreign, ["docker-harbor-1-34-v01", "latest", "v1.2.3"]);
}

#[tokio::test]
async fn releases_named_by_a_hash_have_the_date_of_their_push() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    let hashed = "docker-harbor-1-34-v0-sha-0123abc";
    for (text, created) in [
        (hashed, "2026-03-01T12:00:00Z"),
        ("docker-ferrol-1-34-v1", "2026-03-02T12:00:00Z"),
    ] {
        let created = format!("--annotation=org.opencontainers.image.created={created}");
        let reference = registry.reference(&format!("kaas/stacks:{text}"));
        registry
            .oras(&directory, "push", &[created, reference, "metadata.yaml".to_owned()])
            .await;
    }
    let listing = registry.source("kaas/stacks").list().await.unwrap();
    let dates: Vec<_> = listing.releases.iter().map(|listed| listed.published_at).collect();
    assert_eq!(listing.releases[1].tag, tag(hashed));
    // The other stack's versions have an order of their own: nobody reads its manifests.
    assert_eq!(dates, [None, Some("2026-03-01T12:00:00Z".parse().unwrap())]);
}

#[tokio::test]
async fn tag_that_moved_has_another_identity_and_what_it_stood_for_can_still_be_had() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    let reference = format!("kaas/stacks:{TAG}");
    registry.push(&directory, &reference, Way::Csctl).await;
    let source = registry.source("kaas/stacks");
    let before = source.resolve(&tag(TAG)).await.unwrap();
    let values = "cluster-addon-values.yaml";
    let content = fs::read(directory.join(values)).unwrap();

    fs::write(directory.join(values), "values: |\n  moved: true\n").unwrap();
    registry.push(&directory, &reference, Way::Csctl).await;
    let after = source.resolve(&tag(TAG)).await.unwrap();
    assert_ne!(before.identity(), after.identity());
    assert_ne!(before.digest(), after.digest());
    let old = before.files().iter().find(|file| file.name == values).unwrap();
    let mut read = Vec::new();
    source.fetch(old).await.unwrap().read_to_end(&mut read).await.unwrap();
    assert_eq!(read, content);
}

#[tokio::test]
async fn registry_that_wants_a_password_says_what_is_missing_and_never_what_was_given() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    registry
        .push(
            &good_release(root.path(), TAG),
            &format!("kaas/stacks:{TAG}"),
            Way::Csctl,
        )
        .await;
    let with = |credentials| {
        let options = OciOptions {
            credentials,
            ..registry.options("kaas/stacks")
        };
        OciSource::new(&network(), options).unwrap()
    };
    let nobody = oci(with(None).list().await.unwrap_err());
    assert!(matches!(nobody, OciError::Unauthenticated { .. }), "{nobody:?}");
    let stranger = with(Some(password("canary-wrong")));
    for error in [
        oci(stranger.list().await.unwrap_err()),
        oci(stranger.resolve(&tag(TAG)).await.unwrap_err()),
    ] {
        assert!(matches!(error, OciError::CredentialsRefused { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Transient);
        assert!(!format!("{error:?}{}", chain(&error)).contains("canary"), "{error:?}");
    }
    assert!(!format!("{stranger:?}").contains("canary"), "{stranger:?}");
    let token = oci(
        with(Some(release::http::Credentials::Bearer(SecretString::from("canary"))))
            .list()
            .await
            .unwrap_err(),
    );
    assert!(matches!(token, OciError::PasswordWanted { .. }), "{token:?}");
}

#[tokio::test]
async fn registry_that_wants_tokens_takes_those_that_we_ask_for() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    registry
        .push(&directory, &format!("kaas/stacks:{TAG}"), Way::Csctl)
        .await;
    let issuer = Issuer::new(&registry.file("tokens.crt"));
    let tokens = Stub::new(move |asked| issuer.answer(asked)).await;
    let realm = tokens.url("/token");
    let auth = format!("token: {{realm: '{realm}', service: stub, issuer: stub, rootcertbundle: tokens.crt}}");
    let registry = registry.restarted(&auth).await;
    let source = |token_hosts: &[&str]| {
        let options = OciOptions {
            certificates: Some([&registry.authority(), stub::authority()].concat()),
            token_hosts: token_hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..registry.options("kaas/stacks")
        };
        OciSource::new(&stub::network(), options).unwrap()
    };
    assert_keeps_the_contract(&source(&[NAMES[0]]), &directory).await;
    assert_eq!(tokens.asked().len(), 1);
    let error = oci(source(&[]).list().await.unwrap_err());
    assert!(matches!(error, OciError::ForeignRealm { .. }), "{error:?}");
    assert!(tokens.asked().is_empty());
}

#[tokio::test]
async fn repository_that_is_not_there_yet_is_waited_for() {
    let registry = Registry::start().await;
    let source = registry.source("kaas/elsewhere");
    let error = oci(source.list().await.unwrap_err());
    assert!(matches!(error, OciError::MissingRepository { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Waiting);
    let missing = source.resolve(&tag(TAG)).await.unwrap_err();
    assert!(matches!(missing, SourceError::MissingRelease { .. }), "{missing:?}");
}

#[tokio::test]
async fn what_oras_pushes_and_is_no_release_is_refused_by_its_name() {
    let (registry, root) = (Registry::start().await, TempDir::new().unwrap());
    let directory = good_release(root.path(), TAG);
    let reference = |text: &str| registry.reference(&format!("kaas/stacks:{text}"));
    let (other, packed, index) = (
        "docker-harbor-1-34-v2",
        "docker-harbor-1-34-v3",
        "docker-harbor-1-34-v4",
    );
    let chart = [
        "--artifact-type=application/vnd.cncf.helm.chart",
        &reference(other),
        "metadata.yaml",
    ];
    registry.oras(&directory, "push", &chart).await;
    registry
        .oras(root.path(), "push", &[&reference(packed), "cluster-stacks"])
        .await;
    registry
        .oras(
            root.path(),
            "manifest index create",
            &[&reference(index), other, packed],
        )
        .await;

    let source = registry.source("kaas/stacks");
    let refused = async |text: &str| match oci(source.resolve(&tag(text)).await.unwrap_err()) {
        OciError::Artifact { source, .. } => *source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(other).await, ManifestError::ArtifactType { .. }));
    assert!(matches!(refused(packed).await, ManifestError::Directory { file } if file == "cluster-stacks"));
    assert!(matches!(refused(index).await, ManifestError::Index));
}

#[tokio::test]
async fn registry_of_an_unknown_authority_is_not_trusted() {
    let (registry, other) = (Registry::start().await, Registry::start().await);
    let options = OciOptions {
        certificates: Some(other.authority()),
        ..registry.options("kaas/stacks")
    };
    let source = OciSource::new(&network(), options).unwrap();
    let error = source.list().await.unwrap_err();
    assert_eq!(error.reason(), "SourceNotTrusted", "{error:?}");
}
