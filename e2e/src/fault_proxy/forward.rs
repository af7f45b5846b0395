//! One request on its way through: judged, passed on, its answer streamed back.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::stream;
use http::{
    HeaderValue, Request, Response, StatusCode, Uri,
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST},
    uri::PathAndQuery,
};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use serde_json::json;
use tokio::sync::watch;

use super::{
    delay::{Claimed, Delays},
    strike::{Ledger, Point, Verdict, is_write},
    weather::Weather,
};
use crate::control_plane::Access;

/// The API server takes no request larger than 3 MiB.
const REQUEST_LIMIT: usize = 4 * 1024 * 1024;

type Body = BoxBody<Bytes, io::Error>;

/// An answer, or an error that closes the connection without one.
type Outcome = io::Result<Response<Body>>;

/// Everything that the proxy's connections share.
#[derive(Debug)]
pub(super) struct Forwarder {
    pub(super) ledger: Ledger,
    pub(super) delays: Delays,
    pub(super) weather: watch::Sender<Weather>,
    /// How often watches were cut; a change cuts those that run.
    pub(super) cuts: watch::Sender<u64>,
    server: Uri,
    authorization: HeaderValue,
    arrived: AtomicUsize,
    held: AtomicUsize,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Forwarder {
    pub(super) fn new(behind: &Access) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = behind
            .certificate_authority()
            .context("the API server has no certificate authority")?;
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
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
            weather: watch::Sender::default(),
            cuts: watch::Sender::default(),
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
        if let Some(status) = weather.refusal(is_write(&request)) {
            return refuse(status);
        }
        match self.ledger.judge(&request) {
            Verdict::Pass => {
                let answer = match self.delays.claim(&request) {
                    Some(claimed) => self.late(request, claimed).await?,
                    None => self.forward(whole(request).await?).await?,
                };
                self.after_stop().await?;
                Ok(answer)
            }
            Verdict::Hold(stopped) => self.hold(released(stopped)).await,
            Verdict::Strike(pending) => {
                if pending.point == Point::AfterCommit {
                    let answer = self.forward(whole(request).await?).await?;
                    // The head comes when the object is stored; the end of the body makes it certain.
                    answer.into_body().collect().await?;
                }
                self.hold(released(self.ledger.stop(pending))).await
            }
        }
    }

    /// Passes a request on when that is asked for.
    async fn late(&self, request: Request<Incoming>, claimed: Claimed) -> Outcome {
        let request = whole(request).await?;
        let _held = Held::new(&self.held);
        let Ok(told) = claimed.hold().await else {
            return Err(io::Error::other("held, and then dropped on purpose"));
        };
        let answer = self.forward(request).await?;
        // Nobody may wait for it any more.
        let _ = told.send(answer.status());
        Ok(answer)
    }

    /// Keeps a request waiting and then closes its connection.
    async fn hold<T>(&self, until: impl Future) -> io::Result<T> {
        let _held = Held::new(&self.held);
        until.await;
        Err(io::Error::other("held, and then dropped on purpose"))
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

    async fn forward(&self, request: Request<Full<Bytes>>) -> Outcome {
        let is_watch = request.uri().query().is_some_and(|query| {
            query
                .split('&')
                .any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"))
        });
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
        head.headers
            .entry(AUTHORIZATION)
            .or_insert_with(|| self.authorization.clone());
        let request = Request::from_parts(head, body);
        let answer = self.client.request(request).await.map_err(io::Error::other)?;
        let short = *self.weather.borrow() == Weather::ShortWatches;
        Ok(answer.map(|body| {
            if is_watch && short {
                Full::default().map_err(|never| match never {}).boxed()
            } else if is_watch {
                self.cuttable(body)
            } else {
                body.map_err(io::Error::other).boxed()
            }
        }))
    }

    /// The body as it comes; cut off, it ends with an error, so that nobody takes it for a whole one.
    fn cuttable(&self, body: Incoming) -> Body {
        let state = (body, self.cuts.subscribe());
        let frames = stream::unfold(state, async |(mut body, mut cuts)| {
            let frame: io::Result<Frame<Bytes>> = tokio::select! {
                frame = body.frame() => frame?.map_err(io::Error::other),
                _ = cuts.changed() => Err(io::Error::other("the watch was cut")),
            };
            Some((frame, (body, cuts)))
        });
        BodyExt::boxed(StreamBody::new(frames))
    }
}

/// A request with all of its body.
async fn whole(request: Request<Incoming>) -> io::Result<Request<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_LIMIT).collect().await;
    let body = body.map_err(io::Error::other)?.to_bytes();
    Ok(Request::from_parts(head, Full::new(body)))
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
        _ => "",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "refused by the fault proxy", "reason": reason, "code": status.as_u16(),
    });
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json")
        .body(body.boxed())
        .map_err(io::Error::other)
}
