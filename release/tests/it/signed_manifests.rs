//! Releases in a real registry that the real cosign signs, or that somebody signs badly.

use std::{fs, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use release::{
    Digest, ErrorClass, Evidence, Release, Trust, Unverified, Verdict, Verification, admit,
    bundle::BundleError,
    source::ReleaseSource,
    store::{Needs, Origin, Store, StoreOptions},
    verify,
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    cosign::Cosign,
    fixture::{TAG, good_release, tag},
    registry::{Registry, Way},
};

const REPOSITORY: &str = "kaas/stacks";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// A registry with one release, and who may sign it.
struct World {
    registry: Registry,
    cosign: Cosign,
    keys: Trust,
    root: TempDir,
}

impl World {
    async fn new() -> Self {
        let (registry, cosign, root) = (Registry::start().await, Cosign::new(), TempDir::new().unwrap());
        let keys = cosign.key("ours").await;
        let world = Self {
            registry,
            cosign,
            keys,
            root,
        };
        world.push(REPOSITORY).await;
        world
    }

    fn directory(&self) -> std::path::PathBuf {
        good_release(self.root.path(), TAG)
    }

    async fn push(&self, repository: &str) {
        let reference = format!("{repository}:{TAG}");
        self.registry.push(&self.directory(), &reference, Way::Csctl).await;
    }

    /// The digest of the manifest under the tag.
    async fn manifest(&self, repository: &str) -> Digest {
        let resolved = self.registry.source(repository).resolve(&tag(TAG)).await.unwrap();
        resolved.manifest().expect("a registry has manifests")
    }

    /// The release by its digest, as one signs it.
    async fn pinned(&self, repository: &str) -> String {
        format!("{repository}@{}", self.manifest(repository).await)
    }

    async fn sign(&self, key: &str) {
        let pinned = self.pinned(REPOSITORY).await;
        self.cosign.sign(&self.registry, key, &pinned).await;
    }

    async fn evidence(&self, repository: &str) -> Evidence {
        let source = self.registry.source(repository);
        let resolved = source.resolve(&tag(TAG)).await.unwrap();
        source.evidence(&resolved).await.unwrap()
    }

    fn release(&self) -> Release {
        Release::open(&self.directory(), &tag(TAG)).unwrap()
    }

    async fn verdict(&self, repository: &str, keys: &Trust) -> Verdict {
        verify(&self.release(), keys, &self.evidence(repository).await)
    }

    /// Whether cosign says the same as we: what it refuses is refused here.
    async fn is_good(&self, repository: &str, key: &str) -> bool {
        let verdict = self.verdict(repository, &self.cosign.keys(&[key])).await;
        let pinned = self.pinned(repository).await;
        let theirs = self.cosign.verifies(&self.registry, key, &pinned).await;
        assert_eq!(verdict.is_ok(), theirs, "{verdict:?}");
        theirs
    }

    /// Puts texts with what claims to be their signatures where cosign would.
    async fn attach(&self, signatures: &[(Vec<u8>, &str)]) {
        let folder = TempDir::new().unwrap();
        let (mut files, mut annotations) = (Vec::new(), json!({}));
        for (number, (payload, signature)) in signatures.iter().enumerate() {
            let name = format!("payload-{number}.json");
            fs::write(folder.path().join(&name), payload).unwrap();
            annotations[&name] = json!({ "dev.cosignproject.cosign/signature": signature });
            files.push(format!("{name}:{SIMPLE_SIGNING}"));
        }
        fs::write(folder.path().join("annotations.json"), annotations.to_string()).unwrap();
        let under = format!("{REPOSITORY}:{}", classic(self.manifest(REPOSITORY).await));
        let mut arguments = vec![
            "--annotation-file=annotations.json".to_owned(),
            self.registry.reference(&under),
        ];
        arguments.extend(files);
        self.registry.oras(folder.path(), "push", &arguments).await;
    }

    /// What cosign signed last, with its signature.
    async fn signed(&self) -> (Vec<u8>, String) {
        let evidence = serde_json::to_value(self.evidence(REPOSITORY).await).unwrap();
        let proof = &evidence["signatures"][0]["proof"]["SimpleSigning"];
        let payload = STANDARD.decode(proof["payload"].as_str().unwrap()).unwrap();
        (payload, proof["signature"].as_str().unwrap().to_owned())
    }
}

/// The tag under which cosign puts signatures.
fn classic(manifest: Digest) -> String {
    format!("sha256-{}.sig", manifest.hex())
}

#[tokio::test]
async fn release_that_a_trusted_key_signed_is_admitted_and_says_whose_it_is() {
    let world = World::new().await;
    world.sign("ours").await;
    let release = Arc::new(world.release());
    let verdict = world.verdict(REPOSITORY, &world.keys).await;
    let admitted = admit(Arc::clone(&release), Verification::Require(verdict)).unwrap();
    let der = pem_bytes(&world.cosign.public("ours"));
    assert_eq!(
        admitted.signer().unwrap().to_string(),
        format!("key {}", Digest::of(&der))
    );
    assert_eq!(admitted.warning(), None);
    assert_eq!(
        Digest::of(&admitted.read_class_chart().unwrap()),
        release.charts.as_ref().unwrap().class_chart.sha256
    );
    assert!(world.is_good(REPOSITORY, "ours").await);
}

fn pem_bytes(pem: &str) -> Vec<u8> {
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn f38_release_without_a_signature_is_refused_and_used_with_a_warning() {
    let world = World::new().await;
    assert!(!world.is_good(REPOSITORY, "ours").await);
    let verdict = world.verdict(REPOSITORY, &world.keys).await;
    assert_eq!(verdict, Err(Unverified::NotSigned));
    let release = Arc::new(world.release());
    let refused = admit(Arc::clone(&release), Verification::Require(verdict.clone())).unwrap_err();
    assert_eq!(
        (refused.class(), &refused),
        (ErrorClass::Waiting, &Unverified::NotSigned)
    );
    let warned = admit(release, Verification::Warn(verdict)).unwrap();
    assert_eq!(
        (warned.warning(), warned.signer()),
        (Some(&Unverified::NotSigned), None)
    );
    warned.read_class_chart().unwrap();
}

#[tokio::test]
async fn any_of_several_keys_is_good_and_no_other() {
    let world = World::new().await;
    world.cosign.key("next").await;
    world.cosign.key("stranger").await;
    world.sign("stranger").await;
    assert!(!world.is_good(REPOSITORY, "ours").await);
    let both = world.cosign.keys(&["ours", "next"]);
    let stranger = world.verdict(REPOSITORY, &both).await;
    let only = Unverified::OtherKey {
        looked: 1,
        is_cut: false,
    };
    assert_eq!(stranger, Err(only));
    // One good signature is enough, whoever else signed.
    world.sign("next").await;
    assert!(world.verdict(REPOSITORY, &both).await.is_ok());
    assert!(world.is_good(REPOSITORY, "next").await);
    assert!(!world.is_good(REPOSITORY, "ours").await);
}

#[tokio::test]
async fn signature_of_another_release_is_refused_wherever_it_is_put() {
    let world = World::new().await;
    world.sign("ours").await;
    let signed = world.manifest(REPOSITORY).await;
    let good = (world.release(), world.evidence(REPOSITORY).await);
    fs::write(
        world.directory().join("cluster-addon-values.yaml"),
        "values: |\n  other: true\n",
    )
    .unwrap();
    let changed = Release::open(&world.root.path().join("cluster-stacks").join(TAG), &tag(TAG)).unwrap();
    assert_ne!(changed.digest, good.0.digest);
    // The evidence that is good for one release says nothing of another.
    assert_eq!(verify(&changed, &world.keys, &good.1), Err(Unverified::OtherFiles));

    let reference = format!("{REPOSITORY}:{TAG}");
    let directory = world.root.path().join("cluster-stacks").join(TAG);
    world.registry.push(&directory, &reference, Way::Csctl).await;
    let other = world.manifest(REPOSITORY).await;
    let (from, to) = (classic(signed), classic(other));
    world
        .registry
        .copy(&format!("{REPOSITORY}:{from}"), &format!("{REPOSITORY}:{to}"))
        .await;
    let verdict = verify(&changed, &world.keys, &world.evidence(REPOSITORY).await);
    let expected = Unverified::OtherDigest {
        signed: signed.to_string(),
        found: other,
    };
    assert_eq!(expected.class(), ErrorClass::Terminal);
    assert_eq!(verdict, Err(expected));
    let pinned = world.pinned(REPOSITORY).await;
    assert!(!world.cosign.verifies(&world.registry, "ours", &pinned).await);
}

#[tokio::test]
async fn verdict_of_one_release_admits_no_other() {
    let world = World::new().await;
    world.sign("ours").await;
    let verdict = world.verdict(REPOSITORY, &world.keys).await;
    assert!(verdict.is_ok());
    let other = TempDir::new().unwrap();
    let text = "docker-harbor-1-34-v2";
    let other = Release::open(&good_release(other.path(), text), &tag(text)).unwrap();
    let refused = admit(Arc::new(other.clone()), Verification::Require(verdict.clone())).unwrap_err();
    assert_eq!(refused, Unverified::OtherRelease);
    let warned = admit(Arc::new(other), Verification::Warn(verdict)).unwrap();
    assert_eq!(
        (warned.warning(), warned.signer()),
        (Some(&Unverified::OtherRelease), None)
    );
}

#[tokio::test]
async fn release_that_is_copied_with_its_signature_is_as_good_as_cosign_says() {
    let world = World::new().await;
    world.sign("ours").await;
    let signature = classic(world.manifest(REPOSITORY).await);
    for name in [TAG, &signature] {
        world
            .registry
            .copy(&format!("{REPOSITORY}:{name}"), &format!("mirror/of/it:{name}"))
            .await;
    }
    // The signature names the repository in which it was made; neither cosign nor we hold that against it.
    assert!(String::from_utf8(world.signed().await.0).unwrap().contains(REPOSITORY));
    assert!(world.is_good("mirror/of/it", "ours").await);
}

#[tokio::test]
async fn damaged_signatures_are_refused_and_say_what_is_wrong() {
    let world = World::new().await;
    world.sign("ours").await;
    let (payload, signature) = world.signed().await;
    let cut = &signature[..signature.len() / 2 - signature.len() / 2 % 4];
    let other_payload = String::from_utf8(payload.clone())
        .unwrap()
        .replace("optional", "Optional");
    let spaced = format!(" {signature}");
    for (payload, signature, refused) in [
        (payload.clone(), cut, "by a trusted key"),
        (payload.clone(), &signature[1..], "is damaged: it is not in base64"),
        (payload.clone(), "", "is damaged: it is not in base64"),
        (payload.clone(), &spaced, "is damaged: it is not in base64"),
        (other_payload.into_bytes(), &signature, "by a trusted key"),
        (payload[..payload.len() - 1].to_vec(), &signature, "by a trusted key"),
    ] {
        world.attach(&[(payload, signature)]).await;
        let error = world.verdict(REPOSITORY, &world.keys).await.unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
    // Beside them a good one is good.
    world.attach(&[(b"{}".to_vec(), "AAAA"), (payload, &signature)]).await;
    assert!(world.verdict(REPOSITORY, &world.keys).await.is_ok());
}

#[tokio::test]
async fn no_more_signatures_are_looked_at_than_there_may_be() {
    let world = World::new().await;
    let many: Vec<_> = (0..40)
        .map(|number| (format!("{{\"{number}\":0}}").into_bytes(), "AAAA"))
        .collect();
    world.attach(&many).await;
    let refused = world.verdict(REPOSITORY, &world.keys).await.unwrap_err();
    assert_eq!(
        refused,
        Unverified::OtherKey {
            looked: 32,
            is_cut: true
        }
    );
    let told = refused.to_string();
    assert!(told.contains("none of the 32 signatures that were looked at"), "{told}");
}

#[tokio::test]
async fn bundles_are_good_where_cosign_puts_them_if_a_trusted_key_made_them() {
    let world = World::new().await;
    let other = world.cosign.key("other").await;
    let pinned = world.pinned(REPOSITORY).await;
    world.cosign.sign_with(&world.registry, "ours", &pinned, &[]).await;
    assert!(world.verdict(REPOSITORY, &world.keys).await.is_ok());
    let refused = world.verdict(REPOSITORY, &other).await.unwrap_err();
    assert_eq!(refused, Unverified::Bundle(BundleError::OtherKey));
    assert_eq!(refused.class(), ErrorClass::Waiting);
    // One of the other form beside it counts too.
    world.sign("other").await;
    assert!(world.verdict(REPOSITORY, &other).await.is_ok());
}

#[tokio::test]
async fn release_is_verified_from_what_was_kept_when_the_registry_is_gone() {
    let world = World::new().await;
    world.sign("ours").await;
    let cache = TempDir::new().unwrap();
    let open = async || {
        Store::open(StoreOptions::new(cache.path().to_owned(), 1 << 30))
            .await
            .unwrap()
    };
    let source = world.registry.source(REPOSITORY);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let origin = Origin {
        id: Digest::of(b"registry"),
        name: "registry".to_owned(),
        source: Arc::new(source.clone()),
    };
    let (digest, bytes) = {
        let store = open().await;
        let kept = store.get(&resolved, &origin).await.unwrap();
        let bytes = store.usage().bytes;
        let evidence = Arc::new(source.evidence(&resolved).await.unwrap());
        store.vouch(&kept.tag, kept.digest, origin.id, evidence).await.unwrap();
        assert!(store.usage().bytes > bytes, "what is kept is counted");
        (kept.digest, store.usage().bytes)
    };
    drop(world.registry);

    let store = open().await;
    assert_eq!(store.usage().bytes, bytes);
    let release = store.find(&tag(TAG), digest).await.unwrap().unwrap();
    let evidence = store.evidence(digest, origin.id).await.unwrap().unwrap();
    assert!(verify(&release, &world.keys, &evidence).is_ok());
    assert_eq!(store.evidence(digest, Digest::of(b"other")).await.unwrap(), None);

    // Who can write there can take a signature away, and make none.
    let file = only_file(&cache.path().join("evidence"));
    let kept = fs::read_to_string(&file).unwrap();
    for spoilt in [
        // Every signature of this curve begins so.
        kept.replacen("ME", "MF", 1),
        kept[1..].to_owned(),
        String::new(),
    ] {
        fs::write(&file, spoilt).unwrap();
        let evidence = store.evidence(digest, origin.id).await.unwrap().unwrap_or_default();
        verify(&release, &world.keys, &evidence).unwrap_err();
    }
    fs::remove_dir_all(cache.path().join("sha256").join(digest.hex())).unwrap();
    assert!(store.find(&tag(TAG), digest).await.unwrap().is_none());
    // Until somebody says what is needed, it may come again.
    store.keep(Needs::new()).await.unwrap();
    assert_eq!(fs::read_dir(cache.path().join("evidence")).unwrap().count(), 0);
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let mut entries = fs::read_dir(directory).unwrap();
    let first = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    first
}
