//! What a cluster shall have, the way there, and how far it has come on it.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{ClusterAddonStatus, HookProgress, StageAction, StagePhase, StageProgress};
use jiff::Timestamp;

use super::cluster::ClusterSeen;
use super::course::{Course, CourseInput, Kind, Stage, StageKey, Stages, course, kind, stages};
use super::moment::due;
use super::observed::{AddonObserved, ChartSeen, Connection, Layout};
use super::stage::{StageSeen, StageState};
use super::target::{Target, Wanted, wanted};
use super::work::Works;

/// All that follows from an observation before anything is decided about objects.
pub(super) struct Outlook<'a> {
    pub(super) observed: &'a AddonObserved,
    pub(super) cluster: &'a ClusterSeen,
    pub(super) wanted: Wanted,
    /// `None` while it is not known where it leads.
    pub(super) way: Option<Way<'a>>,
}

/// The way to a target.
pub(super) struct Way<'a> {
    pub(super) target: Target,
    pub(super) layout: &'a Stages,
    pub(super) stages: Vec<Stage>,
    pub(super) works: Works,
    pub(super) course: Course,
    pub(super) progress: Option<HookProgress>,
}

impl<'a> Outlook<'a> {
    pub(super) fn of(observed: &'a AddonObserved, cluster: &'a ClusterSeen, now: Timestamp) -> Self {
        let last = observed.status.target.as_ref();
        let wanted = wanted(cluster, &observed.release, &observed.values, last);
        let way = match (&wanted, &observed.layout) {
            (Wanted::Target(target), Layout::Known(layout)) => {
                Some(Way::to(target.clone(), layout, observed, cluster, now))
            }
            _ => None,
        };
        Self {
            observed,
            cluster,
            wanted,
            way,
        }
    }

    /// The charts that lead to the target, and what became of them.
    pub(super) fn charts(&self) -> impl Iterator<Item = (&'a str, &'a ChartSeen)> + use<'_, 'a> {
        let way = self.way.iter();
        let names: BTreeSet<&str> = way
            .flat_map(|way| way.course.stages.iter())
            .map(|stage| stage.key.name.as_str())
            .collect();
        let charts = self.observed.charts.iter();
        charts
            .filter(move |(chart, _)| names.contains(chart.as_str()))
            .map(|(chart, seen)| (chart.as_str(), seen))
    }

    /// Those of them that are made with values of before, and why others cannot be made.
    pub(super) fn held(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'_, 'a> {
        let held = &self.observed.values_held;
        self.charts()
            .filter_map(move |(chart, _)| Some((chart, held.get(chart)?.as_str())))
    }

    /// The same, and one that matters besides; it may be among them.
    pub(super) fn charts_and(&self, other: Option<&str>) -> impl Iterator<Item = (&'a str, &'a ChartSeen)> {
        let other = other.and_then(|chart| self.observed.charts.get_key_value(chart));
        self.charts().chain(other.map(|(chart, seen)| (chart.as_str(), seen)))
    }
}

impl<'a> Way<'a> {
    fn to(target: Target, layout: &'a Stages, observed: &AddonObserved, cluster: &ClusterSeen, now: Timestamp) -> Self {
        let kind = kind(cluster, &observed.marks, &target);
        let stages = stages(kind, layout);
        // Of stages that were done nobody asks how their work is.
        let works = if is_reached(observed, cluster) && !is_complete(&observed.status, &target, &stages) {
            Works::of(observed, kind, layout, &stages, now)
        } else {
            Works::default()
        };
        let seen = seen(observed, &stages, &works);
        let due = due(cluster, observed.marks.called.as_ref());
        let input = CourseInput {
            kind,
            stages: &stages,
            target: &target,
            cluster,
            status: &observed.status,
            due: &due,
            seen: &seen,
        };
        let course = course(&input, now);
        let progress = course.progress(&input, now);
        Self {
            target,
            layout,
            stages,
            works,
            course,
            progress,
        }
    }

    /// What the charts of the stages that have begun were used for last, in the order in which that happened.
    pub(super) fn begun(&self) -> Vec<(&str, StageAction)> {
        let mut last: Vec<(&str, StageAction)> = Vec::new();
        for stage in self.course.stages.iter().filter(|stage| has_begun(stage)) {
            let StageKey { name, action, .. } = &stage.key;
            last.retain(|(chart, _)| chart != name);
            last.push((name, *action));
        }
        last
    }

    /// Whether a stage has begun that undoes what another one was done with, of which the status does not say so yet: nobody could see it any more.
    pub(super) fn is_turning(&self, status: &ClusterAddonStatus) -> bool {
        let is_of_target = status.target.as_ref() == Some(&self.target.recorded());
        let is_recorded = |(place, stage): (usize, &StageState)| {
            let row = status.stages.get(place).filter(|_| is_of_target);
            row.is_some_and(|row| row.phase == StagePhase::Done && row.name == stage.key.name)
        };
        let stages = &self.course.stages;
        stages.iter().enumerate().any(|(place, stage)| {
            let mut undone = stages[..place].iter().enumerate();
            let is_undone = |(_, other): &(usize, &StageState)| {
                other.key.name == stage.key.name && other.key.action != stage.key.action && has_begun(other)
            };
            has_begun(stage) && undone.any(|other| is_undone(&other) && !is_recorded(other))
        })
    }

    /// The stage that waits for what must hold before it, if one does.
    pub(super) fn about_to_begin(&self) -> impl Iterator<Item = &StageState> {
        self.course
            .open()
            .filter(|stage| stage.phase == StagePhase::WaitingForPreCondition)
    }

    /// Whether objects may go that no chart asks for any more: all that the target asks for has been there.
    pub(super) fn may_prune(&self) -> bool {
        self.course.kind != Kind::Deletion && self.course.is_done()
    }
}

/// Whether anything can be known of the objects of the cluster.
pub(super) fn is_reached(observed: &AddonObserved, cluster: &ClusterSeen) -> bool {
    cluster.initialized && observed.connection == Connection::Healthy
}

/// Whether the status says that all of these stages were done for this target.
fn is_complete(status: &ClusterAddonStatus, target: &Target, stages: &[Stage]) -> bool {
    let is_done = |(row, Stage { key, .. }): (&StageProgress, &Stage)| {
        row.phase == StagePhase::Done
            && row.name == key.name
            && row.action == key.action
            && row.hook.as_deref() == Some(key.hook.name())
    };
    status
        .target
        .as_ref()
        .is_some_and(|recorded| target.is_digest_of(recorded))
        && status.stages.len() == stages.len()
        && status.stages.iter().zip(stages).all(is_done)
}

/// Whether a stage may have written anything, and what it wants has to be as it left it.
fn has_begun(stage: &StageState) -> bool {
    match stage.phase {
        StagePhase::Done => true,
        StagePhase::ApplyingOrDeleting | StagePhase::WaitingForPostCondition => stage.open,
        StagePhase::Pending | StagePhase::WaitingForPreCondition | StagePhase::Unknown => false,
    }
}

fn seen(observed: &AddonObserved, stages: &[Stage], works: &Works) -> BTreeMap<StageKey, StageSeen> {
    let of = |stage: &Stage| {
        let (pre, post) = observed.conditions_of(&stage.key);
        let work = works.work(&stage.key);
        (stage.key.clone(), StageSeen { work, pre, post })
    };
    stages.iter().map(of).collect()
}

impl StageState {
    /// Whether it takes longer than it may.
    pub(super) fn is_late(&self) -> bool {
        self.reason == Some(crds::conditions::Reason::StageDeadlineExceeded)
    }

    /// Whether it waits for what cannot hold in this cluster.
    pub(super) fn is_invalid(&self) -> bool {
        self.reason == Some(crds::conditions::Reason::ConditionInvalid)
    }

    /// Which it is, for people.
    pub(super) fn words(&self) -> String {
        let StageKey { name, action, hook, .. } = &self.key;
        let message = self.message.as_deref().unwrap_or("its turn has not come");
        format!("stage {name} ({action}) of {hook}: {message}")
    }
}
