//! Holds requests back so that their sustained rate stays below a limit: a token bucket that hands out turns.
//!
//! Watches have no part in that rate, because they must not stand in line. But whoever follows one starts it again the moment it ends, and
//! where something on the way ends each at once, that would be a loop without a pause. So starts to one address have a bucket, too.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use kube::client::Body;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::request::Asked;

/// Starts of a watch to one address that go at once: a watch that is too old, or has an event that is too large, starts again for good reason.
const WATCH_BURST: u32 = 4;

/// And then one in this many seconds.
const WATCH_PAUSE: f64 = 5.0;

/// Tokens may go below zero: each missing one is a request that was told to wait. So turns are fair and nothing polls.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(rate: f64, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst.max(1));
        Self {
            rate,
            burst,
            tokens: burst,
            filled: now,
        }
    }

    /// Takes a token and says how long until it is there.
    fn take(&mut self, now: Instant) -> Duration {
        let earned = now.duration_since(self.filled).as_secs_f64() * self.rate;
        self.tokens = (self.tokens + earned).min(self.burst) - 1.0;
        self.filled = now;
        if self.tokens >= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(-self.tokens / self.rate)
        }
    }
}

#[derive(Clone)]
pub(super) struct PacingLayer {
    buckets: Arc<Buckets>,
}

impl PacingLayer {
    pub(super) fn new(qps: f64, burst: u32) -> Self {
        let requests = (qps > 0.0).then(|| Mutex::new(Bucket::new(qps, burst, Instant::now())));
        let buckets = Buckets {
            requests,
            watches: Mutex::default(),
        };
        Self {
            buckets: Arc::new(buckets),
        }
    }
}

struct Buckets {
    /// Absent: no limit.
    requests: Option<Mutex<Bucket>>,
    /// By path; there are as many as watched kinds.
    watches: Mutex<HashMap<String, Bucket>>,
}

impl Buckets {
    /// How long a request has to wait for its turn.
    fn turn(&self, asked: &Asked, path: &str, now: Instant) -> Duration {
        if asked.is_watch() {
            let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = || Bucket::new(WATCH_PAUSE.recip(), WATCH_BURST, now);
            return watches.entry(path.to_owned()).or_insert_with(fresh).take(now);
        }
        match &self.requests {
            Some(bucket) if !asked.is_urgent() => bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now),
            _ => Duration::ZERO,
        }
    }
}

impl<S> Layer<S> for PacingLayer {
    type Service = Pacing<S>;

    fn layer(&self, inner: S) -> Pacing<S> {
        Pacing {
            inner,
            buckets: Arc::clone(&self.buckets),
        }
    }
}

pub(super) struct Pacing<S> {
    inner: S,
    buckets: Arc<Buckets>,
}

impl<S> Service<Request<Body>> for Pacing<S>
where
    S: Service<Request<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    /// Waits in the answer's future, never in `poll_ready`: a request in line must not hold up an urgent one behind it.
    /// Nothing is sent before the inner future is polled.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let wait = self.buckets.turn(&asked, request.uri().path(), Instant::now());
        let answer = self.inner.call(request);
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 3, start);
        let waits: Vec<u128> = (0..5).map(|_| bucket.take(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
    }

    #[test]
    fn a_watch_that_ends_at_once_is_started_a_few_times_and_then_seldom() {
        let layer = PacingLayer::new(0.0, 0);
        let start = Instant::now();
        let watch = |path: &str, now| {
            let uri = format!("{path}?watch=1").parse().unwrap();
            let asked = Asked::of(&http::Method::GET, &uri, &http::HeaderMap::new());
            layer.buckets.turn(&asked, uri.path(), now).as_secs()
        };
        let waits: Vec<u64> = (0..7).map(|_| watch("/api/v1/pods", start)).collect();
        assert_eq!(waits, [0, 0, 0, 0, 5, 10, 15]);
        assert_eq!(watch("/api/v1/secrets", start), 0, "others do not wait for it");
        assert_eq!(
            watch("/api/v1/pods", start + Duration::from_mins(5)),
            0,
            "the usual end of a watch"
        );
    }

    #[test]
    fn idle_time_fills_the_bucket_no_further_than_the_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 2, start);
        let later = start + Duration::from_mins(1);
        let waits: Vec<u128> = (0..3).map(|_| bucket.take(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100]);
    }
}
