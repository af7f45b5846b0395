//! One request on its way through: judged, passed on, its answer streamed back.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER},
    uri::PathAndQuery,
};
use http_body_util::{BodyExt, Full, Limited, combinators::BoxBody};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use serde_json::json;
use tokio::{sync::watch, time::sleep};

use super::{
    asked::{Asked, Place, Verb, is_watch, value_of, with_pairs},
    delay::{Claimed, Delays},
    instead::Instead,
    past::Standstill,
    storm::{Fault, Interruption, Storm},
    strike::{Ledger, Point, Verdict, is_write},
    watching::{Shared, Watching},
    weather::Weather,
};
use crate::control_plane::Access;

/// The annotation that somebody else writes just before a write that is to be refused as a conflict. Worlds are compared without it.
pub const MEDDLED: &str = "e2e.stackwright/meddled";
/// The API server takes no request larger than 3 MiB.
const REQUEST_LIMIT: usize = 4 * 1024 * 1024;

pub(super) type Body = BoxBody<Bytes, io::Error>;

/// An answer, or an error that closes the connection without one.
pub(super) type Outcome = io::Result<Response<Body>>;

/// Everything that the proxy's connections share.
#[derive(Debug)]
pub(super) struct Forwarder {
    pub(super) ledger: Ledger,
    pub(super) delays: Delays,
    pub(super) instead: Instead,
    pub(super) weather: watch::Sender<Weather>,
    pub(super) storm: Storm,
    pub(super) standstill: Standstill,
    pub(super) watches: Arc<Shared>,
    meddled: AtomicUsize,
    server: Uri,
    authorization: HeaderValue,
    arrived: AtomicUsize,
    held: AtomicUsize,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Forwarder {
    pub(super) fn new(behind: &Access) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(behind.certificate_authority().as_bytes()) {
            roots
                .add(certificate.context("unable to read a certificate")?)
                .context("unable to trust a certificate")?;
        }
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .build();
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", behind.token()))
            .context("the admin's token does not fit into a header")?;
        authorization.set_sensitive(true);
        Ok(Self {
            ledger: Ledger::default(),
            delays: Delays::default(),
            instead: Instead::default(),
            weather: watch::Sender::default(),
            storm: Storm::default(),
            standstill: Standstill::default(),
            watches: Arc::default(),
            meddled: AtomicUsize::new(0),
            server: behind
                .server()
                .parse()
                .with_context(|| format!("{:?} is not a URL", behind.server()))?,
            authorization,
            arrived: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Outcome {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let weather = *self.weather.borrow();
        if weather == Weather::Hang {
            let mut weather = self.weather.subscribe();
            return self.hold(weather.wait_for(|now| *now != Weather::Hang)).await;
        }
        if let Weather::Slow(lasting) = weather {
            let _held = Held::new(&self.held);
            sleep(lasting).await;
        }
        if let Some(status) = weather.refusal(is_write(&request)) {
            return refuse(status);
        }
        if let Some(said) = self.instead.answer(request.uri().path()) {
            return said.map(|answer| answer.map(filled));
        }
        let verdict = self.ledger.judge(&request);
        let request = received(request).await?;
        match verdict {
            Verdict::Pass => {
                let answer = match self.delays.claim(&request) {
                    Some(claimed) => self.late(request, claimed).await?,
                    None => self.pass(request).await?,
                };
                self.after_stop().await?;
                Ok(answer)
            }
            Verdict::Hold(stopped) => self.hold(released(stopped)).await,
            Verdict::Strike(pending) => {
                if pending.point == Point::AfterCommit {
                    self.committed(request).await?;
                }
                self.hold(released(self.ledger.stop(pending))).await
            }
        }
    }

    /// Passes a request on when that is asked for.
    async fn late(&self, request: Request<Bytes>, claimed: Claimed) -> Outcome {
        let _held = Held::new(&self.held);
        let Ok(told) = claimed.hold().await else {
            return Err(dropped());
        };
        let answer = self.forward(request, None).await?;
        // Nobody may wait for it any more.
        let _ = told.send(answer.status());
        Ok(answer)
    }

    /// Keeps a request waiting and then closes its connection.
    async fn hold<T>(&self, until: impl Future) -> io::Result<T> {
        let _held = Held::new(&self.held);
        until.await;
        Err(dropped())
    }

    pub(super) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// A request that was on its way when the world stopped is not answered either.
    async fn after_stop(&self) -> io::Result<()> {
        match self.ledger.stopped() {
            Some(stopped) => self.hold(released(stopped)).await,
            None => Ok(()),
        }
    }

    /// Does to a request what the storm wants.
    async fn pass(&self, request: Request<Bytes>) -> Outcome {
        let asked = Asked::of(&request);
        if matches!(asked.verb, Verb::Get | Verb::List | Verb::Watch)
            && !asked.is_spared()
            && let Some((version, until)) = self.standstill.now()
        {
            return self.as_it_was(request, &asked, version, Some(until)).await;
        }
        let fault = self.storm.fault(&asked);
        if let Some(Fault::Pause(lasting)) = fault {
            self.watches.pause.begin(lasting);
        }
        self.watches.pause.over().await;
        let answer = self.struck(request, &asked, fault).await;
        self.watches.pause.over().await;
        answer
    }

    async fn struck(&self, request: Request<Bytes>, asked: &Asked, fault: Option<Fault>) -> Outcome {
        match fault {
            None | Some(Fault::Pause(_)) => self.forward(request, None).await,
            Some(Fault::Delay(lasting)) => {
                sleep(lasting).await;
                self.forward(request, None).await
            }
            Some(Fault::Late(lasting)) => {
                let answer = self.committed(request).await?;
                sleep(lasting).await;
                Ok(answer.map(filled))
            }
            Some(Fault::Refuse(status)) => refuse(status),
            Some(Fault::ResetBefore) => Err(dropped()),
            Some(Fault::ResetAfter) => {
                if asked.verb == Verb::Watch {
                    // It would never be complete.
                    self.send(request).await?;
                } else {
                    self.committed(request).await?;
                }
                Err(dropped())
            }
            Some(Fault::FailAfter) => {
                let answer = self.committed(request).await?;
                if answer.status().is_success() {
                    return refuse(StatusCode::INTERNAL_SERVER_ERROR);
                }
                Ok(answer.map(filled))
            }
            Some(Fault::Conflict) => {
                self.meddle(&request).await?;
                self.forward(request, None).await
            }
            Some(Fault::Past(age)) => match self.watches.told.before(age) {
                Some(version) => self.as_it_was(request, asked, version, None).await,
                None => self.forward(request, None).await,
            },
            Some(Fault::Replay(age)) => self.forward(self.further_back(request, age)?, None).await,
            Some(Fault::Interrupt(interruption)) => self.forward(request, Some(interruption)).await,
        }
    }

    /// A watch that begins where an earlier one has been.
    fn further_back(&self, mut request: Request<Bytes>, age: Duration) -> io::Result<Request<Bytes>> {
        let query = request.uri().query().unwrap_or_default();
        let asked = value_of(query, "resourceVersion").and_then(|text| text.parse::<u64>().ok());
        let (Some(asked), Some(told)) = (asked, self.watches.told.before(age)) else {
            return Ok(request);
        };
        if !is_initial(query) && told < asked {
            let query = with_pairs(query, &[("resourceVersion", Some(&told.to_string()))]);
            *request.uri_mut() = of_query(request.uri().path(), &query)?;
        }
        Ok(request)
    }

    /// Writes an annotation to the object that a request is about, as somebody else.
    async fn meddle(&self, request: &Request<Bytes>) -> io::Result<()> {
        let place = Place::of(request.uri().path());
        let Some((collection, name)) = place.and_then(|place| Some((place.collection, place.name?))) else {
            return Ok(());
        };
        let number = self.meddled.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "metadata": { "annotations": { MEDDLED: number.to_string() } } });
        let patch = Request::builder()
            .method(Method::PATCH)
            .uri(of_query(&format!("{collection}/{name}"), "fieldManager=e2e-weather")?)
            .header(CONTENT_TYPE, "application/merge-patch+json")
            .body(Bytes::from(body.to_string()))
            .map_err(io::Error::other)?;
        self.committed(patch).await.map(drop)
    }

    /// Passes a request on and returns when its answer is complete: the head comes when the object is stored, the end of the body makes it
    /// certain.
    async fn committed(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let (head, body) = self.send(request).await?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(head, body))
    }

    pub(super) async fn send(&self, request: Request<Bytes>) -> io::Result<Response<Incoming>> {
        let (mut head, body) = request.into_parts();
        let mut target = self.server.clone().into_parts();
        target.path_and_query = Some(
            head.uri
                .path_and_query()
                .cloned()
                .unwrap_or(PathAndQuery::from_static("/")),
        );
        head.uri = Uri::from_parts(target).map_err(io::Error::other)?;
        head.headers.remove(HOST);
        head.headers.remove(CONNECTION);
        // The body may be another one than was sent.
        head.headers.remove(CONTENT_LENGTH);
        head.headers
            .entry(AUTHORIZATION)
            .or_insert_with(|| self.authorization.clone());
        let request = Request::from_parts(head, Full::new(body));
        self.client.request(request).await.map_err(io::Error::other)
    }

    pub(super) async fn forward(&self, request: Request<Bytes>, interruption: Option<Interruption>) -> Outcome {
        let watches = is_watch(request.uri().query().unwrap_or_default());
        let answer = self.send(request).await?;
        let short = *self.weather.borrow() == Weather::ShortWatches;
        let granted = watches && answer.status().is_success();
        Ok(answer.map(|body| match (granted, short) {
            (true, true) => filled(Bytes::new()),
            (true, false) => Watching::new(&self.watches, body, interruption).into_body(),
            (false, _) => whole(body),
        }))
    }
}

/// The request as a whole.
async fn received(request: Request<Incoming>) -> io::Result<Request<Bytes>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_LIMIT)
        .collect()
        .await
        .map_err(io::Error::other)?;
    Ok(Request::from_parts(head, body.to_bytes()))
}

/// Whether a watch begins with everything that there is.
pub(super) fn is_initial(query: &str) -> bool {
    value_of(query, "sendInitialEvents") == Some("true")
        || matches!(value_of(query, "resourceVersion"), None | Some("" | "0"))
}

pub(super) fn of_query(path: &str, query: &str) -> io::Result<Uri> {
    format!("{path}?{query}").parse().map_err(io::Error::other)
}

pub(super) fn whole(body: Incoming) -> Body {
    body.map_err(io::Error::other).boxed()
}

fn filled(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

fn dropped() -> io::Error {
    io::Error::other("held, and then dropped on purpose")
}

/// Counts a request as long as it lives: the client may hang up while it is held.
struct Held<'a>(&'a AtomicUsize);

impl<'a> Held<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn released(mut stopped: watch::Receiver<bool>) {
    // Nobody sends; the sender goes.
    while stopped.changed().await.is_ok() {}
}

/// Refuses as the API server would, so that clients see an error of the API and not of the network.
fn refuse(status: StatusCode) -> Outcome {
    let reason = match status {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        _ => "",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "refused by the fault proxy", "reason": reason, "code": status.as_u16(),
    });
    let mut answer = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json");
    if status == StatusCode::TOO_MANY_REQUESTS {
        // As priority and fairness has it.
        answer = answer.header(RETRY_AFTER, "1");
    }
    answer
        .body(filled(Bytes::from(body.to_string())))
        .map_err(io::Error::other)
}
