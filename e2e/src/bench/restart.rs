//! `lab bench restart`: how soon the next operator is right about something that changed while there was none, and what it writes besides.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::ClusterStack;
use e2e::{
    AuditEvent, Metrics,
    audit::{AuditEvents, Mark},
    eventually,
    operator::Operator,
    usage::{Usage, rounded},
};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::Serialize;
use serde_json::json;

use super::{
    ground::{Ground, OPERATOR_AGENT, elected},
    install::{install, until_quiet},
    report::{Goal, Row, count},
    stock::{OBJECTS, RELEASES_OF_A_STACK, Shape, Stock},
};
use crate::{arguments::RestartArguments, progress::Progress};

/// Much longer than the Lease and a start together.
const DEADLINE: Duration = Duration::from_mins(3);

/// How an operator ends.
#[derive(Clone, Copy, Debug, Serialize)]
enum End {
    #[serde(rename = "SIGTERM")]
    Asked,
    #[serde(rename = "SIGKILL")]
    Killed,
}

/// One restart, measured. Keys say their unit.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    end: End,
    releases: usize,
    stacks: usize,
    /// From the signal until it was gone.
    ending_seconds: f64,
    /// From the start of the next one until the Lease was its own.
    lease_seconds: f64,
    /// From then on, until the status of the stack that had changed was right.
    status_seconds: f64,
    /// From then on, until it had looked at everything and had nothing left to do.
    settled_seconds: f64,
    /// Besides the Lease and that status.
    spare_writes: usize,
    reads_other_than_watch: usize,
    watches_begun: usize,
    cpu_seconds: f64,
    peak_rss_mib: f64,
}

/// Measures both ways to end.
pub(super) async fn measure(arguments: &RestartArguments) -> Result<Vec<Run>> {
    let progress = Progress::start(format!("restart · {} releases", arguments.releases));
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let namespace = ground.namespace("restart").await?;
    let runs = Box::pin(measure_on(&ground, &namespace, arguments, &progress)).await;
    let cleaned = ground.clean_up(&[namespace]).await;
    let runs = runs?;
    cleaned.map(|()| runs)
}

async fn measure_on(
    ground: &Ground,
    namespace: &str,
    arguments: &RestartArguments,
    progress: &Progress,
) -> Result<Vec<Run>> {
    let releases = usize::try_from(arguments.releases)?;
    let shape = Shape::even(releases, releases.div_ceil(RELEASES_OF_A_STACK), OBJECTS);
    let stock = Stock::pack(ground.folder(), &shape, progress).await?;
    progress.step("the operator installs");
    let operator = ground.operate(namespace, &stock.releases, elected(namespace)).await?;
    let installed = install(ground, operator, namespace, &stock, progress).await?;
    let place = Place {
        ground,
        namespace,
        stock: &stock,
        shape: &shape,
        progress,
    };
    progress.step("after SIGTERM");
    let (asked, operator) = place.restart(installed.operator, End::Asked).await?;
    progress.step("after SIGKILL");
    let (killed, operator) = place.restart(operator, End::Killed).await?;
    operator.stop().await?;
    Ok(vec![asked, killed])
}

/// Where operators follow each other.
struct Place<'a> {
    ground: &'a Ground,
    namespace: &'a str,
    stock: &'a Stock,
    shape: &'a Shape,
    progress: &'a Progress,
}

impl Place<'_> {
    /// Ends an operator, changes the world, starts another one, and sees what it does.
    async fn restart(&self, operator: Operator, end: End) -> Result<(Run, Operator)> {
        let signalled = Timestamp::now();
        match end {
            End::Asked => {
                let ended = operator.stop().await?;
                ensure!(ended.is_success(), "the operator {ended}");
            }
            End::Killed => operator.kill().await?,
        }
        let gone = Timestamp::now();
        let (stack, generation) = self.change(end).await?;
        let mark = self.ground.audit.mark().await?;
        let begun = Timestamp::now();
        let flags = elected(self.namespace);
        let mut operator = self.ground.start(self.namespace, &self.stock.releases, flags)?;
        self.until_right(&stack, generation).await?;
        self.until_settled(&mut operator).await?;
        let settled = Timestamp::now();
        until_quiet(self.ground, self.progress).await?;
        let usage = Usage::of(operator.process_id().context("the operator has no process")?)?;
        let requests = self.requests(mark).await?;
        let leased = first(requests.clone().lease_writes()).context("the Lease was not taken")?;
        let writes = requests.clone().writes();
        let told = |write: &AuditEvent| is_status_of(write, &stack);
        let right = first(writes.clone().filter(told)).context("the status of the stack was not written")?;
        let run = Run {
            end,
            releases: self.shape.releases(),
            stacks: self.shape.stacks(),
            ending_seconds: seconds(signalled, gone),
            lease_seconds: seconds(begun, leased),
            status_seconds: seconds(leased, right),
            settled_seconds: seconds(leased, settled),
            spare_writes: writes.len() - 1,
            reads_other_than_watch: requests.clone().reads_other_than_watch().len(),
            watches_begun: requests.filter(|request| request.verb == "watch").len(),
            cpu_seconds: usage.cpu.as_secs_f64(),
            peak_rss_mib: usage.peak_mib,
        };
        Ok((run, operator))
    }

    async fn requests(&self, mark: Mark) -> Result<AuditEvents> {
        Ok(self.ground.audit.since(mark).await?.of_agent(OPERATOR_AGENT))
    }

    fn stacks(&self) -> Api<ClusterStack> {
        Api::namespaced(self.ground.client.clone(), self.namespace)
    }

    /// Changes the spec of the stack that comes last by name, so that its status is not right any more; its name and generation.
    async fn change(&self, end: End) -> Result<(String, i64)> {
        let name = self.stock.names().max().context("there is no stack")?;
        let interval = match end {
            End::Asked => "6m",
            End::Killed => "7m",
        };
        let patch = Patch::Merge(json!({ "spec": { "interval": interval } }));
        let changed = self.stacks().patch(name, &PatchParams::default(), &patch).await;
        let changed = changed.with_context(|| format!("failed to change the stack {name}"))?;
        let generation = changed.metadata.generation.context("an object has a generation")?;
        Ok((changed.name_any(), generation))
    }

    async fn until_right(&self, stack: &str, generation: i64) -> Result<()> {
        let stacks = self.stacks();
        let right = eventually(DEADLINE, format!("the status of {stack} to be right"), async || {
            let status = stacks.get(stack).await?.status.unwrap_or_default();
            ensure!(
                status.observed_generation == Some(generation),
                "{:?}",
                status.observed_generation
            );
            ensure!(status.summary.iter().all(|row| row.ready), "not all of it is ready");
            Ok(())
        });
        right.await
    }

    /// Returns when the operator has been done with everything once.
    async fn until_settled(&self, operator: &mut Operator) -> Result<()> {
        let url = operator.metrics_url().await?;
        let numbers = [
            ("ClusterStack", self.shape.stacks()),
            ("ClusterStackRelease", self.shape.releases()),
        ];
        eventually(DEADLINE, "the operator to be done with everything", async || {
            let metrics = Metrics::read(&url).await?;
            for (kind, there) in numbers {
                let labels = [("kind", kind), ("outcome", "settled")];
                let settled = metrics.sum("stackwright_reconciles_total", &labels).unwrap_or_default();
                ensure!(settled >= count(there), "{settled} of {there} {kind} are settled");
                let depth = metrics.sum("stackwright_queue_depth", &[("kind", kind)]);
                ensure!(depth.is_some_and(|depth| depth < 1.0), "{depth:?} of {kind} wait");
            }
            Ok(())
        })
        .await
    }
}

fn is_status_of(write: &AuditEvent, stack: &str) -> bool {
    let object = write.object.as_ref();
    object.is_some_and(|object| {
        object.resource == "clusterstacks" && object.subresource == "status" && object.name == stack
    })
}

/// When the first of them was answered that was accepted.
fn first(requests: AuditEvents) -> Option<Timestamp> {
    let accepted = requests
        .into_iter()
        .filter(|request| (200..300).contains(&request.code));
    accepted.map(|request| request.answered).min()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    rounded(to.duration_since(from).as_secs_f64(), 2)
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &[
        "after",
        "releases",
        "stacks",
        "ending s",
        "wait for the Lease s",
        "then right s",
        "then settled s",
        "spare writes",
        "reads",
        "watches begun",
        "CPU s",
        "peak MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name().to_owned(),
            self.releases.to_string(),
            self.stacks.to_string(),
            format!("{:.2}", self.ending_seconds),
            format!("{:.2}", self.lease_seconds),
            format!("{:.2}", self.status_seconds),
            format!("{:.2}", self.settled_seconds),
            self.spare_writes.to_string(),
            self.reads_other_than_watch.to_string(),
            self.watches_begun.to_string(),
            format!("{:.2}", self.cpu_seconds),
            format!("{:.1}", self.peak_rss_mib),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = self.name();
        // Whoever was asked to end has let the Lease go.
        let right = match self.end {
            End::Asked => rounded(self.lease_seconds + self.status_seconds, 2),
            End::Killed => self.status_seconds,
        };
        vec![
            Goal::at_most(
                10.0,
                "seconds to the first status that is right, the Lease of a killed operator apart",
                of,
                right,
            ),
            Goal::none("spare writes", of, self.spare_writes),
        ]
    }
}

impl Run {
    fn name(&self) -> &'static str {
        match self.end {
            End::Asked => "SIGTERM",
            End::Killed => "SIGKILL",
        }
    }
}
