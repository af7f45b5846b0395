use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use futures::stream;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use tempfile::TempDir;
use tokio::sync::Notify;

use super::*;
use crate::failure::chain;

/// Starts an API server that refuses everything, and counts.
async fn overloaded() -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let router = Router::new().fallback(move |headers: HeaderMap| {
        counter.fetch_add(1, Ordering::SeqCst);
        let user_agent = headers[USER_AGENT].to_str().unwrap_or_default().to_owned();
        async move { (StatusCode::SERVICE_UNAVAILABLE, user_agent) }
    });
    (served(router).await, asked)
}

async fn served(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// What becomes of reading an object of this server.
async fn read(router: Router) -> kube::Error {
    let folder = tempfile::tempdir().unwrap();
    let address = served(router).await.to_string();
    let options = options(kubeconfig(&folder, &address), None);
    let client = connect(&options, &Traffic::default()).await.unwrap();
    let api = Api::<ConfigMap>::namespaced(client, "fleet");
    api.get("values").await.unwrap_err()
}

fn options(kubeconfig: PathBuf, context: Option<&str>) -> ClientOptions {
    ClientOptions {
        kubeconfig: Some(kubeconfig),
        context: context.map(str::to_owned),
        qps: 50.0,
        burst: 10,
        user_agent: "operator/1".to_owned(),
        fence: Fence::default(),
    }
}

fn kubeconfig(folder: &TempDir, server: &str) -> PathBuf {
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "clusters: [{{ name: c, cluster: {{ server: 'http://{server}' }} }}]\nusers: [{{ name: u, user: {{}} }}]\n\
         contexts: [{{ name: lab, context: {{ cluster: c, user: u }} }}]\ncurrent-context: lab\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn a_refused_request_is_sent_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (address, asked) = overloaded().await;
    let traffic = Traffic::default();
    let options = options(kubeconfig(&folder, &address.to_string()), Some("lab"));
    let client = connect(&options, &traffic).await.unwrap();
    let error = Api::<ConfigMap>::namespaced(client, "fleet")
        .get("values")
        .await
        .unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error}")
    };
    assert_eq!((status.code, status.message.as_str()), (503, "operator/1"));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "kube's own retry is off");
    let labels = RequestLabels {
        verb: "get",
        resource: "configmaps".to_owned(),
        code: 503,
    };
    assert_eq!(traffic.count(&labels), 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_told_with_the_call_and_the_limit() {
    let answer = || async { vec![b' '; OBJECT_LIMIT + 1] };
    let error = read(Router::new().fallback(answer)).await;
    assert!(
        matches!(OutOfBounds::of(&error), Some(OutOfBounds::TooLarge { .. })),
        "{error}"
    );
    let words = "the API server's answer to get /api/v1/namespaces/fleet/configmaps/values has more than 8388608 bytes; what it shows \
                 must be smaller";
    assert!(chain(&error).ends_with(words), "{}", chain(&error));
}

#[tokio::test]
async fn an_answer_without_end_is_read_no_further_than_its_limit() {
    const PIECE: usize = 64 << 10;
    let pieces = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&pieces);
    let answer = move || {
        let counter = Arc::clone(&counter);
        let piece = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Infallible>(vec![b' '; PIECE])
        };
        async move { Body::from_stream(stream::repeat_with(piece)) }
    };
    let error = read(Router::new().fallback(answer)).await;
    assert!(
        matches!(OutOfBounds::of(&error), Some(OutOfBounds::TooLarge { .. })),
        "{error}"
    );
    // The system keeps some of what is sent for a reader.
    let sent = pieces.load(Ordering::SeqCst) * PIECE;
    assert!(sent < 4 * OBJECT_LIMIT, "{sent} bytes");
}

#[tokio::test]
async fn a_server_that_takes_a_request_and_is_silent_is_not_waited_for() {
    let asked = Arc::new(Notify::new());
    let asking = Arc::clone(&asked);
    let silence = move || {
        asking.notify_one();
        std::future::pending::<()>()
    };
    let reading = tokio::spawn(read(Router::new().fallback(silence)));
    asked.notified().await;
    // From here on time passes at once.
    tokio::time::pause();
    let error = chain(&reading.await.unwrap());
    let words = "the API server did not answer get /api/v1/namespaces/fleet/configmaps/values within 30 s; look at its load, and at the \
                 network on the way";
    assert!(error.ends_with(words), "{error}");
}

#[tokio::test]
async fn an_api_server_that_is_not_there_is_counted_as_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let traffic = Traffic::default();
    let client = connect(&options(kubeconfig(&folder, &address), None), &traffic)
        .await
        .unwrap();
    let error = Api::<ConfigMap>::namespaced(client, "fleet")
        .get("values")
        .await
        .unwrap_err();
    assert_eq!(crate::failure::class_of(&error), crate::failure::Class::Transient);
    let labels = RequestLabels {
        verb: "get",
        resource: "configmaps".to_owned(),
        code: 0,
    };
    assert_eq!(traffic.count(&labels), 1);
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let there = kubeconfig(&folder, "127.0.0.1:1");
    for (path, context) in [(missing, None), (there, Some("no-such-context"))] {
        let text = path.display().to_string();
        let error = connect(&options(path, context), &Traffic::default())
            .await
            .err()
            .unwrap();
        assert!(error.to_string().contains(&text), "{error}");
    }
}
