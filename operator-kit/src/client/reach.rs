//! Tells once that the API server cannot be reached, and once that it can be again, whoever asks it for whatever.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use crate::failure::chain;

#[derive(Clone)]
pub(crate) struct ReachLayer {
    /// Absent: somebody else tells.
    reach: Option<Arc<Reach>>,
}

struct Reach {
    /// Without credentials.
    server: String,
    /// That it cannot be reached was said, and that it can be again was not.
    lost: AtomicBool,
}

impl ReachLayer {
    /// Tells nothing: whoever has the client says what becomes of its server.
    pub(crate) fn silent() -> Self {
        Self { reach: None }
    }

    pub(super) fn new(server: &Uri) -> Self {
        let host = server.host().unwrap_or_default();
        let port = server.port().map(|port| format!(":{port}")).unwrap_or_default();
        let reach = Reach {
            server: format!("{}://{host}{port}", server.scheme_str().unwrap_or("https")),
            lost: AtomicBool::new(false),
        };
        Self {
            reach: Some(Arc::new(reach)),
        }
    }
}

impl Reach {
    fn heard<B>(&self, answer: &Result<Response<B>, BoxError>) {
        let lost = self.lost.swap(answer.is_err(), Ordering::Relaxed);
        match answer {
            Err(error) if !lost => {
                let error = chain(error.as_ref());
                tracing::warn!(error, "unable to reach the API server {}", self.server);
            }
            Ok(_) if lost => tracing::info!("the API server {} is reached again", self.server),
            _ => {}
        }
    }
}

impl<S> Layer<S> for ReachLayer {
    type Service = Reached<S>;

    fn layer(&self, inner: S) -> Reached<S> {
        Reached {
            inner,
            reach: self.reach.clone(),
        }
    }
}

pub(crate) struct Reached<S> {
    inner: S,
    reach: Option<Arc<Reach>>,
}

impl<S, B> Service<Request<Body>> for Reached<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reach = self.reach.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Some(reach) = reach {
                reach.heard(&answer);
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::Told;

    #[test]
    fn a_server_that_is_away_is_told_once_without_credentials_and_once_more_when_it_is_back() {
        let layer = ReachLayer::new(&"https://me:secret@api.example.org:6443/prefix".parse().unwrap());
        let reach = layer.reach.unwrap();
        let told = Told::begin();
        for _ in 0..3 {
            reach.heard::<()>(&Err("refused".into()));
        }
        for _ in 0..3 {
            reach.heard(&Ok(Response::new(())));
        }
        assert_eq!(
            told.lines(),
            [
                "WARN unable to reach the API server https://api.example.org:6443 error=\"refused\"",
                "INFO the API server https://api.example.org:6443 is reached again",
            ]
        );
    }
}
