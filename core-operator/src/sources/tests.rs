//! Sources as stacks name them.

use std::fs;
use std::path::Path;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use release::http::{Network, NetworkOptions};
use release::pack::{self, Versioning};
use release::source::RELEASES_DIRECTORY;
use serde_json::{Value, json};
use sourcing::UsualSource;
use tempfile::TempDir;

use super::*;

pub(super) fn tag() -> ReleaseTag {
    "docker-harbor-1-34-v1".parse().unwrap()
}

/// A root with one release.
pub(super) fn root() -> TempDir {
    let root = TempDir::new().unwrap();
    pack(&root.path().join(RELEASES_DIRECTORY));
    root
}

/// Writes the release into a directory of releases.
pub(super) fn pack(releases: &Path) {
    pack_as(releases, &tag());
}

/// Writes it as another release.
pub(super) fn pack_as(releases: &Path, tag: &ReleaseTag) {
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
    let versioning = Versioning::Given(tag.version().clone());
    pack::create(&stack, releases, &versioning).unwrap();
}

/// An API server that always gives this answer.
fn server(code: u16, answer: &Value) -> Client {
    let answer = serde_json::to_vec(answer).unwrap();
    let service = tower::service_fn(move |_: Request<Body>| {
        let response = Response::builder().status(code).body(Body::from(answer.clone()));
        std::future::ready(Ok::<_, std::convert::Infallible>(response.unwrap()))
    });
    Client::new(service, "default")
}

/// One that has nothing.
fn nothing() -> Client {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "none" });
    server(404, &status)
}

pub(super) fn sources(root: &Path) -> (Sources, mpsc::UnboundedReceiver<SourceChange>) {
    sources_with(root, nothing())
}

fn sources_with(root: &Path, client: Client) -> (Sources, mpsc::UnboundedReceiver<SourceChange>) {
    operator_kit::client::install_crypto();
    let network = Network::new(NetworkOptions::default()).unwrap();
    let options = SourceOptions {
        rescan: Duration::from_hours(1),
        connector: Arc::new(Connector::new(client, network, UsualSource::Directory, root.to_owned())),
        cache: Arc::new(Cache::new(CacheOptions {
            directory: root.join("cache"),
            max_bytes: 1 << 30,
        })),
        trusted_root: None,
        tasks: Tasks::default(),
    };
    Sources::new(options, CancellationToken::new())
}

fn stack(source: &Value) -> ClusterStack {
    let spec = json!({ "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "noProvider": true, "source": source });
    let metadata = json!({ "name": "harbor", "namespace": "fleet" });
    serde_json::from_value(json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": metadata, "spec": spec,
    }))
    .unwrap()
}

fn release() -> ClusterStackRelease {
    let metadata = json!({ "name": tag().to_string(), "namespace": "fleet" });
    serde_json::from_value(json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "metadata": metadata, "spec": {},
    }))
    .unwrap()
}

fn digest(opened: &Opened) -> Option<Digest> {
    match opened {
        Opened::Ready { files, .. } => Some(files.release().digest),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => None,
    }
}

#[tokio::test]
async fn other_bytes_under_the_same_tag_are_noticed_when_the_whole_directory_is_replaced() {
    let (root, other) = (root(), root());
    let prepared = other.path().join(RELEASES_DIRECTORY);
    fs::write(prepared.join(tag().to_string()).join("notes.md"), "Other bytes").unwrap();
    let (sources, mut changes) = sources(root.path());
    // After the first look there is no reason to forget but the one of this test.
    sources.listing_for(&stack(&Value::Null));
    changes.recv().await.unwrap();
    let before = digest(&sources.of(&release()).await);
    assert!(before.is_some());

    let releases = root.path().join(RELEASES_DIRECTORY);
    fs::rename(&releases, root.path().join("old")).unwrap();
    fs::rename(&prepared, &releases).unwrap();
    while !changes.recv().await.unwrap().tags.contains(&tag()) {}
    let after = digest(&sources.of(&release()).await);
    assert!(after.is_some());
    assert_ne!(after, before);
}

#[tokio::test(start_paused = true)]
async fn source_that_nobody_names_any_more_is_not_followed() {
    let root = TempDir::new().unwrap();
    let (sources, _changes) = sources(root.path());
    let directory = |path: &str| stack(&json!({ "directory": { "path": path } }));
    let (dropped, kept) = (directory("blue"), directory("green"));
    for stack in [&stack(&Value::Null), &dropped, &kept] {
        sources.listing_for(stack);
    }
    let follower = match sources.follower(dropped.spec.source.as_ref(), "fleet") {
        Ok(Follower::Directory(follower)) => Arc::downgrade(&follower),
        _ => panic!("a directory has another follower"),
    };
    let kept = [Arc::new(kept)];
    sources.follow_only(&kept, &[]);
    assert_eq!(
        lock(&sources.followers).len(),
        3,
        "somebody may have named it since the list was made"
    );
    tokio::time::advance(Duration::from_mins(2)).await;
    sources.follow_only(&kept, &[]);
    let left: HashSet<Place> = lock(&sources.followers).keys().cloned().collect();
    let expected = [root.path().to_owned(), root.path().join("green")].map(Place::Directory);
    assert_eq!(left, HashSet::from(expected));
    // Its task held it too.
    while follower.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn release_of_a_directory_that_is_no_object_any_more_is_not_remembered() {
    let root = root();
    let (sources, mut changes) = sources(root.path());
    // After the first look there is no reason to forget but the one of this test.
    sources.listing_for(&stack(&Value::Null));
    changes.recv().await.unwrap();
    let release = Arc::new(release());
    assert!(matches!(sources.of(&release).await, Opened::Ready { .. }));
    let remembered = || match sources.follower(None, "fleet") {
        Ok(Follower::Directory(follower)) => follower.remembers(&tag()),
        _ => panic!("a directory has another follower"),
    };
    sources.follow_only(&[], &[Arc::clone(&release)]);
    assert!(remembered());
    sources.follow_only(&[], &[]);
    assert!(!remembered());
}

#[tokio::test]
async fn f31_stacks_that_name_one_source_have_it_asked_once() {
    let root = TempDir::new().unwrap();
    let (sources, _changes) = sources(root.path());
    let registry = json!({ "oci": { "repository": "registry.example.com/stacks" } });
    let mut other = stack(&registry);
    other.metadata.namespace = Some("other".to_owned());
    for stack in [&stack(&registry), &stack(&registry), &other] {
        sources.listing_for(stack);
    }
    assert_eq!(lock(&sources.followers).len(), 1);
}

#[tokio::test]
async fn source_whose_secret_is_not_there_says_which() {
    let root = TempDir::new().unwrap();
    let (sources, mut changes) = sources(root.path());
    let reference = json!({ "name": "password" });
    let stack =
        stack(&json!({ "oci": { "repository": "registry.example.com/stacks", "credentialsSecretRef": reference } }));
    sources.listing_for(&stack);
    changes.recv().await.unwrap();
    let Listing::Unusable { message } = sources.listing_for(&stack) else {
        panic!("{:?}", sources.listing_for(&stack));
    };
    assert!(message.contains("no Secret fleet/password"), "{message}");
}

#[tokio::test]
async fn secret_of_a_service_account_is_given_to_no_source() {
    let root = TempDir::new().unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "account", "namespace": "fleet" },
        "type": "kubernetes.io/service-account-token", "data": { "token": "Y2FuYXJ5" },
    });
    let (sources, mut changes) = sources_with(root.path(), server(200, &secret));
    let reference = json!({ "name": "account" });
    let stack = stack(&json!({ "http": { "url": "https://stacks.example.com", "credentialsSecretRef": reference } }));
    sources.listing_for(&stack);
    changes.recv().await.unwrap();
    let Listing::Unusable { message } = sources.listing_for(&stack) else {
        panic!("{:?}", sources.listing_for(&stack));
    };
    assert!(message.contains("kubernetes.io/service-account-token"), "{message}");
}
