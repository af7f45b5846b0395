//! What octocrab sends its requests through: our guarded client, so that every rule of it holds here too.

use std::{
    future::{self, Future},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{Either, Full};
use octocrab::OctoBody;
use tower::Service;

use crate::http::{self as guarded, Body, Client, HttpError, Redirects, Url};

/// Longest answer that is read into memory: a page of 100 releases with long notes and many assets has some 3 MiB.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// Marks a request whose answer is given as it comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// One API of GitHub.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    client: Client,
    storage: Redirects,
}

impl Transport {
    /// The client's URL is that of the API; files may come from these places besides.
    pub(super) fn new(client: Client, storage: Redirects) -> Self {
        Self { client, storage }
    }

    /// The URL of a route of the API, which has a path of its own on GitHub Enterprise.
    fn url<B>(&self, request: &Request<B>) -> Url {
        let mut url = self.client.home().clone();
        let path = format!("{}{}", url.path().trim_end_matches('/'), request.uri().path());
        url.set_path(&path);
        url.set_query(request.uri().query());
        url
    }
}

impl Service<Request<OctoBody>> for Transport {
    type Response = Response<Either<Full<Bytes>, Body>>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<OctoBody>) -> Self::Future {
        let is_streamed = request.extensions().get::<Streamed>().is_some();
        let url = self.url(&request);
        if request.method() != ::http::Method::GET {
            let place = guarded::Place::of(&url);
            let problem = "is only ever read";
            return Box::pin(future::ready(Err(HttpError::InvalidUrl { place, problem })));
        }
        let mut question = guarded::Request::get(url);
        if is_streamed {
            question = question.redirects(self.storage.clone());
        }
        // It says that there is no body, which a GET need not.
        for (name, value) in request
            .headers()
            .iter()
            .filter(|(name, _)| *name != header::CONTENT_LENGTH)
        {
            question = question.header(name.clone(), value.clone());
        }
        let client = self.client.clone();
        Box::pin(async move {
            let answer = client.send(question).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = if is_streamed && status.is_success() {
                Either::Right(answer.into_body())
            } else {
                Either::Left(Full::new(answer.bytes(LONGEST_ANSWER).await?))
            };
            let mut response = Response::new(body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok(response)
        })
    }
}
