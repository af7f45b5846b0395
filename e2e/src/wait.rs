//! Waiting for the world to be in a state, with a deadline. The only place where tests spend time.

use std::{fmt::Display, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout_at};

/// Short beside everything that is waited for, long enough that the question does not become the load.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Asks `probe` until it answers `Ok` and returns what it found.
///
/// `Err` means "not yet" and says what was seen instead; the last such answer is part of the error that is returned when
/// the `deadline` has passed. A probe that hangs is cut off by the deadline as well. `what` completes the sentence
/// "waited 30s for …".
///
/// ```
/// # async fn example(mut seen: Vec<u8>) -> anyhow::Result<()> {
/// use std::time::Duration;
/// let third = e2e::eventually(Duration::from_secs(5), "a third byte", async || {
///     seen.push(7);
///     seen.get(2).copied().ok_or_else(|| format!("{seen:?}"))
/// })
/// .await?;
/// # Ok(()) }
/// ```
pub async fn eventually<T, E>(deadline: Duration, what: &str, mut probe: impl AsyncFnMut() -> Result<T, E>) -> Result<T>
where
    E: Display,
{
    let end = Instant::now() + deadline;
    let mut last = None;
    loop {
        match timeout_at(end, probe()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(seen)) => last = Some(format!("{seen:#}")),
            Err(_) => {}
        }
        if Instant::now() + POLL_INTERVAL >= end {
            match last {
                Some(last) => bail!("waited {deadline:?} for {what}; last seen: {last}"),
                None => bail!("waited {deadline:?} for {what}; not even the first look came back"),
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}
