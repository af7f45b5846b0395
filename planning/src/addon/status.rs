//! The status of a ClusterAddon as a whole: what the cluster shall have and has, how far it is on the way, and what it takes from rows and findings.

use std::time::Duration;

use crds::cluster_addon::{AddonAssets, AddonMemo, ClusterAddonStatus, HookProgress, StagePhase, StageProgress};
use crds::conditions::{ConditionStatus, ConditionType, Finding, cut, merge, with_ready};
use crds::resource::Resource;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::belongings::Belongings;
use super::course::{Kind, Stage, TIMEOUT_OF_DELETION, stages};
use super::findings;
use super::hook::Hook;
use super::observed::{AddonObserved, Layout};
use super::outlook::Outlook;
use super::stage::has_begun;
use super::target::{ReleaseSeen, Wanted};
use super::waiting::AddonWaiting;
use super::work::origins;
use crate::objects::{Decisions, Inventory, key_of};

/// What a status tells.
pub(super) struct Told<'a> {
    pub(super) outlook: &'a Outlook<'a>,
    pub(super) belongings: &'a Belongings,
    pub(super) decisions: &'a Decisions,
    pub(super) waiting: &'a [AddonWaiting],
    /// What the memo holds when the status is written, if it has to be written before.
    pub(super) memo: Option<&'a AddonMemo>,
}

/// The status that follows from what was seen and decided.
pub(super) fn status(told: &Told<'_>, now: Timestamp) -> ClusterAddonStatus {
    let Outlook {
        observed, cluster, way, ..
    } = told.outlook;
    let Inventory {
        resources,
        approved_prune,
    } = told.belongings.set(observed).inventory(told.decisions);
    let resources = with_charts(told, resources);
    let mut findings = with_ready(findings::of_the_parts(told, &resources));
    let ready = findings.iter().any(is_ready);
    findings.extend(findings::activity(told, ready));
    let last = &observed.status;
    let mut status = ClusterAddonStatus {
        observed_generation: Some(observed.generation),
        cluster_generation: Some(cluster.generation),
        resources,
        memo: memo(observed, told.memo),
        approved_prune,
        ready,
        last_handled_reconcile_at: observed
            .requested_at
            .clone()
            .or_else(|| last.last_handled_reconcile_at.clone()),
        conditions: merge(&last.conditions, findings, now),
        ..last.clone()
    };
    if let Some(way) = way {
        status.target = Some(way.target.recorded());
        status.stages = way.course.rows();
        status.hook.clone_from(&way.progress);
        status.assets = observed.assets.clone().map(|digest| AddonAssets { digest });
        if way.course.is_done() && way.course.kind != Kind::Deletion {
            status.applied.clone_from(&status.target);
        }
    } else if cluster.deleting.is_some() {
        (status.stages, status.hook) = without_target(told.outlook, now);
    }
    status
}

fn is_ready(finding: &Finding) -> bool {
    finding.condition_type() == ConditionType::Ready && finding.status() == ConditionStatus::True
}

/// The rows with the charts that the objects come from.
fn with_charts(told: &Told<'_>, mut rows: Vec<Resource>) -> Vec<Resource> {
    let origins = origins(told.outlook.observed);
    for row in &mut rows {
        let key = key_of(row);
        let chart = told.belongings.chart_of(&key).or_else(|| origins.get(&key).copied());
        chart.unwrap_or_default().clone_into(&mut row.stage);
    }
    rows
}

/// What is said of the memo: what it holds, once it holds what the charts drew.
fn memo(observed: &AddonObserved, written: Option<&AddonMemo>) -> Option<AddonMemo> {
    match &observed.memo {
        _ if written.is_some() => written.cloned(),
        Some(seen) if seen.drawn.is_none() || seen.drawn == seen.stored => seen.stored.clone(),
        Some(_) | None => observed.status.memo.clone(),
    }
}

/// When a cluster that is to go is let go, though nothing can be done for it: its stages get the time that they may take, and where nobody knows them, that of
/// one.
pub(super) fn end_of_deletion(outlook: &Outlook<'_>) -> Option<Timestamp> {
    let deleting = outlook.cluster.deleting?;
    let timeout = match stages_of_deletion(outlook) {
        Some(stages) => stages
            .iter()
            .fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.timeout)),
        None => TIMEOUT_OF_DELETION,
    };
    let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
    Some(deleting.saturating_add(timeout).unwrap_or(Timestamp::MAX))
}

/// The stages before the deletion, where anybody knows them. A release that is not there any more has none.
fn stages_of_deletion(outlook: &Outlook<'_>) -> Option<Vec<Stage>> {
    let is_gone = matches!(outlook.wanted, Wanted::NoClass) || outlook.observed.release == ReleaseSeen::Absent;
    match &outlook.observed.layout {
        _ if is_gone || outlook.cluster.ok_to_delete => Some(Vec::new()),
        Layout::Known(layout) => Some(stages(Kind::Deletion, layout)),
        Layout::Wrong { .. } => Some(Vec::new()),
        Layout::NotRead => None,
    }
}

/// Rows and progress of a cluster that is to go while nothing can be done for it: they say until when it waits, and why. How far its stages have come by then is
/// not forgotten.
fn without_target(outlook: &Outlook<'_>, now: Timestamp) -> (Vec<StageProgress>, Option<HookProgress>) {
    let (Some(deleting), Some(end)) = (outlook.cluster.deleting, end_of_deletion(outlook)) else {
        return (Vec::new(), None);
    };
    let (before, said) = last_of_deletion(&outlook.observed.status);
    let Some(stages) = stages_of_deletion(outlook) else {
        // What was said stands. Where nothing was, whoever answers the hook counts the time by himself.
        return (before, said);
    };
    let (reason, message) = findings::of_the_target(outlook)
        .map(|finding| (finding.reason(), cut(finding.message())))
        .unwrap_or_default();
    let row = |stage: &Stage| {
        let row = StageProgress {
            name: stage.key.name.clone(),
            action: stage.key.action,
            hook: Some(stage.key.hook.name().to_owned()),
            phase: StagePhase::Pending,
            reason: reason.map(|reason| reason.as_str().to_owned()),
            since: Some(whole_seconds(deleting)),
            deadline: Some(whole_seconds(end)),
            message: Some(message.clone()),
            passed_over: now >= end,
        };
        let last = before.get(stage.key.index);
        match last.filter(|last| last.name == row.name && last.action == row.action) {
            Some(last) if last.phase == StagePhase::Done => last.clone(),
            Some(last) if has_begun(last) || last.passed_over => StageProgress {
                phase: last.phase,
                since: last.since.clone(),
                deadline: last.deadline.clone(),
                passed_over: last.passed_over || row.passed_over,
                ..row
            },
            Some(_) | None => row,
        }
    };
    let rows: Vec<StageProgress> = stages.iter().map(row).collect();
    let progress = HookProgress {
        name: Hook::BeforeClusterDelete.name().to_owned(),
        since: whole_seconds(deleting),
        deadline: Some(whole_seconds(end)),
        message: (!rows.is_empty()).then_some(message),
    };
    (rows, Some(progress))
}

/// What the status says of the stages before the deletion, if it is about that.
fn last_of_deletion(status: &ClusterAddonStatus) -> (Vec<StageProgress>, Option<HookProgress>) {
    let hook = Hook::BeforeClusterDelete.name();
    let rows = status.stages.iter().filter(|row| row.hook.as_deref() == Some(hook));
    let progress = status.hook.as_ref().filter(|progress| progress.name == hook);
    (rows.cloned().collect(), progress.cloned())
}

fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}
