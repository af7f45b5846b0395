//! `lab bench converge`: from a directory of releases to ready ones, beside a raw writer on the same API server.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::usage::rounded;
use serde::Serialize;

use super::{
    ground::Ground,
    install::{Installed, create_stacks, install},
    recording::{self, Chains, Target},
    replay::{Identity, Move, replay},
    report::{Goal, Row, count},
    stock::{RELEASES_OF_A_STACK, Shape, Stock},
};
use crate::{arguments::ConvergeArguments, progress::Progress};

/// The shapes that are measured when none is asked for: `(releases, stacks)`.
const SHAPES: [(usize, usize); 5] = [(100, 2), (300, 6), (1000, 20), (3000, 60), (1000, 1)];

/// One shape, measured. Keys say their unit.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    releases: usize,
    stacks: usize,
    objects_per_release: usize,
    /// All writes of the operator, by the raw writer.
    raw_seconds: f64,
    raw_writes: usize,
    /// Of those, only the objects of the charts.
    raw_objects_seconds: f64,
    raw_objects_writes: usize,
    /// From the first ClusterStack to the last write of the operator; all releases are ready then, and every status says so.
    operator_seconds: f64,
    /// `operator_seconds / raw_seconds`.
    ratio: f64,
    writes: usize,
    /// Of `writes`: not accepted by the API server.
    writes_refused: usize,
    writes_per_release: f64,
    reads_other_than_watch: usize,
    requests: BTreeMap<String, usize>,
    requests_by_resource: BTreeMap<String, usize>,
    empty_rss_mib: f64,
    peak_rss_mib: f64,
    idle_rss_mib: f64,
    cpu_seconds: f64,
    cpu_milliseconds_per_release: f64,
}

impl ConvergeArguments {
    fn shapes(&self) -> Result<Vec<Shape>> {
        let objects = usize::try_from(self.objects)?;
        let shape = |(releases, stacks)| Shape::even(releases, stacks, objects);
        if self.releases.is_none() && self.stacks.is_none() {
            return Ok(SHAPES.into_iter().map(shape).collect());
        }
        let releases = usize::try_from(self.releases.unwrap_or(1000))?;
        let stacks = self
            .stacks
            .map_or(Ok(releases.div_ceil(RELEASES_OF_A_STACK)), usize::try_from)?;
        ensure!(
            stacks <= releases,
            "{stacks} stacks cannot share {releases} releases: give --releases too"
        );
        Ok(vec![shape((releases, stacks))])
    }
}

/// Measures every shape, each on a control plane that nothing was written to.
pub(super) async fn measure(arguments: &ConvergeArguments) -> Result<Vec<Run>> {
    let shapes = arguments.shapes()?;
    let mut runs = Vec::new();
    for (index, shape) in shapes.iter().enumerate() {
        let progress = Progress::start(format!(
            "{} of {} · {} releases in {} stacks",
            index + 1,
            shapes.len(),
            shape.releases(),
            shape.stacks()
        ));
        let run = Box::pin(measure_one(arguments, shape, &progress)).await;
        runs.push(run.with_context(|| {
            format!(
                "failed to measure {} releases in {} stacks",
                shape.releases(),
                shape.stacks()
            )
        })?);
    }
    Ok(runs)
}

async fn measure_one(arguments: &ConvergeArguments, shape: &Shape, progress: &Progress) -> Result<Run> {
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let mut namespaces = Vec::new();
    let run = Box::pin(measure_on(&ground, arguments, shape, &mut namespaces, progress)).await;
    let cleaned = ground.clean_up(&namespaces).await;
    let run = run?;
    cleaned.map(|()| run)
}

async fn measure_on(
    ground: &Ground,
    arguments: &ConvergeArguments,
    shape: &Shape,
    namespaces: &mut Vec<String>,
    progress: &Progress,
) -> Result<Run> {
    let stock = Stock::pack(ground.folder(), shape, progress).await?;
    let mut namespace = async |stem: &str| {
        let name = ground.namespace(stem).await?;
        namespaces.push(name.clone());
        Ok::<_, anyhow::Error>(name)
    };
    let operated = namespace("operator").await?;
    progress.step("the operator installs");
    let operator = ground.operate(&operated, &stock.releases, Vec::new()).await?;
    let installed = install(ground, operator, &operated, &stock, progress).await?;
    let Installed {
        operator,
        process: _,
        requests,
        took,
        empty,
        busy,
        idle,
    } = installed;
    operator.stop().await?;
    let writes = requests.clone().writes();
    let chains = recording::chains(writes.iter())?;
    let objects = recording::of_charts(&chains);
    let mut raw = async |name: &str, chains: &Chains| {
        let target = namespace(name).await?;
        let stacks = create_stacks(ground, &target, &stock).await?;
        let place = Move {
            from: &operated,
            to: &target,
            owners: &stacks,
            there: &known(&stacks),
        };
        write_raw(ground, chains, &place, arguments.connections.into(), progress).await
    };
    let (raw_seconds, raw_writes) = raw("raw", &chains).await?;
    let (raw_objects_seconds, raw_objects_writes) = raw("raw-objects", &objects).await?;
    let cpu = busy.cpu.saturating_sub(empty.cpu).as_secs_f64();
    let per_release = |number: f64| number / count(shape.releases());
    Ok(Run {
        releases: shape.releases(),
        stacks: shape.stacks(),
        objects_per_release: shape.objects,
        raw_seconds: rounded(raw_seconds, 2),
        raw_writes,
        raw_objects_seconds: rounded(raw_objects_seconds, 2),
        raw_objects_writes,
        operator_seconds: rounded(took.as_secs_f64(), 2),
        ratio: rounded(took.as_secs_f64() / raw_seconds, 2),
        writes: writes.len(),
        writes_refused: writes.len() - raw_writes,
        writes_per_release: rounded(per_release(count(writes.len())), 3),
        reads_other_than_watch: requests.clone().reads_other_than_watch().len(),
        requests: recording::by_verb(requests.iter()),
        requests_by_resource: recording::by_verb_and_resource(requests.iter()),
        empty_rss_mib: empty.resident_mib,
        peak_rss_mib: busy.peak_mib,
        idle_rss_mib: idle.resident_mib,
        cpu_seconds: rounded(cpu, 2),
        cpu_milliseconds_per_release: rounded(per_release(cpu * 1000.0), 2),
    })
}

/// What is there in a namespace in which nothing but the stacks was made.
fn known(stacks: &BTreeMap<String, Identity>) -> BTreeMap<Target, Identity> {
    let stacks = stacks.iter();
    stacks
        .map(|(name, identity)| (Target::stack(name), identity.clone()))
        .collect()
}

/// Makes the writes of the operator again, without an operator. Gives the seconds that they took, and how many they were.
async fn write_raw(
    ground: &Ground,
    chains: &Chains,
    place: &Move<'_>,
    connections: usize,
    progress: &Progress,
) -> Result<(f64, usize)> {
    let writes = chains.iter().map(|(_, writes)| writes.len()).sum::<usize>();
    progress.step(&format!("the raw writer makes {writes} writes"));
    let took = replay(&ground.client, chains, place, connections).await?;
    Ok((took.as_secs_f64(), writes))
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &[
        "releases",
        "stacks",
        "objects each",
        "raw s",
        "raw s, objects only",
        "operator s",
        "ratio",
        "writes a release",
        "reads",
        "peak MiB",
        "idle MiB",
        "CPU s",
        "CPU ms a release",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.releases.to_string(),
            self.stacks.to_string(),
            self.objects_per_release.to_string(),
            format!("{:.2}", self.raw_seconds),
            format!("{:.2}", self.raw_objects_seconds),
            format!("{:.2}", self.operator_seconds),
            format!("{:.2}", self.ratio),
            format!("{:.2}", self.writes_per_release),
            self.reads_other_than_watch.to_string(),
            format!("{:.1}", self.peak_rss_mib),
            format!("{:.1}", self.idle_rss_mib),
            format!("{:.2}", self.cpu_seconds),
            format!("{:.1}", self.cpu_milliseconds_per_release),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let of = self.name();
        let mut goals = vec![
            Goal::at_most(2.0, "ratio", &of, self.ratio),
            Goal::at_most(
                count(self.objects_per_release + 4),
                "writes a release",
                &of,
                self.writes_per_release,
            ),
        ];
        if self.releases <= 1000 {
            goals.push(Goal::at_most(
                128.0,
                "peak MiB, up to 1,000 releases",
                &of,
                self.peak_rss_mib,
            ));
        }
        if self.releases <= 100 {
            goals.push(Goal::at_most(
                40.0,
                "peak MiB, up to 100 releases",
                &of,
                self.peak_rss_mib,
            ));
        }
        goals
    }

    fn goals_of_all(runs: &[Self]) -> Vec<Goal> {
        let Some((first, larger)) = runs.split_first() else {
            return Vec::new();
        };
        // The API server takes longer for a write the more it holds: that is no growth of the operator's.
        let growth = larger.iter().map(|run| {
            let growth = rounded(run.ratio / first.ratio, 2);
            Goal::at_most(1.1, "growth beside that of the raw writer", &run.name(), growth)
        });
        growth.collect()
    }
}

impl Run {
    fn name(&self) -> String {
        format!("{} releases in {} stacks", self.releases, self.stacks)
    }
}
