//! A server that answers as told, byte for byte: also what no server should say. One request for each connection.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use release::http::{Lookup, LookupFuture, Network, NetworkOptions, Url};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::{self, JoinHandle},
    time,
};
use tokio_rustls::TlsAcceptor;

/// The names that the certificate of a stub is for; [`Names`] gives them the address of this machine.
pub(crate) const NAMES: &[&str] = &["api.stub.test", "storage.stub.test", "media.api.stub.test"];

/// What a stub was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What a stub does.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Says this and hangs up.
    Says(Vec<u8>),
    /// Says this and nothing more, for ever.
    Hangs(Vec<u8>),
    /// Says the first once and the second for ever, each time after a pause.
    Repeats(Vec<u8>, Vec<u8>, Duration),
}

impl Reply {
    /// A proper answer with its length, and with the word that nothing comes after it: a client that knows asks nothing of a connection which is just then hung up.
    pub(crate) fn of(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines = lines.collect::<Vec<_>>().concat();
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Stub\r\n{lines}Connection: close\r\nContent-Length: {length}\r\n\r\n");
        Self::Says([head.as_bytes(), body].concat())
    }

    pub(crate) fn redirect(to: impl fmt::Display) -> Self {
        Self::of(302, &[("Location", &to.to_string())], "")
    }
}

/// The authority that signs for all stubs of this process.
struct Authority {
    pem: String,
    acceptor: TlsAcceptor,
}

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(authority, key);
    let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(names)
        .unwrap()
        .signed_by(&server_key, &issuer)
        .unwrap();
    let chain = vec![CertificateDer::from(server.der().to_vec())];
    let private = PrivateKeyDer::try_from(server_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .unwrap();
    Authority {
        pem,
        acceptor: TlsAcceptor::from(Arc::new(config)),
    }
});

/// The certificate, in PEM, of the authority that signs for all stubs.
pub(crate) fn authority() -> &'static [u8] {
    AUTHORITY.pem.as_bytes()
}

/// Resolves names as a test says, one address after the other at each look, and all others to this machine.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<String, Vec<IpAddr>>>);

impl Names {
    pub(crate) fn of(name: &str, addresses: &[&str]) -> Self {
        let addresses = addresses.iter().rev().map(|address| address.parse().unwrap()).collect();
        Self(Mutex::new(BTreeMap::from([(name.to_owned(), addresses)])))
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> LookupFuture<'a> {
        let mut names = self.0.lock().unwrap();
        let given = names
            .get_mut(name)
            .map(|addresses| addresses.pop().into_iter().collect());
        Box::pin(async move { Ok(given.unwrap_or_else(|| vec![Ipv4Addr::LOCALHOST.into()])) })
    }
}

/// A network that reaches stubs: this machine, by any name.
pub(crate) fn options() -> NetworkOptions {
    NetworkOptions {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        lookup: Arc::new(Names::default()),
        ..NetworkOptions::default()
    }
}

pub(crate) fn network() -> Network {
    Network::new(options()).unwrap()
}

/// A server, until it is dropped.
pub(crate) struct Stub {
    address: SocketAddr,
    scheme: &'static str,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Stub {
    /// With TLS.
    pub(crate) async fn new(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start("https", answer).await
    }

    /// Without TLS.
    pub(crate) async fn plain(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start("http", answer).await
    }

    async fn start(scheme: &'static str, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        let serving = task::spawn(async move {
            let mut connections = task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                connections.spawn(async move {
                    if scheme == "http" {
                        serve(stream, &log, &*answer).await;
                    } else if let Ok(stream) = AUTHORITY.acceptor.accept(stream).await {
                        serve(stream, &log, &*answer).await;
                    }
                });
            }
        });
        Self {
            address,
            scheme,
            asked,
            serving,
        }
    }

    /// Returns when nobody answers at its address any more.
    pub(crate) async fn close(mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }

    /// The URL of a path by a name of the stub.
    pub(crate) fn at(&self, name: &str, path: &str) -> Url {
        let text = format!("{}://{name}:{}{path}", self.scheme, self.address.port());
        Url::parse(&text).unwrap()
    }

    /// The URL of a path by its first name.
    pub(crate) fn url(&self, path: &str) -> Url {
        self.at(NAMES[0], path)
    }

    /// What it was asked until now, and forgets it.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// The paths and queries that it was asked for until now, and forgets them.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.target).collect()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    log: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked) -> Reply + Send + Sync),
) {
    let Some(asked) = read(&mut stream).await else { return };
    log.lock().unwrap().push(asked.clone());
    // Whoever hangs up on us has heard enough.
    match answer(&asked) {
        Reply::Says(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Hangs(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            std::future::pending::<()>().await;
        }
        Reply::Repeats(first, then, pause) => {
            let mut next = stream.write_all(&first).await;
            while next.is_ok() && stream.flush().await.is_ok() {
                time::sleep(pause).await;
                next = stream.write_all(&then).await;
            }
        }
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8(head).unwrap();
    let mut lines = text.lines();
    let mut words = lines.next().unwrap().split(' ');
    let (method, target) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    Some(Asked {
        method,
        target,
        headers,
    })
}
