//! The stages that lead to what a cluster shall have, in order, and how far each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::cluster_addon::{ClusterAddonStatus, HookProgress, StageAction, StagePhase, StageProgress};
use crds::conditions::{Reason, cut};
use crds::release_files::{AddonStage, ClusterAddonConfig, OnFailure, WaitForCondition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::cluster::ClusterSeen;
use super::deadline::deadline;
use super::hook::Hook;
use super::marks::Marks;
use super::stage::{StageSeen, StageState, has_begun, look};
use super::target::Target;
use crate::next::Next;

/// The name of the only stage of a release whose add-ons are one chart: that of Helm's release.
pub const SINGLE_STAGE: &str = "cluster-addon";

/// How long a stage may take whose release does not say it.
const TIMEOUT: Duration = Duration::from_mins(30);
/// The same of a stage that holds up the deletion of a cluster.
pub(super) const TIMEOUT_OF_DELETION: Duration = Duration::from_mins(10);

/// Where a course leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// To the first add-ons of a cluster.
    Creation,
    /// To others: of another version, for another Kubernetes, with other values.
    Upgrade,
    /// To where the cluster can go.
    Deletion,
}

/// How a release lists its stages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stages {
    /// It has no clusteraddon.yaml: one chart, applied at creation and at every upgrade.
    Single,
    /// As clusteraddon.yaml says. Without hooks, or with none that we know, there is nothing to do, as for the Go operator.
    Listed(ClusterAddonConfig),
}

/// Which stage. A chart may stand in several, also twice in one hook with the same action.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StageKey {
    /// The hook that the release lists it under.
    pub hook: Hook,
    /// Its place in that list, from 0.
    pub index: usize,
    /// The directory of its chart.
    pub name: String,
    /// What it does.
    pub action: StageAction,
}

/// A stage, as its release has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Which.
    pub key: StageKey,
    /// The hook whose moment it waits for: its own, but for a stage of creation in an upgrade that of `BeforeClusterUpgrade`.
    pub opens: Hook,
    /// How long it may take.
    pub timeout: Duration,
    /// What happens when it takes longer.
    pub on_failure: OnFailure,
    /// What must hold before.
    pub pre: Option<WaitForCondition>,
    /// What must hold after.
    pub post: Option<WaitForCondition>,
}

/// Where the add-ons of a cluster are to be led.
///
/// It depends on the Cluster, on annotations and on what the target is, not on the status: who loses that still knows whether a cluster is new. A cluster whose
/// values change is led by the list that made its add-ons, so that a variable never takes a chart away.
pub fn kind(cluster: &ClusterSeen, marks: &Marks, target: &Target) -> Kind {
    if cluster.deleting.is_some() {
        Kind::Deletion
    } else if marks.is_creation_of(target) {
        Kind::Creation
    } else {
        Kind::Upgrade
    }
}

/// The stages of a course, in order. A release that lists none for upgrades is upgraded by those of creation.
pub fn stages(kind: Kind, stages: &Stages) -> Vec<Stage> {
    let creation = || listed(stages, &Hook::OF_CREATION);
    match kind {
        Kind::Creation => creation(),
        Kind::Deletion => listed(stages, &[Hook::BeforeClusterDelete]),
        Kind::Upgrade => {
            let upgrade = listed(stages, &Hook::OF_UPGRADE);
            if !upgrade.is_empty() {
                return upgrade;
            }
            let opens = Hook::BeforeClusterUpgrade;
            creation().into_iter().map(|stage| Stage { opens, ..stage }).collect()
        }
    }
}

/// The charts whose objects stay when a course is over; those of others are pruned.
///
/// Of an upgrade these are the charts that creation and then the upgrade itself leave applied: a cluster does not lose its network because no stage of an
/// upgrade names the chart. A creation takes nothing away that the release applies at all: its ClusterAddon may have been made anew for a cluster that was
/// upgraded long ago.
pub fn charts_that_stay(kind: Kind, layout: &Stages) -> BTreeSet<String> {
    let course = match kind {
        Kind::Creation => listed(layout, &Hook::ALL),
        Kind::Upgrade | Kind::Deletion => {
            let mut course = listed(layout, &Hook::OF_CREATION);
            course.extend(stages(Kind::Upgrade, layout));
            course
        }
    };
    let mut charts = BTreeSet::new();
    for Stage { key, .. } in course {
        match key.action {
            StageAction::Apply => {
                charts.insert(key.name);
            }
            StageAction::Delete if kind == Kind::Creation => {}
            StageAction::Delete => {
                charts.remove(&key.name);
            }
        }
    }
    charts
}

/// The charts that have to be rendered before it is known what is to be done: those of the stages, and those that stay. Objects may have moved to these, and
/// neither a stage that deletes nor what is pruned in the end takes away what they ask for.
pub fn charts_needed(kind: Kind, layout: &Stages) -> BTreeSet<String> {
    let course = stages(kind, layout).into_iter();
    let mut charts: BTreeSet<String> = course.map(|stage| stage.key.name).collect();
    if kind != Kind::Deletion {
        charts.extend(charts_that_stay(kind, layout));
    }
    charts
}

fn listed(stages: &Stages, hooks: &[Hook]) -> Vec<Stage> {
    match stages {
        Stages::Single => {
            let hook = Hook::AfterControlPlaneInitialized;
            let only = hooks.contains(&hook).then(|| stage(hook, 0, &single()));
            only.into_iter().collect()
        }
        Stages::Listed(config) => hooks
            .iter()
            .filter_map(|hook| Some((hook, config.addon_stages.get(hook.name())?)))
            .flat_map(|(hook, stages)| {
                stages
                    .iter()
                    .enumerate()
                    .map(|(index, listed)| stage(*hook, index, listed))
            })
            .collect(),
    }
}

fn single() -> AddonStage {
    AddonStage {
        name: SINGLE_STAGE.to_owned(),
        action: StageAction::Apply,
        wait_for_pre_condition: None,
        wait_for_post_condition: None,
        timeout: None,
        on_failure: None,
    }
}

fn stage(hook: Hook, index: usize, listed: &AddonStage) -> Stage {
    let AddonStage {
        name,
        action,
        wait_for_pre_condition,
        wait_for_post_condition,
        timeout,
        on_failure,
    } = listed.clone();
    // A cluster that is to go is not held for what it leaves behind.
    let (usual, otherwise) = if hook == Hook::BeforeClusterDelete {
        (TIMEOUT_OF_DELETION, OnFailure::Continue)
    } else {
        (TIMEOUT, OnFailure::Stop)
    };
    Stage {
        key: StageKey {
            hook,
            index,
            name,
            action,
        },
        opens: hook,
        timeout: timeout.unwrap_or(usual),
        on_failure: on_failure.unwrap_or(otherwise),
        pre: wait_for_pre_condition,
        post: wait_for_post_condition,
    }
}

/// What a course depends on.
#[derive(Clone, Copy, Debug)]
pub struct CourseInput<'input> {
    /// Where it leads.
    pub kind: Kind,
    /// Its stages, of [`stages`].
    pub stages: &'input [Stage],
    /// What it leads to.
    pub target: &'input Target,
    /// The cluster.
    pub cluster: &'input ClusterSeen,
    /// What the status says so far. Rows of another target count for nothing.
    pub status: &'input ClusterAddonStatus,
    /// The hooks whose moment has come, of [`super::due`].
    pub due: &'input BTreeSet<Hook>,
    /// What is seen of the stages.
    pub seen: &'input BTreeMap<StageKey, StageSeen>,
}

/// A course, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// Where it leads.
    pub kind: Kind,
    /// Its stages, in order.
    pub stages: Vec<StageState>,
    /// When it ends, whatever is left of it: before a deletion.
    pub ends: Option<Timestamp>,
}

/// Finds out how far a course is. A stage is open when all before it are over and its moment has come; a stage that was done for this target stays done.
///
/// A stage that has begun stays open when its moment passes: half of it would be no better for the cluster, and its time goes on. Before a deletion the moment
/// passes with the cluster itself, and nothing is touched any more.
pub fn course(input: &CourseInput<'_>, now: Timestamp) -> Course {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let ends = end(input);
    let is_at_end = ends.is_some_and(|end| now >= end) || (input.kind == Kind::Deletion && input.due.is_empty());
    let rows = rows_of(input);
    let mut states: Vec<StageState> = Vec::new();
    let mut has_turn = true;
    for stage in input.stages {
        let mut state = state(input, stage, rows.get(&stage.key).copied(), has_turn, now);
        state.passed_over |= is_at_end && state.phase != StagePhase::Done;
        has_turn &= state.is_over();
        states.push(state);
    }
    Course {
        kind: input.kind,
        stages: states,
        ends,
    }
}

/// A cluster that is to go waits for all of its stages together as long as they may take one after the other, counted from when it was deleted: nobody
/// who loses the status begins anew.
fn end(input: &CourseInput<'_>) -> Option<Timestamp> {
    let deleting = input.cluster.deleting?;
    let together = input
        .stages
        .iter()
        .fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.timeout));
    Some(after(deleting, together))
}

pub(super) fn after(begin: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    begin.checked_add(length).unwrap_or(Timestamp::MAX)
}

/// The rows of this target, by stage: the n-th of a hook is its n-th stage, if it is called so.
fn rows_of<'input>(input: &CourseInput<'input>) -> BTreeMap<StageKey, &'input StageProgress> {
    let is_of_target = |recorded| input.target.is_digest_of(recorded);
    if !input.status.target.as_ref().is_some_and(is_of_target) {
        return BTreeMap::new();
    }
    let mut places: BTreeMap<Hook, usize> = BTreeMap::new();
    let mut rows = BTreeMap::new();
    for row in &input.status.stages {
        let Some(hook) = row.hook.as_deref().and_then(Hook::named) else {
            continue;
        };
        let place = places.entry(hook).or_default();
        let key = StageKey {
            hook,
            index: *place,
            name: row.name.clone(),
            action: row.action,
        };
        *place += 1;
        rows.insert(key, row);
    }
    rows
}

fn state(
    input: &CourseInput<'_>,
    stage: &Stage,
    row: Option<&StageProgress>,
    has_turn: bool,
    now: Timestamp,
) -> StageState {
    let last = row.map_or(StagePhase::Unknown, |row| row.phase);
    let since = |phase| {
        let since = row.filter(|_| last == phase).and_then(|row| row.since.as_ref());
        since.map_or(now, |since| since.0.min(now))
    };
    let was_opened = row.is_some_and(|row| has_begun(row) || row.passed_over);
    let is_due = input.due.contains(&stage.opens) || (was_opened && input.kind != Kind::Deletion);
    let closed = |phase, reason, message| StageState {
        key: stage.key.clone(),
        opens: stage.opens,
        phase,
        open: false,
        reason,
        message,
        since: since(phase),
        deadline: None,
        passed_over: false,
    };
    if last == StagePhase::Done {
        return closed(StagePhase::Done, None, None);
    }
    if !has_turn {
        return closed(StagePhase::Pending, None, None);
    }
    if !is_due {
        let message = awaited(stage.opens, input);
        return closed(StagePhase::Pending, Some(Reason::WaitingForCluster), Some(message));
    }
    let unseen = StageSeen::default();
    let look = look(stage, row, input.seen.get(&stage.key).unwrap_or(&unseen));
    if look.phase == StagePhase::Done {
        return closed(StagePhase::Done, None, None);
    }
    let deadline = deadline(input, stage, row, now);
    let is_late = now >= deadline;
    // Of these time mends nothing. A cluster that is to go is given the time all the same: what is not done before can never be done.
    let is_invalid = look.reason == Some(Reason::ConditionInvalid);
    let is_hopeless = is_late || (is_invalid && input.kind != Kind::Deletion);
    StageState {
        open: true,
        reason: if is_late && !is_invalid {
            Some(Reason::StageDeadlineExceeded)
        } else {
            look.reason
        },
        message: look.message,
        deadline: Some(deadline),
        passed_over: is_hopeless && stage.on_failure == OnFailure::Continue,
        ..closed(look.phase, None, None)
    }
}

/// What the cluster has to become before the stages of a hook run.
fn awaited(hook: Hook, input: &CourseInput<'_>) -> String {
    let cluster = input.cluster;
    let version = cluster.version();
    if !cluster.initialized {
        return "waits until the API server of the cluster answers".to_owned();
    }
    if Hook::OF_UPGRADE.contains(&hook)
        && let Some(unsaid) = unsaid(cluster)
    {
        return unsaid;
    }
    match hook {
        Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => {
            "waits until the control plane has become what it shall be, and no workers are being replaced".to_owned()
        }
        Hook::AfterControlPlaneUpgrade | Hook::BeforeWorkersUpgrade => {
            format!("waits until the control plane has Kubernetes {version}")
        }
        Hook::AfterWorkersUpgrade | Hook::AfterClusterUpgrade => {
            let applied = input.status.applied.as_ref();
            let keeps_kubernetes =
                applied.is_some_and(|applied| applied.kubernetes_version.as_deref() == Some(version));
            if keeps_kubernetes {
                awaited_of_class(cluster)
            } else {
                format!("waits until all workers have Kubernetes {version}")
            }
        }
        Hook::BeforeClusterCreate | Hook::AfterControlPlaneInitialized | Hook::BeforeClusterDelete => {
            "waits for the cluster".to_owned()
        }
    }
}

/// The same of the end of an upgrade of which Kubernetes is no part: nobody waits for a version there, but for the rest of the class.
fn awaited_of_class(cluster: &ClusterSeen) -> String {
    if !cluster.reconciled {
        "waits until Cluster API has brought the rest of the class to the cluster".to_owned()
    } else if cluster.workers_roll {
        "waits until no workers are being replaced".to_owned()
    } else {
        let version = cluster.version();
        format!("waits until Cluster API has ended the upgrade to Kubernetes {version}")
    }
}

/// What has to be known of the control plane before it can be told how far an upgrade is.
fn unsaid(cluster: &ClusterSeen) -> Option<String> {
    let Some(control_plane) = &cluster.control_plane else {
        return Some(
            "waits until the control plane is there that spec.controlPlaneRef of the Cluster names: it tells how far an upgrade is".to_owned(),
        );
    };
    let field = control_plane.unsaid()?;
    Some(format!(
        "waits until the control plane has {field}: without it nobody knows how far an upgrade is; if that stays, it is a fault of the \
         provider of the control plane"
    ))
}

impl Course {
    /// The first stage that is not over.
    pub fn current(&self) -> Option<&StageState> {
        self.stages.iter().find(|stage| !stage.is_over())
    }

    /// The stages that are worked on: the current one if its moment has come, and those that were passed over.
    pub fn open(&self) -> impl Iterator<Item = &StageState> {
        self.stages.iter().filter(|stage| stage.open)
    }

    /// Whether nothing waits for it any more.
    pub fn is_over(&self) -> bool {
        self.current().is_none()
    }

    /// Whether all of it is done: the cluster has the target.
    pub fn is_done(&self) -> bool {
        self.stages.iter().all(|stage| stage.phase == StagePhase::Done)
    }

    /// How the status says how far the stages are.
    pub fn rows(&self) -> Vec<StageProgress> {
        self.stages.iter().map(StageState::row).collect()
    }

    /// How the status says which hook is being worked on; before a deletion also when nothing is left, so that whoever answers the hook knows that
    /// somebody has looked.
    pub fn progress(&self, input: &CourseInput<'_>, now: Timestamp) -> Option<HookProgress> {
        let current = self.current();
        let hook = match self.kind {
            Kind::Deletion => Hook::BeforeClusterDelete,
            Kind::Creation | Kind::Upgrade => current?.key.hook,
        };
        let last = input.status.hook.as_ref().filter(|last| last.name == hook.name());
        let begun = match input.cluster.deleting {
            Some(deleting) => deleting,
            None => last.map_or(now, |last| last.since.0.min(now)),
        };
        Some(HookProgress {
            name: hook.name().to_owned(),
            since: Time(Timestamp::from_second(begun.as_second()).unwrap_or(begun)),
            deadline: self.ends.or_else(|| current?.deadline).map(Time),
            message: current.map(|stage| {
                let StageKey { name, action, .. } = &stage.key;
                let message = stage.message.as_deref().unwrap_or("at work");
                cut(&format!("stage {name} ({action}): {message}"))
            }),
        })
    }

    /// When time alone makes a difference.
    pub fn next(&self, now: Timestamp) -> Next {
        let waits = self.stages.iter().filter(|stage| stage.open);
        let deadlines = waits
            .filter_map(|stage| stage.deadline)
            .chain(self.ends.filter(|_| !self.is_over()));
        deadlines
            .filter(|deadline| *deadline > now)
            .fold(Next::Await, |next, deadline| next.sooner(Next::At(deadline)))
    }
}
