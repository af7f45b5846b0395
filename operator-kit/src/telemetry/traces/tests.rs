use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracing::Instrument;
use tracing::subscriber::set_default;
use tracing_subscriber::layer::SubscriberExt;

use super::*;
use crate::telemetry::logging::traced;
use crate::told::Told;

#[test]
fn collectors_are_urls_of_http_without_a_user() {
    let table = [
        ("http://collector:4318", Some("http://collector:4318/v1/traces")),
        ("http://collector:4318/", Some("http://collector:4318/v1/traces")),
        (
            "https://otlp.example.org/tenant/v1/traces",
            Some("https://otlp.example.org/tenant/v1/traces"),
        ),
        ("collector:4317", None),
        ("grpc://collector:4317", None),
        ("http://", None),
        ("http://me:secret@collector:4318", None),
        ("http://collector:4318/?key=secret", None),
        ("", None),
    ];
    for (given, expected) in table {
        let parsed = Collector::parse(given).map(|collector| collector.to_string());
        assert_eq!(parsed.as_deref().ok(), expected, "{given}");
        if let Err(error) = parsed {
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}

/// One request: its head and its body.
async fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request is whole");
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap()
        .parse::<usize>()
        .unwrap();
    while bytes.len() < end + length {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request is whole");
    }
    (head, bytes.split_off(end))
}

fn started(listener: &TcpListener) -> Traces {
    let collector = format!("http://{}", listener.local_addr().unwrap());
    Traces::start(&Collector::parse(&collector).unwrap(), "core-operator", "1").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_the_collector_with_their_fields_and_their_trace_at_the_latest_when_the_process_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let traces = started(&listener);
    let subscriber = tracing_subscriber::registry().with(traced(&traces));
    let inside = {
        let _guard = set_default(subscriber);
        assert_eq!(trace_id(), None, "no span, no trace");
        let outer = tracing::info_span!("reconcile", name = "harbor");
        let _outer = outer.enter();
        tracing::info_span!("request", peer.service = "kubernetes").in_scope(trace_id)
    };
    let taking = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let taken = request(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        taken
    };
    let ((head, body), ()) = tokio::join!(taking, traces.end());
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    for text in ["reconcile", "harbor", "request", "peer.service", "core-operator"] {
        assert!(has(text.as_bytes()), "{text}");
    }
    let trace = inside.expect("a span has a trace");
    assert!(has(&hex::decode(trace).unwrap()), "the id of logs is that of the spans");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_does_not_keep_the_process() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let traces = started(&listener);
    let subscriber = tracing_subscriber::registry().with(traced(&traces));
    {
        let _guard = set_default(subscriber);
        async {}.instrument(tracing::info_span!("reconcile")).await;
    }
    let (silent, ()) = tokio::join!(listener.accept(), traces.end());
    assert!(
        silent.is_ok(),
        "it was asked, and the process ends though it said nothing"
    );
}

#[tokio::test]
async fn a_collector_that_is_away_is_told_once_and_once_more_when_it_is_back() {
    let collector = Collector::parse("http://collector:4318").unwrap();
    let courier = Courier {
        client: Client::builder(TokioExecutor::new()).build(collector.connector().unwrap()),
        runtime: Handle::current(),
        collector: collector.to_string(),
        lost: Arc::default(),
    };
    let told = Told::begin();
    for trouble in [Some("refused"), Some("refused"), None, None] {
        courier.heard(trouble);
    }
    assert_eq!(
        told.lines(),
        [
            "WARN unable to send traces to http://collector:4318/v1/traces; the work goes on without error=\"refused\"",
            "INFO http://collector:4318/v1/traces takes traces again",
        ]
    );
}
