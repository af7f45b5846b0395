//! The add-ons of a Cluster while an operator dies at its writes, at whichever of both API servers: every life of it ends at its second write, in turn
//! before the API server learns of it and when it is done but the operator does not know. So each life begins with what the one before has left. With
//! `cargo xtask test --positions`, every life ends at its first write, and each write is crashed at both ways.
//!
//! The test itself plays Cluster API and its providers; the API servers are real, and the operator talks to both through proxies. At every station the
//! world is compared with that of a journey without a crash. In the end nothing is left, and what was done on the way is judged by the audit logs:
//! nothing was made that no status listed, nothing flickered, what was drawn at random stayed the same, and every status kept the rules for conditions.
//! What happens when events of the management API server are lost, or it tells of the past, is in `patterns`; what happens in an upgrade of Kubernetes, in `raised`.

mod again;
mod calls;
mod patterns;
mod raised;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{LazyLock, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use crds::{ClusterAddon, cluster_addon::name_for};
use e2e::{
    FaultProxy, Journey, Operator, Point,
    addons::{
        cluster::Cluster,
        ground::{Dates, Ground},
        stack::{self, Version},
    },
    fault_proxy::Write,
    journey::journey,
    lanes::side_by_side,
    positions::every_position,
    world::{World, quiet, silent},
};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::{JOURNEY_DEADLINE, LANES, POINTS, TURN};

/// The Cluster of a journey that has one.
const NAME: &str = "web";
/// No part of a journey has so many writes: an operator that comes no further does the same again and again.
const MOST_LIVES: usize = 80;
/// So many lives begin in the past: each does again what the ones before have done.
const LIVES_IN_THE_PAST: usize = 8;
/// Long enough for an operator to begin, and to act on what it reads.
const BACK: Duration = Duration::from_secs(2);

/// A part of a journey, and the station at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// The add-ons of the first version are complete.
    Install,
    /// Those of the second are.
    Upgrade,
    /// They have values from a ConfigMap, which has changed since.
    Reword,
    /// The Cluster is gone, and nothing is left of it.
    Delete,
}

impl Part {
    const ALL: [Self; 3] = [Self::Install, Self::Upgrade, Self::Delete];
    /// With what only some journeys do.
    const WITH_VALUES: [Self; 4] = [Self::Install, Self::Upgrade, Self::Reword, Self::Delete];

    /// What the user does, and then Cluster API, until all is done.
    async fn travel(self, cluster: Cluster<'_>, kubeconfig: &str) -> Result<()> {
        match self {
            Self::Install => {
                cluster.make(Version::First).await?;
                cluster.initialize(kubeconfig).await?;
                cluster.complete(Version::First).await.map(drop)
            }
            Self::Upgrade => {
                cluster.change(Version::Second).await?;
                cluster.complete(Version::Second).await.map(drop)
            }
            Self::Reword => {
                let before = cluster.complete(Version::Second).await?;
                cluster.write_words("ahoy").await?;
                cluster.take_words().await?;
                let taken = cluster.complete_anew(Version::Second, &before).await?;
                cluster.write_words("farewell").await?;
                cluster.complete_anew(Version::Second, &taken).await.map(drop)
            }
            Self::Delete => {
                cluster.empty().await?;
                cluster.end().await
            }
        }
    }

    /// The version that is there at the station.
    fn version(self) -> Option<Version> {
        match self {
            Self::Install => Some(Version::First),
            Self::Upgrade | Self::Reword => Some(Version::Second),
            Self::Delete => None,
        }
    }
}

/// Where an operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Management,
    Workload,
}

/// What has happened before it lives again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// The whole status of the ClusterAddon was lost.
    Forgetting,
    /// What the API server of the cluster answers is of the last station, for a while: an API server that was cut off from its storage.
    Past,
}

/// Lives of an operator that end early, in one part of a journey.
#[derive(Clone, Copy, Debug)]
struct Deaths {
    part: Part,
    server: Server,
    meanwhile: Meanwhile,
}

/// How lives of an operator end early, whichever part it is in.
#[derive(Clone, Copy, Debug)]
struct Ends {
    server: Server,
    /// Which of the writes to it count.
    is_counted: fn(&Write) -> bool,
    /// At which of them the first life ends, counted from 1. Later ones may end at later ones.
    first: usize,
    meanwhile: Meanwhile,
}

/// The write at which lives end early, of all that there are.
fn first_write() -> Result<usize> {
    Ok(if every_position()? { 1 } else { 2 })
}

impl Deaths {
    fn ends(self) -> Result<Ends> {
        let Self { server, meanwhile, .. } = self;
        Ok(Ends {
            server,
            is_counted: |_| true,
            first: first_write()?,
            meanwhile,
        })
    }

    fn all() -> Vec<Self> {
        let at = |part, server, meanwhile| Self {
            part,
            server,
            meanwhile,
        };
        let mut all = Vec::new();
        for part in Part::ALL {
            for server in [Server::Management, Server::Workload] {
                all.push(at(part, server, Meanwhile::Nothing));
            }
        }
        all.push(at(Part::Upgrade, Server::Workload, Meanwhile::Forgetting));
        all.push(at(Part::Upgrade, Server::Workload, Meanwhile::Past));
        all.push(at(Part::Delete, Server::Workload, Meanwhile::Past));
        all
    }
}

impl fmt::Display for Deaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            part,
            server,
            meanwhile,
        } = self;
        write!(f, "addons_{part:?}_{server:?}_{meanwhile:?}")
    }
}

/// The worlds of the stations in a journey without a crash.
type Worlds = BTreeMap<Part, World>;

static WORLDS: LazyLock<Result<Worlds>> = LazyLock::new(|| {
    let mut worlds = Worlds::new();
    journey(async |journey| {
        let mut scene = Scene::begin(journey).await?;
        let cluster = Cluster { journey, name: NAME };
        let mut dates = Vec::new();
        for part in Part::ALL {
            dates.push(Timestamp::now());
            part.travel(cluster, &scene.kubeconfig).await?;
            quiet(&scene.management).await?;
            scene.ground.stands(cluster, part.version()).await?;
            worlds.insert(part, scene.ground.world(cluster).await?);
        }
        scene.end(journey, &dates).await
    })?;
    Ok(worlds)
});

fn worlds() -> Result<&'static Worlds> {
    WORLDS.as_ref().map_err(|error| anyhow!("{error:#}"))
}

/// A journey with one Cluster, and proxies between an operator and both API servers.
struct Scene {
    ground: Ground,
    management: FaultProxy,
    workload: FaultProxy,
    kubeconfig: String,
    /// None while it is dead.
    operator: Option<Operator>,
}

impl Scene {
    async fn begin(journey: &mut Journey) -> Result<Self> {
        let scene = Self::set(journey).await?;
        stack::subscribe(journey).await?;
        Ok(scene)
    }

    /// The same before there is a stack.
    async fn set(journey: &mut Journey) -> Result<Self> {
        let management = journey.behind_a_proxy().await?;
        let ground = Ground::prepare(journey).await?;
        let workload = FaultProxy::start(ground.workload).await?;
        let kubeconfig = workload.access().admin_kubeconfig().await?;
        let operator = Operator::start(journey.lab(), &journey.options)?;
        Ok(Self {
            ground,
            management,
            workload,
            kubeconfig,
            operator: Some(operator),
        })
    }

    /// What must hold when all parts are behind, which began then.
    async fn end(&mut self, journey: &Journey, dates: &[Timestamp]) -> Result<()> {
        let &[_, changed, deleted] = dates else {
            bail!("there are three parts");
        };
        let dates = Dates {
            changed,
            deleted,
            again: false,
        };
        self.over(journey, &BTreeMap::from([(NAME.to_owned(), dates)])).await
    }

    /// The same where each Cluster had its own dates.
    async fn over(&mut self, journey: &Journey, dates: &BTreeMap<String, Dates>) -> Result<()> {
        self.ground.nothing_is_left(journey).await?;
        self.ground.judge(journey, dates).await?;
        self.operator.as_mut().context("no operator runs")?.check()
    }
}

#[test]
fn a_crash_at_any_write_to_either_api_server_leads_to_the_same_add_ons() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let worlds = worlds()?;
    let begun = Instant::now();
    let outcomes = side_by_side(LANES, Deaths::all(), Deaths::to_string, |deaths| {
        let mut lives = Vec::new();
        let outcome = journey(async |journey| {
            disturbed(journey, worlds, deaths, &mut lives).await?;
            ensure!(!lives.is_empty(), "there was nothing to crash at");
            Ok(())
        });
        outcome
            .map(|()| lives.len())
            .map_err(|error| format!("{deaths} after {lives:#?}: {error:#}"))
    })?;
    let count: usize = outcomes.iter().flatten().sum();
    eprintln!("{count} lives in {:?}", begun.elapsed());
    let failed: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    ensure!(failed.is_empty(), "{} journeys failed: {failed:#?}", failed.len());
    Ok(())
}

async fn disturbed(journey: &mut Journey, worlds: &Worlds, deaths: Deaths, lives: &mut Vec<String>) -> Result<()> {
    let mut scene = Scene::begin(journey).await?;
    let journey = &*journey;
    let cluster = Cluster { journey, name: NAME };
    let mut dates = Vec::new();
    for part in Part::ALL {
        dates.push(Timestamp::now());
        let travelled = if part == deaths.part {
            let travel = async |_: &Ground, kubeconfig: &str| part.travel(cluster, kubeconfig).await;
            dying(cluster, &mut scene, deaths.ends()?, lives, travel).await
        } else {
            part.travel(cluster, &scene.kubeconfig).await
        };
        travelled.with_context(|| format!("{part:?}"))?;
        scene.ground.becomes(cluster, &worlds[&part]).await?;
    }
    scene.end(journey, &dates).await
}

/// Goes one part with operators that die early, until there is nothing to write any more. One is alive in the end. What is
/// done once more, because nobody has noted or seen it, is not what every life ends with.
async fn dying(
    cluster: Cluster<'_>,
    scene: &mut Scene,
    ends: Ends,
    lives: &mut Vec<String>,
    travel: impl AsyncFnOnce(&Ground, &str) -> Result<()>,
) -> Result<()> {
    let station = scene.ground.version().await?;
    let Scene {
        ground,
        management,
        workload,
        kubeconfig,
        operator,
    } = scene;
    let journey = cluster.journey;
    let (ground, management, workload, kubeconfig) = (&*ground, &*management, &*workload, kubeconfig.as_str());
    let proxy = match ends.server {
        Server::Management => management,
        Server::Workload => workload,
    };
    let travelling = async {
        travel(ground, kubeconfig).await?;
        silent(management).await
    };
    let living = async {
        let mut done = BTreeSet::new();
        let mut first = ends.first;
        let is_past = ends.meanwhile == Meanwhile::Past;
        let most = if is_past { LIVES_IN_THE_PAST } else { MOST_LIVES };
        for point in POINTS.into_iter().cycle().take(most) {
            proxy.forget_writes();
            let strike = proxy.strike_among(ends.is_counted, first, point);
            if operator.is_none() {
                *operator = Some(Operator::start(journey.lab(), &journey.options)?);
            }
            let alive = operator.as_mut().context("an operator lives")?;
            let stopped = tokio::select! {
                stopped = strike.wait(JOURNEY_DEADLINE) => stopped?,
                ended = alive.runs_on(JOURNEY_DEADLINE) => return ended,
            };
            operator.take().context("an operator lives")?.kill().await?;
            lives.push(format!("{} {point:?}", stopped.write));
            if point == Point::AfterCommit && !done.insert(stopped.write.to_string()) {
                first += 1;
            }
            match ends.meanwhile {
                Meanwhile::Nothing => {}
                Meanwhile::Forgetting => forget(cluster).await?,
                Meanwhile::Past => workload.answer_from(station, BACK),
            }
        }
        ensure!(is_past, "an operator that dies early gets no further");
        let last = operator.insert(Operator::start(journey.lab(), &journey.options)?);
        last.runs_on(JOURNEY_DEADLINE).await
    };
    tokio::select! {
        travelled = travelling => travelled?,
        ended = living => ended?,
    }
    drop(proxy.strike_at(usize::MAX, Point::BeforeForwarding));
    if operator.is_none() {
        *operator = Some(Operator::start(journey.lab(), &journey.options)?);
    }
    Ok(())
}

/// Empties the status of the ClusterAddon, if there is one.
async fn forget(cluster: Cluster<'_>) -> Result<()> {
    let nothing = Patch::Merge(json!({ "status": null }));
    let addons = cluster.journey.api::<ClusterAddon>();
    let emptied = addons
        .patch_status(&name_for(NAME), &PatchParams::default(), &nothing)
        .await;
    match emptied {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        emptied => emptied.map(drop).context("failed to empty a status"),
    }
}
