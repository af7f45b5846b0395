//! Gives published images of the provider `filestore` to machines that fetch them over HTTP: whole, from any byte on, and with their digests. Only reads,
//! and only what is published: what is on its way, and what else lies in the directories, is not there for anybody.

mod index;
mod part;
mod path;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use operator_kit::failure::chain;
use operator_kit::serving::{ServeError, Serving, serve_router};
use provider_filestore::{FileStore, FileStores, OpenImage, Published};
use provider_plugin::CloudError;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::index::Row;
use self::part::{Part, Validators, part};
use self::path::{Target, target};

/// How long a connection may be without a request.
const IDLE: Duration = Duration::from_secs(30);
/// So many images are given at once; each holds half a MiB, and a place in the queue of the disk.
const AT_ONCE: usize = 64;
/// When somebody may try again who found no place, or no answer of the disk; in seconds.
const AGAIN: &str = "10";
/// What is served is bytes, and no browser is to make something else of them.
const USUAL: [(HeaderName, HeaderValue); 2] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    ),
];

/// What is served.
#[derive(Debug)]
struct Gallery {
    stores: BTreeMap<String, FileStore>,
    places: Arc<Semaphore>,
}

/// Serves the images of these directories until `cancel`; then who is fetching one has `drain` to end.
pub(crate) async fn serve(
    address: SocketAddr,
    stores: &FileStores,
    drain: Duration,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let stores = stores.stores().map(|(name, store)| (name.to_owned(), store));
    let gallery = Gallery {
        stores: stores.collect(),
        places: Arc::new(Semaphore::new(AT_ONCE)),
    };
    let router = Router::new().fallback(answer).with_state(Arc::new(gallery));
    serve_router(address, router, (IDLE, drain), cancel).await
}

async fn answer(State(gallery): State<Arc<Gallery>>, request: Request) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let answer = if matches!(*method, Method::GET | Method::HEAD) {
        match target(request.uri().path()) {
            Some(Target::Index) => gallery.index(headers).await,
            Some(Target::Image { store, name }) => gallery.image(&store, &name, method, headers).await,
            Some(Target::Sums { store, name }) => gallery.sums(&store, &name).await,
            None => Ok(absent()),
        }
    } else {
        let allowed = [(header::ALLOW, "GET, HEAD")];
        Ok((StatusCode::METHOD_NOT_ALLOWED, allowed, "images are only given\n").into_response())
    };
    let mut answer = answer.unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "an image could not be given");
        let words = "the directory of the images gives no answer now; try again\n";
        later(words)
    });
    answer.headers_mut().extend(USUAL);
    answer
}

fn absent() -> Response {
    (StatusCode::NOT_FOUND, "no such image; see / for those that there are\n").into_response()
}

fn later(words: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, AGAIN)], words).into_response()
}

impl Gallery {
    /// All images, as a page for whoever asks for one, and else as JSON.
    async fn index(&self, headers: &HeaderMap) -> Result<Response, CloudError> {
        let mut rows = Vec::new();
        for (store, images) in &self.stores {
            let published = images.published().await?.into_iter();
            rows.extend(published.map(|image| Row::of(store, image)));
        }
        let accepted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let (media_type, body) = if accepted.is_some_and(|accept| accept.contains("text/html")) {
            ("text/html; charset=utf-8", index::page(&rows))
        } else {
            ("application/json", index::json(&rows))
        };
        let headers = [
            (header::CONTENT_TYPE, media_type),
            (header::CACHE_CONTROL, "no-cache"),
            (header::VARY, "accept"),
        ];
        Ok((headers, body).into_response())
    }

    async fn open(&self, store: &str, name: &str) -> Result<Option<OpenImage>, CloudError> {
        match self.stores.get(store) {
            Some(images) => images.open(name).await,
            None => Ok(None),
        }
    }

    /// The digest of an image, as `sha256sum --check` reads it.
    async fn sums(&self, store: &str, name: &str) -> Result<Response, CloudError> {
        let Some(OpenImage { image, .. }) = self.open(store, name).await? else {
            return Ok(absent());
        };
        let headers = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        Ok((headers, format!("{}  {}\n", image.sha256, image.name)).into_response())
    }

    async fn image(
        &self,
        store: &str,
        name: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response, CloudError> {
        let Some(opened) = self.open(store, name).await? else {
            return Ok(absent());
        };
        let Published { bytes, changed, .. } = opened.image;
        let validators = Validators::new(&opened.image.sha256, changed);
        let is_whole_wanted = method == Method::HEAD;
        let (status, (from, until)) = match part(headers, &validators, bytes, is_whole_wanted) {
            Part::Whole => (StatusCode::OK, (0, bytes)),
            Part::Range { from, until } => (StatusCode::PARTIAL_CONTENT, (from, until)),
            Part::Unchanged => return Ok((StatusCode::NOT_MODIFIED, validators.headers()).into_response()),
            Part::Changed => return Ok((StatusCode::PRECONDITION_FAILED, validators.headers()).into_response()),
            Part::Beyond => {
                let range = [(header::CONTENT_RANGE, format!("bytes */{bytes}"))];
                return Ok((StatusCode::RANGE_NOT_SATISFIABLE, range).into_response());
            }
        };
        let body = if method == Method::HEAD {
            Body::empty()
        } else {
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                return Ok(later("as many images are being fetched as may be at once; try again\n"));
            };
            // The place is free when the last byte is on its way, or nobody wants it any more.
            Body::from_stream(opened.read(from, until).inspect(move |_| {
                let _ = &place;
            }))
        };
        let mut answer = (status, validators.headers(), body).into_response();
        let headers = answer.headers_mut();
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(until - from));
        if status == StatusCode::PARTIAL_CONTENT {
            let range = HeaderValue::try_from(format!("bytes {from}-{}/{bytes}", until - 1));
            headers.extend(range.map(|range| (header::CONTENT_RANGE, range)));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;
