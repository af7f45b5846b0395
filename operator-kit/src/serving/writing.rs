//! Answers that are taken in time, or not at all.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream on which what is written has to be taken within a deadline, all of it: who takes it byte by byte has no more time.
pub(super) struct Hurried<S> {
    stream: S,
    deadline: Duration,
    /// When what is being written must be with its reader. `None` as long as nothing waits for him.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Hurried<S> {
    pub(super) fn new(stream: S, deadline: Duration) -> Self {
        Self {
            stream,
            deadline,
            end: None,
        }
    }

    /// What a step of writing gives, as long as there is time.
    fn in_time<T>(&mut self, context: &mut Context<'_>, step: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if step.is_ready() {
            return step;
        }
        let deadline = self.deadline;
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(deadline)));
        ready!(end.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Hurried<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Hurried<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, step)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.in_time(context, step)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when nothing is left to write: the next answer has its own time.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_flush(context);
        if step.is_ready() {
            self.end = None;
        }
        self.in_time(context, step)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, step)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn who_takes_an_answer_byte_by_byte_has_no_more_time_and_each_answer_has_its_own() {
        let (ours, mut theirs) = duplex(16);
        let mut ours = Hurried::new(ours, DEADLINE);
        let reading = tokio::spawn(async move {
            // Two answers, each read at its last moment.
            for _ in 0..2 {
                sleep(DEADLINE * 3 / 4).await;
                theirs.read_exact(&mut [0; 32]).await.unwrap();
            }
            while theirs.read_u8().await.is_ok() {
                sleep(DEADLINE / 4).await;
            }
        });
        for _ in 0..2 {
            ours.write_all(&[1; 32]).await.unwrap();
            ours.flush().await.unwrap();
        }
        let begun = Instant::now();
        let late = ours.write_all(&[1; 1024]).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < DEADLINE * 2, "{:?}", begun.elapsed());
        drop(ours);
        reading.await.unwrap();
    }
}
