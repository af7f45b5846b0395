//! The question at which the world stops: before its answer, in the middle of it, or behind it.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{self, Poll},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, header};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{oneshot, watch};

use super::{Answer, lock};

/// What goes out: an answer, or as much of it as a stop lets through.
pub(super) type Sent = openstack_lab::client::Body;

/// Whether a question is meant, by its number and its target.
type Choice = dyn Fn(usize, &str) -> bool + Send;

/// When at the chosen question the world stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The question is there, and no byte of an answer is on its way.
    BeforeAnswer,
    /// Half of the answer's body is on its way. An answer without a body is on its way as a whole.
    InTheMiddle,
    /// All of the answer is on its way.
    AfterAnswer,
}

/// A server that is armed. Dropped, it stays armed, but nobody waits: the stop is over as soon as it begins.
#[derive(Debug)]
pub struct Arrest(oneshot::Receiver<Stopped>);

impl Arrest {
    /// Waits until the chosen question is there, and its answer as far as it is let through.
    pub async fn wait(self, deadline: Duration) -> Result<Stopped> {
        let stopped = tokio::time::timeout(deadline, self.0).await;
        stopped
            .with_context(|| format!("the chosen question did not arrive within {deadline:?}"))?
            .context("the server was armed anew or stopped before the chosen question arrived")
    }
}

/// The world is stopped: the chosen question gets no more of its answer, and no question after it is answered.
///
/// Dropped, their connections are closed as they are, and what comes after them is answered.
#[derive(Debug)]
pub struct Stopped {
    /// Path and query of the chosen question.
    pub target: String,
    goes_on: watch::Sender<bool>,
}

impl Stopped {
    /// Lets everything take its course, as if nothing had been.
    pub fn go_on(self) {
        self.goes_on.send_replace(true);
    }
}

/// The count of questions, and the armed stop.
#[derive(Default)]
pub(super) struct Stops(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    asked: usize,
    armed: Option<Armed>,
    lasting: Option<watch::Receiver<bool>>,
}

struct Armed {
    is_meant: Box<Choice>,
    moment: Moment,
    waiting: oneshot::Sender<Stopped>,
}

/// What is to be done with a question.
pub(super) enum Verdict {
    Answer,
    /// It came while the world is stopped.
    Hold(Hold),
    /// It is the chosen one.
    Stop(Pending),
}

/// The end of a stop, to be waited for.
pub(super) struct Hold(watch::Receiver<bool>);

impl Hold {
    /// Returns when the world goes on; an error when the connection is to be closed.
    pub(super) async fn over(mut self) -> io::Result<()> {
        let went_on = self.0.wait_for(|goes_on| *goes_on).await;
        went_on.map(drop).map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }
}

/// The chosen question, whose moment is to come.
pub(super) struct Pending {
    stops: Arc<Stops>,
    target: String,
    pub(super) moment: Moment,
    waiting: oneshot::Sender<Stopped>,
}

impl Pending {
    /// Stops the world and tells who waits for it.
    pub(super) fn stop(self) -> Hold {
        let (goes_on, lasting) = watch::channel(false);
        lock(&self.stops.0).lasting = Some(lasting.clone());
        // Refused when nobody waits: then the sender is dropped here and the stop is over.
        let _ = self.waiting.send(Stopped {
            target: self.target,
            goes_on,
        });
        Hold(lasting)
    }

    /// The answer, which stops the world when it is half out or out.
    pub(super) fn within(self, answer: Answer) -> Response<Sent> {
        let (mut head, bytes) = answer.into_parts();
        if self.moment == Moment::AfterAnswer || bytes.is_empty() {
            let body = Last {
                bytes: Full::new(bytes),
                pending: Some(self),
            };
            return Response::from_parts(head, body.boxed_unsync());
        }
        head.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
        let half = bytes.len() / 2;
        let (first, rest) = (bytes.slice(..half), bytes.slice(half..));
        let rest = stream::once(async move {
            // What was given before leaves while this waits for its turn.
            tokio::task::yield_now().await;
            self.stop().over().await?;
            Ok(Frame::data(rest))
        });
        let frames = stream::iter([Ok(Frame::data(first))]).chain(rest);
        Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
    }
}

impl Stops {
    /// Arms it for the first question that is meant, by its number, counted from 1, and its target.
    pub(super) fn arm(&self, moment: Moment, is_meant: Box<Choice>) -> Arrest {
        let (waiting, arrest) = oneshot::channel();
        lock(&self.0).armed = Some(Armed {
            is_meant,
            moment,
            waiting,
        });
        Arrest(arrest)
    }

    /// Counts a question, and says what is to be done with it.
    pub(super) fn judge(self: &Arc<Self>, target: &str) -> Verdict {
        let mut entries = lock(&self.0);
        entries.asked += 1;
        let asked = entries.asked;
        // The sender is inside of `Stopped`: gone means over.
        entries.lasting.take_if(|lasting| lasting.has_changed().is_err());
        if let Some(lasting) = &entries.lasting {
            return Verdict::Hold(Hold(lasting.clone()));
        }
        match entries.armed.take_if(|armed| (armed.is_meant)(asked, target)) {
            None => Verdict::Answer,
            Some(Armed { moment, waiting, .. }) => Verdict::Stop(Pending {
                stops: Arc::clone(self),
                target: target.to_owned(),
                moment,
                waiting,
            }),
        }
    }
}

impl fmt::Debug for Stops {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stops").finish_non_exhaustive()
    }
}

/// A body that stops the world when it has been given to the connection.
struct Last {
    bytes: Full<Bytes>,
    pending: Option<Pending>,
}

impl Body for Last {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.bytes).poll_frame(context);
        frame.map_err(|never| match never {})
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.bytes.size_hint()
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        // Nothing waits: all of the answer may leave.
        drop(self.pending.take().map(Pending::stop));
    }
}
