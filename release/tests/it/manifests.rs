//! Whether something is in a registry, asked of a real one and of one that says less than it should.

use std::fs;

use release::{
    Digest, ErrorClass,
    http::StatusCode,
    source::oci::{ManifestName, Manifests, OciError, OciOptions},
};
use tempfile::TempDir;

use crate::{
    fixture::TAG,
    oci_faults::content,
    oci_stub::options_of,
    registry::{Registry, Way, network, password},
    stub::{self, Reply, Stub},
};

fn by_tag(tag: &str) -> ManifestName {
    tag.parse().unwrap()
}

#[tokio::test]
async fn what_a_real_registry_has_is_found_by_tag_and_by_digest_and_nothing_else_is() {
    let (registry, folder) = (Registry::start().await, TempDir::new().unwrap());
    fs::write(folder.path().join("node"), "an image").unwrap();
    registry.push(folder.path(), "nodes/harbor:v1", Way::Plain).await;
    let manifests = |name: &str| Manifests::new(&network(), registry.options(name)).unwrap();
    let nodes = manifests("nodes/harbor");
    let found = nodes.find(&by_tag("v1")).await.unwrap().unwrap();
    let kept = registry.file("storage/docker/registry/v2/repositories/nodes/harbor/_manifests/tags/v1/current/link");
    assert_eq!(found.digest.to_string(), fs::read_to_string(kept).unwrap());
    assert_eq!(
        nodes.find(&ManifestName::Digest(found.digest)).await.unwrap(),
        Some(found)
    );
    for absent in [by_tag("v2"), ManifestName::Digest(Digest::of(b"other"))] {
        assert_eq!(nodes.find(&absent).await.unwrap(), None, "{absent}");
    }
    assert_eq!(manifests("nodes/other").find(&by_tag("v1")).await.unwrap(), None);
    let wrong = OciOptions {
        credentials: Some(password("canary-mistake")),
        ..registry.options("nodes/harbor")
    };
    let error = Manifests::new(&network(), wrong).unwrap().find(&by_tag("v1")).await;
    assert!(matches!(error, Err(OciError::CredentialsRefused { .. })), "{error:?}");
}

#[tokio::test]
async fn nothing_but_a_head_is_asked_for_unless_the_registry_does_not_say_which_manifest_it_is() {
    for says in [true, false] {
        let (content, _root) = content();
        let manifest = content.manifests[TAG].clone();
        let digest = Digest::of(manifest.as_bytes());
        let stub = Stub::new(move |asked| {
            if says {
                content.answer(asked)
            } else {
                Reply::of(200, &[], &manifest)
            }
        })
        .await;
        let manifests = Manifests::new(&stub::network(), options_of(&stub, None)).unwrap();
        let found = manifests.find(&by_tag(TAG)).await.unwrap().unwrap();
        assert_eq!(found.digest, digest);
        let asked: Vec<String> = stub.asked().into_iter().map(|asked| asked.method).collect();
        let expected: &[&str] = if says { &["HEAD"] } else { &["HEAD", "GET"] };
        assert_eq!(asked, expected);
    }
}

#[tokio::test]
async fn an_answer_that_is_none_says_nothing_about_what_is_there() {
    let lie = Digest::of(b"another").to_string();
    let lies = Stub::new(move |_| Reply::of(200, &[("Docker-Content-Digest", &lie)], "")).await;
    let asked = Manifests::new(&stub::network(), options_of(&lies, None)).unwrap();
    let error = asked
        .find(&ManifestName::Digest(Digest::of(b"asked")))
        .await
        .unwrap_err();
    assert!(matches!(error, OciError::Digest { .. }), "{error:?}");
    let fails = Stub::new(|_| Reply::of(500, &[], "")).await;
    let asked = Manifests::new(&stub::network(), options_of(&fails, None)).unwrap();
    let error = asked.find(&by_tag("v1")).await.unwrap_err();
    let is_failure = matches!(&error, OciError::Status { status, .. } if *status == StatusCode::INTERNAL_SERVER_ERROR);
    assert!(is_failure, "{error:?}");
    assert_eq!(error.class(), ErrorClass::Transient);
}
