//! Looks are given up when the process is to end: whoever only reads has nothing to finish, and a storage or an API server that hangs would
//! keep it. Writes are none of its business.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long a look may still take, so that what is nearly done is done: some come after the last write, for the status.
const GRACE: Duration = Duration::from_secs(1);

/// Knows whether the process is to end.
pub(crate) struct Looking {
    stop: CancellationToken,
}

impl Looking {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop }
    }

    /// What a look at an object finds; nothing when it was given up, and then nothing may be concluded or done.
    pub(crate) async fn at<T>(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        look: impl Future<Output = T>,
    ) -> Option<T> {
        let end = async {
            self.stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            biased;
            found = look => Some(found),
            () = end => {
                tracing::info!(kind, namespace, name, "gave up a look that does not end");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_is_given_up_soon_after_the_process_is_to_end() {
        let stop = CancellationToken::new();
        let looking = Looking::new(stop.clone());
        let begun = Instant::now();
        let stopping = async {
            sleep(Duration::from_hours(1)).await;
            stop.cancel();
        };
        let (found, ()) = tokio::join!(looking.at("Kind", "fleet", "one", pending::<()>()), stopping);
        assert_eq!(found, None);
        assert_eq!(begun.elapsed(), Duration::from_hours(1) + GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_ends_in_time_counts_also_when_the_process_is_to_end() {
        let stop = CancellationToken::new();
        stop.cancel();
        let look = async {
            sleep(GRACE / 2).await;
            "found"
        };
        assert_eq!(Looking::new(stop).at("Kind", "fleet", "one", look).await, Some("found"));
    }
}
