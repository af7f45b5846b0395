//! What was found, as lines of a table, and what was promised of it.

use e2e::{audit::AuditEvents, usage::rounded};
use serde::Serialize;

use super::{
    raw::Raw,
    step::{Step, sum},
};
use crate::{
    arguments::addons::AddonsArguments,
    bench::report::{Goal, Row, count},
};

/// One line. Keys say their unit.
#[derive(Debug, Serialize)]
#[serde(tag = "measure", rename_all = "snake_case")]
pub(in crate::bench) enum Run {
    Install(Beside),
    Upgrade(Beside),
    Idle(Idle),
    Hooks(Hooks),
    Reaction(Reaction),
}

/// All clusters at once, beside the raw writer.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Beside {
    clusters: usize,
    servers: u16,
    /// From the first write of the benchmark to the last of the operator.
    seconds: f64,
    /// The writes of both, one after the other.
    raw_seconds: f64,
    /// Of it, those of the benchmark.
    raw_clusters_seconds: f64,
    /// `seconds / raw_seconds`.
    ratio: f64,
    /// Of the operator, to all API servers.
    writes: usize,
    /// Of these, what the raw writer makes too: not what was refused, nor the status of stacks and releases.
    raw_writes: usize,
    reads_other_than_watch: usize,
    renderings: f64,
    /// The values of no two clusters are the same.
    renderings_per_distinct_values: f64,
    cpu_seconds: f64,
    peak_rss_mib: f64,
}

/// Nothing to do.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Idle {
    pub(super) clusters: usize,
    pub(super) seconds: u32,
    /// To all API servers, besides renewals of the Lease.
    pub(super) writes: usize,
    pub(super) lease_renewals: usize,
    pub(super) reads: usize,
    /// In its workload cluster.
    pub(super) watches_per_cluster: f64,
    /// With the releases and without clusters.
    pub(super) empty_rss_mib: f64,
    pub(super) rss_mib: f64,
    /// What the clusters have added, for each.
    pub(super) rss_mib_per_cluster: f64,
    pub(super) cpu_percent: f64,
}

/// Calls of lifecycle hooks during an upgrade.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Hooks {
    pub(super) clusters: usize,
    pub(super) calls: usize,
    /// Of these, answered with a wait.
    pub(super) held: usize,
    /// By the operator: the bound of its histogram below which 99 of 100 answers are.
    pub(super) handler_p99_ms_at_most: f64,
    /// By the caller, over HTTPS.
    pub(super) heard_median_ms: f64,
    pub(super) heard_p99_ms: f64,
    pub(super) heard_longest_ms: f64,
}

/// API servers that answer for the first time.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Reaction {
    /// That are there already.
    pub(super) clusters: usize,
    pub(super) samples: usize,
    /// From the status of the control plane to the answer to the first write.
    pub(super) median_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) longest_ms: f64,
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &["measure", "of", "found", "beside it", "ratio", "memory"];

    fn cells(&self) -> Vec<String> {
        let cells = match self {
            Self::Install(install) => install.cells("install"),
            Self::Upgrade(upgrade) => upgrade.cells("upgrade"),
            Self::Idle(idle) => idle.cells(),
            Self::Hooks(hooks) => hooks.cells(),
            Self::Reaction(reaction) => reaction.cells(),
        };
        cells.into()
    }

    fn goals(&self) -> Vec<Goal> {
        match self {
            Self::Install(install) => install.goals("install"),
            Self::Upgrade(upgrade) => upgrade.goals("upgrade"),
            Self::Idle(idle) => idle.goals(),
            Self::Hooks(hooks) => hooks.goals(),
            Self::Reaction(reaction) => reaction.goals(),
        }
    }
}

/// In the order of the headings.
type Cells = [String; 6];

impl Beside {
    pub(super) fn of(arguments: &AddonsArguments, step: &Step, raw: &Raw) -> Self {
        let clusters = usize::from(arguments.clusters);
        let [seconds, raw_seconds] = [step.took, raw.took].map(|took| took.as_secs_f64());
        Self {
            clusters,
            servers: arguments.servers,
            seconds: rounded(seconds, 2),
            raw_seconds: rounded(raw_seconds, 2),
            raw_clusters_seconds: rounded(raw.clusters_took.as_secs_f64(), 2),
            ratio: rounded(seconds / raw_seconds, 2),
            writes: sum(&step.requests, AuditEvents::writes),
            raw_writes: raw.writes,
            reads_other_than_watch: sum(&step.requests, AuditEvents::reads_other_than_watch),
            renderings: step.renderings,
            renderings_per_distinct_values: rounded(step.renderings / count(clusters), 3),
            cpu_seconds: rounded(step.cpu.as_secs_f64(), 2),
            peak_rss_mib: step.peak_mib,
        }
    }

    fn cells(&self, measure: &str) -> Cells {
        let Self {
            clusters,
            servers,
            seconds,
            raw_seconds,
            raw_clusters_seconds,
            ratio,
            writes,
            raw_writes,
            reads_other_than_watch,
            renderings,
            renderings_per_distinct_values: _,
            cpu_seconds,
            peak_rss_mib,
        } = self;
        [
            measure.to_owned(),
            format!("{clusters} clusters on {servers}"),
            format!("{seconds:.2} s, {writes} writes, {reads_other_than_watch} reads, {renderings} renderings"),
            format!("raw: {raw_seconds:.2} s, {raw_clusters_seconds:.2} s of it Clusters, {raw_writes} writes"),
            format!("{ratio:.2}"),
            format!("peak {peak_rss_mib:.1} MiB, {cpu_seconds:.2} s CPU"),
        ]
    }

    fn goals(&self, measure: &str) -> Vec<Goal> {
        let of = format!("{measure} of {}", self.clusters);
        vec![
            Goal::at_most(2.5, "time of the raw writer", &of, self.ratio),
            Goal::at_most(
                1.0,
                "renderings for each distinct values",
                &of,
                self.renderings_per_distinct_values,
            ),
        ]
    }
}

impl Idle {
    fn cells(&self) -> Cells {
        let Self {
            clusters,
            seconds,
            writes,
            lease_renewals,
            reads,
            watches_per_cluster,
            empty_rss_mib,
            rss_mib,
            rss_mib_per_cluster,
            cpu_percent,
        } = self;
        [
            "idle".to_owned(),
            format!("{clusters} clusters, {seconds} s"),
            format!("{writes} writes, {reads} reads, {watches_per_cluster:.2} watches a cluster"),
            format!("{lease_renewals} renewals of the Lease"),
            String::new(),
            format!(
                "{rss_mib_per_cluster:.2} MiB a cluster, {rss_mib:.1} in all, {empty_rss_mib:.1} without; {cpu_percent:.2} % CPU"
            ),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} clusters", self.clusters);
        vec![
            Goal::none("writes besides the Lease", &of, self.writes),
            Goal::at_most(8.0, "watches a cluster", &of, self.watches_per_cluster),
            Goal::at_most(1.0, "MiB a cluster", &of, self.rss_mib_per_cluster),
        ]
    }
}

impl Hooks {
    fn cells(&self) -> Cells {
        let Self {
            clusters,
            calls,
            held,
            handler_p99_ms_at_most,
            heard_median_ms,
            heard_p99_ms,
            heard_longest_ms,
        } = self;
        [
            "hooks".to_owned(),
            format!("{calls} calls, {held} held, {clusters} clusters"),
            format!("handler: p99 at most {handler_p99_ms_at_most:.0} ms"),
            format!("caller: median {heard_median_ms:.1}, p99 {heard_p99_ms:.1}, longest {heard_longest_ms:.1} ms"),
            String::new(),
            String::new(),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} clusters", self.clusters);
        vec![Goal::at_most(
            100.0,
            "p99 ms of the answer to a hook",
            &of,
            self.handler_p99_ms_at_most,
        )]
    }
}

impl Reaction {
    fn cells(&self) -> Cells {
        let Self {
            clusters,
            samples,
            median_ms,
            p99_ms,
            longest_ms,
        } = self;
        [
            "first object".to_owned(),
            format!("{samples} beside {clusters}"),
            format!("median {median_ms:.0}, p99 {p99_ms:.0}, longest {longest_ms:.0} ms"),
            String::new(),
            String::new(),
            String::new(),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = format!("{} samples", self.samples);
        vec![Goal::at_most(500.0, "p99 ms to the first object", &of, self.p99_ms)]
    }
}
