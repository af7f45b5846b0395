//! One repository of one registry, asked by the OCI distribution specification: sends requests, and sorts out the answers that are none.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use bytes::Bytes;
use serde::Deserialize;
use tokio::time;

use super::{
    CONTENT_DIGEST, OciError, OciOptions, Repository, Wanted,
    authorization::Authorization,
    manifest,
    tags::{self, MAX_PAGE_BYTES, MAX_PAGES, MAX_TAGS, Next, PAGE},
};
use crate::{
    Digest,
    http::{Client, HeaderValue, HttpError, Network, Redirects, Request, Response, StatusCode, Url, header},
};

/// Longest time for a list of tags, with all its pages.
const LONGEST_LIST: Duration = Duration::from_mins(2);
/// Most bytes of an error of a registry that are read.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// Longest code of an error that is shown.
pub(super) const MAX_CODE: usize = 64;

/// One repository of one registry.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) repository: Repository,
    base: Url,
    authorization: Authorization,
}

/// A manifest as a registry gives it.
pub(super) struct Given {
    /// Ours, of the bytes.
    pub(super) digest: Digest,
    pub(super) bytes: Bytes,
    /// What the registry calls it.
    pub(super) media_type: Option<String>,
}

/// What a registry says of an error.
#[derive(Deserialize)]
struct Errors {
    errors: Vec<ErrorItem>,
}

#[derive(Deserialize)]
struct ErrorItem {
    code: String,
}

impl Registry {
    pub(super) fn new(network: &Network, options: OciOptions) -> Result<Self, HttpError> {
        let OciOptions {
            repository,
            plain_http,
            credentials,
            certificates,
            token_hosts,
        } = options;
        let base = repository.base(plain_http);
        let client = Client::new(network, base.clone(), None, certificates.as_deref())?;
        Ok(Self {
            authorization: Authorization::new(repository.clone(), client, credentials, token_hosts),
            repository,
            base,
        })
    }

    /// Asks for `path` of the repository as [`Registry::get`] does, and has no more of the answer than its head.
    pub(super) async fn head(&self, wanted: Wanted, path: &str, accept: &'static str) -> Result<Response, OciError> {
        self.ask(Request::head(self.url(path)?), wanted, accept).await
    }

    /// The manifest that has this tag or digest now, if there is one. It has the digest that the registry tells of it.
    pub(super) async fn manifest(&self, name: &str) -> Result<Option<Given>, OciError> {
        let wanted = || Wanted::Manifest(name.to_owned());
        let path = format!("manifests/{name}");
        let response = self
            .get(wanted(), &path, manifest::ACCEPTED, Redirects::SameHost)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let text = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let promised = text(CONTENT_DIGEST);
        let media_type = text(header::CONTENT_TYPE.as_str());
        let bytes = self.bytes(wanted(), response, manifest::MAX_BYTES).await?;
        let digest = Digest::of(&bytes);
        // Other algorithms are allowed, and prove nothing to somebody who has one of our own.
        if let Some(promised) = promised.filter(|promised| promised.starts_with("sha256:"))
            && promised != digest.to_string()
        {
            return Err(OciError::Digest {
                repository: self.repository.clone(),
                tag: name.to_owned(),
                found: digest,
                promised,
            });
        }
        Ok(Some(Given {
            digest,
            bytes,
            media_type,
        }))
    }

    /// The bytes of a blob from this one on, wherever the registry keeps them: an answer 200 with all of it, 206 with a part, 404 or 416.
    pub(super) async fn blob(&self, wanted: Wanted, digest: Digest, from: u64) -> Result<Response, OciError> {
        let request = Request::get(self.url(&format!("blobs/{digest}"))?).redirects(Redirects::Anywhere);
        let range = HeaderValue::try_from(format!("bytes={from}-"))
            .ok()
            .filter(|_| from > 0);
        let Some(range) = range else {
            return self.ask(request, wanted, "*/*").await;
        };
        let response = self.send(request.header(header::RANGE, range), &wanted, "*/*").await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => Ok(response),
            _ => self.sorted(wanted, response).await,
        }
    }

    /// All tags, sorted, each once.
    pub(super) async fn tags(&self) -> Result<BTreeSet<String>, OciError> {
        let listed = time::timeout(LONGEST_LIST, self.all_tags()).await;
        listed.map_err(|_| OciError::SlowList {
            repository: self.repository.clone(),
            after: LONGEST_LIST,
        })?
    }

    async fn all_tags(&self) -> Result<BTreeSet<String>, OciError> {
        let repository = || self.repository.clone();
        let mut found = BTreeSet::new();
        let mut asked = HashSet::new();
        let mut query = format!("n={PAGE}");
        while asked.len() < MAX_PAGES && asked.insert(query.clone()) {
            let path = format!("tags/list?{query}");
            let response = self
                .get(Wanted::Tags, &path, "application/json", Redirects::SameHost)
                .await?;
            if response.status() == StatusCode::NOT_FOUND {
                return Err(OciError::MissingRepository {
                    repository: repository(),
                });
            }
            let next = tags::next(response.headers());
            let bytes = self.bytes(Wanted::Tags, response, MAX_PAGE_BYTES).await?;
            let page = tags::read(&bytes).map_err(|source| OciError::Tags {
                repository: repository(),
                source,
            })?;
            found.extend(page);
            if found.len() > MAX_TAGS {
                return Err(OciError::TooManyTags {
                    repository: repository(),
                });
            }
            query = match next {
                Next::End => return Ok(found),
                Next::Query(query) => query,
                Next::Lost => {
                    return Err(OciError::LostPage {
                        repository: repository(),
                    });
                }
            };
        }
        Err(OciError::EndlessTags {
            repository: repository(),
        })
    }

    /// The whole of an answer.
    pub(super) async fn bytes(&self, wanted: Wanted, response: Response, limit: usize) -> Result<Bytes, OciError> {
        response.bytes(limit).await.map_err(|source| OciError::Request {
            wanted,
            repository: self.repository.clone(),
            source: Box::new(source),
        })
    }

    /// Asks for `path` of the repository, says who asks if the registry wants to know, and gives an answer 200 or 404.
    pub(super) async fn get(
        &self,
        wanted: Wanted,
        path: &str,
        accept: &'static str,
        redirects: Redirects,
    ) -> Result<Response, OciError> {
        self.ask(Request::get(self.url(path)?).redirects(redirects), wanted, accept)
            .await
    }

    fn url(&self, path: &str) -> Result<Url, OciError> {
        self.base.join(path).map_err(|_| OciError::LostPage {
            repository: self.repository.clone(),
        })
    }

    async fn ask(&self, request: Request, wanted: Wanted, accept: &'static str) -> Result<Response, OciError> {
        let response = self.send(request, &wanted, accept).await?;
        self.sorted(wanted, response).await
    }

    /// Any answer but the wish to know who asks.
    async fn send(&self, request: Request, wanted: &Wanted, accept: &'static str) -> Result<Response, OciError> {
        let request = request.header(header::ACCEPT, HeaderValue::from_static(accept));
        let failed = |source| OciError::Request {
            wanted: wanted.clone(),
            repository: self.repository.clone(),
            source: Box::new(source),
        };
        let access = self.authorization.access().await;
        let mut response = access.client.send(request.clone()).await.map_err(failed)?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let access = self.authorization.renewed(&access, response.headers()).await?;
            response = access.client.send(request).await.map_err(failed)?;
        }
        Ok(response)
    }

    /// An answer 200 or 404, or what another one means.
    async fn sorted(&self, wanted: Wanted, response: Response) -> Result<Response, OciError> {
        match response.status() {
            StatusCode::OK | StatusCode::NOT_FOUND => Ok(response),
            _ => Err(self.error(wanted, response).await),
        }
    }

    /// Words about the registry without what it and its server for tokens were told.
    pub(super) fn without_secrets(&self, words: &str) -> String {
        self.authorization.without_secrets(words)
    }

    /// What an answer means that gives nothing.
    async fn error(&self, wanted: Wanted, response: Response) -> OciError {
        let repository = self.repository.clone();
        match response.status() {
            StatusCode::UNAUTHORIZED => self.authorization.refused(),
            StatusCode::FORBIDDEN => OciError::Denied { wanted, repository },
            StatusCode::TOO_MANY_REQUESTS => OciError::RateLimited {
                repository,
                wait: response.retry_after(),
            },
            status => OciError::Status {
                wanted,
                repository,
                status,
                code: match response.bytes(MAX_ERROR_BYTES).await {
                    Ok(bytes) => code(&bytes),
                    Err(_) => None,
                },
            },
        }
    }
}

/// The first code of an error, if it looks like one.
pub(super) fn code(answer: &[u8]) -> Option<String> {
    let errors: Errors = serde_json::from_slice(answer).ok()?;
    let code = errors.errors.into_iter().next()?.code;
    let is_code = code.len() <= MAX_CODE && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_code.then_some(code)
}
