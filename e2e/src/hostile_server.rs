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
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::interval,
};
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;

/// More than any question has here.
const LONGEST_HEAD: usize = 64 << 10;

/// What somebody asks.
pub struct Question {
    /// Path and query.
    pub target: String,
    /// All that came, up to the empty line.
    pub head: String,
}

/// What whoever asks gets.
pub enum Reply {
    /// These bytes, and the end.
    Says(Vec<u8>),
    /// The first, and the second again and again, as fast as they are taken.
    Floods(Vec<u8>, Vec<u8>),
    /// The first, and one byte a second for ever.
    Drips(Vec<u8>),
    /// These bytes, and nothing more for ever, as who has no news for a watch.
    Holds(Vec<u8>),
    /// Nothing.
    Silence,
}

impl Reply {
    /// A whole answer of HTTP with these lines in its head.
    pub fn answer(status: &str, lines: &[&str], body: &[u8]) -> Self {
        let length = format!("content-length: {}", body.len());
        Self::Says([head(status, &[lines, &[&length]].concat()), body.to_vec()].concat())
    }
}

/// The head of an answer that ends with its connection.
pub fn head(status: &str, lines: &[&str]) -> Vec<u8> {
    let lines = [&["connection: close"][..], lines, &["", ""]].concat().join("\r\n");
    format!("HTTP/1.1 {status}\r\n{lines}").into_bytes()
}

type Behaviour = dyn Fn(&Question) -> Reply + Send + Sync;

/// A running server. Dropped, it closes every connection.
pub struct HostileServer {
    port: u16,
    /// How many questions came.
    asked: Arc<AtomicUsize>,
    /// How many connections get something slowly, or nothing.
    holding: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl HostileServer {
    /// Starts one that says this to a target (path and query).
    pub async fn start(behaviour: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Result<Self> {
        Self::listen(None, move |question| behaviour(&question.target)).await
    }

    /// Starts one that speaks TLS; with it comes the authority in PEM whose certificate it shows.
    pub async fn start_tls(behaviour: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Result<(Self, String)> {
        let authority = Authority::new()?;
        let acceptor = authority.sign()?.acceptor()?;
        Ok((Self::listen(Some(acceptor), behaviour).await?, authority.pem))
    }

    async fn listen(
        tls: Option<TlsAcceptor>,
        behaviour: impl Fn(&Question) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("failed to open the port of a hostile server")?;
        let port = listener.local_addr().context("failed to read a port")?.port();
        let served = Served {
            tls,
            behaviour: Box::new(behaviour),
            asked: Arc::default(),
            holding: Arc::default(),
        };
        let (asked, holding) = (Arc::clone(&served.asked), Arc::clone(&served.holding));
        let accepting = tokio::spawn(accept(listener, Arc::new(served)));
        Ok(Self {
            port,
            asked,
            holding,
            accepting: accepting.abort_handle(),
        })
    }

    /// How many questions came to it.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Host and port.
    pub fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many connections it keeps waiting now.
    pub fn holding(&self) -> usize {
        self.holding.load(Ordering::SeqCst)
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What its connections share.
struct Served {
    tls: Option<TlsAcceptor>,
    behaviour: Box<Behaviour>,
    asked: Arc<AtomicUsize>,
    holding: Arc<AtomicUsize>,
}

async fn accept(listener: TcpListener, served: Arc<Served>) {
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let served = Arc::clone(&served);
        // Whoever hangs up has heard enough.
        connections.spawn(async move { served.meet(stream).await.unwrap_or_default() });
    }
}

impl Served {
    async fn meet(&self, stream: TcpStream) -> io::Result<()> {
        match &self.tls {
            Some(tls) => self.serve(tls.accept(stream).await?).await,
            None => self.serve(stream).await,
        }
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let question = question(&mut stream).await?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        match (self.behaviour)(&question) {
            Reply::Says(bytes) => stream.write_all(&bytes).await?,
            Reply::Floods(start, again) => {
                stream.write_all(&start).await?;
                loop {
                    stream.write_all(&again).await?;
                }
            }
            Reply::Drips(start) => {
                let _held = Held::new(&self.holding);
                stream.write_all(&start).await?;
                let mut second = interval(Duration::from_secs(1));
                loop {
                    second.tick().await;
                    stream.write_all(b"x").await?;
                    stream.flush().await?;
                }
            }
            Reply::Holds(start) => {
                stream.write_all(&start).await?;
                stream.flush().await?;
                self.hold(&mut stream).await?;
            }
            Reply::Silence => self.hold(&mut stream).await?,
        }
        stream.shutdown().await
    }

    /// Until whoever asked hangs up.
    async fn hold(&self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let _held = Held::new(&self.holding);
        while stream.read(&mut [0; 16]).await? > 0 {}
        Ok(())
    }
}

/// What is asked: the target is the second word. What comes with it is read as well: who closes a connection with something unread takes the answer away.
async fn question(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Question> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await?;
        head.push(byte);
        if head.len() > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut content = stream.take(length(&head));
    tokio::io::copy(&mut content, &mut tokio::io::sink()).await?;
    Ok(Question {
        target: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        head,
    })
}

/// How much comes with a question.
fn length(head: &str) -> u64 {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, length)| length.trim().parse().ok());
    length.unwrap_or_default()
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
