//! Files in registries that are no releases: asked of a real one, and of one that keeps its files elsewhere.

use std::fs;

use release::{
    Digest, ErrorClass,
    http::{Response, StatusCode},
    source::oci::{Layers, ManifestName, OciError, OciOptions},
};
use tempfile::TempDir;

use crate::{
    fixture::TAG,
    oci_faults::content,
    oci_stub::options_of,
    registry::{Registry, Way, network, password},
    stub::{self, Reply, Stub},
};

const LONGEST: usize = 1 << 20;

fn by_tag(tag: &str) -> ManifestName {
    tag.parse().unwrap()
}

async fn whole(response: Response) -> Vec<u8> {
    response.bytes(LONGEST).await.unwrap().to_vec()
}

#[tokio::test]
async fn a_file_in_a_real_registry_is_found_and_given_from_any_byte_on() {
    let (registry, folder) = (Registry::start().await, TempDir::new().unwrap());
    let disk: Vec<u8> = (0..300_000_u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
    fs::write(folder.path().join("disk.qcow2"), &disk).unwrap();
    registry.push(folder.path(), "disks/one:v1", Way::Plain).await;
    fs::write(folder.path().join("notes"), "of no use").unwrap();
    registry.push(folder.path(), "disks/two:v1", Way::OldPlain).await;

    let layers = |name: &str| Layers::new(&network(), registry.options(name)).unwrap();
    let one = layers("disks/one");
    let found = one.find(&by_tag("v1"), None).await.unwrap();
    assert_eq!((found.digest, found.size), (Digest::of(&disk), disk.len() as u64));
    let link = "storage/docker/registry/v2/repositories/disks/one/_manifests/tags/v1/current/link";
    let pinned = fs::read_to_string(registry.file(link)).unwrap();
    assert_eq!(
        one.find(&pinned.parse().unwrap(), Some("disk.qcow2")).await.unwrap(),
        found
    );
    let all = one.open(found.digest, 0).await.unwrap();
    assert_eq!(all.status(), StatusCode::OK);
    assert_eq!(whole(all).await, disk);
    let part = one.open(found.digest, 299_000).await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()["content-range"], "bytes 299000-299999/300000");
    assert_eq!(whole(part).await, disk[299_000..]);
    let behind = one.open(found.digest, 300_000).await.unwrap();
    assert_eq!(behind.status(), StatusCode::RANGE_NOT_SATISFIABLE);

    let two = layers("disks/two");
    assert_eq!(two.find(&by_tag("v1"), Some("disk.qcow2")).await.unwrap(), found);
    let error = two.find(&by_tag("v1"), None).await.unwrap_err();
    assert!(matches!(error, OciError::Layer { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Terminal);
    for absent in [by_tag("v2"), ManifestName::Digest(Digest::of(b"other"))] {
        let error = two.find(&absent, None).await.unwrap_err();
        assert!(matches!(error, OciError::MissingManifest { .. }), "{error:?}");
    }
    let error = two.open(Digest::of(b"other"), 0).await.unwrap_err();
    assert!(matches!(error, OciError::MissingFile { .. }), "{error:?}");
    let wrong = OciOptions {
        credentials: Some(password("canary-mistake")),
        ..registry.options("disks/one")
    };
    let wrong = Layers::new(&network(), wrong).unwrap();
    let error = wrong.open(found.digest, 5).await.unwrap_err();
    assert!(matches!(error, OciError::CredentialsRefused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_part_is_asked_for_where_the_registry_keeps_it_and_credentials_stay_behind() {
    let (content, _root) = content();
    let (digest, blob) = content.blobs.iter().next().unwrap();
    let rest = blob[5..].to_vec();
    let range = format!("bytes 5-{}/{}", blob.len() - 1, blob.len());
    let storage = Stub::new(move |_| Reply::of(206, &[("Content-Range", &range)], &rest)).await;
    let elsewhere = storage.at(stub::NAMES[1], "/kept");
    let registry = Stub::new(move |asked| match asked.header("authorization") {
        Some(_) => Reply::redirect(&elsewhere),
        None => Reply::of(401, &[("WWW-Authenticate", "Basic realm=\"stub\"")], ""),
    })
    .await;
    let layers = Layers::new(
        &stub::network(),
        options_of(&registry, Some(password("canary-password"))),
    )
    .unwrap();
    let part = layers.open(digest.parse().unwrap(), 5).await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(whole(part).await, blob[5..]);
    let asked = storage.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].header("range"), asked[0].header("authorization")),
        (Some("bytes=5-"), None)
    );
}

#[tokio::test]
async fn a_manifest_of_another_digest_than_the_one_that_is_asked_for_is_refused() {
    let (content, _root) = content();
    let manifest = content.manifests[TAG].clone();
    let stub = Stub::new(move |_| Reply::of(200, &[], &manifest)).await;
    let layers = Layers::new(&stub::network(), options_of(&stub, None)).unwrap();
    let other = ManifestName::Digest(Digest::of(b"other"));
    let error = layers.find(&other, Some("metadata.yaml")).await.unwrap_err();
    assert!(matches!(error, OciError::Digest { .. }), "{error:?}");
    assert!(layers.find(&by_tag(TAG), Some("metadata.yaml")).await.is_ok());
}
