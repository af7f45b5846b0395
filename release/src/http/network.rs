//! What all clients of one process share: what may be reached, who is trusted, how often each host is asked, and what was counted.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{
    AddressKind, HttpError, Rate,
    hosts::{Asker, Hosts},
    lookup::SystemLookup,
    policy::Policy,
    statistics::{Counters, Statistics},
    tls::Roots,
};
use crate::{
    places::Places,
    source::room::{Room, Share},
};

/// Most headers of an answer; together they have at most some 400 KiB, which is a limit of the library beneath.
const MAX_HEADERS: usize = 100;

/// Connections that are kept for the next request, for each host.
const IDLE_CONNECTIONS: usize = 4;
/// How long they are kept: less than servers do, so that none is closed under a request.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// Name and version, as administrators of servers look for in their logs.
const USER_AGENT: &str = concat!("stackwright/", env!("CARGO_PKG_VERSION"));

/// Long answers that are in memory at once, of those one of each line, and besides those that take long.
const LONG_ANSWERS: usize = 2;
const OF_ONE_LINE: usize = 1;
const SLOW_ANSWERS: usize = 2;

/// How long may be waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For name, connection and TLS.
    pub connect: Duration,
    /// For status and headers, from the beginning of the request.
    pub head: Duration,
    /// Between two chunks of a body.
    pub idle: Duration,
    /// For an answer that is read into memory, from the beginning of the request with all redirects.
    pub whole: Duration,
    /// For one of the few long answers, which goes on as a slow one after that.
    pub quick: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            whole: Duration::from_mins(1),
            quick: Duration::from_secs(5),
        }
    }
}

/// A future that owns nothing but what it borrows.
pub type LookupFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// How names become addresses. What it says is checked before anything connects.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// The addresses of a name.
    fn lookup<'a>(&'a self, name: &'a str) -> LookupFuture<'a>;
}

/// What an operator may choose. The defaults reach public servers by TLS.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Whether URLs may say `http`. Each client still says for itself whether it wants that, by its URL.
    pub plain_http: bool,
    /// Networks that may be reached though they are not public: loopback, link-local, private, of the cluster.
    pub networks: Vec<IpNet>,
    /// How long may be waited for what.
    pub deadlines: Deadlines,
    /// How often each host may be asked.
    pub rate: Rate,
    /// How names become addresses.
    pub lookup: Arc<dyn Lookup>,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            plain_http: false,
            networks: Vec::new(),
            deadlines: Deadlines::default(),
            rate: Rate::default(),
            lookup: Arc::new(SystemLookup::default()),
        }
    }
}

/// What all clients of one process share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) shared: Arc<Shared>,
    /// Where the requests of this clone are counted.
    pub(super) counters: Arc<Counters>,
    /// On whose behalf this clone asks.
    pub(super) asker: Asker,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) policy: Arc<Policy>,
    pub(super) deadlines: Deadlines,
    pub(super) hosts: Hosts,
    room: Arc<Room>,
    pub(super) long_answers: Places,
    /// By the name under which they are counted.
    counters: Mutex<BTreeMap<&'static str, Arc<Counters>>>,
    lookup: Arc<dyn Lookup>,
    roots: Roots,
    /// The client of all who bring no certificates of their own: they share its connections.
    usual: Option<reqwest::Client>,
}

impl Network {
    /// Reads the certificates that this machine trusts, once: about 150 of them, in milliseconds.
    pub fn new(options: NetworkOptions) -> Result<Self, HttpError> {
        Self::with_roots(options, Roots::load())
    }

    fn with_roots(options: NetworkOptions, roots: Roots) -> Result<Self, HttpError> {
        let NetworkOptions {
            plain_http,
            networks,
            deadlines,
            rate,
            lookup,
        } = options;
        let mut shared = Shared {
            policy: Arc::new(Policy { plain_http, networks }),
            deadlines,
            hosts: Hosts::new(rate),
            room: Arc::default(),
            long_answers: Places::new(LONG_ANSWERS, OF_ONE_LINE, SLOW_ANSWERS),
            counters: Mutex::default(),
            lookup,
            roots,
            usual: None,
        };
        shared.usual = Some(shared.client(None)?);
        let shared = Arc::new(shared);
        let counters = shared.counters("");
        Ok(Self {
            shared,
            counters,
            asker: Asker::default(),
        })
    }

    /// The same network, whose requests are counted under this name. Clients that are made of it keep the name.
    #[must_use]
    pub fn counted_as(&self, name: &'static str) -> Self {
        Self {
            counters: self.shared.counters(name),
            ..self.clone()
        }
    }

    /// The same network, asked on behalf of somebody, who leaves room for others: in the line before each host, and for the lists that are kept of their
    /// sources. Clients that are made of it keep the name.
    #[must_use]
    pub fn asked_by(&self, name: &str) -> Self {
        Self {
            asker: Asker::from(name),
            ..self.clone()
        }
    }

    /// Room for the list of one source, which is of this publisher.
    pub(crate) fn share(&self, publisher: &str) -> Share {
        self.shared.room.share(self.holder(publisher))
    }

    /// On whose account it is what this publisher gives: the asker's, and where nobody in particular asks, the publisher's own.
    pub(super) fn holder<'name>(&'name self, publisher: &'name str) -> &'name str {
        let asker = self.asker.name();
        if asker.is_empty() { publisher } else { asker }
    }

    /// What was counted under this name since the start of the process; nothing is counted twice.
    pub fn statistics_of(&self, name: &'static str) -> Statistics {
        self.shared.counters(name).read()
    }

    /// What was counted under all names.
    pub fn statistics(&self) -> Statistics {
        let counters = self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.values().map(|counters| counters.read()).sum()
    }

    /// Whether there is nobody to vouch for a server of somebody who brings no certificates.
    pub(super) fn trusts_nobody(&self) -> bool {
        self.shared.roots.is_empty()
    }

    /// The library's client for those who trust the usual authorities, and these in PEM.
    pub(super) fn transport(&self, certificates: Option<&[u8]>) -> Result<reqwest::Client, HttpError> {
        match (certificates, &self.shared.usual) {
            (None, Some(usual)) => Ok(usual.clone()),
            (certificates, _) => self.shared.client(certificates),
        }
    }
}

impl Shared {
    fn counters(&self, name: &'static str) -> Arc<Counters> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(counters.entry(name).or_default())
    }

    fn client(&self, certificates: Option<&[u8]>) -> Result<reqwest::Client, HttpError> {
        let resolver = GuardedResolver {
            policy: Arc::clone(&self.policy),
            lookup: Arc::clone(&self.lookup),
        };
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.roots.config(certificates)?)
            .dns_resolver(resolver)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .http1_max_headers(MAX_HEADERS)
            .connect_timeout(self.deadlines.connect)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_CONNECTION)
            .user_agent(USER_AGENT)
            .build()
            .map_err(|source| HttpError::Build { source })
    }
}

/// Gives a connection only addresses that may be reached: between this and connecting nobody asks for the name again.
#[derive(Debug)]
struct GuardedResolver {
    policy: Arc<Policy>,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, lookup) = (Arc::clone(&self.policy), Arc::clone(&self.lookup));
        Box::pin(async move {
            let name = name.as_str();
            let addresses = lookup.lookup(name).await.map_err(Unresolved::Failed)?;
            let mut refused = None;
            let mut allowed = Vec::new();
            for address in addresses {
                match policy.refusal(name, address) {
                    Some(kind) => refused = Some((address, kind)),
                    // The port of the URL takes the place of this one.
                    None => allowed.push(SocketAddr::new(address, 0)),
                }
            }
            match refused {
                Some((address, kind)) if allowed.is_empty() => Err(Unresolved::Refused { address, kind }.into()),
                None if allowed.is_empty() => Err(Unresolved::Failed(io::ErrorKind::NotFound.into()).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// Why a name gave no address; found again in the chain of what the library says.
#[derive(Debug)]
pub(super) enum Unresolved {
    Failed(io::Error),
    Refused { address: IpAddr, kind: AddressKind },
}

impl fmt::Display for Unresolved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => fmt::Display::fmt(error, formatter),
            Self::Refused { address, kind } => write!(formatter, "{address} is not public ({kind})"),
        }
    }
}

impl Error for Unresolved {}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use url::Url;

    use super::*;
    use crate::http::{Client, Redirects, Request};

    /// Answers one question with this head and nothing else.
    async fn server(head: &'static str) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/disk", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a question");
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(head.as_bytes()).await;
        });
        url.parse().expect("a URL")
    }

    fn trusts_nobody() -> Network {
        let options = NetworkOptions {
            plain_http: true,
            networks: vec!["127.0.0.0/8".parse().expect("a network")],
            ..NetworkOptions::default()
        };
        Network::with_roots(options, Roots::none()).expect("a network")
    }

    #[tokio::test]
    async fn who_trusts_nobody_reads_without_tls_and_is_told_so_where_there_is_some() {
        let network = trusts_nobody();
        let url = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let client = Client::new(&network, url.clone(), None, None).expect("a client");
        let answer = client.send(Request::get(url)).await.expect("an answer");
        assert!(answer.status().is_success());
        let secure: Url = "https://images.example/disk".parse().expect("a URL");
        let refused = Client::new(&network, secure, None, None);
        assert!(matches!(refused, Err(HttpError::NoRoots)), "{refused:?}");
        let away =
            server("HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/disk\r\nContent-Length: 0\r\n\r\n").await;
        let client = Client::new(&network, away.clone(), None, None).expect("a client");
        let refused = client.send(Request::get(away).redirects(Redirects::Anywhere)).await;
        assert!(matches!(refused, Err(HttpError::NoRoots)), "{refused:?}");
    }
}
