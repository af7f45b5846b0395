//! From what objects and flags name to a source, with an API server that has the Secrets of a test.

use std::collections::HashSet;
use std::io;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use crds::names::ReleaseTag;
use futures::future::join_all;
use http::{Request, Response};
use k8s_openapi::ByteString;
use kube::client::Body;
use operator_kit::failure::chain;
use release::http::{Lookup, LookupFuture, NetworkOptions, Rate};
use release::pack::{self, Versioning};
use release::source::RELEASES_DIRECTORY;
use release::store::{Store, StoreOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// An API server that always gives this answer, and the paths that it was asked for.
struct Server {
    client: Client,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(code: u16, answer: &Value) -> Self {
        let answer = serde_json::to_vec(answer).unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let paths = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            paths.lock().unwrap().push(request.uri().path().to_owned());
            let response = Response::builder().status(code).body(Body::from(answer.clone()));
            std::future::ready(Ok::<_, std::convert::Infallible>(response.unwrap()))
        });
        Self {
            client: Client::new(service, "default"),
            asked,
        }
    }

    fn refusing(code: u16, reason: &str) -> Self {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": "no" });
        Self::new(code, &status)
    }

    /// One whose Secrets all hold this.
    fn holding(values: &[(&str, &[u8])]) -> Self {
        let values = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        let secret = k8s_openapi::api::core::v1::Secret {
            data: Some(values.collect()),
            ..Default::default()
        };
        Self::new(200, &serde_json::to_value(secret).unwrap())
    }
}

fn nothing() -> Client {
    Server::refusing(404, "NotFound").client
}

fn connector(client: Client, usual: UsualSource, root: &Path) -> Arc<Connector> {
    operator_kit::client::install_crypto();
    let network = Network::new(NetworkOptions::default()).unwrap();
    Arc::new(Connector::new(client, network, usual, root.to_owned()))
}

fn source(json: Value) -> Source {
    serde_json::from_value(json).unwrap()
}

/// A registry, with credentials in the Secret `password`.
fn registry() -> Source {
    let reference = json!({ "name": "password" });
    source(json!({ "oci": { "repository": "registry.example.com/stacks", "credentialsSecretRef": reference } }))
}

/// Connects to what an object of the namespace `fleet` names.
async fn connected(server: &Server, source: &Source) -> Result<Connection, ConnectError> {
    let connector = connector(server.client.clone(), UsualSource::Directory, Path::new("/releases"));
    let place = connector.place(Some(source), "fleet").unwrap();
    connector.connection(&place).connect().await
}

#[tokio::test]
async fn release_of_what_nobody_named_is_brought_into_a_store_from_the_directory_of_the_operator() {
    let (root, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let tag: ReleaseTag = "docker-harbor-1-34-v1".parse().unwrap();
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
    let versioning = Versioning::Given(tag.version().clone());
    for below in ["", "teams/harbor"] {
        let releases = root.path().join(below).join(RELEASES_DIRECTORY);
        pack::create(&stack, &releases, &versioning).unwrap();
    }
    let connector = connector(nothing(), UsualSource::Directory, root.path());
    let store = Store::open(StoreOptions::new(cache.path().to_owned(), 1 << 30));
    let store = store.await.unwrap();
    let named = source(json!({ "directory": { "path": "teams/harbor" } }));
    for source in [None, Some(&named)] {
        let connect = connector.connection(&connector.place(source, "fleet").unwrap());
        let Connection { source, .. } = connect.connect().await.unwrap();
        let resolved = source.resolve(&tag).await.unwrap();
        let brought = store.get(&resolved, &connect.origin(source)).await.unwrap();
        assert_eq!(brought.tag, tag);
        let found = store.find(&tag, brought.digest).await.unwrap();
        assert_eq!(found.map(|release| release.digest), Some(brought.digest));
    }
}

#[tokio::test]
async fn secret_is_read_by_its_name_in_the_namespace_of_the_object() {
    let server = Server::holding(&[("username", b"harbor"), ("password", b"canary")]);
    connected(&server, &registry()).await.unwrap();
    let asked = server.asked.lock().unwrap().clone();
    assert_eq!(asked, ["/api/v1/namespaces/fleet/secrets/password"]);
}

#[tokio::test]
async fn fingerprint_is_another_one_when_the_secret_holds_something_else() {
    let fingerprint = async |values: &[(&str, &[u8])]| {
        let connection = connected(&Server::holding(values), &registry()).await;
        connection.unwrap().fingerprint
    };
    let before = fingerprint(&[("token", b"one")]).await;
    assert_eq!(fingerprint(&[("token", b"one")]).await, before);
    assert_ne!(fingerprint(&[("token", b"two")]).await, before);
    assert_ne!(
        fingerprint(&[("username", b"harbor"), ("password", b"one")]).await,
        before
    );
}

#[tokio::test]
async fn secret_that_does_not_give_what_is_wanted_is_told_without_what_it_holds() {
    let told = async |server: Server, source: &Source| {
        let error = connected(&server, source)
            .await
            .map(|connection| connection.fingerprint);
        let error = error.expect_err("no source is made of this");
        let words = chain(&error);
        assert!(!words.contains("canary"), "{words}");
        (error.class(), words)
    };
    let reference = json!({ "name": "password", "key": "mine" });
    let with_key =
        source(json!({ "http": { "url": "https://stacks.example.com", "credentialsSecretRef": reference } }));
    let token = source(
        json!({ "github": { "owner": "kaas", "repository": "stacks", "tokenSecretRef": { "name": "password" } } }),
    );
    let certificates =
        source(json!({ "oci": { "repository": "example.com/stacks", "caSecretRef": { "name": "password" } } }));
    let half: &[(&str, &[u8])] = &[("username", b"canary")];
    for (server, source, expected) in [
        (
            Server::holding(half),
            registry(),
            "the Secret fleet/password has no key \"token\", nor the keys \"username\" and \"password\"; it must have that",
        ),
        (
            Server::holding(half),
            with_key,
            "the Secret fleet/password has no key \"mine\"; it must have that",
        ),
        (
            Server::holding(&[("username", b"canary"), ("password", b"canary")]),
            token,
            "the Secret fleet/password has no key \"token\"; it must have that",
        ),
        (
            Server::holding(half),
            certificates,
            "the Secret fleet/password has no key \"ca.crt\"; it must have that",
        ),
        (
            Server::holding(&[("token", b"canary\xff")]),
            registry(),
            "the key \"token\" of the Secret fleet/password is no text",
        ),
        (
            Server::refusing(404, "NotFound"),
            registry(),
            "there is no Secret fleet/password, which spec.source names; create it, or name another one",
        ),
    ] {
        assert_eq!(
            told(server, &source).await,
            (ErrorClass::Waiting, expected.to_owned()),
            "{source}"
        );
    }
    let (class, words) = told(Server::refusing(403, "Forbidden"), &registry()).await;
    assert_eq!(class, ErrorClass::Waiting);
    assert!(words.contains("may not read the Secret fleet/password"), "{words}");
    // What nobody could read says nothing of what was read before.
    let (class, words) = told(Server::refusing(500, "InternalError"), &registry()).await;
    assert_eq!(class, ErrorClass::Transient);
    assert!(words.contains("failed to read the Secret fleet/password"), "{words}");
}

#[tokio::test]
async fn usual_source_is_made_of_what_the_operator_was_started_with_and_of_no_secret() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("ca.crt");
    let usual = |certificates| UsualSource::Remote {
        source: Box::new(source(
            json!({ "oci": { "repository": "registry.example.com/stacks" } }),
        )),
        credentials: Some(Credentials::Bearer("canary".into())),
        certificates,
    };
    let server = Server::refusing(500, "InternalError");
    let connect = |certificates| {
        let connector = connector(server.client.clone(), usual(certificates), folder.path());
        let place = connector.place(None, "fleet").unwrap();
        assert_eq!((&place, place.namespace()), (&Place::Usual, ""));
        assert_eq!(connector.kind(&place), SourceKind::Oci);
        connector.connection(&place)
    };
    let way = connect(None);
    assert_eq!(way.described(), "registry registry.example.com/stacks");
    way.connect().await.unwrap();
    let refused = connect(Some(missing)).connect().await.map(|made| made.fingerprint);
    let refused = refused.expect_err("there is no file");
    assert_eq!(refused.class(), ErrorClass::Waiting);
    assert!(
        refused.to_string().contains("which --source-ca-file names"),
        "{refused}"
    );
    assert!(server.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_came_from_one_source_is_not_taken_for_what_another_of_its_name_has() {
    let connector = connector(nothing(), UsualSource::Directory, Path::new("/releases"));
    let id = |namespace: &str, json: Value| {
        let place = connector.place(Some(&source(json)), namespace).unwrap();
        connector.connection(&place).id()
    };
    let github = |more: Value| {
        let mut source = json!({ "owner": "kaas", "repository": "stacks" });
        source
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "github": source })
    };
    let reference = json!({ "name": "token" });
    let ids = [
        id("one", github(json!({}))),
        id("one", github(json!({ "apiUrl": "https://github.example.com/api/v3" }))),
        id("one", github(json!({ "tokenSecretRef": reference }))),
        id("two", github(json!({ "tokenSecretRef": reference }))),
        id("one", json!({ "directory": { "path": "blue" } })),
        id("one", json!({ "directory": { "path": "green" } })),
    ];
    assert_eq!(HashSet::from(ids).len(), ids.len());
    assert_eq!(id("two", github(json!({}))), ids[0]);
}

#[tokio::test]
async fn a_source_is_named_by_what_it_is() {
    let connector = connector(nothing(), UsualSource::Directory, Path::new("/releases"));
    let described = |json: Value| {
        let source = source(json);
        let place = connector.place(Some(&source), "fleet").unwrap();
        let described = connector.described(Some(&source));
        assert_eq!(connector.connection(&place).described(), described);
        described
    };
    assert_eq!(connector.described(None), "directory /releases/cluster-stacks");
    let below = json!({"directory": {"path": "teams/harbor"}});
    assert_eq!(described(below), "directory /releases/teams/harbor/cluster-stacks");
    let elsewhere = json!({"github": {"owner": "them", "repository": "stacks"}});
    assert_eq!(described(elsewhere), "repository them/stacks");
    let outside = source(json!({ "directory": { "path": "../other" } }));
    assert_eq!(connector.described(Some(&outside)), "directory \"../other\"");
}

/// Knows no name.
#[derive(Debug)]
struct Nowhere;

impl Lookup for Nowhere {
    fn lookup<'a>(&'a self, _: &'a str) -> LookupFuture<'a> {
        Box::pin(std::future::ready(Err(io::Error::other("nowhere"))))
    }
}

#[tokio::test(start_paused = true)]
async fn sources_of_one_namespace_leave_room_before_a_host_for_those_of_another() {
    operator_kit::client::install_crypto();
    let rate = Rate {
        burst: 1,
        interval: Duration::from_secs(1),
    };
    let network = Network::new(NetworkOptions {
        rate,
        lookup: Arc::new(Nowhere),
        ..NetworkOptions::default()
    });
    let connector = Connector::new(nothing(), network.unwrap(), UsualSource::Directory, PathBuf::new());
    let connector = Arc::new(connector);
    let source = async |namespace: &str| {
        let place = Place::Remote {
            source: source(json!({ "http": { "url": "https://stacks.example.com" } })),
            namespace: namespace.to_owned(),
        };
        connector.connection(&place).connect().await.unwrap().source
    };
    let (greedy, other) = (source("greedy").await, source("other").await);
    let mut crowd = pin!(join_all((0..20).map(|_| greedy.list())));
    assert!(crowd.as_mut().now_or_never().is_none(), "they wait");
    let asked = other.list().await.map_err(|error| chain(&error));
    assert!(
        asked.as_ref().is_err_and(|error| error.contains("nowhere")),
        "{asked:?}"
    );
}
