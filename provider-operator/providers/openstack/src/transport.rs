//! The one place that speaks HTTP: connections, TLS, addresses, deadlines. It knows neither tokens nor images, follows no redirect, and repeats
//! nothing.

mod trust;

use std::{
    error::Error,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use provider_plugin::{Addresses, ByteStream, CloudError, ContentStream, ErrorClass, Requests, SourceError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{self, Instant};
use url::{Host, Url};

use crate::{answer, clouds::Tls, confidence};

/// For name, connection and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// For a call and its answer.
const WHOLE: Duration = Duration::from_secs(30);
/// Between two pieces of an image that is read.
const IDLE: Duration = Duration::from_mins(1);
/// Longest answer that is read into memory, in bytes.
const LONGEST: usize = 1024 * 1024;
/// Longest that an answer is read which only says what is wrong.
const LONGEST_COMPLAINT: usize = 64 * 1024;

/// Connections that are kept for the next call, for each service, and how long: less than servers do.
const IDLE_CONNECTIONS: usize = 4;
const IDLE_CONNECTION: Duration = Duration::from_secs(10);
/// Most headers of an answer.
const MAX_HEADERS: usize = 100;

/// Name and version, as operators of clouds look for in their logs.
const USER_AGENT: &str = concat!("stackwright/", env!("CARGO_PKG_VERSION"));

/// The token of a call.
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// One call, whose body is small.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// What it is for, to read after "unable to".
    pub(crate) operation: &'static str,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) token: Option<&'a SecretString>,
    /// The media type and the body.
    pub(crate) body: Option<(&'static str, Bytes)>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// As an error; `secrets` are what the answer may repeat and nobody is to read.
    pub(crate) fn error(&self, operation: &'static str, secrets: &[&SecretString]) -> CloudError {
        let words = answer::words(&self.headers, &self.body);
        answer::of_words(
            operation,
            self.status,
            &self.headers,
            &confidence::without(&words, secrets),
        )
    }
}

/// Connections to one cloud.
#[derive(Clone, Debug)]
pub struct Transport {
    client: reqwest::Client,
    addresses: Arc<dyn Addresses>,
    /// Who is told of requests, if anybody.
    requests: Option<Arc<dyn Requests>>,
}

impl Transport {
    /// Trusts the authorities of this machine and those that are given. Connects to nothing yet.
    pub fn new(tls: &Tls, addresses: Arc<dyn Addresses>) -> Result<Self, CloudError> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(trust::config(tls)?)
            .dns_resolver(Arc::new(Resolver(Arc::clone(&addresses))))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .http1_max_headers(MAX_HEADERS)
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_CONNECTION)
            .user_agent(USER_AGENT);
        // The library has the kernel end a connection whose other end takes nothing for thirty seconds, as if there were none. How long a cloud may take is
        // for each call to say, and is said everywhere.
        #[cfg(target_os = "linux")]
        let client = client.tcp_user_timeout(None::<Duration>);
        let client = client.build().map_err(|error| {
            let words = "the HTTP client could not be made";
            CloudError::new(ErrorClass::Invalid, "set up the connection to the cloud", words).because(error)
        })?;
        Ok(Self {
            client,
            addresses,
            requests: None,
        })
    }

    /// The same, and tells of every request.
    #[must_use]
    pub fn counted(self, requests: Arc<dyn Requests>) -> Self {
        Self {
            requests: Some(requests),
            ..self
        }
    }

    /// What came of a request, which somebody is told.
    async fn told<T>(
        &self,
        operation: &'static str,
        request: impl Future<Output = Result<T, CloudError>>,
        status: impl FnOnce(&T) -> StatusCode,
    ) -> Result<T, CloudError> {
        let begun = Instant::now();
        let came = request.await;
        if let Some(requests) = &self.requests {
            let status = came.as_ref().ok().map(|answer| status(answer).as_u16());
            requests.answered(operation, status, begun.elapsed());
        }
        came
    }

    /// One call, within 30 seconds.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Answer, CloudError> {
        let (operation, place) = (call.operation, origin(&call.url));
        let exchanged = async {
            let answered = time::timeout(WHOLE, self.exchange(call)).await;
            answered.unwrap_or_else(|_| {
                let words = format!("{place} gave no whole answer within {} seconds", WHOLE.as_secs());
                Err(CloudError::new(ErrorClass::Unavailable, operation, words))
            })
        };
        self.told(operation, exchanged, |answer| answer.status).await
    }

    async fn exchange(&self, call: Call<'_>) -> Result<Answer, CloudError> {
        let operation = call.operation;
        let place = origin(&call.url);
        let is_read = call.method == Method::GET;
        let token = call.token;
        let mut request = self.request(operation, call.method, call.url, token)?;
        if let Some((kind, body)) = call.body {
            request = request.header(header::CONTENT_TYPE, kind).body(body);
        }
        let broken = if is_read {
            ErrorClass::Unavailable
        } else {
            ErrorClass::Unknown
        };
        let response = request
            .send()
            .await
            .map_err(|error| failure(operation, &place, broken, error))?;
        collected(operation, &place, broken, token, response).await
    }

    /// Sends an image. Nothing bounds how long it takes: whoever calls watches that bytes move. What is wrong with the content itself is
    /// told by the content; here it is a request that broke.
    pub(crate) async fn put(
        &self,
        operation: &'static str,
        url: Url,
        token: &SecretString,
        headers: HeaderMap,
        length: Option<u64>,
        body: ContentStream,
    ) -> Result<Answer, CloudError> {
        let place = origin(&url);
        let mut request = self.request(operation, Method::PUT, url, Some(token))?.headers(headers);
        if let Some(length) = length {
            request = request.header(header::CONTENT_LENGTH, length);
        }
        let request = request
            .header(header::CONTENT_TYPE, "application/octet-stream")
            // An answer may come before all of the body was read. What then becomes of the rest differs from server to server, and the next
            // call on this connection would meet it.
            .header(header::CONNECTION, "close")
            .body(reqwest::Body::wrap_stream(body));
        let unknown = ErrorClass::Unknown;
        let sent = async {
            let response = request
                .send()
                .await
                .map_err(|error| failure(operation, &place, unknown, error))?;
            collected(operation, &place, unknown, Some(token), response).await
        };
        self.told(operation, sent, |answer| answer.status).await
    }

    /// Begins to read an image: its bytes, or the answer that is given instead.
    pub(crate) async fn read(
        &self,
        operation: &'static str,
        url: Url,
        token: &SecretString,
    ) -> Result<Result<ByteStream, Answer>, CloudError> {
        let place = origin(&url);
        let request = self.request(operation, Method::GET, url, Some(token))?;
        let unavailable = ErrorClass::Unavailable;
        let begun = async {
            let response = request
                .send()
                .await
                .map_err(|error| failure(operation, &place, unavailable, error))?;
            if response.status() == StatusCode::OK {
                return Ok(Ok(pieces(place.clone(), response)));
            }
            collected(operation, &place, unavailable, Some(token), response)
                .await
                .map(Err)
        };
        let in_time = async {
            time::timeout(WHOLE, begun).await.unwrap_or_else(|_| {
                let words = format!("{place} did not begin to answer within {} seconds", WHOLE.as_secs());
                Err(CloudError::new(unavailable, operation, words))
            })
        };
        // Of the bytes of an image only the beginning is waited for here.
        let status =
            |begun: &Result<ByteStream, Answer>| begun.as_ref().map_or_else(|answer| answer.status, |_| StatusCode::OK);
        self.told(operation, in_time, status).await
    }

    fn request(
        &self,
        operation: &'static str,
        method: Method,
        url: Url,
        token: Option<&SecretString>,
    ) -> Result<reqwest::RequestBuilder, CloudError> {
        let refused = |words: &str| CloudError::new(ErrorClass::Invalid, operation, words);
        // Names are looked at when they are resolved; an address is never.
        if let Some(address) = literal(&url) {
            let host = url.host_str().unwrap_or_default();
            self.addresses.allows(host, address).map_err(|words| refused(&words))?;
        }
        let mut request = self.client.request(method, url);
        if let Some(token) = token {
            let value = HeaderValue::from_str(token.expose_secret());
            let mut value = value.map_err(|_| refused("the token has characters that no header can carry"))?;
            value.set_sensitive(true);
            request = request.header(TOKEN, value);
        }
        Ok(request)
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

/// Scheme, host and port: all that is told of a URL.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

async fn collected(
    operation: &'static str,
    place: &str,
    broken: ErrorClass,
    token: Option<&SecretString>,
    response: reqwest::Response,
) -> Result<Answer, CloudError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let is_complaint = !status.is_success();
    let mut body = BytesMut::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        // A complaint that breaks off, or never ends, still says what is wrong.
        let piece = match piece {
            Ok(piece) => piece,
            Err(_) if is_complaint => break,
            Err(error) => return Err(failure(operation, place, broken, error)),
        };
        body.extend_from_slice(&piece);
        if is_complaint && body.len() > LONGEST_COMPLAINT {
            break;
        }
        if body.len() > LONGEST {
            let words = format!("the answer of {place} has more than {LONGEST} bytes");
            return Err(CloudError::new(ErrorClass::Unavailable, operation, words));
        }
    }
    let mut body = body.freeze();
    if let Some(token) = token.filter(|_| is_complaint) {
        body = Bytes::from(confidence::without(&String::from_utf8_lossy(&body), &[token]));
    }
    Ok(Answer { status, headers, body })
}

/// The bytes of an image, none of which takes longer than a minute.
fn pieces(place: String, response: reqwest::Response) -> ByteStream {
    let broken = |words: String| SourceError::new(ErrorClass::Unavailable, words);
    let stream = response.bytes_stream();
    let pieces = futures::stream::unfold(Some((stream, place)), move |reading| async move {
        let (mut stream, place) = reading?;
        match time::timeout(IDLE, stream.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(bytes))) => Some((Ok(bytes), Some((stream, place)))),
            Ok(Some(Err(error))) => {
                let error = broken(format!("the answer of {place} broke off")).because(error.without_url());
                Some((Err(error), None))
            }
            Err(_) => {
                let words = format!("{place} sent nothing for {} seconds", IDLE.as_secs());
                Some((Err(broken(words)), None))
            }
        }
    });
    pieces.boxed()
}

/// What the library's error is. `broken` is the class of what broke when it had begun.
fn failure(operation: &'static str, place: &str, broken: ErrorClass, error: reqwest::Error) -> CloudError {
    if let Some(Refused(words)) = find::<Refused>(&error) {
        return CloudError::new(ErrorClass::Invalid, operation, words);
    }
    let (class, words) = if let Some(rustls::Error::AlertReceived(alert)) = find(&error) {
        let words = format!(
            "{place} does not speak with us ({alert:?}); if it asks for a certificate of ours, put that and its key into the Secret under \
             the keys cert and key"
        );
        (ErrorClass::Unavailable, words)
    } else if find::<rustls::Error>(&error).is_some() {
        let words = format!(
            "{place} cannot be trusted; if its certificate is signed by an authority of your own, put that authority's certificate into \
             the Secret under the key cacert"
        );
        (ErrorClass::Unavailable, words)
    } else if error.is_connect() || error.is_timeout() {
        let words =
            format!("no connection to {place} came about; look at the address in clouds.yaml, and at the network");
        (ErrorClass::Unavailable, words)
    } else {
        (
            broken,
            format!("the connection to {place} broke before its answer was there"),
        )
    };
    CloudError::new(class, operation, words).because(error.without_url())
}

/// Gives a connection only addresses that may be reached: between this and connecting nobody asks for the name again.
#[derive(Debug)]
struct Resolver(Arc<dyn Addresses>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = Arc::clone(&self.0);
        Box::pin(async move {
            let name = name.as_str();
            let found = tokio::net::lookup_host((name, 0)).await?;
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in found {
                match addresses.allows(name, address.ip()) {
                    // The port of the URL takes the place of this one.
                    Ok(()) => allowed.push(SocketAddr::new(address.ip(), 0)),
                    Err(words) => refused = Some(words),
                }
            }
            match refused {
                Some(words) if allowed.is_empty() => Err(Refused(words).into()),
                None if allowed.is_empty() => Err(io::Error::from(io::ErrorKind::NotFound).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// Why a name gave no address; found again in the chain of what the library says.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Refused {}

/// An error of this type in the chain, also inside of errors of input and output, which do not tell of it otherwise.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        current = match inside {
            Some(inside) => Some(inside as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}
