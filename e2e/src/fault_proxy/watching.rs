//! The answer to a watch on its way to the client, event by event.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use memchr::{memchr, memmem};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    forward::Body,
    overlooked::Overlooked,
    storm::{Interruption, InterruptionKind},
};

/// How many resource versions are remembered; a journey tells fewer.
const REMEMBERED: usize = 4096;

/// What the API server writes before a watch whose history is gone ends.
const GONE: &[u8] = br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version, says the fault proxy","reason":"Expired","code":410}}
"#;

/// Resource versions that watches told the client, and when.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<VecDeque<(Instant, u64)>>);

impl Told {
    fn note(&self, at: Instant, line: &[u8]) {
        let Some(version) = version_in(line) else { return };
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= REMEMBERED {
            told.pop_front();
        }
        told.push_back((at, version));
    }

    /// The newest that was told by then.
    pub(super) fn before(&self, age: Duration) -> Option<u64> {
        let end = Instant::now().checked_sub(age)?;
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = told.iter().filter(|(at, _)| *at <= end);
        old.map(|(_, version)| *version).max()
    }
}

/// The resource version in one line of a watch.
fn version_in(line: &[u8]) -> Option<u64> {
    let key = b"\"resourceVersion\":\"";
    let begin = memmem::find(line, key)? + key.len();
    let end = memchr(b'"', &line[begin..])?;
    std::str::from_utf8(&line[begin..begin + end]).ok()?.parse().ok()
}

/// When everything may go on: see [`super::Fault::Pause`].
#[derive(Debug)]
pub(super) struct Pause(watch::Sender<Option<Instant>>);

impl Default for Pause {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Pause {
    pub(super) fn begin(&self, lasting: Duration) {
        let end = Instant::now() + lasting;
        self.0
            .send_modify(|until| *until = Some(until.map_or(end, |until| until.max(end))));
    }

    pub(super) async fn over(&self) {
        loop {
            let until = *self.0.borrow();
            match until {
                Some(until) if Instant::now() < until => sleep_until(until).await,
                _ => return,
            }
        }
    }
}

/// What the streams of one proxy share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) told: Told,
    pub(super) pause: Pause,
    pub(super) overlooked: Overlooked,
    /// How often watches were cut; a change cuts those that run.
    pub(super) cuts: watch::Sender<u64>,
}

/// One watch.
pub(super) struct Watching {
    shared: std::sync::Arc<Shared>,
    body: Incoming,
    /// Lines that come before those of the body.
    before: VecDeque<Bytes>,
    half: BytesMut,
    /// Nothing comes until then.
    frozen: Option<Instant>,
    interruption: Option<Interruption>,
    lines: u32,
    end: Option<End>,
}

enum End {
    Quiet,
    Broken,
}

impl Watching {
    pub(super) fn new(shared: &std::sync::Arc<Shared>, body: Incoming, interruption: Option<Interruption>) -> Self {
        Self {
            shared: std::sync::Arc::clone(shared),
            body,
            before: VecDeque::new(),
            half: BytesMut::new(),
            frozen: None,
            interruption,
            lines: 0,
            end: None,
        }
    }

    /// With these lines first, and then nothing until a moment.
    pub(super) fn begun_with(mut self, before: VecDeque<Bytes>, frozen: Option<Instant>) -> Self {
        self.before = before;
        self.frozen = frozen;
        self
    }

    /// Cut off, it ends with an error, so that nobody takes it for a whole one.
    pub(super) fn into_body(self) -> Body {
        let cuts = self.shared.cuts.subscribe();
        let frames = stream::unfold((self, cuts), async |(mut watching, mut cuts)| {
            let frame = tokio::select! {
                frame = watching.next() => frame?,
                _ = cuts.changed() => Err(io::Error::other("the watch was cut")),
            };
            Some((frame.map(Frame::data), (watching, cuts)))
        });
        BodyExt::boxed(StreamBody::new(frames))
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.end.take() {
            Some(End::Quiet) => return None,
            Some(End::Broken) => return Some(Err(io::Error::other("the watch was broken off"))),
            None => {}
        }
        let line = match self.line().await? {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        if let Some(lasting) = self.shared.overlooked.takes(&line) {
            return Some(Ok(self.blind(lasting).await));
        }
        let due = self
            .interruption
            .take_if(|interruption| interruption.after <= self.lines);
        self.lines += 1;
        match due.map(|interruption| interruption.kind) {
            Some(InterruptionKind::Stall(lasting)) => sleep(lasting).await,
            Some(InterruptionKind::Cut) => {
                self.end = Some(End::Broken);
                return Some(Ok(line.slice(..line.len() / 2)));
            }
            Some(InterruptionKind::End) => return None,
            Some(InterruptionKind::Blind(lasting)) => return Some(Ok(self.blind(lasting).await)),
            None => {}
        }
        self.shared.pause.over().await;
        self.shared.told.note(Instant::now(), &line);
        Some(Ok(line))
    }

    /// The event is lost, and what follows it too.
    async fn blind(&mut self, lasting: Duration) -> Bytes {
        sleep(lasting).await;
        self.end = Some(End::Quiet);
        Bytes::from_static(GONE)
    }

    /// The next line with its end.
    async fn line(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(line) = self.before.pop_front() {
            return Some(Ok(line));
        }
        loop {
            if let Some(end) = memchr(b'\n', &self.half) {
                let line = self.half.split_to(end + 1).freeze();
                if let Some(frozen) = self.frozen.take() {
                    sleep_until(frozen).await;
                }
                return Some(Ok(line));
            }
            match self.body.frame().await {
                None if self.half.is_empty() => return None,
                // The API server broke off within a line.
                None => return Some(Ok(self.half.split().freeze())),
                Some(Err(error)) => return Some(Err(io::Error::other(error))),
                Some(Ok(frame)) => self.half.extend_from_slice(&frame.into_data().unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_event_is_its_objects_own() {
        let line = br#"{"type":"ADDED","object":{"metadata":{"annotations":{"last":"{\"resourceVersion\":\"1\"}"},"resourceVersion":"42"}}}"#;
        assert_eq!(version_in(line), Some(42));
        assert_eq!(version_in(b"{}"), None);
    }

    #[test]
    fn what_is_remembered_is_the_newest_of_its_time() {
        let told = Told::default();
        let now = Instant::now();
        for (age, version) in [(30, 7), (20, 9), (10, 8)] {
            let at = now
                .checked_sub(Duration::from_mins(age))
                .expect("a machine that runs for a while");
            told.note(at, format!("\"resourceVersion\":\"{version}\"").as_bytes());
        }
        assert_eq!(told.before(Duration::ZERO), Some(9));
        assert_eq!(told.before(Duration::from_mins(25)), Some(7));
        assert_eq!(told.before(Duration::from_mins(40)), None);
    }
}
