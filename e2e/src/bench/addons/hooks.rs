//! Calls of lifecycle hooks while all clusters are upgraded, as Cluster API makes them.

use std::{
    collections::BTreeMap,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use e2e::{
    Metrics,
    hooks::{Answer, Hook, Question},
};
use kube::{Client, api::DynamicObject};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::{
    fleet::{Fleet, KUBERNETES},
    place::{Operated, Place},
    run::Hooks,
};
use crate::{
    bench::report::{median, quantile},
    progress::Progress,
};

/// The hooks that are called.
const CALLED: [Hook; 2] = [Hook::BeforeClusterUpgrade, Hook::AfterControlPlaneUpgrade];
/// How long Cluster API lets pass between two calls for one cluster before 1.12: that is most often.
const PAUSE: Duration = Duration::from_secs(1);
/// Of the calls, so many of a hundred are to be answered in time.
const MOST: usize = 99;

/// What came of one call.
struct Heard {
    milliseconds: f64,
    /// The cluster was held up.
    held: bool,
}

/// Gives all Clusters their first class back, and calls hooks for them until that is done.
pub(super) async fn measure(
    place: &Place,
    operated: &mut Operated,
    names: &[String],
    progress: &Progress,
) -> Result<Hooks> {
    let port = operated.operator.hook_port().await?;
    let client = place.certificates.client(port)?;
    let before = answers(&operated.operator.metrics().await?)?;
    let fleet = Fleet::new(&place.ground.client, &place.namespace);
    let class = &place.classes[0];
    let calls = calls(&fleet.change_all(names, class).await?)?;
    let complete = fleet.until_complete(names.len(), class, &mut operated.operator, progress);
    let heard = calling(&client, &calls, complete).await?;
    place.until_quiet(progress).await?;
    let after = answers(&operated.operator.metrics().await?)?;
    let milliseconds: Vec<f64> = heard.iter().map(|heard| heard.milliseconds).collect();
    Ok(Hooks {
        clusters: names.len(),
        calls: heard.len(),
        held: heard.iter().filter(|heard| heard.held).count(),
        handler_p99_ms_at_most: bound(&before, &after)?,
        heard_median_ms: median(&milliseconds),
        heard_p99_ms: quantile(&milliseconds, MOST),
        heard_longest_ms: quantile(&milliseconds, 100),
    })
}

/// Every call, those for one cluster one round of all clusters apart.
fn calls(clusters: &[DynamicObject]) -> Result<Vec<Question>> {
    let of_hook = |hook| {
        let all = clusters.iter();
        all.map(move |cluster| Question::about(cluster, hook, [KUBERNETES; 2]))
    };
    CALLED.into_iter().flat_map(of_hook).collect()
}

/// Calls for each cluster once in a while, whoever has answered so far, until the work is done.
async fn calling(client: &Client, calls: &[Question], work: impl Future<Output = Result<()>>) -> Result<Vec<Heard>> {
    let clusters = u32::try_from(calls.len() / CALLED.len())?;
    let mut turn = interval(PAUSE / clusters.max(1));
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = pin!(work);
    let (mut asked, mut heard) = (JoinSet::new(), Vec::new());
    for question in calls.iter().cycle() {
        tokio::select! {
            done = &mut work => {
                done?;
                break;
            }
            _ = turn.tick() => {
                asked.spawn(call(client.clone(), question.clone()));
            }
        }
        while let Some(answer) = asked.try_join_next() {
            heard.push(answer.context("a call was stopped")??);
        }
    }
    while let Some(answer) = asked.join_next().await {
        heard.push(answer.context("a call was stopped")??);
    }
    Ok(heard)
}

async fn call(client: Client, question: Question) -> Result<Heard> {
    let begin = Instant::now();
    let answer = question.ask(&client).await?;
    let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
    let held = match answer {
        Answer::Proceed => false,
        Answer::Wait { .. } => true,
        Answer::Fail(message) => bail!("a hook was answered with a failure: {message}"),
    };
    Ok(Heard { milliseconds, held })
}

/// Answers of all hooks that took at most so many microseconds, by the operator's own account.
type Answers = BTreeMap<u64, f64>;

fn answers(metrics: &Metrics) -> Result<Answers> {
    let mut answers = Answers::new();
    for sample in metrics.select("stackwright_hook_duration_seconds_bucket", &[]) {
        let bound = sample.labels.get("le").context("a bucket has no bound")?;
        let seconds: f64 = bound.parse().with_context(|| format!("{bound} is no bound"))?;
        // As a number that can be a key; beyond the last bound is as far as one can tell.
        let microseconds =
            Duration::try_from_secs_f64(seconds).map_or(Ok(u64::MAX), |bound| bound.as_micros().try_into());
        *answers.entry(microseconds?).or_default() += sample.value;
    }
    Ok(answers)
}

/// The least bound, in milliseconds, below which 99 of 100 answers were that came between the two.
fn bound(before: &Answers, after: &Answers) -> Result<f64> {
    let since = |bound: &u64, count: &f64| count - before.get(bound).copied().unwrap_or_default();
    let all = after.iter().next_back().map(|(bound, count)| since(bound, count));
    let all = all.context("the operator says nothing of its answers")?;
    let enough = all * 0.99;
    let mut bounds = after.iter();
    let (bound, _) = bounds
        .find(|(bound, count)| since(bound, count) >= enough)
        .context("no bound has all answers")?;
    Ok(Duration::from_micros(*bound).as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_is_the_least_that_99_of_100_later_answers_are_below() -> Result<()> {
        let page = |slow: u32| {
            let line = |bound: &str, count: u32| {
                format!("stackwright_hook_duration_seconds_bucket{{le=\"{bound}\",hook=\"A\"}} {count}\n")
            };
            let text = [line("0.001", 100), line("0.1", 199), line("+Inf", 199 + slow)].concat();
            answers(&Metrics::parse(&text)?)
        };
        let before = Answers::from([(1000, 100.0), (100_000, 100.0), (u64::MAX, 100.0)]);
        assert_eq!(bound(&before, &page(0)?)?.to_string(), "100");
        assert_eq!(bound(&before, &page(1)?)?.to_string(), "100");
        assert!(bound(&before, &page(2)?)? > 1e6);
        Ok(())
    }
}
