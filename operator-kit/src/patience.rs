//! How long a watch waits that the API server does not allow: ever longer, because nobody tells when the right is given. kube's own backoff
//! begins anew with every attempt, which is right for everything that mends itself.

use std::time::Duration;

use futures::{Stream, stream};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};

use crate::failure::is_forbidden;

/// Before the second attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time between two attempts, beside kube's own pause of about a second.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The events of a watcher at the pace of what they tell.
pub(crate) fn patiently<K: Send>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send {
    let paced = (Box::pin(events.default_backoff()), Patience::default());
    stream::unfold(paced, |(mut events, mut patience)| async move {
        tokio::time::sleep(patience.pause()).await;
        let event = futures::StreamExt::next(&mut events).await?;
        patience.hear(&event);
        Some((event, (events, patience)))
    })
}

#[derive(Debug, Default)]
struct Patience {
    /// In a row.
    refusals: u32,
    /// The last event was one.
    refused: bool,
}

impl Patience {
    fn hear<K>(&mut self, event: &watcher::Result<Event<K>>) {
        self.refused = event.as_ref().is_err_and(is_forbidden);
        match event {
            // Told before the API server is asked.
            Ok(Event::Init) => {}
            Err(_) if self.refused => self.refusals = self.refusals.saturating_add(1),
            _ => self.refusals = 0,
        }
    }

    fn pause(&self) -> Duration {
        if !self.refused {
            return Duration::ZERO;
        }
        let doubled = 2_u32.saturating_pow(self.refusals.saturating_sub(1));
        FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::StreamExt;
    use kube::core::Status;
    use tokio::time::Instant;

    use super::*;

    fn answer(code: u16) -> watcher::Result<Event<()>> {
        let status = Status::failure("", "").with_code(code).boxed();
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
    }

    /// How long 20 attempts take that the API server answers with this code.
    async fn twenty_attempts(code: u16) -> Duration {
        let attempts = (0..20).flat_map(move |_| [Ok(Event::Init), answer(code)]);
        let begun = Instant::now();
        let mut events = pin!(patiently(stream::iter(attempts)));
        while events.next().await.is_some() {}
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_not_allowed_is_tried_ever_more_seldom_and_others_as_ever() {
        assert!(twenty_attempts(403).await > 15 * LONGEST_PAUSE);
        assert!(twenty_attempts(500).await < 40 * FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_was_allowed_for_a_while_starts_with_little_patience_again() {
        let mut patience = Patience::default();
        for _ in 0..9 {
            patience.hear(&answer(403));
        }
        assert_eq!(patience.pause(), LONGEST_PAUSE);
        patience.hear(&Ok(Event::<()>::InitDone));
        assert_eq!(patience.pause(), Duration::ZERO);
        patience.hear(&answer(403));
        assert_eq!(patience.pause(), FIRST_PAUSE);
    }
}
