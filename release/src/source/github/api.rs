//! The part of GitHub's REST API that we ask, and what its refusals mean.
//!
//! Facts: docs.github.com, "Rate limits for the REST API", "Best practices for using the REST API", "REST API endpoints for releases" and
//! "for release assets", API version 2022-11-28.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header, request::Builder};
use http_body_util::{BodyDataStream, BodyExt, combinators::BoxBody};
use jiff::Timestamp;
use octocrab::AuthState;
use octocrab::{GitHubError, Octocrab, OctocrabBuilder};
use serde::{
    Deserialize,
    de::{DeserializeOwned, Error as _},
};
use tokio_util::io::StreamReader;

use super::{
    SHOWN_ASSETS,
    transport::{Streamed, Transport},
};
use crate::{
    http::{self as guarded, Client, HttpError, Redirects},
    source::{
        Content, SourceError,
        bounded::{AtMost, Text},
    },
};

/// Entries on one page; more are not given.
pub(super) const PER_PAGE: usize = 100;
/// Longest entity tag that is remembered; those of GitHub have 68 characters.
const LONGEST_ETAG: usize = 256;

/// What GitHub asks for when a secondary limit is hit and nothing says for how long.
const SECONDARY_WAIT: Duration = Duration::from_mins(1);

/// Longest words of a server that are passed on.
pub(super) const LONGEST_MESSAGE: usize = 200;

/// One API of GitHub, in the name of one token.
#[derive(Clone, Debug)]
pub(super) struct Api {
    crab: Octocrab,
    client: Client,
}

/// What was asked for, if it is another than before.
#[derive(Debug)]
pub(super) enum Answer<T> {
    /// It is what it was when it had this entity tag.
    Unchanged,
    /// It is this.
    New(Fresh<T>),
}

/// What the API said.
#[derive(Debug)]
pub(super) struct Fresh<T> {
    /// It.
    pub(super) content: T,
    /// Its entity tag.
    pub(super) etag: Option<String>,
    /// Whether there is another page.
    pub(super) has_next: bool,
}

/// A release as a list shows it; what we do not need is not even kept while it is parsed.
#[derive(Debug, Deserialize)]
pub(super) struct ReleaseLine {
    pub(super) tag_name: Text,
    #[serde(default)]
    pub(super) draft: bool,
    pub(super) published_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) assets: AtMost<Asset, SHOWN_ASSETS>,
}

/// A release with its files.
#[derive(Debug, Deserialize)]
pub(super) struct WholeRelease {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) draft: bool,
    #[serde(default)]
    pub(super) assets: AtMost<Asset, SHOWN_ASSETS>,
}

/// A file of a release.
#[derive(Debug, Deserialize)]
pub(super) struct Asset {
    pub(super) id: u64,
    pub(super) name: Text,
    pub(super) state: Text,
    pub(super) size: u64,
    /// `sha256:…`, or what other algorithms there will be; absent for what was uploaded before June 2025 and on older servers.
    pub(super) digest: Option<Text>,
}

/// A page of a list.
pub(super) type Page<T> = AtMost<T, PER_PAGE>;

impl Api {
    /// Must be called where an async runtime is: octocrab starts a task.
    pub(super) fn new(client: Client, storage: Redirects) -> Self {
        let transport = Transport::new(client.clone(), storage);
        // Without authentication: our client knows where credentials may go, octocrab only knows api.github.com.
        let built = OctocrabBuilder::new_empty()
            .with_service(transport)
            .with_auth(AuthState::None)
            .build();
        let Ok(crab) = built;
        Self { crab, client }
    }

    /// The entries of a page, if there are no more than were asked for.
    pub(super) fn entries<T>(&self, page: Page<T>) -> Result<Vec<T>, SourceError> {
        if page.is_cut {
            return Err(SourceError::Unintelligible {
                place: self.place(),
                source: serde_json::Error::custom(format_args!("more than the {PER_PAGE} entries of a page")),
            });
        }
        Ok(page.entries)
    }

    /// Asks for JSON, unless it is still what it was.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        route: &str,
        etag: Option<&str>,
    ) -> Result<Answer<T>, SourceError> {
        let mut request = Builder::new()
            .uri(route)
            .header(header::ACCEPT, "application/vnd.github+json");
        if let Some(etag) = etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let response = self.send(request).await?;
        if response.status() == StatusCode::NOT_MODIFIED && etag.is_some() {
            return Ok(Answer::Unchanged);
        }
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| self.failure(error))?.to_bytes();
        let content = serde_json::from_slice(&body).map_err(|source| SourceError::Unintelligible {
            place: self.place(),
            source,
        })?;
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(Answer::New(Fresh {
            content,
            etag: text(header::ETAG)
                .filter(|etag| etag.len() <= LONGEST_ETAG)
                .map(str::to_owned),
            has_next: text(header::LINK).is_some_and(has_next),
        }))
    }

    /// Begins to give the bytes of an asset.
    pub(super) async fn download(&self, route: &str) -> Result<Content, SourceError> {
        let request = Builder::new()
            .uri(route)
            .header(header::ACCEPT, "application/octet-stream")
            .extension(Streamed);
        let body = self.send(request).await?.into_body();
        let body = body.map_err(|error| match guarded_error(error) {
            Ok(error) => io::Error::from(error),
            Err(error) => io::Error::other(error),
        });
        Ok(Box::pin(StreamReader::new(BodyDataStream::new(body))))
    }

    /// What is asked, for messages.
    pub(super) fn place(&self) -> String {
        guarded::Place::of(self.client.home())
            .to_string()
            .trim_end_matches('/')
            .to_owned()
    }

    async fn send(&self, request: Builder) -> Result<Response<BoxBody<Bytes, octocrab::Error>>, SourceError> {
        let request = self
            .crab
            .build_request(request, None::<&()>)
            .map_err(|error| self.failure(error))?;
        let response = self.crab.execute(request).await.map_err(|error| self.failure(error))?;
        let used_up = used_up(response.headers());
        if let Some(wait) = used_up {
            self.client.back_off(wait);
        }
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        octocrab::map_github_error(response)
            .await
            .map_err(|error| self.failure(error))
    }

    fn failure(&self, error: octocrab::Error) -> SourceError {
        match guarded_error(error) {
            Ok(error) => error.into(),
            Err(octocrab::Error::GitHub { source, .. }) => self.refusal(*source),
            Err(error) => SourceError::Failed {
                place: self.place(),
                what: format!("in an unexpected way ({})", self.words(&error.to_string())),
            },
        }
    }

    /// The words of a server as they can be shown. What it repeats of a credential goes before the rest is cut: of half of one nothing would tell.
    fn words(&self, message: &str) -> String {
        words(&self.client.without_secrets(message))
    }

    /// What an answer with an error status means.
    fn refusal(&self, error: GitHubError) -> SourceError {
        let (place, status, message) = (self.place(), error.status_code, self.words(&error.message));
        let headers = error.headers.unwrap_or_default();
        let is_limit = || message.to_lowercase().contains("rate limit") || message.to_lowercase().contains("abuse");
        if matches!(status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
            let wait = guarded::retry_after(&headers).or_else(|| used_up(&headers));
            if wait.is_some() || status == StatusCode::TOO_MANY_REQUESTS || is_limit() {
                let wait = wait.unwrap_or(SECONDARY_WAIT);
                self.client.back_off(wait);
                return SourceError::RateLimited { place, wait };
            }
        }
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => SourceError::Denied { place, message },
            StatusCode::NOT_FOUND => SourceError::NotThere { place },
            _ => SourceError::Failed {
                place,
                what: format!("with status {}", status.as_u16()),
            },
        }
    }
}

/// The error of our client inside of octocrab's, if that is what it is about.
fn guarded_error(error: octocrab::Error) -> Result<HttpError, octocrab::Error> {
    match error {
        octocrab::Error::Service { source, backtrace } => match source.downcast::<HttpError>() {
            Ok(error) => Ok(*error),
            Err(source) => match source.downcast::<octocrab::Error>() {
                Ok(error) => guarded_error(*error),
                Err(source) => Err(octocrab::Error::Service { source, backtrace }),
            },
        },
        error => Err(error),
    }
}

/// How long the primary limit is used up, if it is. GitHub wants nobody to ask before that, whatever the status of the answer.
pub(super) fn used_up(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<i64>().ok();
    if number("x-ratelimit-remaining")? > 0 {
        return None;
    }
    guarded::until(Timestamp::from_second(number("x-ratelimit-reset")?).ok()?, headers)
}

/// Whether a `Link` header (RFC 8288) names a next page. Only whether: where it is, we know, and would not take from a server.
pub(super) fn has_next(link: &str) -> bool {
    link.split(',').any(|link| {
        link.split(';').skip(1).any(|parameter| {
            let parameter = parameter.trim();
            parameter.eq_ignore_ascii_case("rel=\"next\"") || parameter.eq_ignore_ascii_case("rel=next")
        })
    })
}

/// The words of a server as they can be shown: one line of bounded length; of a page for browsers, only that it is one.
pub(super) fn words(message: &str) -> String {
    let message = message.trim();
    if message.starts_with('<') {
        return "a web page instead of a message".to_owned();
    }
    let line = message.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(LONGEST_MESSAGE).collect()
}
