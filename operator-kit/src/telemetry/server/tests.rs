use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::serving::CONNECTIONS;
use crate::serving::tests::are_ended;

const ANYWHERE: &str = "127.0.0.1:0";

async fn ask(address: SocketAddr, request: &str, accept: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!("{request} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[tokio::test]
async fn ready_names_what_is_missing_until_nothing_is() {
    let readiness = Readiness::default();
    let (watches, lease) = (readiness.gate("watches"), readiness.gate("lease"));
    let cancel = CancellationToken::new();
    let (address, task) = serve_health(ANYWHERE.parse().unwrap(), readiness, None, cancel.clone())
        .await
        .unwrap();
    assert_eq!(
        ask(address, "GET /readyz", "*/*").await,
        (503, "waiting for lease\nwaiting for watches\n".to_owned())
    );
    lease.open();
    let (status, body) = ask(address, "GET /readyz", "application/json").await;
    assert_eq!(
        (status, body.as_str()),
        (503, r#"{"missing":["watches"],"ready":false,"remarks":[]}"#)
    );
    watches.open();
    assert_eq!(ask(address, "GET /readyz", "*/*").await, (200, "ok\n".to_owned()));
    lease.open_but("renewed late");
    let remark = "ok\nlook after lease: renewed late\n".to_owned();
    assert_eq!(
        ask(address, "GET /readyz", "*/*").await,
        (200, remark),
        "it is ready all the same"
    );
    lease.open();
    assert_eq!(ask(address, "GET /readyz", "*/*").await, (200, "ok\n".to_owned()));
    assert_eq!(ask(address, "GET /healthz", "*/*").await, (200, "ok\n".to_owned()));
    cancel.cancel();
    task.await.unwrap();
    assert!(
        TcpStream::connect(address).await.is_err(),
        "a cancelled server listens no more"
    );
}

#[tokio::test]
async fn metrics_are_served_as_open_metrics() {
    let cancel = CancellationToken::new();
    let registry = Arc::new(crate::telemetry::registry());
    let (address, _task) = serve_metrics(ANYWHERE.parse().unwrap(), registry, cancel.clone())
        .await
        .unwrap();
    let (status, body) = ask(address, "GET /metrics", "*/*").await;
    assert_eq!(status, 200);
    assert!(
        body.contains("process_cpu_seconds_total ") && body.ends_with("# EOF\n"),
        "{body}"
    );
    cancel.cancel();
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = TcpListener::bind(ANYWHERE).await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = serve_health(address, Readiness::default(), None, CancellationToken::new())
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn nobody_outside_of_the_pod_changes_the_log_level() {
    for (peer, status) in [
        ("127.0.0.1:1", StatusCode::OK),
        ("[::1]:1", StatusCode::OK),
        ("10.0.0.1:1", StatusCode::FORBIDDEN),
        ("[2001:db8::1]:1", StatusCode::FORBIDDEN),
    ] {
        let (log_level, _layer) = LogLevel::detached("info");
        let from = ConnectInfo(peer.parse().unwrap());
        let answer = set_log_level(State(log_level.clone()), from, "debug".to_owned()).await;
        assert_eq!(answer.status(), status, "{peer}");
        let is_changed = log_level.current().contains("debug");
        assert_eq!(is_changed, status == StatusCode::OK, "{peer}");
    }
}

/// One of health and one of metrics.
async fn both() -> [SocketAddr; 2] {
    let cancel = CancellationToken::new();
    let (health, _) = serve_health(ANYWHERE.parse().unwrap(), Readiness::default(), None, cancel.clone())
        .await
        .unwrap();
    let registry = Arc::new(crate::telemetry::registry());
    let (metrics, _) = serve_metrics(ANYWHERE.parse().unwrap(), registry, cancel)
        .await
        .unwrap();
    [health, metrics]
}

#[tokio::test]
async fn connections_that_are_silent_or_never_end_a_request_give_their_places_back() {
    for (address, path) in both().await.into_iter().zip(["/healthz", "/metrics"]) {
        for beginning in ["", "GET / HTTP/1.1\r\nhost: x\r\nx-drop: "] {
            let mut silent = Vec::new();
            for _ in 0..CONNECTIONS {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(beginning.as_bytes()).await.unwrap();
                silent.push(stream);
            }
            are_ended(silent).await;
        }
        let (status, _) = ask(address, &format!("GET {path}"), "*/*").await;
        assert_eq!(status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let router = Router::new().route("/", get(|_: String| async {}));
    let (address, _task) = serve(ANYWHERE.parse().unwrap(), router, CancellationToken::new())
        .await
        .unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\ni";
    stream.write_all(head).await.unwrap();
    tokio::time::pause();
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 408"), "{answer:?}");
}
