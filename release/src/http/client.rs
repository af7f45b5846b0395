//! One server, asked in the name of one set of credentials.

use std::{error::Error, io, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use jiff::Timestamp;
use tokio::time::{self, Instant};
use tracing::field::Empty;
use tracing::{Instrument, Span};
use url::Url;

use super::{
    Body, Credentials, HttpError, Network, Place, Redirects, Response, Stage,
    credentials::{Confidence, Identity},
    hosts::Later,
    network::Unresolved,
    redirect::{self, MAX_REDIRECTS},
    retry_after::{LONGEST_WAIT, retry_after},
};

/// A question to a server. It has no body, so that it can be asked again at another place.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    redirects: Redirects,
}

impl Request {
    /// Asks for what is at this URL.
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            redirects: Redirects::default(),
        }
    }

    /// Asks for the headers alone.
    pub fn head(url: Url) -> Self {
        Self {
            method: Method::HEAD,
            ..Self::get(url)
        }
    }

    /// With this header, instead of another of its name. `Authorization` takes the place of the client's credentials; like every header but
    /// `Accept`, `Range` and `If-Range` it stays behind when the request leaves the server.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Where it may be sent on to.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }
}

/// One server, asked in the name of one set of credentials. Cheap to clone; clones with the same [`Network`] share connections.
#[derive(Clone, Debug)]
pub struct Client {
    network: Network,
    transport: reqwest::Client,
    /// No server is known by any authority: those without TLS can be asked all the same.
    trusts_nobody: bool,
    home: Url,
    authorization: Option<HeaderValue>,
    /// Of this client and of all that were made from it.
    confidence: Confidence,
}

impl Client {
    /// A client of the server of this URL (its path does not matter), which trusts the authorities of this machine and those in
    /// `certificates`, in PEM.
    pub fn new(
        network: &Network,
        home: Url,
        credentials: Option<&Credentials>,
        certificates: Option<&[u8]>,
    ) -> Result<Self, HttpError> {
        let transport = network.transport(certificates)?;
        let client = Self {
            network: network.clone(),
            transport,
            trusts_nobody: certificates.is_none() && network.trusts_nobody(),
            home: home.clone(),
            authorization: None,
            confidence: Confidence::default(),
        };
        client.at(home, credentials)
    }

    /// A client of another server that trusts the same authorities, such as the one that gives out tokens for this one. The credentials of
    /// this one stay here.
    pub fn at(&self, home: Url, credentials: Option<&Credentials>) -> Result<Self, HttpError> {
        self.network.shared.policy.check_url(&home)?;
        self.check_trust(&home)?;
        let authorization = credentials.map(|credentials| credentials.header(&home)).transpose()?;
        if let Some(credentials) = credentials {
            self.confidence.learn(credentials);
        }
        Ok(Self {
            network: self.network.clone(),
            transport: self.transport.clone(),
            trusts_nobody: self.trusts_nobody,
            home,
            authorization,
            confidence: self.confidence.clone(),
        })
    }

    /// The URL that it was made with.
    pub fn home(&self) -> &Url {
        &self.home
    }

    /// The network that it belongs to.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Words of a server, or about it, without the credentials that it was told, in whatever form it repeats them.
    pub fn without_secrets(&self, words: &str) -> String {
        self.confidence.without_secrets(words)
    }

    /// Asks nobody at this server in this name for so long, at most an hour. For what servers say in other ways than `Retry-After`, which
    /// is heeded without this.
    pub fn back_off(&self, wait: Duration) {
        self.silence(&self.home, self.identity(), wait);
    }

    /// Asks, and follows where it may. Ends within the deadline for the head, times the redirects, beside the wait for its turn.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let Request {
            method,
            url,
            mut headers,
            redirects,
        } = request;
        if !redirect::is_same_origin(&url, &self.home) {
            return Err(HttpError::ForeignUrl {
                place: Place::origin(&url),
                home: Place::origin(&self.home),
            });
        }
        if let Some(authorization) = &self.authorization {
            headers
                .entry(header::AUTHORIZATION)
                .or_insert_with(|| authorization.clone());
        }
        headers
            .entry(header::ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        let asked = Place::of(&url);
        let mut identity = self.identity();
        let (mut hop, first) = (url.clone(), url);
        let mut deadline = None;
        for _ in 0..=MAX_REDIRECTS {
            self.network.shared.policy.check_url(&hop)?;
            self.check_trust(&hop)?;
            self.turn(&hop, identity).await?;
            // The wait for the first turn is our own doing.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.network.shared.deadlines.whole);
            let span = span(&method, &hop);
            let exchange = self.exchange(&method, &hop, &headers, identity, &asked);
            let response = exchange.instrument(span.clone()).await.inspect_err(|_| {
                span.record("otel.status_code", "ERROR");
            })?;
            span.record("http.response.status_code", response.status().as_u16());
            let (status, headers_of_answer) = (response.status(), response.headers());
            let Some(next) = redirect::target(status, headers_of_answer, &hop, &first, &redirects)? else {
                return Ok(self.response(response, hop, asked, deadline));
            };
            if !redirect::is_same_origin(&next, &hop) {
                // For good: also if it is sent back, for then a stranger chose what is asked for.
                headers = redirect::harmless(&headers);
                identity = Identity::default();
            }
            hop = next;
        }
        Err(HttpError::TooManyRedirects {
            from: asked,
            limit: MAX_REDIRECTS,
        })
    }

    /// Told before anybody is asked: what TLS would say is that this one server is not known.
    fn check_trust(&self, url: &Url) -> Result<(), HttpError> {
        if self.trusts_nobody && url.scheme() == "https" {
            return Err(HttpError::NoRoots);
        }
        Ok(())
    }

    fn identity(&self) -> Identity {
        Identity::of(self.authorization.as_ref())
    }

    fn response(&self, response: reqwest::Response, url: Url, place: Place, deadline: Instant) -> Response {
        let (parts, inner) = http::Response::<reqwest::Body>::from(response).into_parts();
        Response {
            status: parts.status,
            headers: parts.headers,
            url,
            body: Body {
                inner,
                place,
                shared: Arc::clone(&self.network.shared),
                counters: Arc::clone(&self.network.counters),
                silence: None,
            },
            deadline,
            line: self.network.holder(self.home.host_str().unwrap_or_default()).to_owned(),
        }
    }

    async fn turn(&self, url: &Url, identity: Identity) -> Result<(), HttpError> {
        let Network { shared, asker, .. } = &self.network;
        let turn = shared.hosts.turn(&host_key(url), identity, asker).await;
        turn.map_err(|later| {
            self.network.counters.held_back();
            let place = Place::origin(url);
            match later {
                Later::Told(wait) => HttpError::BackingOff { place, wait },
                Later::Crowded(wait) => HttpError::Busy { place, wait },
            }
        })
    }

    fn silence(&self, url: &Url, identity: Identity, wait: Duration) {
        let hosts = &self.network.shared.hosts;
        hosts.back_off(&host_key(url), identity, wait.min(LONGEST_WAIT));
    }

    /// One request and the head of its answer.
    async fn exchange(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        identity: Identity,
        asked: &Place,
    ) -> Result<reqwest::Response, HttpError> {
        let counters = &self.network.counters;
        counters.asked();
        let request = self
            .transport
            .request(method.clone(), url.clone())
            .headers(headers.clone());
        let after = self.network.shared.deadlines.head;
        let answered = match time::timeout(after, request.send()).await {
            Ok(answered) => answered.map_err(|error| self.failure(url, asked, error)),
            Err(_) => Err(HttpError::TimedOut {
                place: asked.clone(),
                stage: Stage::Head,
                after,
            }),
        };
        let response = answered.inspect_err(|_| counters.failed())?;
        let status = response.status();
        counters.answered(status);
        if (status.is_client_error() || status.is_server_error())
            && let Some(wait) = retry_after(response.headers(), Timestamp::now())
        {
            self.silence(url, identity, wait);
        }
        Ok(response)
    }

    /// What the library's error is, without the URL that it would tell.
    fn failure(&self, url: &Url, asked: &Place, error: reqwest::Error) -> HttpError {
        let place = Place::origin(url);
        if error.is_connect() && error.is_timeout() {
            return HttpError::TimedOut {
                place,
                stage: Stage::Connect,
                after: self.network.shared.deadlines.connect,
            };
        }
        if let Some(unresolved) = find::<Unresolved>(&error) {
            return match unresolved {
                Unresolved::Refused { address, kind } => HttpError::RefusedAddress {
                    place,
                    address: *address,
                    kind: *kind,
                },
                Unresolved::Failed(source) => HttpError::Resolve {
                    place,
                    source: io::Error::new(source.kind(), source.to_string()),
                },
            };
        }
        if let Some(source) = find::<rustls::Error>(&error).cloned() {
            return HttpError::Tls { place, source };
        }
        let error = error.without_url();
        if error.is_connect() {
            return HttpError::Connect {
                place,
                source: error.into(),
            };
        }
        HttpError::Exchange {
            place: asked.clone(),
            source: error,
        }
    }
}

/// One request, within what is done by it. The place alone: what a query or a path holds may be secret where a redirect led.
fn span(method: &Method, url: &Url) -> Span {
    if Span::current().is_none() {
        return Span::none();
    }
    tracing::info_span!(
        "request",
        otel.name = %method,
        otel.kind = "client",
        otel.status_code = Empty,
        server.address = %Place::origin(url),
        http.response.status_code = Empty,
    )
}

/// Hosts are asked at their rate on whatever port and by whatever scheme.
fn host_key(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_end_matches('.').to_owned()
}

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
