//! Holds requests back so that their sustained rate stays below a limit: a token bucket that hands out turns.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use kube::client::Body;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::request::Asked;

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
    bucket: Option<Arc<Mutex<Bucket>>>,
}

impl PacingLayer {
    pub(super) fn new(qps: f64, burst: u32) -> Self {
        let bucket = (qps > 0.0).then(|| Arc::new(Mutex::new(Bucket::new(qps, burst, Instant::now()))));
        Self { bucket }
    }
}

impl<S> Layer<S> for PacingLayer {
    type Service = Pacing<S>;

    fn layer(&self, inner: S) -> Pacing<S> {
        Pacing {
            inner,
            bucket: self.bucket.clone(),
        }
    }
}

pub(super) struct Pacing<S> {
    inner: S,
    bucket: Option<Arc<Mutex<Bucket>>>,
}

impl<S> Pacing<S> {
    fn turn(&self, request: &Request<Body>) -> Duration {
        let Some(bucket) = &self.bucket else {
            return Duration::ZERO;
        };
        if Asked::of(request.method(), request.uri(), request.headers()).is_urgent() {
            return Duration::ZERO;
        }
        bucket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(Instant::now())
    }
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
        let wait = self.turn(&request);
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
    fn idle_time_fills_the_bucket_no_further_than_the_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 2, start);
        let later = start + Duration::from_mins(1);
        let waits: Vec<u128> = (0..3).map(|_| bucket.take(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100]);
    }
}
