//! A Cluster goes to another Kubernetes version together with its class, and then to another class of that version, while an operator dies at its writes. The test
//! plays Cluster API besides: it asks at each moment of the upgrade, of whichever operator lives, and leads the control plane and the workers on when it is let.
//!
//! The workers roll from the beginning, as they do when somebody has changed something else of them. So nothing but the calls tells that a moment has come, and the note
//! of a call is what the operator that comes next begins with; when the Cluster wants something else, it is emptied.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use crds::{
    cluster_addon::{StagePhase, name_for},
    labels,
};
use e2e::{
    Journey,
    addons::{
        asker::Asker,
        cluster::{Cluster, Workers},
        ground::{Dates, Ground},
        stack::{self, Version},
    },
    fault_proxy::Write,
    hooks::Hook,
    journey::journey,
    lanes::side_by_side,
    world::{World, quiet},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{Ends, Meanwhile, NAME, Part, Scene, Server, dying, first_write};
use crate::{LANES, POINTS, TURN};

/// Those of the way.
const VERSIONS: [Version; 3] = [Version::First, Version::Third, Version::Fourth];

/// A part of the way, and what there is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Kubernetes may change.
    Begin,
    /// The control plane has the version, and the workers may have it.
    ControlPlane,
    /// All have it, and the add-ons are complete.
    Workers,
    /// The add-ons of the next class are.
    Onwards,
}

impl Step {
    const ALL: [Self; 4] = [Self::Begin, Self::ControlPlane, Self::Workers, Self::Onwards];

    /// What the user and Cluster API do, until Cluster API is let go on and, at the end of an upgrade, until all is done.
    async fn travel(self, cluster: Cluster<'_>, asker: &Asker, ground: &Ground) -> Result<()> {
        let way = [Version::First, Version::Third].map(Version::kubernetes);
        match self {
            Self::Begin => {
                cluster.report_workers(Workers::Roll).await?;
                cluster.change(Version::Third).await?;
                asker.goes_on(cluster, Hook::BeforeClusterUpgrade, way).await?;
                // Not in a while: Cluster API has gone on.
                ground.has(cluster, &self.objects()).await
            }
            Self::ControlPlane => {
                cluster.upgrade_control_plane(Version::Third).await?;
                asker.goes_on(cluster, Hook::AfterControlPlaneUpgrade, way).await?;
                ground.has(cluster, &self.objects()).await
            }
            Self::Workers => {
                asker.goes_on(cluster, Hook::AfterWorkersUpgrade, way).await?;
                asker.goes_on(cluster, Hook::AfterClusterUpgrade, way).await?;
                cluster.report_workers(Workers::UpToDate).await?;
                cluster.complete(Version::Third).await.map(drop)
            }
            Self::Onwards => {
                cluster.change(Version::Fourth).await?;
                cluster.complete(Version::Fourth).await.map(drop)
            }
        }
    }

    /// Whether all add-ons are there that the Cluster wants.
    fn is_complete(self) -> bool {
        self >= Self::Workers
    }

    /// The objects that the Cluster has then. What no chart brings any more goes in the end.
    fn objects(self) -> BTreeSet<String> {
        let (old, new) = (Version::First.objects(), Version::Third.objects());
        match self {
            Self::Begin => {
                let mut begun = old;
                begun.insert("ConfigMap routes".to_owned());
                begun
            }
            Self::ControlPlane => old.union(&new).cloned().collect(),
            Self::Workers | Self::Onwards => new,
        }
    }

    /// The note of a call, as it is then.
    fn note(self) -> String {
        let of = |hook: Hook| {
            let version = Version::Third;
            format!("{}@{}@{}", hook.name(), version.kubernetes(), version.class())
        };
        match self {
            Self::Begin | Self::ControlPlane => of(Hook::BeforeClusterUpgrade),
            Self::Workers => of(Hook::AfterWorkersUpgrade),
            Self::Onwards => String::new(),
        }
    }

    /// Whether it has a note that the one before has not.
    fn has_new_note(self) -> bool {
        self != Self::ControlPlane
    }

    /// Waits until the ClusterAddon says how far the Cluster is: which stages are done of the three, what is complete, and what was called.
    async fn is_told(self, cluster: Cluster<'_>) -> Result<()> {
        let (done, class) = match self {
            Self::Begin => (1, Version::First.class()),
            Self::ControlPlane => (2, Version::First.class()),
            Self::Workers => (3, Version::Third.class()),
            Self::Onwards => (3, Version::Fourth.class()),
        };
        let phases: Vec<StagePhase> = (0..3)
            .map(|place| {
                if place < done {
                    StagePhase::Done
                } else {
                    StagePhase::Pending
                }
            })
            .collect();
        let note = self.note();
        let what = format!("to tell of {self:?}, with the note {note:?} and {phases:?}");
        let told = cluster.until(&what, |addon, status| {
            let applied = status.applied.as_ref();
            status.stages.iter().map(|stage| stage.phase).eq(phases.iter().copied())
                && applied.is_some_and(|applied| applied.cluster_stack == class)
                && addon.annotations().get(labels::HOOK_CALLED) == Some(&note)
        });
        told.await.map(drop)
    }
}

/// Where an operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At each write of what is on the ClusterAddon itself: notes and marks.
    Notes,
    /// At writes to the management API server.
    Management,
    /// At each write to that of the cluster: a step has one or two.
    Workload,
}

impl At {
    const ALL: [Self; 3] = [Self::Notes, Self::Management, Self::Workload];

    fn ends(self) -> Result<Ends> {
        let (server, first) = match self {
            Self::Notes => (Server::Management, 1),
            Self::Management => (Server::Management, first_write()?),
            Self::Workload => (Server::Workload, 1),
        };
        let is_counted: fn(&Write) -> bool = match self {
            Self::Notes => is_of_the_addon_itself,
            Self::Management | Self::Workload => |_| true,
        };
        Ok(Ends {
            server,
            is_counted,
            first,
            meanwhile: Meanwhile::Nothing,
        })
    }

    /// Fails unless an operator died before and after the write of a note, where it is to. These are lives of one step.
    fn was_met(self, step: Step, lives: &[String]) -> Result<()> {
        let missed = POINTS.into_iter().find(|point| {
            let end = format!("/clusteraddons/{} {point:?}", name_for(NAME));
            !lives.iter().any(|life| life.ends_with(&end))
        });
        let is_due = self == Self::Notes && step.has_new_note();
        ensure!(
            !is_due || missed.is_none(),
            "nobody died {missed:?} at the note: {lives:#?}"
        );
        Ok(())
    }
}

fn is_of_the_addon_itself(write: &Write) -> bool {
    write.path.ends_with(&format!("/clusteraddons/{}", name_for(NAME)))
}

/// The worlds at the stations where the add-ons are complete, in a journey without a crash.
type Worlds = BTreeMap<Step, World>;

/// The life of such a Cluster; `arrived` judges the world behind each step. Where operators die, `lives` tells of them.
async fn live(
    journey: &mut Journey,
    at: Option<At>,
    lives: &mut Vec<String>,
    mut arrived: impl AsyncFnMut(&Scene, Cluster<'_>, Step) -> Result<()>,
) -> Result<()> {
    let asker = Asker::prepare(journey)?;
    let mut scene = Scene::set(journey).await?;
    stack::publish(journey, &VERSIONS)?;
    let journey = &*journey;
    stack::subscribe_to(journey, &VERSIONS).await?;
    let cluster = Cluster { journey, name: NAME };
    Part::Install.travel(cluster, &scene.kubeconfig).await?;
    let mut begun = Vec::new();
    for step in Step::ALL {
        begun.push(Timestamp::now());
        let before = lives.len();
        let travelled = match at {
            None => step.travel(cluster, &asker, &scene.ground).await,
            Some(at) => {
                let travel = async |ground: &Ground, _: &str| step.travel(cluster, &asker, ground).await;
                dying(cluster, &mut scene, at.ends()?, lives, travel).await
            }
        };
        travelled.with_context(|| format!("{step:?}"))?;
        at.map_or(Ok(()), |at| at.was_met(step, &lives[before..]))
            .with_context(|| format!("{step:?}"))?;
        step.is_told(cluster).await?;
        let judged = arrived(&scene, cluster, step).await;
        judged.with_context(|| format!("at the end of {step:?}"))?;
    }
    let deleted = Timestamp::now();
    Part::Delete.travel(cluster, &scene.kubeconfig).await?;
    let last_moment = Step::ALL.into_iter().zip(begun).find(|(step, _)| step.is_complete());
    let (_, changed) = last_moment.context("a step ends the upgrade")?;
    let dates = Dates {
        changed,
        deleted,
        again: false,
    };
    scene.over(journey, &BTreeMap::from([(NAME.to_owned(), dates)])).await
}

async fn undisturbed(journey: &mut Journey) -> Result<Worlds> {
    let mut worlds = Worlds::new();
    live(journey, None, &mut Vec::new(), async |scene, cluster, step| {
        quiet(&scene.management).await?;
        scene.ground.has(cluster, &step.objects()).await?;
        if step.is_complete() {
            worlds.insert(step, scene.ground.world(cluster).await?);
        }
        Ok(())
    })
    .await?;
    Ok(worlds)
}

async fn disturbed(journey: &mut Journey, worlds: &Worlds, at: At, lives: &mut Vec<String>) -> Result<()> {
    live(journey, Some(at), lives, async |scene, cluster, step| {
        match worlds.get(&step) {
            Some(world) => scene.ground.becomes(cluster, world).await,
            // Whoever has begun anew has put nothing there before its moment.
            None => scene.ground.has(cluster, &step.objects()).await,
        }
    })
    .await
}

#[test]
fn a_crash_at_any_write_of_an_upgrade_of_kubernetes_leads_to_the_same_add_ons() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    let mut worlds = None;
    journey(async |journey| {
        worlds = Some(undisturbed(journey).await?);
        Ok(())
    })?;
    let worlds = worlds.context("the journey has not been made")?;
    let name = |at: &At| format!("addons_raised_{at:?}");
    let outcomes = side_by_side(LANES, At::ALL.to_vec(), name, |at| {
        let mut lives = Vec::new();
        let outcome = journey(async |journey| disturbed(journey, &worlds, at, &mut lives).await);
        let outcome = outcome.and_then(|()| {
            ensure!(!lives.is_empty(), "there was nothing to crash at");
            Ok(lives.len())
        });
        outcome.map_err(|error| format!("{at:?} after {lives:#?}: {error:#}"))
    })?;
    let count: usize = outcomes.iter().flatten().sum();
    eprintln!("{count} lives in an upgrade of Kubernetes, in {:?}", begun.elapsed());
    let failed: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    ensure!(failed.is_empty(), "{} journeys failed: {failed:#?}", failed.len());
    Ok(())
}
