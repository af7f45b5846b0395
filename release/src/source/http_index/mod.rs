//! Releases on a web server: an index, and files below it.
//!
//! The index tells size and digest of every file, so that the whole release is pinned before a byte of it is here. Therefore files may come
//! from wherever the server sends us on to, as servers in front of object stores do; the index may not.

#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod index;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crds::names::ReleaseTag;
use tokio::task;

use self::index::{Index, is_below};
use super::{Content, Listing, ReleaseSource, RemoteFile, Resolved, SourceError, SourceFuture, room::Share};
use crate::http::{Client, Credentials, HeaderValue, Network, Redirects, Request, Response, StatusCode, Url, header};

/// Name of the index in its directory.
pub const INDEX: &str = "index.json";

/// Longest index: some 10,000 releases.
const LONGEST_INDEX: usize = 16 * 1024 * 1024;
/// When a server says "too many" and not until when.
const UNTOLD_WAIT: Duration = Duration::from_mins(1);

/// Which web server, and how it is reached.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// URL of the directory that contains the index.
    pub url: String,
    /// A token, or a name and a password.
    pub credentials: Option<Credentials>,
    /// Certificates of authorities to trust besides the usual ones, in PEM.
    pub certificates: Option<Vec<u8>>,
}

/// The releases of one index. Cheap to clone; clones share what they remember.
#[derive(Clone, Debug)]
pub struct HttpSource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Of the directory, with a slash at its end.
    directory: Url,
    client: Client,
    share: Share,
    /// With its entity tag.
    known: Mutex<Option<(HeaderValue, Arc<Index>)>>,
}

impl HttpSource {
    /// A source that asks for the first time when it is asked.
    pub fn new(options: &HttpOptions, network: &Network) -> Result<Self, SourceError> {
        let misconfigured = |problem| SourceError::Misconfigured {
            what: "URL of the web server".to_owned(),
            problem,
        };
        let mut directory = Url::parse(&options.url)
            .map_err(|_| misconfigured("is no URL; write one such as https://example.com/releases"))?;
        if directory.query().is_some() || directory.fragment().is_some() {
            return Err(misconfigured(
                "has a query or a fragment; give the directory of the index",
            ));
        }
        let path = format!("{}/", directory.path().trim_end_matches('/'));
        directory.set_path(&path);
        let (credentials, certificates) = (options.credentials.as_ref(), options.certificates.as_deref());
        let client = Client::new(network, directory.clone(), credentials, certificates)?;
        let share = network.share(directory.host_str().unwrap_or_default());
        Ok(Self {
            shared: Arc::new(Shared {
                directory,
                client,
                share,
                known: Mutex::default(),
            }),
        })
    }
}

impl ReleaseSource for HttpSource {
    fn list(&self) -> SourceFuture<'_, Listing> {
        Box::pin(async { Ok(self.shared.index().await?.listing()) })
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        Box::pin(async move { self.shared.index().await?.resolve(tag) })
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        Box::pin(self.shared.fetch(file))
    }

    fn without_secrets(&self, words: &str) -> String {
        self.shared.client.without_secrets(words)
    }
}

impl Shared {
    /// The index as it is now; if it is what it was, for one answer 304.
    async fn index(&self) -> Result<Arc<Index>, SourceError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut request = Request::get(self.below(INDEX));
        if let Some((etag, _)) = &known {
            request = request.header(header::IF_NONE_MATCH, etag.clone());
        }
        let response = self.client.send(request).await?;
        let place = response.place().to_string();
        match (response.status(), known) {
            (StatusCode::OK, _) => {}
            (StatusCode::NOT_MODIFIED, Some((_, index))) => return Ok(index),
            (StatusCode::NOT_FOUND, _) => return Err(SourceError::MissingIndex { place }),
            _ => return Err(self.refusal(&response)),
        }
        let etag = response.headers().get(header::ETAG).cloned();
        let bytes = response.bytes(LONGEST_INDEX).await?;
        self.share.resize(bytes.len(), &place)?;
        // Of its full length it takes a good part of a second.
        let parsed = task::spawn_blocking(move || Index::parse(&bytes, &place)).await;
        let index = Arc::new(parsed.map_err(|_| SourceError::Stopped)??);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = etag.map(|etag| (etag, Arc::clone(&index)));
        Ok(index)
    }

    async fn fetch(&self, file: &RemoteFile) -> Result<Content, SourceError> {
        let gone = || SourceError::MissingFile {
            file: file.name.clone(),
        };
        if !is_below(&file.location) {
            return Err(gone());
        }
        let request = Request::get(self.below(&file.location)).redirects(Redirects::Anywhere);
        let response = self.client.send(request).await?;
        match response.status() {
            StatusCode::OK => Ok(Box::pin(response.reader())),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(gone()),
            _ => Err(self.refusal(&response)),
        }
    }

    /// The URL of a path without anything that a URL could read otherwise.
    fn below(&self, path: &str) -> Url {
        let mut url = self.directory.clone();
        let path = format!("{}{path}", url.path());
        url.set_path(&path);
        url
    }

    /// What an answer with another status than expected means.
    fn refusal(&self, response: &Response) -> SourceError {
        let (place, status, wait) = (response.place().to_string(), response.status(), response.retry_after());
        match (status, wait) {
            (StatusCode::TOO_MANY_REQUESTS, wait) => {
                let wait = wait.unwrap_or(UNTOLD_WAIT);
                self.client.back_off(wait);
                SourceError::RateLimited { place, wait }
            }
            (StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE, Some(wait)) => {
                SourceError::RateLimited { place, wait }
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => SourceError::Denied {
                place,
                message: format!("status {}", status.as_u16()),
            },
            _ => SourceError::Failed {
                place,
                what: format!("with status {}", status.as_u16()),
            },
        }
    }
}
