//! Registries that give no signatures, or bad ones, or too many: told, bounded, and never believed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use release::{
    Digest, ErrorClass, Evidence, Release, Trust, Unverified,
    bundle::BundleError,
    source::{ReleaseSource, SourceError},
    store::Origin,
    verify,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cosign::Cosign,
    fixture::{TAG, chain, good_release, tag},
    oci_stub::{Content, MANIFEST, NAME, source_of},
    scripted_source::{Fault, Promise, ScriptedSource},
    store_downloads::store,
    stub::{Asked, Reply, Stub, network},
};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// A registry with one release, and the signatures that a test gives it.
struct World {
    content: Content,
    release: Release,
    manifest: Digest,
    _root: TempDir,
}

impl World {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let directory = good_release(root.path(), TAG);
        let mut content = Content::of(&directory, TAG);
        let manifest = content.manifests[TAG].clone();
        let digest = Digest::of(manifest.as_bytes());
        content.manifests.insert(digest.to_string(), manifest);
        Self {
            content,
            release: Release::open(&directory, &tag(TAG)).unwrap(),
            manifest: digest,
            _root: root,
        }
    }

    /// A signature under the tag; it need not be one.
    fn with_classic(mut self) -> Self {
        let payload = b"payload".to_vec();
        let digest = Digest::of(&payload).to_string();
        let manifest = manifest_of(SIMPLE_SIGNING, &digest, payload.len());
        self.content.blobs.insert(digest, payload);
        let tag = format!("sha256-{}.sig", self.manifest.hex());
        self.content.manifests.insert(tag, manifest);
        self
    }

    /// What a source finds where these answers come before the usual ones.
    async fn find(
        &self,
        answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> Result<Evidence, SourceError> {
        let content = self.content.clone();
        let stub = Stub::new(move |asked| answer(asked).unwrap_or_else(|| content.answer(asked))).await;
        let source = source_of(&stub, &network(), None);
        let resolved = source.resolve(&tag(TAG)).await.unwrap();
        source.evidence(&resolved).await
    }
}

fn manifest_of(media_type: &str, digest: &str, size: usize) -> String {
    let annotations = json!({ "dev.cosignproject.cosign/signature": "AAAA" });
    let layer = json!({ "mediaType": media_type, "digest": digest, "size": size, "annotations": annotations });
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "layers": [layer] }).to_string()
}

fn index_of(manifests: &[Value]) -> String {
    json!({ "schemaVersion": 2, "manifests": manifests }).to_string()
}

fn bundle(digest: &str) -> Value {
    json!({ "mediaType": MANIFEST, "digest": digest, "size": 1, "artifactType": BUNDLE })
}

fn is_referrers(asked: &Asked) -> bool {
    asked.target.starts_with(&format!("/v2/{NAME}/referrers/"))
}

async fn some_keys() -> Trust {
    Cosign::new().key("ours").await
}

#[tokio::test]
async fn registry_that_knows_no_referrers_has_none_however_it_says_so() {
    let world = World::new();
    for status in [400, 404, 405, 406, 501] {
        let evidence = world
            .find(move |asked| is_referrers(asked).then(|| Reply::of(status, &[], "")))
            .await
            .unwrap();
        assert!(evidence.is_empty(), "{status}");
    }
}

#[tokio::test]
async fn file_beside_a_release_is_held_against_what_the_source_said_of_it() {
    let source = ScriptedSource::new(Promise::Everything);
    source.put("sha256sums.txt", b"sums");
    source.put("sha256sums.txt.sig", b"AAAA");
    for fault in [Fault::OtherBytes, Fault::EndAfter(3)] {
        source.fails("sha256sums.txt", fault);
        let error = source.evidence(&source.resolved()).await.unwrap_err();
        assert!(
            error.to_string().contains("is not what the source said it was"),
            "{error}"
        );
        assert_eq!(error.class(), ErrorClass::Transient);
    }
    source.mend();
    assert!(!source.evidence(&source.resolved()).await.unwrap().is_empty());
}

#[tokio::test]
async fn registry_that_fails_is_told_unless_a_signature_was_found() {
    let fails = |asked: &Asked| is_referrers(asked).then(|| Reply::of(500, &[], ""));
    let error = World::new().find(fails).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(
        chain(&error).contains("when asked for the signatures of"),
        "{}",
        chain(&error)
    );
    let world = World::new().with_classic();
    let evidence = world.find(fails).await.unwrap();
    let refused = verify(&world.release, &some_keys().await, &evidence).unwrap_err();
    assert!(matches!(refused, Unverified::OtherKey { looked: 1, .. }), "{refused}");
}

#[tokio::test]
async fn bytes_other_than_those_that_were_asked_for_are_refused() {
    let world = World::new().with_classic();
    let blob = Digest::of(b"payload");
    let release = world.manifest;
    for (path, content, words) in [
        (
            format!("blobs/{blob}"),
            b"Payload".to_vec(),
            "another digest than its manifest says",
        ),
        (
            format!("blobs/{blob}"),
            vec![b'a'; 1 << 20],
            "unable to get the signatures",
        ),
        (
            format!("manifests/{release}"),
            b"{}".to_vec(),
            "another digest than it was asked for by",
        ),
        (
            format!("manifests/sha256-{}.sig", release.hex()),
            b"[]".to_vec(),
            "their manifest is not one",
        ),
        (
            format!("manifests/sha256-{}.sig", release.hex()),
            manifest_of(SIMPLE_SIGNING, "sha256:../../x", 3).into_bytes(),
            "a digest is not sha256",
        ),
        (
            format!("manifests/sha256-{}.sig", release.hex()),
            manifest_of(SIMPLE_SIGNING, &Digest::of(b"gone").to_string(), 3).into_bytes(),
            "one is listed that is not there",
        ),
    ] {
        let path = format!("/v2/{NAME}/{path}");
        let found = world
            .find(move |asked| (asked.target == path).then(|| Reply::of(200, &[], &content)))
            .await;
        let error = found.unwrap_err();
        assert!(chain(&error).contains(words), "{}", chain(&error));
        assert_eq!(error.class(), ErrorClass::Transient);
    }
}

#[tokio::test]
async fn list_of_referrers_without_end_is_read_in_part_and_other_artifacts_not_at_all() {
    let world = World::new();
    let asked_for = Arc::new(AtomicUsize::new(0));
    let pages = Arc::clone(&asked_for);
    let others: Vec<Value> = (0..100_u32)
        .map(|number| {
            let digest = Digest::of(&number.to_be_bytes()).to_string();
            json!({ "mediaType": MANIFEST, "digest": digest, "size": 1, "artifactType": "application/vnd.example.sbom" })
        })
        .collect();
    let page = index_of(&others);
    let evidence = world
        .find(move |asked| {
            is_referrers(asked).then(|| {
                let number = pages.fetch_add(1, Ordering::Relaxed);
                let link = format!(
                    "<{}?last={number}>; rel=\"next\"",
                    asked.target.split('?').next().unwrap()
                );
                Reply::of(200, &[("Link", &link)], &page)
            })
        })
        .await
        .unwrap();
    assert!(evidence.is_empty());
    assert_eq!(asked_for.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn bundles_are_taken_from_a_list_of_referrers_up_to_the_bound() {
    let mut world = World::new();
    let mut referrers = Vec::new();
    for number in 0..40_u32 {
        let text = format!("{{\"bundle\":{number}}}").into_bytes();
        let blob = Digest::of(&text).to_string();
        let manifest = manifest_of(BUNDLE, &blob, text.len());
        let digest = Digest::of(manifest.as_bytes()).to_string();
        world.content.blobs.insert(blob, text);
        world.content.manifests.insert(digest.clone(), manifest);
        referrers.push(bundle(&digest));
    }
    // Of something else than the release, by what the list says.
    let mut attestation = bundle(&Digest::of(b"attestation").to_string());
    attestation["annotations"] = json!({ "dev.sigstore.bundle.predicateType": "https://spdx.dev/Document" });
    referrers.insert(0, attestation);
    let index = index_of(&referrers);
    let evidence = world
        .find(move |asked| is_referrers(asked).then(|| Reply::of(200, &[], &index)))
        .await
        .unwrap();
    let written = serde_json::to_value(&evidence).unwrap();
    assert_eq!(written["signatures"].as_array().unwrap().len(), 32);
    assert_eq!(written["is_cut"], true);
    let refused = verify(&world.release, &some_keys().await, &evidence).unwrap_err();
    assert!(
        matches!(refused, Unverified::Bundle(BundleError::Damaged { .. })),
        "{refused}"
    );
}

#[tokio::test]
async fn good_signature_is_found_beside_others_that_are_damaged_or_gone() {
    let mut world = World::new();
    let mut referrers = Vec::new();
    for (text, is_there) in [("gone", false), ("good", true)] {
        let blob = Digest::of(text.as_bytes()).to_string();
        if is_there {
            world.content.blobs.insert(blob.clone(), text.as_bytes().to_vec());
        }
        let manifest = manifest_of(BUNDLE, &blob, text.len());
        let digest = Digest::of(manifest.as_bytes()).to_string();
        world.content.manifests.insert(digest.clone(), manifest);
        referrers.push(bundle(&digest));
    }
    referrers.insert(0, bundle("sha512:00"));
    let index = index_of(&referrers);
    let evidence = world
        .find(move |asked| is_referrers(asked).then(|| Reply::of(200, &[], &index)))
        .await
        .unwrap();
    let written = serde_json::to_value(&evidence).unwrap();
    assert_eq!(written["signatures"].as_array().unwrap().len(), 1);
    assert!(evidence.is_cut());
}

#[tokio::test]
async fn as_many_signatures_as_fit_are_found_with_what_they_are_of_and_can_be_kept() {
    let mut world = World::new();
    let mut layers = Vec::new();
    for number in 0..4_u8 {
        let largest = vec![number; 256 << 10];
        let digest = Digest::of(&largest).to_string();
        layers.push(json!({ "mediaType": BUNDLE, "digest": digest, "size": largest.len() }));
        world.content.blobs.insert(digest, largest);
    }
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "layers": layers }).to_string();
    let classic = format!("sha256-{}.sig", world.manifest.hex());
    world.content.manifests.insert(classic, manifest);
    let stub = Stub::new({
        let content = world.content.clone();
        move |asked| content.answer(asked)
    })
    .await;
    let source = Arc::new(source_of(&stub, &network(), None));
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let evidence = Arc::new(source.evidence(&resolved).await.unwrap());
    assert!(evidence.is_cut());

    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let origin = Origin {
        id: Digest::of(b"registry"),
        name: "registry".to_owned(),
        source,
    };
    let release = store.get(&resolved, &origin).await.unwrap();
    let vouched = store.vouch(&release.tag, release.digest, origin.id, Arc::clone(&evidence));
    vouched.await.unwrap();
    let kept = store.evidence(release.digest, origin.id).await.unwrap();
    assert_eq!(kept, Some(evidence.as_ref().clone()));
    let written = serde_json::to_value(&kept).unwrap();
    assert_eq!(written["signatures"].as_array().unwrap().len(), 3);
}
