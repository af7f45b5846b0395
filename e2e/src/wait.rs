//! Waiting for the world to be in a state, with a deadline. The only place where tests spend time.

use std::{fmt::Display, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout_at};

/// How long after a look comes the next one: an eighth of the wait so far, within these bounds. So that is short beside the wait, and the question does
/// not become the load: of many journeys at once, half of what an API server was asked were such looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// Asks `probe` until it answers `Ok` and returns what it found.
///
/// `Err` means "not yet" and says what was seen instead; the last such answer is part of the error that is returned when
/// the `deadline` has passed. A probe that hangs is cut off by the deadline as well. `what` completes the sentence
/// "waited 30s for …".
///
/// ```
/// # async fn example(api: kube::Api<k8s_openapi::api::core::v1::ConfigMap>) -> anyhow::Result<()> {
/// use std::time::Duration;
/// e2e::eventually(Duration::from_secs(5), "the object to be gone", async || match api.get_opt("it").await {
///     Ok(None) => Ok(()),
///     other => Err(format!("{other:?}")),
/// })
/// .await?;
/// # Ok(()) }
/// ```
///
/// (A probe that changes what it captures returns [`std::future::ready`] from a plain closure: an async closure that
/// does so fits only waits that stay in their task, and this one runs anywhere.)
pub async fn eventually<T, E, Look>(
    deadline: Duration,
    what: impl Display,
    mut probe: impl FnMut() -> Look,
) -> Result<T>
where
    E: Display,
    Look: Future<Output = Result<T, E>>,
{
    let begin = Instant::now();
    let end = begin + deadline;
    let mut last = None;
    loop {
        match timeout_at(end, probe()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(seen)) => last = Some(format!("{seen:#}")),
            Err(_) => {}
        }
        let (shortest, longest) = PAUSES;
        let pause = (begin.elapsed() / 8).clamp(shortest, longest);
        if Instant::now() + pause >= end {
            match last {
                Some(last) => bail!("waited {deadline:?} for {what}; last seen: {last}"),
                None => bail!("waited {deadline:?} for {what}; not even the first look came back"),
            }
        }
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn the_error_tells_what_was_seen_last() {
        let error = eventually(Duration::ZERO, "rain", async || Err::<(), _>("two clouds"))
            .await
            .expect_err("no rain");
        assert_eq!(error.to_string(), "waited 0ns for rain; last seen: two clouds");
    }

    #[tokio::test]
    async fn a_probe_that_hangs_is_cut_off() {
        let hanging = async || std::future::pending::<Result<(), String>>().await;
        let error = eventually(Duration::ZERO, "an echo", hanging)
            .await
            .expect_err("no echo");
        assert_eq!(
            error.to_string(),
            "waited 0ns for an echo; not even the first look came back"
        );
    }

    #[tokio::test]
    async fn waits_run_in_tasks_of_their_own() -> Result<()> {
        let mut looks = 0;
        let waiting = async move {
            eventually(Duration::from_secs(5), "the third look", || {
                looks += 1;
                ready(if looks == 3 { Ok(looks) } else { Err(looks) })
            })
            .await
        };
        assert_eq!(tokio::spawn(waiting).await??, 3);
        Ok(())
    }
}
