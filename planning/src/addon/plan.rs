//! The plan for the add-ons of one cluster: steps in order, the status that follows from what was seen, and why nothing more happens.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{AddonMemo, ClusterAddonStatus, StageAction};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::action::{AddonAction, Step};
use super::belongings::Belongings;
use super::cluster::{ClusterSeen, PausedBy};
use super::observed::{AddonObserved, ChartSeen, Connection};
use super::outlook::{Outlook, is_reached};
use super::presence::{Pausing, Presence, presence};
use super::status::{self, Told};
use super::target::Wanted;
use super::waiting::{AddonWaiting, waiting};
use crate::next::{Next, rests_until};
use crate::object_key::{GroupKind, ObjectKey};
use crate::objects::{Decisions, ObjectAction, Rendering, record_before_writes};
use crate::pacing::paced;
use crate::pause::Pause;
use crate::unlisted::next_words;

/// How long nothing is said of a connection that is being made, or does not answer: most come, or come back, within that time.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// What a driver performs, and what it then knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddonPlan {
    /// Steps in order. The actions of one step are independent of each other.
    pub steps: Vec<Step>,
    /// Of what steps apply or check: the chart whose form of the object is meant, since several may ask for one object.
    pub charts: BTreeMap<ObjectKey, String>,
    /// The status that follows from what was observed, to be written when the steps have led to nothing new.
    pub status: ClusterAddonStatus,
    /// Why nothing (more) happens, sorted.
    pub waiting: Vec<AddonWaiting>,
    /// When to look again.
    pub next: Next,
}

/// Decides about a ClusterAddon that is there. Whether one is made is decided by [`presence()`].
pub fn plan(observed: &AddonObserved, now: Timestamp) -> AddonPlan {
    let presence = presence(observed.cluster.as_ref(), observed.class, Some(&observed.seen));
    match (presence, &observed.cluster) {
        (Presence::Tend, Some(cluster)) => fitting(observed, cluster, now),
        (Presence::Paused(by), _) => paused(observed, by, now),
        (Presence::Moving, _) => untouched(observed, Some(AddonWaiting::Moving), Next::Await),
        (Presence::NotKnownYet, _) => untouched(observed, Some(AddonWaiting::Releases), Next::Await),
        (Presence::Delete, _) => AddonPlan {
            steps: vec![Step::own(AddonAction::Delete {
                uid: observed.uid.clone(),
            })],
            ..untouched(observed, None, Next::Await)
        },
        // Nothing in the cluster is touched: where it stays, the add-on is made anew, and finds all that was made.
        (Presence::LetGo, _) => AddonPlan {
            steps: observed
                .finalizer
                .then(|| Step::own(AddonAction::RemoveFinalizer))
                .into_iter()
                .collect(),
            ..untouched(observed, None, Next::Await)
        },
        (Presence::None | Presence::Create | Presence::NotOurs | Presence::Stray | Presence::Tend, _) => {
            untouched(observed, None, Next::Await)
        }
    }
}

/// Nothing to do, and nothing new to say.
fn untouched(observed: &AddonObserved, waiting: Option<AddonWaiting>, next: Next) -> AddonPlan {
    AddonPlan {
        steps: Vec::new(),
        charts: BTreeMap::new(),
        status: observed.status.clone(),
        waiting: waiting.into_iter().collect(),
        next,
    }
}

fn paused(observed: &AddonObserved, by: Pausing, now: Timestamp) -> AddonPlan {
    let pause = match by {
        Pausing::Cluster(PausedBy::Spec) => Pause::Cluster,
        Pausing::Cluster(PausedBy::Annotation) => Pause::AnnotatedCluster,
        Pausing::Addon => Pause::Addon,
    };
    let mut plan = untouched(observed, Some(AddonWaiting::Paused), Next::Await);
    plan.status.conditions = pause.conditions(&observed.status.conditions, now);
    plan
}

/// Add-ons that have more objects than a status can list are as bad as charts that cannot be rendered.
fn fitting(observed: &AddonObserved, cluster: &ClusterSeen, now: Timestamp) -> AddonPlan {
    let none = BTreeSet::new();
    let charts = observed.charts.keys().filter_map(|chart| observed.intents_of(chart));
    let intents = charts
        .flatten()
        .map(|(key, intent)| (key.clone(), intent.clone()))
        .collect();
    match observed.set(Some(&intents), &observed.objects, &none).too_large() {
        None => tended(observed, cluster, now),
        Some(message) => {
            let failed = || {
                let transient = None;
                let message = message.clone();
                ChartSeen::Found(Rendering::Failed { message, transient })
            };
            let charts = observed.charts.keys().map(|chart| (chart.clone(), failed()));
            let observed = AddonObserved {
                charts: charts.collect(),
                ..observed.clone()
            };
            tended(&observed, cluster, now)
        }
    }
}

fn tended(observed: &AddonObserved, cluster: &ClusterSeen, now: Timestamp) -> AddonPlan {
    let outlook = Outlook::of(observed, cluster, now);
    if let Some(plan) = in_passing(&outlook, now) {
        return plan;
    }
    let belongings = Belongings::of(&outlook);
    let decisions = belongings.decisions(observed, now);
    let set = belongings.set(observed);
    let mut steps = preparation(&outlook, &decisions);
    steps.extend(belongings.steps(&set, &decisions, outlook.way.as_ref()));
    let waiting = waiting(&outlook, &belongings, &set, &decisions);
    let memo = unrecorded_memo(&outlook, &steps);
    let told = Told {
        outlook: &outlook,
        belongings: &belongings,
        decisions: &decisions,
        waiting: &waiting,
        memo: memo.as_ref(),
    };
    let status = status::status(&told, now);
    let is_of_another = (&status.target, &status.assets) != (&observed.status.target, &observed.status.assets);
    record_before_writes(&set, &decisions, &mut steps, is_of_another, || {
        let status = Box::new(status.clone());
        AddonAction::RecordInventory { status }
    });
    if outlook.way.as_ref().is_some_and(|way| way.is_turning(&observed.status)) {
        record_turn(&status, &mut steps);
    }
    record_memo(observed, memo, &mut steps);
    let (status, in_full) = paced(&observed.status, observed.status_written_at, status, now);
    let next = decisions
        .next()
        .sooner(set.next_of_watches(now))
        .sooner(next_of_way(&outlook, &belongings, now))
        .sooner(in_full);
    AddonPlan {
        charts: belongings.charts_of(&steps, outlook.way.as_ref()),
        steps,
        status,
        waiting,
        next,
    }
}

/// Whether what is the matter is about to pass, and is not worth a word.
fn in_passing(outlook: &Outlook<'_>, now: Timestamp) -> Option<AddonPlan> {
    let Outlook { observed, cluster, .. } = *outlook;
    // What is not known yet is neither here nor gone: whoever took it for gone would let a cluster go without its last stages.
    let unknown = match &outlook.wanted {
        _ if is_life_unknown(cluster) => Some(AddonWaiting::UnseenControlPlane),
        Wanted::ReleaseAwaited => Some(AddonWaiting::Releases),
        Wanted::ValuesAwaited => Some(AddonWaiting::Values),
        _ => None,
    };
    if unknown.is_some() {
        return Some(untouched(observed, unknown, Next::Await));
    }
    if !observed.is_up_to_date(cluster) {
        return None;
    }
    if let Connection::Connecting { since } | Connection::Suspect { since, .. } = &observed.connection
        && cluster.initialized
        && let Some(until) = rests_until(*since, PATIENCE, now)
    {
        return Some(untouched(observed, Some(AddonWaiting::Connection), Next::At(until)));
    }
    let target = outlook.way.as_ref().map(|way| way.target.recorded());
    if !observed.status.ready || target != observed.status.target || !is_reached(observed, cluster) {
        return None;
    }
    // Nobody remembers what they ask for, and nothing is wrong with them so far.
    let mut charts = outlook.charts();
    let (chart, _) =
        charts.find(|(_, chart)| matches!(chart, ChartSeen::Found(Rendering::Awaited { failed: None })))?;
    let chart = chart.to_owned();
    Some(untouched(
        observed,
        Some(AddonWaiting::SlowRendering { chart }),
        Next::Await,
    ))
}

/// Whether a cluster is to go of which nobody knows whether it ever answered: one that never did has nothing to do before it goes.
fn is_life_unknown(cluster: &ClusterSeen) -> bool {
    cluster.deleting.is_some() && !cluster.initialized && cluster.control_plane_awaited
}

/// What has to be on the ClusterAddon before anything else is written.
fn preparation(outlook: &Outlook<'_>, decisions: &Decisions) -> Vec<Step> {
    let Outlook { observed, cluster, .. } = *outlook;
    let mut steps = Vec::new();
    if observed.seen.deleting {
        return steps;
    }
    if observed.seen.owner.as_deref() != Some(cluster.uid.as_str()) {
        steps.push(Step::own(AddonAction::SetOwner {
            name: cluster.name.clone(),
            uid: cluster.uid.clone(),
        }));
    }
    let mut kinds = decisions.group_kinds();
    kinds.extend(kinds_of_charts(outlook));
    // As long as nothing can be applied, nothing is begun: a Cluster that takes the class of somebody else by then was never ours.
    let begins = outlook.way.is_some() && is_reached(observed, cluster);
    let is_begun = observed.seen.begun && kinds.is_subset(&observed.group_kinds);
    if !observed.finalizer || (begins && !is_begun) {
        let group_kinds = observed.group_kinds.union(&kinds).cloned().collect();
        steps.push(Step::own(AddonAction::Mark { group_kinds }));
    }
    let done = outlook.way.as_ref().filter(|way| way.course.is_done());
    let done = done.map(|way| observed.marks.after(way.course.kind, &way.target));
    let marks = done.into_iter().flatten().chain(observed.marks.forgotten(cluster));
    let marks: BTreeMap<String, String> = marks.map(|(name, value)| (name.to_owned(), value)).collect();
    if !marks.is_empty() {
        steps.push(Step::own(AddonAction::SetMarks { marks }));
    }
    steps
}

/// The kinds of all that the way leads to, so that they are written once and not with every stage.
fn kinds_of_charts(outlook: &Outlook<'_>) -> BTreeSet<GroupKind> {
    let charts = outlook
        .charts()
        .filter_map(|(chart, _)| outlook.observed.intents_of(chart));
    charts
        .flat_map(|intents| intents.keys().map(ObjectKey::group_kind))
        .collect()
}

/// What the charts drew, if it is not kept: where objects are to be made of it, or where it was kept and somebody has deleted it, before whoever still knows it ends.
/// The Secret of a Cluster that is to go may go before that.
fn unrecorded_memo(outlook: &Outlook<'_>, steps: &[Step]) -> Option<AddonMemo> {
    let memo = outlook.observed.memo.as_ref()?;
    let is_used = steps.iter().flat_map(Step::on_objects).any(ObjectAction::is_apply);
    let is_missing = memo.stored.is_none() && outlook.observed.status.memo.is_some();
    let is_to_be_kept = is_used || (is_missing && outlook.cluster.deleting.is_none());
    memo.drawn
        .clone()
        .filter(|_| is_to_be_kept && memo.drawn != memo.stored)
}

/// Puts the write of the status before the first write of an object, unless it is written before anyway.
fn record_turn(status: &ClusterAddonStatus, steps: &mut Vec<Step>) {
    let is_write = |step: &Step| {
        let mut actions = step.on_objects();
        actions.any(|action| matches!(action, ObjectAction::Apply { .. } | ObjectAction::Delete { .. }))
    };
    let is_record = |action: &AddonAction| matches!(action, AddonAction::RecordInventory { .. });
    let place = steps.iter().position(is_write);
    if let Some(place) = place
        && !steps[..place].iter().flat_map(Step::on_owner).any(is_record)
    {
        let status = Box::new(status.clone());
        steps.insert(place, Step::own(AddonAction::RecordInventory { status }));
    }
}

/// Puts the write of the memo before the status that names it, and before the first object that is made of it.
fn record_memo(observed: &AddonObserved, memo: Option<AddonMemo>, steps: &mut Vec<Step>) {
    let Some(memo) = memo else {
        return;
    };
    let is_use = |step: &Step| {
        step.on_objects().any(ObjectAction::is_apply)
            || step
                .on_owner()
                .any(|action| matches!(action, AddonAction::RecordInventory { .. }))
    };
    let seen = observed.memo.as_ref();
    let anew = seen.is_some_and(|seen| seen.is_lost(observed.status.memo.as_ref()));
    let place = steps.iter().position(is_use).unwrap_or(steps.len());
    steps.insert(place, Step::own(AddonAction::RecordMemo { memo, anew }));
}

/// When time alone makes a difference for the way.
fn next_of_way(outlook: &Outlook<'_>, belongings: &Belongings, now: Timestamp) -> Next {
    let charts = outlook.charts_and(belongings.unknown());
    let renderings = charts.map(|(_, chart)| chart.next(now));
    let course = match &outlook.way {
        Some(way) => way.course.next(now),
        None => status::end_of_deletion(outlook)
            .filter(|end| *end > now)
            .map_or(Next::Await, Next::At),
    };
    renderings
        .fold(course, Next::sooner)
        .sooner(next_of_lists(outlook, now))
}

/// When to look what is said by then of lists that a stage which deletes waits for: nothing tells when they fail.
fn next_of_lists(outlook: &Outlook<'_>, now: Timestamp) -> Next {
    let Outlook { observed, cluster, .. } = *outlook;
    let mut open = outlook.way.iter().flat_map(|way| way.course.open());
    let deletes = open.any(|stage| stage.key.action == StageAction::Delete);
    if deletes && is_reached(observed, cluster) && !observed.unlisted.is_subset(&observed.forbidden) {
        next_words(now)
    } else {
        Next::Await
    }
}
