use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Waits, in time that passes at once, until the server has ended every one of these connections.
pub(crate) async fn are_ended(streams: Vec<impl AsyncRead + Unpin>) {
    tokio::time::pause();
    let ended = async {
        for mut stream in streams {
            // An end without TLS's farewell is an error of TLS, and an end all the same.
            assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or_default(), 0);
        }
    };
    timeout(Duration::from_mins(3), ended).await.unwrap();
    tokio::time::resume();
}

#[tokio::test]
async fn no_more_connections_than_there_may_be_are_served_at_once() {
    let service = Service {
        handshake: Plain,
        router: Router::new().route("/", get(|| async { "hello" })),
        idle: Duration::from_hours(1),
        drain: DRAIN,
    };
    let cancel = CancellationToken::new();
    let (address, _task) = serve("127.0.0.1:0".parse().unwrap(), service, cancel).await.unwrap();
    let ask = async |stream: &mut TcpStream| {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        stream.read(&mut [0; 1024]).await.unwrap()
    };
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut stream).await > 0);
        kept.push(stream);
    }
    // The system accepts it; nobody answers before there is a place.
    let mut one_more = TcpStream::connect(address).await.unwrap();
    one_more.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(ask(&mut kept[0]).await > 0);
    let nothing = one_more.try_read(&mut [0; 16]).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    drop(kept.pop());
    assert!(one_more.read(&mut [0; 16]).await.unwrap() > 0);
}

#[tokio::test]
async fn whoever_does_not_read_his_answer_gives_his_place_back() {
    // More than the system keeps for a reader.
    const LONG: usize = 64 << 20;
    let asked = Arc::new(tokio::sync::Notify::new());
    let tell = Arc::clone(&asked);
    let answer = move || {
        tell.notify_one();
        std::future::ready(vec![0_u8; LONG])
    };
    let service = Service {
        handshake: Plain,
        router: Router::new().route("/", get(answer)),
        idle: Duration::from_hours(1),
        drain: DRAIN,
    };
    let cancel = CancellationToken::new();
    let (address, _task) = serve("127.0.0.1:0".parse().unwrap(), service, cancel).await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    asked.notified().await;
    tokio::time::pause();
    sleep(WRITE_DEADLINE * 2).await;
    tokio::time::resume();
    // What the system kept comes, and then the end.
    let mut taken = Vec::new();
    let _ = timeout(Duration::from_mins(1), stream.read_to_end(&mut taken))
        .await
        .unwrap();
    assert!(taken.len() < LONG, "{} bytes", taken.len());
}
