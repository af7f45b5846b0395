//! Files in a registry of this machine, asked for over real connections. A real registry is asked in the tests of `release` and in journeys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::{StreamExt as _, stream};
use provider_plugin::{Algorithm, Content, ContentError, ContentPlan, Pinned, Sums};
use release::http::NetworkOptions;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::*;
use crate::source::{Asked, Files, WebFiles};
use crate::stand_ins::Notes;

const MIB: usize = 1 << 20;

/// What a registry has and what is wrong with it.
#[derive(Default)]
struct Store {
    /// By tag.
    manifests: HashMap<String, String>,
    /// By digest.
    blobs: HashMap<String, Bytes>,
    ranges: bool,
    /// After so many bytes of the next blob the connection breaks.
    cut: Option<usize>,
    /// What blobs have instead of what is asked for.
    instead: Option<Bytes>,
    /// Whether it knows nobody, and says so with what it was told.
    refuses: bool,
    /// The parts of blobs that were asked for, in order.
    asked: Vec<Option<String>>,
}

impl Store {
    /// Puts files under a tag.
    fn push(&mut self, tag: &str, files: &[(&str, &Bytes)]) {
        let layers = files.iter().map(|(title, bytes)| {
            let digest = Digest::of(bytes).to_string();
            self.blobs.insert(digest.clone(), Bytes::clone(bytes));
            json!({
                "mediaType": "application/octet-stream", "digest": digest, "size": bytes.len(),
                "annotations": { "org.opencontainers.image.title": title },
            })
        });
        let layers: Vec<_> = layers.collect();
        let manifest = json!({ "schemaVersion": 2, "artifactType": "application/vnd.example.disk", "layers": layers });
        self.manifests.insert(tag.to_owned(), manifest.to_string());
    }
}

type Shared = Arc<Mutex<Store>>;

struct Registry {
    host: String,
    store: Shared,
    accepting: AbortHandle,
}

impl Registry {
    async fn start() -> Self {
        let store = Shared::default();
        store.lock().unwrap().ranges = true;
        let routes = Router::new()
            .route("/v2/kaas/disks/manifests/{name}", get(manifest))
            .route("/v2/kaas/disks/blobs/{digest}", get(blob))
            .with_state(Arc::clone(&store));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            host,
            store,
            accepting: serving.abort_handle(),
        }
    }

    fn files(&self, rest: &str) -> Files {
        self.asked(rest, None)
    }

    fn asked(&self, rest: &str, credentials: Option<Credentials>) -> Files {
        WebFiles::new(&network(true), []).files(&Asked {
            url: format!("oci+http://{}/kaas/disks{rest}", self.host),
            credentials,
            ..Asked::default()
        })
    }

    fn with(&self, change: impl FnOnce(&mut Store)) {
        change(&mut self.store.lock().unwrap());
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn network(plain_http: bool) -> Network {
    Network::new(NetworkOptions {
        plain_http,
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..NetworkOptions::default()
    })
    .unwrap()
}

async fn manifest(State(store): State<Shared>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let store = store.lock().unwrap();
    if store.refuses {
        let told = headers.get(header::AUTHORIZATION).cloned();
        let told = told.unwrap_or(HeaderValue::from_static("nobody"));
        return match told.to_str().unwrap() {
            "nobody" => (
                StatusCode::UNAUTHORIZED,
                [(header::WWW_AUTHENTICATE, "Basic realm=\"here\"")],
            )
                .into_response(),
            told => (StatusCode::FORBIDDEN, format!("not for {told}")).into_response(),
        };
    }
    let found = store.manifests.get(&name).or_else(|| {
        store
            .manifests
            .values()
            .find(|text| Digest::of(text.as_bytes()).to_string() == name)
    });
    match found {
        Some(text) => {
            let kind = "application/vnd.oci.image.manifest.v1+json";
            ([(header::CONTENT_TYPE, kind)], text.clone()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn blob(State(store): State<Shared>, Path(digest): Path<String>, headers: HeaderMap) -> Response {
    let mut store = store.lock().unwrap();
    let range = headers
        .get(header::RANGE)
        .map(|range| range.to_str().unwrap().to_owned());
    store.asked.push(range.clone());
    let found = store.instead.clone().or_else(|| store.blobs.get(&digest).cloned());
    let Some(bytes) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let from = range.filter(|_| store.ranges);
    let from = from.map(|range| {
        range
            .trim_start_matches("bytes=")
            .trim_end_matches('-')
            .parse()
            .unwrap()
    });
    if from.is_some_and(|from: usize| from >= bytes.len()) {
        return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
    }
    let part = bytes.slice(from.unwrap_or_default()..);
    let mut answer = Response::new(Body::empty());
    answer.headers_mut().insert(header::CONTENT_LENGTH, part.len().into());
    if let Some(from) = from {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
        answer
            .headers_mut()
            .insert(header::CONTENT_RANGE, range.parse().unwrap());
    }
    *answer.body_mut() = match store.cut.take() {
        Some(at) => {
            let pieces = [Ok(part.slice(..at)), Err(std::io::Error::other("cut"))];
            // What was given before leaves while the end waits for its turn.
            Body::from_stream(stream::iter(pieces).then(|piece| async move {
                tokio::task::yield_now().await;
                piece
            }))
        }
        None => Body::from(part),
    };
    answer
}

/// Bytes that differ everywhere, and other ones for each seed.
fn file(seed: usize) -> Bytes {
    (0..3 * MIB)
        .map(|at| u8::try_from((at + seed) * 31 % 251).unwrap())
        .collect()
}

/// Reads all of it as a transfer does.
async fn read(source: Arc<dyn ImageSource>, probe: Probe) -> Result<Sums, ContentError> {
    let pinned = Pinned::parse(probe.tag.as_deref().unwrap()).unwrap();
    let plan = ContentPlan {
        attempt: 1,
        pinned: Some(pinned),
        ..ContentPlan::default()
    };
    let content = Content::new(source, probe, plan, Arc::new(Notes::default()));
    let mut body = content.open().await?;
    while let Some(piece) = body.stream.next().await {
        piece?;
    }
    Ok(body.sums.sums().unwrap())
}

fn digest_of(bytes: &Bytes) -> Pinned {
    Pinned::new(Algorithm::Sha256, &Digest::of(bytes).hex()).unwrap()
}

#[test]
fn an_address_names_a_repository_a_manifest_and_a_layer() {
    let digest = Digest::of(b"manifest");
    for (url, shown) in [
        ("oci://r.example/a/b:v1".to_owned(), "oci://r.example/a/b:v1".to_owned()),
        (
            "oci://R.example:5000/a".to_owned(),
            "oci://r.example:5000/a:latest".to_owned(),
        ),
        (
            "oci+http://r/a:v1#disk.raw.xz".to_owned(),
            "oci://r/a:v1#disk.raw.xz".to_owned(),
        ),
        (
            format!("oci://r.example/a@{digest}"),
            format!("oci://r.example/a@{digest}"),
        ),
        (
            format!("oci://r.example:5000/a:v1@{digest}#disk"),
            format!("oci://r.example:5000/a@{digest}#disk"),
        ),
    ] {
        let address = LayerAddress::parse(&url).unwrap();
        assert_eq!(address.to_string(), shown);
        assert_eq!(address.plain_http, url.starts_with("oci+http"));
        assert!(is_in_registry(&url));
    }
    for none in [
        "https://r.example/a",
        "oci://",
        "oci://r.example",
        "oci://r.example/A",
        "oci://r.example/a:",
        "oci://r.example/a:-",
        "oci://r.example/a@sha512:00",
        "oci://r.example/a@",
        "oci://me:hunter2@r.example/a",
    ] {
        assert_eq!(LayerAddress::parse(none), None, "{none}");
    }
    // A digest is no tag.
    assert_eq!(LayerAddress::parse(&format!("oci://r.example/a:{digest}")), None);
}

#[tokio::test]
async fn a_layer_is_read_whole_by_its_title_and_known_by_its_digest() {
    let registry = Registry::start().await;
    let (disk, other) = (file(1), file(2));
    registry.with(|store| store.push("v1", &[("disk.raw", &disk), ("notes", &other)]));
    let files = registry.files(":v1#disk.raw");
    assert!(files.tag_is_digest);
    let probe = files.image.probe().await.unwrap();
    assert_eq!(
        (probe.size, probe.tag.as_deref()),
        (Some(3 << 20), Some(digest_of(&disk).to_string().as_str()))
    );
    assert_eq!(read(files.image, probe).await.unwrap().source, digest_of(&disk));
    let error = registry.files(":v1").image.probe().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceGone);
    assert!(error.message.contains("disk.raw, notes"), "{error}");
    let error = registry.files(":v2").image.probe().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceGone);
    assert!(error.message.contains("nothing under v2"), "{error}");
}

#[tokio::test]
async fn a_cut_layer_goes_on_where_it_was_though_its_tag_was_moved_meanwhile() {
    for ranges in [true, false] {
        let registry = Registry::start().await;
        let (disk, other) = (file(1), file(2));
        registry.with(|store| {
            store.push("v1", &[("disk", &disk)]);
            store.ranges = ranges;
            store.cut = Some(MIB + 5);
        });
        let source = registry.files(":v1").image;
        let probe = source.probe().await.unwrap();
        registry.with(|store| store.push("v1", &[("disk", &other)]));
        let sums = read(Arc::clone(&source), probe).await.unwrap();
        assert_eq!(sums.source, digest_of(&disk), "half of each");
        let asked = registry.store.lock().unwrap().asked.clone();
        assert!(matches!(asked.as_slice(), [None, Some(_)]), "{asked:?}");
        // Who asks again is told that it is another one.
        let probe = source.probe().await.unwrap();
        assert_eq!(probe.tag, Some(digest_of(&other).to_string()));
    }
}

#[tokio::test]
async fn other_bytes_than_those_of_the_manifest_are_no_image() {
    let registry = Registry::start().await;
    let disk = file(1);
    registry.with(|store| store.push("v1", &[("disk", &disk)]));
    let source = registry.files(":v1").image;
    let probe = source.probe().await.unwrap();
    registry.with(|store| store.instead = Some(file(2)));
    let error = read(Arc::clone(&source), probe.clone()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceMismatch, "{error}");
    registry.with(|store| store.instead = Some(disk.slice(..MIB)));
    for at in [0, 5, 2 << 20] {
        let error = source.open(at, &probe).await.err().unwrap();
        assert_eq!(error.class, ErrorClass::SourceBroken, "{error}");
    }
    registry.with(|store| {
        store.instead = None;
        store.blobs.clear();
    });
    let error = source.open(0, &probe).await.err().unwrap();
    assert_eq!(error.class, ErrorClass::SourceGone, "{error}");
}

#[tokio::test]
async fn what_a_registry_was_told_is_not_told_again() {
    let registry = Registry::start().await;
    registry.with(|store| store.refuses = true);
    let credentials = Credentials::Basic {
        username: "me".to_owned(),
        password: "hunter2".to_owned().into(),
    };
    let error = registry
        .asked(":v1", Some(credentials))
        .image
        .probe()
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceGone, "{error}");
    assert!(!error.message.contains("hunter2"), "{error}");
    assert!(error.message.contains("right to pull"), "{error}");
    let error = registry.files(":v1").image.probe().await.unwrap_err();
    assert!(error.message.contains("credentials"), "{error}");
}

#[tokio::test]
async fn without_tls_nobody_is_asked_unless_a_flag_allows_it_and_what_is_no_address_says_how_to_write_one() {
    let registry = Registry::start().await;
    let ask = async |url: String| {
        let asked = Asked {
            url,
            ..Asked::default()
        };
        let error = WebFiles::new(&network(false), []).files(&asked).image.probe().await;
        error.unwrap_err()
    };
    let error = ask(format!("oci+http://{}/kaas/disks:v1", registry.host)).await;
    assert_eq!(error.class, ErrorClass::SourceGone, "{error}");
    assert!(error.message.contains("--allow-plain-http"), "{error}");
    let error = ask("oci://me:hunter2@registry.example/disks".to_owned()).await;
    assert_eq!(error.class, ErrorClass::SourceGone, "{error}");
    assert!(
        error.message.contains("#title") && !error.message.contains("hunter2"),
        "{error}"
    );
}
