//! Journeys in bad weather: each course under many seeds, and after each what must hold whatever the weather was.
//!
//! The operator of each run has a namespace, a proxy and a directory of releases of its own; the user of the journey has fair weather. Where a course has
//! a Cluster, the same weather is before its API server, too. Between
//! two stations the storm begins anew, with other numbers; under every second seed the operator is killed there and starts in the new storm. At
//! each station the world has to become the one of the same course without a storm, byte for byte where bytes may be compared ([`crate::world`]).
//! At the end the operator must fall silent in a world that is true and that of the last station still, and what it did on the way is judged by
//! the API server's audit log ([`rules`]).

mod crew;
pub mod rules;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    ops::ControlFlow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, ClusterStack, ClusterStackRelease};
use futures::future::try_join_all;
use kube::api::ListParams;
use tokio::sync::Mutex as AsyncMutex;

use self::crew::{Crew, attended};
use crate::{
    FaultProxy, Journey, Metrics, Operator,
    addons::{CLUSTER, ground::drawn_once},
    audit::{AuditEvents, Mark},
    built::Program,
    eventually,
    fault_proxy::{Blow, Forecast},
    journey::{SOON, journey},
    lanes::side_by_side,
    travel::{Course, Station, expected},
    web::Struck,
    world::{World, becomes_within, quiet, world},
};

/// Longer than any run takes.
const LONGEST: Duration = Duration::from_mins(20);

/// One course under one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which way.
    pub course: Course,
    /// Which weather.
    pub seed: u64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seed {}", self.course.name(), self.seed)
    }
}

impl Run {
    /// The command that repeats it alone, from the root of the checkout.
    pub fn command(&self) -> String {
        format!(
            "cargo xtask storm --journey {} --seed {}",
            self.course.name(),
            self.seed
        )
    }
}

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Of which.
    pub run: Run,
    /// Its namespace; empty when it did not come that far.
    pub namespace: String,
    /// What the storm did before the API server.
    pub blows: Vec<Blow>,
    /// What it did at the source, where there is one.
    pub struck: Vec<Struck>,
    /// Writes that the operator tried.
    pub writes: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether everything held.
    pub result: Result<()>,
}

/// Which operator is in the storm.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Which build of it.
    pub program: Program,
    /// Further flags.
    pub flags: Vec<OsString>,
    /// How long the world may take at each station to become the one that it has to be.
    pub patience: Duration,
}

/// What a bug has left as it should not be is seen after this long: most of a hunt is this wait, which is over sooner where there is no bug.
const PATIENCE_WITH_BUGS: Duration = Duration::from_mins(1);

impl Default for Subject {
    /// The one that ships.
    fn default() -> Self {
        Self {
            program: Program::CoreOperator,
            flags: Vec::new(),
            patience: SOON,
        }
    }
}

impl Subject {
    /// One with a bug that was planted on purpose, by its name.
    pub fn mutant(name: &str) -> Self {
        Self {
            program: Program::CoreOperatorWithMutants,
            flags: vec![format!("--mutant={name}").into()],
            patience: PATIENCE_WITH_BUGS,
        }
    }
}

/// The same courses without a storm, which storms are compared with.
#[derive(Debug, Default)]
pub struct Surveys(BTreeMap<Course, BTreeMap<Station, World>>);

impl Surveys {
    /// Goes each course once, in fair weather.
    pub fn of(courses: &[Course]) -> Result<Self> {
        let surveys = Mutex::new(BTreeMap::new());
        let name = |course: &Course| format!("survey_{}", course.name());
        let survey = |course: Course| {
            journey(async |journey| {
                let survey = undisturbed(journey, course).await?;
                surveys
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(course, survey);
                Ok(())
            })
            .with_context(|| format!("the course {} in fair weather", course.name()))
        };
        let outcomes = side_by_side(courses.len(), courses.to_vec(), name, survey)?;
        outcomes.into_iter().collect::<Result<Vec<()>>>()?;
        Ok(Self(surveys.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The world at a station of a course.
    pub fn world(&self, course: Course, station: Station) -> Result<&World> {
        let world = self.0.get(&course).and_then(|stations| stations.get(&station));
        world.with_context(|| format!("{} was not surveyed at {station:?}", course.name()))
    }
}

async fn undisturbed(journey: &mut Journey, course: Course) -> Result<BTreeMap<Station, World>> {
    course.prepare(journey).await?;
    let voyage = Voyage::begin(journey).await?;
    let crew = AsyncMutex::new(Crew::start(journey, course)?);
    let mut stations = BTreeMap::new();
    let journey = &*journey;
    course
        .travel(journey, async |station| {
            voyage
                .rests(journey, async || crew.lock().await.metrics().await)
                .await?;
            let world = world(journey).await?;
            let (found, expected) = (world.keys().collect::<Vec<_>>(), expected(station));
            ensure!(found == expected.iter().collect::<Vec<_>>(), "{station:?}: {found:#?}");
            stations.insert(station, world);
            Ok(())
        })
        .await?;
    voyage.over(journey, &crew).await?;
    Ok(stations)
}

/// Goes one course under one seed.
pub fn run(surveys: &Surveys, run: Run, subject: &Subject) -> Outcome {
    let begun = Instant::now();
    let (mut namespace, mut blows, mut struck, mut writes) = (String::new(), Vec::new(), Vec::new(), 0);
    let result = journey(async |journey| {
        namespace.clone_from(&journey.namespace);
        journey.options.program = subject.program;
        journey.options.flags.extend(subject.flags.iter().cloned());
        run.course.prepare(journey).await?;
        let voyage = Voyage::begin(journey).await?;
        let result = stormy(journey, &voyage, surveys, run, subject.patience).await;
        struck = journey
            .source
            .iter()
            .flat_map(|source| source.server.struck())
            .collect();
        blows = voyage.proxy.blows();
        blows.extend(journey.beyond.iter().flat_map(|beyond| beyond.proxy.blows()));
        writes = voyage.proxy.writes().len();
        result
    });
    Outcome {
        run,
        namespace,
        blows,
        struck,
        writes,
        elapsed: begun.elapsed(),
        result,
    }
}

async fn stormy(journey: &Journey, voyage: &Voyage, surveys: &Surveys, run: Run, patience: Duration) -> Result<()> {
    let Run { course, seed } = run;
    let forecast = match course {
        Course::Shared => Forecast::of(seed).with_leases(),
        _ => Forecast::of(seed),
    };
    voyage.storm(journey, seed, forecast, 0);
    let crew = AsyncMutex::new(Crew::start(journey, course)?);
    let mut phase = 0;
    let mut last = None;
    let travelling = course.travel(journey, async |station| {
        let wanted = surveys.world(course, station)?;
        last = Some((station, wanted));
        let arrived = becomes_within(patience, journey, wanted).await;
        arrived.with_context(|| format!("{station:?}"))?;
        phase += 1;
        voyage.storm(journey, seed, forecast, phase);
        if forecast.restarts() {
            crew.lock().await.restart(journey, phase).await?;
        }
        Ok(())
    });
    tokio::select! {
        outcome = travelling => outcome?,
        outcome = attended(&crew) => outcome?,
    }
    voyage.proxy.calm();
    journey.source.iter().for_each(|source| source.server.calm());
    journey.beyond.iter().for_each(|beyond| beyond.proxy.calm());
    voyage.over(journey, &crew).await?;
    let (station, wanted) = last.context("a course has stations")?;
    let still = becomes_within(patience, journey, wanted).await;
    still.with_context(|| format!("{station:?}, at the end"))
}

/// A journey whose operator is watched.
pub struct Voyage {
    /// Between the operator and the API server.
    pub proxy: FaultProxy,
    mark: Mark,
}

impl Voyage {
    /// Puts a proxy before the operator, which is still to be started.
    pub async fn begin(journey: &mut Journey) -> Result<Self> {
        let proxy = journey.behind_a_proxy().await?;
        let mark = journey.mark().await?;
        Ok(Self { proxy, mark })
    }

    fn storm(&self, journey: &Journey, seed: u64, forecast: Forecast, phase: u64) {
        self.proxy.set_storm(forecast.phase(phase));
        if let Some(source) = &journey.source {
            source.server.set_storm(seed, phase);
        }
        if let Some(beyond) = &journey.beyond {
            beyond.proxy.set_storm(forecast.phase(phase));
        }
    }

    /// What must hold when everything has been done: the operator lives and is silent, the state is true, and nothing on the way was wrong.
    pub async fn end(&self, journey: &Journey, operator: &mut Operator) -> Result<()> {
        self.rest(journey, operator).await?;
        operator.check()?;
        rules::history(&self.asked(journey).await?)
    }

    /// The same for the processes of a run.
    async fn over(&self, journey: &Journey, crew: &AsyncMutex<Crew>) -> Result<()> {
        self.rests(journey, async || crew.lock().await.metrics().await).await?;
        crew.lock().await.attend()?;
        rules::history(&self.asked(journey).await?)
    }

    /// What the operator asked for on the way. Of the API server of a Cluster, what it wrote, by which what was drawn at random for it stayed the same.
    async fn asked(&self, journey: &Journey) -> Result<AuditEvents> {
        let here = journey.requests_since(self.mark).await?;
        let Some(beyond) = &journey.beyond else {
            return Ok(here);
        };
        rules::conditions(&here)?;
        let there = beyond.ground.written_there(journey).await?;
        drawn_once(CLUSTER, &there)?;
        Ok(AuditEvents::from([here.to_vec(), there.to_vec()].concat()))
    }

    /// What must hold at the end of a journey whose operator was killed on the way, whether or not the one that runs now is at rest.
    pub async fn judge(&self, journey: &Journey) -> Result<()> {
        eventually(SOON, "a state that is true", async || rules::state(journey).await).await?;
        rules::history(&self.asked(journey).await?)
    }

    /// Waits until the operator rests in a world whose state is true.
    ///
    /// Silence alone is no rest: an operator that has just been started has yet to look, and one that was refused tries again after a second or
    /// more. So it has to have settled all that there is, and what is not true in its silence is looked at again: an operator that rests has nothing
    /// left that would wake it, so that what is wrong at rest is wrong at the deadline too.
    pub async fn rest(&self, journey: &Journey, operator: &mut Operator) -> Result<()> {
        operator.ready().await?;
        let metrics = operator.metrics_url().await?;
        self.rests(journey, async || Ok(vec![metrics.clone()])).await
    }

    /// The same for all processes whose metrics these are, which may be others in time.
    async fn rests(&self, journey: &Journey, metrics: impl AsyncFn() -> Result<Vec<String>>) -> Result<()> {
        eventually(SOON, "the operator to rest in a true world", async || {
            let mut read = Vec::new();
            for url in metrics().await? {
                read.push(Metrics::read(&url).await?);
            }
            has_settled(journey, &read).await?;
            let beyond = journey.beyond.iter().map(|beyond| &beyond.proxy);
            let silent = try_join_all([&self.proxy].into_iter().chain(beyond).map(quiet)).await;
            silent.context("the operator writes though all is done")?;
            rules::state(journey).await
        })
        .await
    }
}

/// Fails while something waits for the operator, or there is something that it has never been done with.
///
/// Several processes look after it together: what one of them was done with may be another's by now, who has looked at it anew.
async fn has_settled(journey: &Journey, metrics: &[Metrics]) -> Result<()> {
    let stacks = journey.api::<ClusterStack>().list(&ListParams::default()).await?;
    let releases = journey
        .api::<ClusterStackRelease>()
        .list(&ListParams::default())
        .await?;
    let addons = journey.api::<ClusterAddon>().list(&ListParams::default()).await?;
    for (kind, count) in [
        ("ClusterStack", stacks.items.len()),
        ("ClusterStackRelease", releases.items.len()),
        ("ClusterAddon", addons.items.len()),
    ] {
        let sum = |name, labels: &[_]| {
            let of_each = metrics.iter().map(|metrics| metrics.sum(name, labels));
            let sum: Option<f64> = of_each.sum();
            sum.with_context(|| format!("no sample of {name}"))
        };
        let waiting = sum("stackwright_queue_depth", &[("kind", kind)])?;
        ensure!(waiting < 1.0, "{waiting} of {kind} wait for a look");
        let labels = [("kind", kind), ("outcome", "settled")];
        let settled = sum("stackwright_reconciles_total", &labels)?;
        let there = u32::try_from(count).map(f64::from)?;
        ensure!(settled >= there, "{settled} of {there} {kind} are settled");
    }
    Ok(())
}

/// Makes runs, so many at a time, and tells of each when it has ended. None begins any more once the answer was to break off.
pub fn run_all(
    surveys: &Surveys,
    runs: Vec<Run>,
    subject: &Subject,
    jobs: usize,
    ended: impl Fn(&Outcome) -> ControlFlow<()> + Sync,
) -> Result<Vec<Outcome>> {
    let name = |run: &Run| format!("{}_seed_{}", run.course.name(), run.seed);
    let enough = AtomicBool::new(false);
    let outcomes = side_by_side(jobs, runs, name, |one| {
        if enough.load(Ordering::Relaxed) {
            return None;
        }
        let outcome = run(surveys, one, subject);
        if ended(&outcome).is_break() {
            enough.store(true, Ordering::Relaxed);
        }
        Some(outcome)
    })?;
    Ok(outcomes.into_iter().flatten().collect())
}
