//! A plain HTTP client: one connection for each request, closed when the answer is there or the future is dropped. It knows nothing of
//! OpenStack, and trusts one authority.

use std::{io, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures::{Stream, StreamExt, future};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Frame, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time,
};
use tokio_rustls::TlsConnector;
use url::{Position, Url};

/// For one request and its answer.
const DEADLINE: Duration = Duration::from_mins(1);
/// Longest answer that is read.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// What is sent along.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A body of known length.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that comes in pieces. Without a header that says its length it is sent chunked.
pub fn pieces(stream: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(stream.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// All of the body.
    pub body: Bytes,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("no JSON came with {}: {}", self.status, self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// One of the headers, where it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Sends requests one by one.
#[derive(Clone)]
pub struct Client {
    tls: TlsConnector,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client that trusts this authority, in PEM, and no other.
    pub fn new(ca: Option<&str>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca.unwrap_or_default().as_bytes()) {
            let certificate = certificate.context("unable to read the certificate of the authority")?;
            roots.add(certificate).context("unable to trust the authority")?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .context("unable to set up TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// One request. A dropped future closes its connection wherever it stands.
    pub async fn send(&self, method: Method, url: &Url, headers: &[(&str, &str)], body: Body) -> Result<Reply> {
        let what = || format!("{method} {url}");
        let exchange = self.exchange(method.clone(), url, headers, body);
        let answered = time::timeout(DEADLINE, exchange).await;
        answered
            .with_context(|| format!("{} had no answer within a minute", what()))?
            .with_context(what)
    }

    async fn exchange(&self, method: Method, url: &Url, headers: &[(&str, &str)], body: Body) -> Result<Reply> {
        let mut request = Request::builder()
            .method(method)
            .uri(&url[Position::BeforePath..Position::AfterQuery])
            .header(header::HOST, &url[Position::BeforeHost..Position::AfterPort])
            .header(header::CONNECTION, "close");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).context("unable to make a request")?;
        let wire = self.connect(url).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(wire)).await?;
        let answer = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?;
            Ok(Reply {
                status: head.status,
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        // It does the work, and what it has to say the answer says as well.
        let work = async {
            let _ = connection.await;
            future::pending::<()>().await;
        };
        tokio::select! {
            answer = answer => answer,
            () = work => bail!("the connection outlived itself"),
        }
    }

    async fn connect(&self, url: &Url) -> Result<Box<dyn Wire>> {
        let host = url.host_str().context("a URL without a host")?;
        let port = url.port_or_known_default().context("a URL without a port")?;
        let stream = TcpStream::connect((host, port)).await?;
        if url.scheme() != "https" {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(host.to_owned()).context("a host that no certificate can be for")?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }
}
