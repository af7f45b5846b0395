//! `lab bench reaction`: how long it takes from the answer of GitHub that has a new tag to the last object of its release.
//!
//! The answer is the one of a poll that was asked for by `requestedAt`: how long a poll is waited for is the stack's choice, not a cost.

use std::time::Duration;

use anyhow::{Context, Result};
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    audit::AuditEvents,
    eventually,
    github::Github,
    operator::Operator,
    releases::{Releases, write_small_stack},
    usage::rounded,
};
use http::StatusCode;
use jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde::Serialize;
use serde_json::json;
use tokio::time::sleep;

use super::{
    ground::{Ground, OPERATOR_AGENT},
    report::{Goal, Row, quantile},
    sources::{self, GITHUB_SECRET, OFTEN},
    stock::{pack, tag},
};
use crate::{arguments::ReactionArguments, progress::Progress};

const STACK: &str = "s000";
const DEADLINE: Duration = Duration::from_mins(1);
/// Between a release that is ready and the next one. Polls are ten seconds apart at least, and a host is asked five times a second in the long
/// run: what comes faster would measure the turn that requests wait for.
const PAUSE: Duration = Duration::from_secs(3);

/// One stretch of the way, over all releases. Keys say their unit.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    stretch: Stretch,
    releases: usize,
    /// What half of them do not exceed, by nearest rank.
    median_ms: f64,
    /// What all but one of a hundred do not exceed.
    p99_ms: f64,
    longest_ms: f64,
}

/// What is measured of each release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Stretch {
    /// From the answer with the new tag to the answer to the last apply.
    #[serde(rename = "seen to applied")]
    Whole,
    /// Of that, from the first question for the release to its last file.
    #[serde(rename = "of it, download")]
    Download,
    /// The first without the second.
    #[serde(rename = "seen to applied, beyond download")]
    Beyond,
    /// From the request for a look on, with the poll, and without the download.
    #[serde(rename = "requestedAt to applied, beyond download")]
    Asked,
}

impl Stretch {
    const ALL: [Self; 4] = [Self::Whole, Self::Download, Self::Beyond, Self::Asked];

    fn name(self) -> &'static str {
        match self {
            Self::Whole => "seen to applied",
            Self::Download => "of it, download",
            Self::Beyond => "seen to applied, beyond download",
            Self::Asked => "requestedAt to applied, beyond download",
        }
    }
}

impl Run {
    fn of(stretch: Stretch, durations: impl Iterator<Item = Duration>) -> Self {
        let all: Vec<f64> = durations.map(|duration| duration.as_secs_f64() * 1e3).collect();
        let rank = |percent| rounded(quantile(&all, percent), 1);
        Self {
            stretch,
            releases: all.len(),
            median_ms: rank(50),
            p99_ms: rank(99),
            longest_ms: rank(100),
        }
    }
}

/// What happened to one release.
struct Sample {
    tag: String,
    asked: Timestamp,
    seen: Timestamp,
    downloading: Duration,
}

/// Measures all samples with one operator.
pub(super) async fn measure(arguments: &ReactionArguments) -> Result<Vec<Run>> {
    let progress = Progress::start(format!("reaction · {} releases", arguments.samples));
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let namespace = ground.namespace("reaction").await?;
    let runs = Box::pin(measure_on(&ground, &namespace, arguments, &progress)).await;
    let cleaned = ground.clean_up(&[namespace]).await;
    let runs = runs?;
    cleaned.map(|()| runs)
}

async fn measure_on(
    ground: &Ground,
    namespace: &str,
    arguments: &ReactionArguments,
    progress: &Progress,
) -> Result<Vec<Run>> {
    let (source, packed) = (ground.folder().join("source"), ground.folder().join("packed"));
    write_small_stack(&source, STACK, 1)?;
    let packed = Releases::at(&packed)?;
    // The first is there before anything is measured.
    let versions: Vec<String> = (0..=arguments.samples)
        .map(|number| format!("v{}", number + 1))
        .collect();
    let packs = versions.iter().map(|version| (source.clone(), version.clone()));
    pack(&packed, packs.collect(), progress).await?;
    let github = Github::start().await?;
    let place = Place {
        ground,
        namespace,
        github: &github,
        packed: &packed,
    };
    let operator = place.begin(&versions[0]).await?;
    let mark = ground.audit.mark().await?;
    let mut samples = Vec::new();
    for version in &versions[1..] {
        samples.push(place.sample(version).await?);
        progress.tick(&format!("{} of {} releases", samples.len(), arguments.samples));
        sleep(PAUSE).await;
    }
    let requests = ground.audit.since(mark).await?.of_agent(OPERATOR_AGENT).writes();
    operator.stop().await?;
    told(&samples, &requests)
}

fn told(samples: &[Sample], requests: &AuditEvents) -> Result<Vec<Run>> {
    let mut timed = Vec::new();
    for sample in samples {
        let applied = last_apply(requests, &sample.tag);
        let applied = applied.with_context(|| format!("nothing of {} was applied", sample.tag))?;
        let since = |from: Timestamp| Duration::try_from(applied.duration_since(from)).unwrap_or_default();
        timed.push((since(sample.asked), since(sample.seen), sample.downloading));
    }
    let runs = Stretch::ALL.map(|stretch| {
        let durations = timed.iter().map(|(asked, seen, downloading)| match stretch {
            Stretch::Whole => *seen,
            Stretch::Download => *downloading,
            Stretch::Beyond => seen.saturating_sub(*downloading),
            Stretch::Asked => asked.saturating_sub(*downloading),
        });
        Run::of(stretch, durations)
    });
    Ok(runs.into())
}

/// When the API server had answered the last apply of an object of this release.
fn last_apply(requests: &AuditEvents, tag: &str) -> Option<Timestamp> {
    let inner = format!("{tag}-");
    let applies = requests.iter().filter(|request| {
        let object = request.object.as_ref();
        let named = object.is_some_and(|object| {
            object.api_group != crds::GROUP && (object.name == tag || object.name.starts_with(&inner))
        });
        named && request.verb == "patch" && (200..300).contains(&request.code)
    });
    applies.map(|request| request.answered).max()
}

/// Where releases appear.
struct Place<'a> {
    ground: &'a Ground,
    namespace: &'a str,
    github: &'a Github,
    packed: &'a Releases,
}

impl Place<'_> {
    /// Has an operator follow the repository, and waits until its first release is ready.
    async fn begin(&self, version: &str) -> Result<Operator> {
        self.github.publish(&self.packed.folder_of(&tag(STACK, version)))?;
        let client = &self.ground.client;
        sources::add_github_secret(client, self.namespace).await?;
        let empty = Releases::at(&self.ground.folder().join("empty"))?;
        let flags = sources::flags(self.ground.folder());
        let operator = self.ground.operate(self.namespace, &empty, flags).await?;
        let stack: ClusterStack = serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": { "name": STACK },
            "spec": {
                "provider": "docker", "name": STACK, "kubernetesVersion": "1.34", "noProvider": true,
                "autoSubscribe": true, "interval": OFTEN,
                "source": self.github.source("127.0.0.1", Some(GITHUB_SECRET)),
            },
        }))
        .context("unable to read a ClusterStack of our own")?;
        let created = self.stacks().create(&PostParams::default(), &stack).await;
        created.context("failed to create a ClusterStack")?;
        self.until_ready(&tag(STACK, version)).await?;
        Ok(operator)
    }

    /// Publishes a release and asks for a look, when no poll has just been made or is near.
    async fn sample(&self, version: &str) -> Result<Sample> {
        let tag = tag(STACK, version);
        self.github.api.forget_visits();
        self.github.storage.forget_visits();
        self.github.publish(&self.packed.folder_of(&tag))?;
        let asked = Timestamp::now();
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { labels::REQUESTED_AT: version } } }));
        let asking = self.stacks().patch(STACK, &PatchParams::default(), &patch).await;
        asking.context("failed to ask for a look")?;
        self.until_ready(&tag).await?;
        let visits = self.github.api.visits();
        let seen = visits
            .iter()
            .find(|visit| visit.target.contains("/releases?") && visit.status == StatusCode::OK)
            .context("no poll saw the new release")?
            .at;
        let first = visits
            .iter()
            .find(|visit| visit.at >= seen && !visit.target.contains("/releases?"))
            .context("the release was not asked for")?
            .at;
        let stored = self.github.storage.visits();
        let last = stored.last().context("the release was not downloaded")?.at;
        Ok(Sample {
            tag,
            asked,
            seen,
            downloading: Duration::try_from(last.duration_since(first)).unwrap_or_default(),
        })
    }

    fn stacks(&self) -> Api<ClusterStack> {
        Api::namespaced(self.ground.client.clone(), self.namespace)
    }

    async fn until_ready(&self, tag: &str) -> Result<()> {
        let releases: Api<ClusterStackRelease> = Api::namespaced(self.ground.client.clone(), self.namespace);
        eventually(DEADLINE, format!("{tag} to be ready"), async || {
            let release = releases.get(tag).await?;
            let ready = release.status.as_ref().is_some_and(|status| status.ready);
            if ready {
                Ok(())
            } else {
                Err(anyhow::anyhow!("it is not"))
            }
        })
        .await
    }
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &["stretch", "releases", "median ms", "p99 ms", "longest ms"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.stretch.name().to_owned(),
            self.releases.to_string(),
            format!("{:.1}", self.median_ms),
            format!("{:.1}", self.p99_ms),
            format!("{:.1}", self.longest_ms),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = self.stretch.name();
        match self.stretch {
            Stretch::Whole | Stretch::Download => Vec::new(),
            Stretch::Beyond | Stretch::Asked => vec![
                Goal::at_most(300.0, "median ms", of, self.median_ms),
                Goal::at_most(1000.0, "p99 ms", of, self.p99_ms),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_the_ninety_ninth_counts_and_of_few_the_longest() {
        let run = Run::of(Stretch::Whole, (1..=100).rev().map(Duration::from_millis));
        assert!(
            (run.median_ms - 50.0).abs() < 0.1 && (run.p99_ms - 99.0).abs() < 0.1,
            "{run:?}"
        );
        let run = Run::of(Stretch::Whole, (1..=3).map(Duration::from_millis));
        assert!(
            (run.median_ms - 2.0).abs() < 0.1 && (run.p99_ms - 3.0).abs() < 0.1,
            "{run:?}"
        );
    }
}
