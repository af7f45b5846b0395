//! A server that writes to its connections what no honest one would, byte for byte.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::interval,
};

/// More than any question has here.
const LONGEST_HEAD: usize = 64 << 10;

/// What whoever asks gets.
pub(super) enum Reply {
    /// These bytes, and the end.
    Says(Vec<u8>),
    /// The first, and the second again and again, as fast as they are taken.
    Floods(Vec<u8>, Vec<u8>),
    /// The first, and one byte a second for ever.
    Drips(Vec<u8>),
    /// Nothing.
    Silence,
}

impl Reply {
    /// A whole answer of HTTP with these lines in its head.
    pub(super) fn answer(status: &str, lines: &[&str], body: &[u8]) -> Self {
        let length = format!("content-length: {}", body.len());
        Self::Says([head(status, &[lines, &[&length]].concat()), body.to_vec()].concat())
    }
}

/// The head of an answer that ends with its connection.
pub(super) fn head(status: &str, lines: &[&str]) -> Vec<u8> {
    let lines = [&["connection: close"][..], lines, &["", ""]].concat().join("\r\n");
    format!("HTTP/1.1 {status}\r\n{lines}").into_bytes()
}

type Behaviour = dyn Fn(&str) -> Reply + Send + Sync;

/// A running server. Dropped, it closes every connection.
pub(super) struct HostileServer {
    port: u16,
    /// How many connections get something slowly, or nothing.
    holding: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl HostileServer {
    /// Starts one that says this to a target (path and query).
    pub(super) async fn start(behaviour: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("failed to open the port of a hostile server")?;
        let port = listener.local_addr().context("failed to read a port")?.port();
        let holding = Arc::<AtomicUsize>::default();
        let accepting = tokio::spawn(accept(listener, Arc::new(behaviour), Arc::clone(&holding)));
        Ok(Self {
            port,
            holding,
            accepting: accepting.abort_handle(),
        })
    }

    /// Host and port.
    pub(super) fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many connections it keeps waiting now.
    pub(super) fn holding(&self) -> usize {
        self.holding.load(Ordering::SeqCst)
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, behaviour: Arc<Behaviour>, holding: Arc<AtomicUsize>) {
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (behaviour, holding) = (Arc::clone(&behaviour), Arc::clone(&holding));
        // Whoever hangs up has heard enough.
        connections.spawn(async move { serve(stream, &*behaviour, &holding).await.unwrap_or_default() });
    }
}

async fn serve(mut stream: TcpStream, behaviour: &Behaviour, holding: &Arc<AtomicUsize>) -> io::Result<()> {
    let target = target(&mut stream).await?;
    match behaviour(&target) {
        Reply::Says(bytes) => stream.write_all(&bytes).await?,
        Reply::Floods(start, again) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
        Reply::Drips(start) => {
            let _held = Held::new(holding);
            stream.write_all(&start).await?;
            let mut second = interval(Duration::from_secs(1));
            loop {
                second.tick().await;
                stream.write_all(b"x").await?;
            }
        }
        Reply::Silence => {
            let _held = Held::new(holding);
            // Until he hangs up.
            while stream.read(&mut [0; 16]).await? > 0 {}
        }
    }
    stream.shutdown().await
}

/// What is asked for: the second word of a question.
async fn target(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await?;
        head.push(byte);
        if head.len() > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let text = String::from_utf8_lossy(&head);
    Ok(text.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// A connection that is kept waiting.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
