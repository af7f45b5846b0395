//! Releases of a web server with an index.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use release::{
    Digest, ErrorClass, Release,
    http::{Credentials, HttpError, Network},
    source::{HttpOptions, HttpSource, ReleaseSource, SourceError},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::{
    fixture::{TAG, chain, good_release, tag},
    source_contract::{assert_keeps_the_contract, files_of},
    stub::{Asked, Reply, Stub, authority, network},
};

fn basic() -> Credentials {
    Credentials::Basic {
        username: "me".to_owned(),
        password: "canary-password".into(),
    }
}

fn source_in(network: &Network, stub: &Stub, path: &str) -> HttpSource {
    let options = HttpOptions {
        url: stub.url(path).to_string(),
        credentials: Some(basic()),
        certificates: Some(authority().to_vec()),
    };
    HttpSource::new(&options, network).unwrap()
}

pub(crate) fn source(stub: &Stub) -> HttpSource {
    source_in(&network(), stub, "/stacks")
}

/// The index of the release in a directory.
fn index(directory: &Path) -> Value {
    let files = files_of(directory);
    let files = files
        .iter()
        .map(|(name, content)| json!({ "name": name, "size": content.len(), "sha256": Digest::of(content).hex() }));
    json!({
        "apiVersion": "index.clusterstack.x-k8s.io/v1alpha1",
        "releases": [
            { "tag": TAG, "publishedAt": "2026-02-28T08:00:00Z", "files": files.collect::<Vec<_>>() },
            { "tag": "nightly" },
        ],
    })
}

/// Answers as servers of files do.
fn serve(asked: &Asked, files: &BTreeMap<String, Vec<u8>>) -> Reply {
    let Some(content) = files.get(&asked.target) else {
        return Reply::of(404, &[], "not here");
    };
    let etag = format!("\"{}\"", Digest::of(content).hex());
    if asked.header("if-none-match") == Some(&etag) {
        return Reply::of(304, &[("ETag", &etag)], "");
    }
    Reply::of(200, &[("ETag", &etag)], content)
}

/// A server with the release of a directory, which a test can change.
pub(crate) async fn server(directory: &Path) -> (Stub, Arc<Mutex<BTreeMap<String, Vec<u8>>>>) {
    let named = files_of(directory)
        .into_iter()
        .map(|(name, content)| (format!("/stacks/{TAG}/{name}"), content));
    let mut files: BTreeMap<_, _> = named.collect();
    files.insert(
        "/stacks/index.json".to_owned(),
        index(directory).to_string().into_bytes(),
    );
    let shared = Arc::new(Mutex::new(files));
    let shown = Arc::clone(&shared);
    (
        Stub::new(move |asked| serve(asked, &shown.lock().unwrap())).await,
        shared,
    )
}

/// What comes of listing where everything is answered so.
async fn list(reply: Reply) -> SourceError {
    let stub = Stub::new(move |_| reply.clone()).await;
    source(&stub).list().await.expect_err("this is no index")
}

#[tokio::test]
async fn web_server_keeps_the_contract_of_sources() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let (stub, _) = server(&directory).await;
    for path in ["/stacks", "/stacks/"] {
        let source = source_in(&network(), &stub, path);
        assert_keeps_the_contract(&source, &directory).await;
        assert_eq!(source.list().await.unwrap().foreign, ["nightly"]);
        let resolved = source.resolve(&tag(TAG)).await.unwrap();
        let whole = Release::open(&directory, &tag(TAG)).unwrap();
        assert_eq!(
            resolved.digest(),
            Some(whole.digest),
            "pinned before a byte of it is here"
        );
    }
    for asked in stub.asked() {
        assert_eq!(
            asked.header("authorization"),
            Some("Basic bWU6Y2FuYXJ5LXBhc3N3b3Jk"),
            "{asked:?}"
        );
    }
}

#[tokio::test]
async fn unchanged_index_costs_one_304_and_a_new_one_is_read() {
    let root = TempDir::new().unwrap();
    let (stub, shown) = server(&good_release(root.path(), TAG)).await;
    let network = network();
    let source = source_in(&network, &stub, "/stacks");
    let first = source.list().await.unwrap();
    let before = network.statistics();
    assert_eq!(source.list().await.unwrap(), first);
    source.resolve(&tag(TAG)).await.unwrap();
    let after = network.statistics();
    assert_eq!((after.unchanged - before.unchanged, after.bytes - before.bytes), (2, 0));

    let empty = json!({ "apiVersion": "index.clusterstack.x-k8s.io/v1alpha1", "releases": [] });
    shown
        .lock()
        .unwrap()
        .insert("/stacks/index.json".to_owned(), empty.to_string().into_bytes());
    assert!(source.list().await.unwrap().releases.is_empty());
    let error = source.resolve(&tag(TAG)).await.unwrap_err();
    assert!(matches!(error, SourceError::MissingRelease { .. }), "{error:?}");
}

#[tokio::test]
async fn files_may_come_from_elsewhere_without_credentials_and_the_index_may_not() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let (origin, _) = server(&directory).await;
    let elsewhere = origin.at("storage.stub.test", "");
    let (text, away) = (index(&directory).to_string(), elsewhere.clone());
    let front = Stub::new(move |asked| match asked.target.as_str() {
        "/stacks/index.json" => Reply::of(200, &[], &text),
        _ => Reply::redirect(away.join(&asked.target).unwrap()),
    })
    .await;
    let source = source(&front);
    assert_keeps_the_contract(&source, &directory).await;
    let asked = origin.asked();
    assert!(asked.len() >= 4);
    for asked in asked {
        assert_eq!(asked.header("authorization"), None, "{asked:?}");
    }
    let error = list(Reply::redirect(elsewhere.join("/stacks/index.json").unwrap())).await;
    assert!(
        matches!(error, SourceError::Http(HttpError::RefusedRedirect { .. })),
        "{error:?}"
    );
    assert!(origin.asked().is_empty());
}

#[tokio::test]
async fn refusals_of_a_web_server_say_what_to_do() {
    let after: &[(&str, &str)] = &[("Retry-After", "90")];
    for (status, headers, body, class, words) in [
        (
            401,
            &[][..],
            "",
            ErrorClass::Transient,
            "denies access (status 401); look whether the token or password",
        ),
        (403, &[], "", ErrorClass::Transient, "denies access (status 403)"),
        (404, &[], "", ErrorClass::Waiting, "/stacks/index.json; put one there"),
        (429, &[], "", ErrorClass::Waiting, "allows no more requests"),
        (503, after, "", ErrorClass::Waiting, "allows no more requests"),
        (503, &[], "", ErrorClass::Transient, "with status 503"),
        (204, &[], "", ErrorClass::Transient, "with status 204"),
        (304, &[], "", ErrorClass::Transient, "with status 304"),
        (
            200,
            &[],
            "<html>",
            ErrorClass::Transient,
            "look whether the URL is right",
        ),
    ] {
        let error = list(Reply::of(status, headers, body)).await;
        let told = chain(&error);
        assert!(told.contains(words), "{status}: {told}");
        assert_eq!(error.class(), class, "{told}");
        assert!(!format!("{told} {error:?}").contains("canary"), "{told}");
    }
    let error = list(Reply::of(503, after, "")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
}

#[tokio::test]
async fn index_without_end_is_refused_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n{".to_vec();
    let error = list(Reply::Repeats(head, vec![b' '; 1 << 20], Duration::ZERO)).await;
    assert!(
        matches!(error, SourceError::Http(HttpError::TooLarge { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn file_that_is_gone_or_lies_elsewhere_is_not_given() {
    let root = TempDir::new().unwrap();
    let (stub, shown) = server(&good_release(root.path(), TAG)).await;
    let source = source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    shown.lock().unwrap().retain(|path, _| path.ends_with("index.json"));
    stub.asked();
    for location in [
        resolved.files()[0].location.clone(),
        "../secret".to_owned(),
        "/secret".to_owned(),
    ] {
        let mut file = resolved.files()[0].clone();
        file.location = location;
        let Err(error) = source.fetch(&file).await else {
            panic!("there is no such file")
        };
        assert!(matches!(error, SourceError::MissingFile { .. }), "{error:?}");
    }
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn file_that_breaks_off_ends_with_an_error() {
    let root = TempDir::new().unwrap();
    let text = index(&good_release(root.path(), TAG)).to_string();
    let stub = Stub::new(move |asked| match asked.target.as_str() {
        "/stacks/index.json" => Reply::of(200, &[], &text),
        _ => Reply::Says(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf".to_vec()),
    })
    .await;
    let source = source(&stub);
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let mut content = source.fetch(&resolved.files()[0]).await.unwrap();
    let error = content.read_to_end(&mut Vec::new()).await.unwrap_err();
    let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<HttpError>());
    assert!(matches!(inside, Some(HttpError::Body { .. })), "{error:?}");
}

#[test]
fn web_server_that_cannot_be_right_is_refused_without_telling_secrets() {
    let refusal = |url: &str| {
        let options = HttpOptions {
            url: url.to_owned(),
            credentials: Some(basic()),
            certificates: None,
        };
        let error = HttpSource::new(&options, &network()).expect_err(url);
        format!("{} {error:?} {:?}", chain(&error), options.credentials)
    };
    for (url, words) in [
        ("example.org/stacks", "is no URL"),
        ("https://example.org/stacks?token=canary", "has a query"),
        ("http://example.org/stacks", "--allow-plain-http"),
        ("https://me:canary@example.org/stacks", "put them into a Secret"),
    ] {
        let told = refusal(url);
        assert!(told.contains(words), "{told}");
        assert!(!told.contains("canary"), "{told}");
    }
}

#[tokio::test]
async fn index_for_which_there_is_no_room_is_not_kept_and_says_so() {
    let root = TempDir::new().unwrap();
    let (stub, shown) = server(&good_release(root.path(), TAG)).await;
    let short = shown.lock().unwrap()["/stacks/index.json"].clone();
    let long = [short.as_slice(), &vec![b' '; 15 << 20]].concat();
    let show = |index: &[u8]| {
        shown
            .lock()
            .unwrap()
            .insert("/stacks/index.json".to_owned(), index.to_vec())
    };
    let network = network();
    let [hostile, harmless] = ["hostile", "harmless"].map(|namespace| network.asked_by(namespace));
    let sources = [(); 3].map(|()| source_in(&hostile, &stub, "/stacks"));
    show(&long);
    sources[0].list().await.unwrap();
    sources[1].list().await.unwrap();
    let error = sources[2].list().await.unwrap_err();
    assert!(matches!(error, SourceError::NoRoom { .. }), "{error:?}");
    assert_eq!(error.reason(), "SourceTooLarge");
    show(&short);
    source_in(&harmless, &stub, "/stacks").list().await.unwrap();
    // A source that shrinks makes room for the next.
    sources[0].list().await.unwrap();
    show(&long);
    sources[2].list().await.unwrap();
}
