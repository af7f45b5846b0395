use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use tempfile::TempDir;

use super::*;

/// Starts an API server that refuses everything, and counts.
async fn overloaded() -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let router = Router::new().fallback(move |headers: HeaderMap| {
        counter.fetch_add(1, Ordering::SeqCst);
        let user_agent = headers[USER_AGENT].to_str().unwrap_or_default().to_owned();
        async move { (StatusCode::SERVICE_UNAVAILABLE, user_agent) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked)
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
