//! What the conditions of a ClusterAddon say: one finding for each part of the work, and whether it goes on or stands still.
//!
//! | condition | when it is there |
//! |---|---|
//! | `ClusterReady`, `ClusterStackReleaseDownloaded` | always |
//! | `ClusterAddonConfigValidated` | once the list of stages was read |
//! | `HelmChartApplied` | once there is anything to say of objects |
//! | `HelmChartFound`, `HelmChartTemplated`, `HelmChartDeleted`, `EvaluatedCEL`, `HookServerReady` | only while it is `False`, as with the Go operator |

use crds::cluster_addon::{StageAction, StagePhase};
use crds::conditions::{ConditionStatus, ConditionType, Finding, Reason, Severity};
use crds::resource::Resource;

use super::layout::unused;
use super::observed::{ChartSeen, Connection, Layout};
use super::outlook::{Outlook, Way, is_reached};
use super::presence::may_be_reached;
use super::stage::{StageState, Work};
use super::status::Told;
use super::target::{ReleaseSeen, Values, Wanted};
use super::waiting::AddonWaiting;
use super::work::undeleted;
use crate::objects::{OwnerKind, Rendering, Wait, key_of, refusals};

/// What is to be said of each part of the work, without the summary.
pub(super) fn of_the_parts(told: &Told<'_>, rows: &[Resource]) -> Vec<Finding> {
    let outlook = told.outlook;
    let mut findings = vec![cluster(outlook), downloaded(outlook)];
    findings.extend(validated(outlook));
    findings.extend(found(outlook));
    findings.extend(templated(outlook));
    if let Some(way) = &outlook.way {
        findings.extend(evaluated(way));
        findings.extend(deleted(told, way));
        findings.extend(called(outlook, way));
    }
    findings.extend(applied(told, rows));
    findings
}

fn cluster(outlook: &Outlook<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterReady;
    const REASON: Reason = Reason::ControlPlaneNotReady;
    if !outlook.cluster.initialized {
        let message = "waits until the control plane is initialised and the API server of the cluster answers: if that takes long, look at the \
                       Cluster, its control plane and its infrastructure";
        return Finding::fails(TYPE, Severity::Info, REASON, message);
    }
    match &outlook.observed.connection {
        Connection::Healthy => Finding::holds(TYPE),
        Connection::Disconnected if !is_asked(outlook) => {
            let message = "the cluster is not asked: there is no ClusterStackRelease for its class, and nothing was applied to it";
            Finding::fails(TYPE, Severity::Info, REASON, message)
        }
        Connection::Disconnected => {
            let name = &outlook.cluster.name;
            let message = format!(
                "the kubeconfig is not there (yet): Cluster API makes the Secret {name}-kubeconfig once the cluster has a control plane"
            );
            Finding::fails(TYPE, Severity::Warning, REASON, message)
        }
        Connection::Connecting { .. } => {
            let message = "the API server of the cluster has not answered yet; it is asked until it does";
            Finding::fails(TYPE, Severity::Info, REASON, message)
        }
        Connection::Suspect { message, .. } => Finding::fails(TYPE, Severity::Warning, REASON, message),
        Connection::Refused { message } => {
            let message = format!("the kubeconfig of the cluster cannot be used: {message}");
            Finding::fails(TYPE, Severity::Error, Reason::KubeconfigRefused, message)
        }
    }
}

/// Whether anybody asks the cluster at all.
fn is_asked(outlook: &Outlook<'_>) -> bool {
    let Outlook { observed, cluster, .. } = *outlook;
    may_be_reached(cluster, observed.class, &observed.seen, Some(&observed.status))
}

fn downloaded(outlook: &Outlook<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    match &outlook.wanted {
        Wanted::NoClass => {
            let message = "the Cluster has no class any more: what is applied stays as it is; set spec.topology";
            Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, message)
        }
        Wanted::ReleaseNotReady { message } => {
            let severity = if outlook.observed.release == ReleaseSeen::Absent {
                Severity::Warning
            } else {
                Severity::Info
            };
            Finding::fails(TYPE, severity, Reason::ReleaseNotReady, message)
        }
        Wanted::ReleaseAwaited
        | Wanted::VersionMismatch { .. }
        | Wanted::ValuesAwaited
        | Wanted::ValuesFailed { .. }
        | Wanted::ValuesUnstable { .. }
        | Wanted::Target(_) => Finding::holds(TYPE),
    }
}

/// Why it is not known what the cluster shall have.
pub(super) fn of_the_target(outlook: &Outlook<'_>) -> Option<Finding> {
    let failing = |finding: Finding| (finding.status() == ConditionStatus::False).then_some(finding);
    failing(downloaded(outlook))
        .or_else(|| mismatched(outlook))
        .or_else(|| templated(outlook))
        .or_else(|| validated(outlook).and_then(failing))
}

fn mismatched(outlook: &Outlook<'_>) -> Option<Finding> {
    match &outlook.wanted {
        Wanted::VersionMismatch { message } => Some(Finding::fails(
            ConditionType::HelmChartApplied,
            Severity::Warning,
            Reason::VersionMismatch,
            message,
        )),
        _ => None,
    }
}

fn validated(outlook: &Outlook<'_>) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::ClusterAddonConfigValidated;
    match &outlook.observed.layout {
        Layout::NotRead => None,
        Layout::Wrong { message } => {
            let reason = Reason::ParsingClusterAddonConfigFailed;
            Some(Finding::fails(TYPE, Severity::Error, reason, message))
        }
        Layout::Known(stages) => Some(match (unused(stages), &outlook.observed.values_note) {
            (None, None) => Finding::holds(TYPE),
            (Some(unused), None) => Finding::holds_because(TYPE, Reason::StagesNotUsed, unused),
            (None, Some(note)) => Finding::holds_because(TYPE, Reason::ClusterVersionNotServed, note),
            (Some(unused), Some(note)) => {
                Finding::holds_because(TYPE, Reason::StagesNotUsed, format!("{note}; {unused}"))
            }
        }),
    }
}

/// The charts that are missing, by name.
fn found(outlook: &Outlook<'_>) -> Option<Finding> {
    let missing = outlook.charts().filter_map(|(chart, seen)| match seen {
        ChartSeen::Missing { message } => Some((format!("chart {chart}"), message.as_str())),
        ChartSeen::Found(_) => None,
    });
    let message = refusals(missing);
    (!message.is_empty()).then(|| {
        let type_ = ConditionType::HelmChartFound;
        Finding::fails(type_, Severity::Error, Reason::HelmChartMissing, message)
    })
}

/// Whether everything is there that values are made of. Cluster API makes the control plane of a Cluster after it, and takes it away before.
fn has_parts(outlook: &Outlook<'_>) -> bool {
    outlook.cluster.initialized && !outlook.cluster.ok_to_delete
}

/// What cannot be rendered, and of what is waited for that which has the turn.
fn templated(outlook: &Outlook<'_>) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartTemplated;
    match &outlook.wanted {
        Wanted::ValuesFailed { message } if !has_parts(outlook) => {
            return Some(Finding::fails(TYPE, Severity::Info, Reason::Progressing, message));
        }
        Wanted::ValuesFailed { message } => {
            let reason = Reason::TemplateNewClusterStackOverwriteFailed;
            return Some(Finding::fails(TYPE, Severity::Error, reason, message));
        }
        Wanted::ValuesUnstable { message } => {
            return Some(Finding::fails(
                TYPE,
                Severity::Warning,
                Reason::RenderingUnstable,
                message,
            ));
        }
        _ => {}
    }
    let message = untemplated(outlook);
    if !message.is_empty() {
        let (severity, reason) = match &outlook.observed.values {
            _ if !has_parts(outlook) => (Severity::Info, Reason::Progressing),
            Values::Unstable { .. } => (Severity::Warning, Reason::RenderingUnstable),
            Values::Failed { .. } => (Severity::Error, Reason::TemplateNewClusterStackOverwriteFailed),
            Values::Awaited | Values::Known { .. } => match outlook.held().next() {
                Some(_) => (Severity::Error, Reason::TemplateNewClusterStackOverwriteFailed),
                None => (Severity::Error, Reason::TemplateNewClusterStackFailed),
            },
        };
        return Some(Finding::fails(TYPE, severity, reason, message));
    }
    let mut charts = outlook.charts();
    let (chart, _) = charts.find(|(_, seen)| matches!(seen, ChartSeen::Found(Rendering::Awaited { .. })))?;
    let message = format!("the chart {chart} takes long to render, or many are before it; others do not wait for it");
    Some(Finding::fails(TYPE, Severity::Info, Reason::Progressing, message))
}

/// Which charts are not as the Cluster wants them, and why: those that have values of before, and those that do not render.
fn untemplated(outlook: &Outlook<'_>) -> String {
    let held = outlook.held().map(|(chart, why)| (format!("chart {chart}"), why));
    let failed = outlook.charts().filter_map(|(chart, seen)| match seen {
        ChartSeen::Found(
            Rendering::Failed { message, .. }
            | Rendering::Awaited {
                failed: Some(message), ..
            },
        ) => Some((format!("chart {chart}"), message.as_str())),
        ChartSeen::Found(_) | ChartSeen::Missing { .. } => None,
    });
    refusals(held.chain(failed))
}

/// The stage that is told of before others: the one that has its turn, or one that was passed over.
fn first_open<'way>(way: &'way Way<'_>, is_meant: impl Fn(&StageState) -> bool) -> Option<&'way StageState> {
    let mut open: Vec<&StageState> = way.course.open().filter(|stage| is_meant(stage)).collect();
    open.sort_by_key(|stage| stage.passed_over);
    open.first().copied()
}

fn evaluated(way: &Way<'_>) -> Option<Finding> {
    let is_held = |stage: &StageState| {
        matches!(
            stage.phase,
            StagePhase::WaitingForPreCondition | StagePhase::WaitingForPostCondition
        )
    };
    let stage = first_open(way, is_held)?;
    let (severity, reason) = match stage.phase {
        _ if stage.is_invalid() => (severity_of_failure(stage), Reason::ConditionInvalid),
        StagePhase::WaitingForPreCondition => (Severity::Info, Reason::FailedToEvaluatePreCondition),
        _ => (Severity::Info, Reason::FailedToEvaluatePostCondition),
    };
    let type_ = ConditionType::EvaluatedCEL;
    Some(Finding::fails(type_, severity, reason, stage.words()))
}

/// How bad it is that a stage does not come to its end.
fn severity_of_failure(stage: &StageState) -> Severity {
    if stage.passed_over {
        Severity::Warning
    } else {
        Severity::Error
    }
}

fn deleted(told: &Told<'_>, way: &Way<'_>) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartDeleted;
    let deletes =
        |stage: &StageState| stage.key.action == StageAction::Delete && stage.phase == StagePhase::ApplyingOrDeleting;
    let stage = first_open(way, deletes)?;
    let reason = match way.works.work(&stage.key) {
        Work::Failed { reason, .. } => reason,
        _ if undeleted(told.decisions).is_some() => Reason::FailedToDeleteObjects,
        _ => Reason::Deleting,
    };
    Some(Finding::fails(TYPE, Severity::Info, reason, stage.words()))
}

/// What the next stage waits for, if that is the moment of its hook. A call of it is not waited for.
fn called(outlook: &Outlook<'_>, way: &Way<'_>) -> Option<Finding> {
    let current = way.course.current().filter(|stage| !stage.open)?;
    let type_ = ConditionType::HookServerReady;
    let is_told = !outlook.cluster.initialized;
    (!is_told).then(|| Finding::fails(type_, Severity::Info, Reason::WaitingForCluster, current.words()))
}

/// Whether the objects are as the target wants them; not stated before there is anything to say.
fn applied(told: &Told<'_>, rows: &[Resource]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartApplied;
    let outlook = told.outlook;
    if let Some(finding) = mismatched(outlook) {
        return Some(finding);
    }
    if outlook.cluster.deleting.is_some() {
        return Some(Finding::fails(TYPE, Severity::Info, Reason::Deleting, going(outlook)));
    }
    let set = told.belongings.set(outlook.observed);
    let Some(way) = outlook
        .way
        .as_ref()
        .filter(|_| is_reached(outlook.observed, outlook.cluster))
    else {
        return set.uncompared(rows);
    };
    if let Some(late) = way.course.stages.iter().find(|stage| stage.is_late()) {
        let message = format!("takes longer than the release gives it: {}", late.words());
        let severity = severity_of_failure(late);
        return Some(Finding::fails(TYPE, severity, Reason::StageDeadlineExceeded, message));
    }
    // What is held back is as it was before, and is not what the target wants.
    let rows = rows.iter().filter(|row| !told.decisions.held.contains(&key_of(row)));
    let rows: Vec<Resource> = rows.cloned().collect();
    let applied = set.applied(told.decisions, &rows);
    let stage = way.course.stages.iter().find(|stage| stage.phase != StagePhase::Done);
    match stage {
        // What was applied so far is as it is to be, and it is not all.
        Some(stage) if applied.status() == ConditionStatus::True => {
            let reason = stage.reason.unwrap_or(Reason::ObjectsApplyingOngoing);
            Some(Finding::fails(TYPE, Severity::Info, reason, stage.words()))
        }
        _ => Some(applied),
    }
}

/// What a cluster that is to go waits for.
fn going(outlook: &Outlook<'_>) -> String {
    let way = outlook.way.as_ref();
    match way.map(|way| way.course.current()) {
        Some(Some(stage)) => format!("the Cluster is being deleted: {}", stage.words()),
        // Cluster API has been told that it may go on. With the access to the cluster goes what is known about it.
        _ if outlook.cluster.ok_to_delete => {
            "the Cluster is being deleted, and its add-ons need nothing more before it goes".to_owned()
        }
        Some(None) => "the Cluster is being deleted, and nothing of its add-ons holds that up".to_owned(),
        None => "the Cluster is being deleted, and it is not known what its add-ons need before it goes".to_owned(),
    }
}

/// `Reconciling` while something is under way or awaited, `Stalled` when only somebody's action helps, nothing when ready.
pub(super) fn activity(told: &Told<'_>, ready: bool) -> Option<Finding> {
    let outlook = told.outlook;
    let approval = about_objects(told.waiting).find_map(|wait| wait.approval(OwnerKind::Addon));
    let stalled = told.waiting.iter().find_map(|item| stall(told, item));
    if let Some((reason, message)) = stalled
        && !ready
    {
        // Nothing else tells what else somebody may do.
        let message = approval.map_or(message.clone(), |approval| format!("{message}; {approval}"));
        return Some(Finding::holds_because(ConditionType::Stalled, reason, message));
    }
    if outlook.cluster.deleting.is_some() {
        let reason = Reason::Deleting;
        return Some(Finding::holds_because(
            ConditionType::Reconciling,
            reason,
            going(outlook),
        ));
    }
    if let Some(message) = approval {
        let reason = Reason::PruneNotApproved;
        return Some(Finding::holds_because(ConditionType::Reconciling, reason, message));
    }
    (!ready).then(|| {
        let reason = Reason::Progressing;
        Finding::holds_because(ConditionType::Reconciling, reason, progress(told))
    })
}

fn about_objects(waiting: &[AddonWaiting]) -> impl Iterator<Item = &Wait> {
    waiting.iter().filter_map(|item| match item {
        AddonWaiting::Objects(wait) => Some(wait),
        _ => None,
    })
}

/// Why only somebody's action helps, if it is so.
fn stall(told: &Told<'_>, waiting: &AddonWaiting) -> Option<(Reason, String)> {
    let outlook = told.outlook;
    // A cluster that is to go is let go.
    if outlook.cluster.deleting.is_some() {
        return None;
    }
    let stall = |reason, message: &str| Some((reason, message.to_owned()));
    match waiting {
        AddonWaiting::NoClass => stall(Reason::InvalidSpec, "spec.topology of the Cluster has to name a class"),
        AddonWaiting::Layout => stall(
            Reason::ParsingClusterAddonConfigFailed,
            "clusteraddon.yaml of the release has to be mended at the source",
        ),
        AddonWaiting::BrokenValues if has_parts(outlook) => {
            let meanwhile = if outlook.way.is_some() {
                "the charts that it names are looked after with the values that they had before"
            } else {
                "what is applied stays as it is, and is not looked after"
            };
            let message = format!(
                "the values of the release, or what they are made of, have to be mended; HelmChartTemplated says what is wrong; until then {meanwhile}"
            );
            Some((Reason::RenderFailed, message))
        }
        AddonWaiting::UnstableValues => stall(
            Reason::RenderingUnstable,
            "the values of the release must not be made of what changes by itself; HelmChartTemplated says more",
        ),
        AddonWaiting::Kubeconfig => {
            let name = &outlook.cluster.name;
            let message =
                format!("the Secret {name}-kubeconfig has to be mended; ClusterReady says what is wrong with it");
            Some((Reason::KubeconfigRefused, message))
        }
        AddonWaiting::Chart { chart } if has_parts(outlook) && has_turn(outlook, chart) => {
            let message = format!(
                "the chart {chart} of the release, or what its values are made of, has to be mended; HelmChartTemplated or HelmChartFound says what is wrong"
            );
            Some((Reason::RenderFailed, message))
        }
        AddonWaiting::Deadline { stage } => {
            let name = &stage.name;
            let message = format!(
                "stage {name} takes longer than the release gives it, and what comes after it waits: mend what its row in status.stages says; it goes on by itself"
            );
            Some((Reason::StageDeadlineExceeded, message))
        }
        AddonWaiting::Invalid { stage } => {
            let name = &stage.name;
            let message = format!(
                "stage {name} waits for what cannot be in this cluster, and what comes after it waits: take another release, or let the cluster serve what its row in status.stages names"
            );
            Some((Reason::ConditionInvalid, message))
        }
        AddonWaiting::Objects(wait) => wait.stall(told.decisions, false),
        _ => None,
    }
}

/// Whether the stage that is worked on is of this chart; where none is any more, each of them is kept in line.
fn has_turn(outlook: &Outlook<'_>, chart: &str) -> bool {
    let current = outlook.way.as_ref().and_then(|way| way.course.current());
    current.is_none_or(|stage| stage.key.name == chart)
}

fn progress(told: &Told<'_>) -> String {
    let outlook = told.outlook;
    let words = match told.waiting.first() {
        Some(AddonWaiting::Release) => "waits for the release of the class",
        Some(AddonWaiting::Version) => "waits until class and Kubernetes version of the Cluster fit",
        Some(AddonWaiting::Values | AddonWaiting::NextLayout) => "waits until the values are made",
        Some(AddonWaiting::ControlPlane | AddonWaiting::Connection) => "waits until the cluster answers",
        Some(AddonWaiting::Watches) => "waits until the watches of its objects have listed",
        Some(AddonWaiting::Objects(wait)) if outlook.way.as_ref().is_none_or(|way| way.course.is_done()) => {
            return wait.progress(about_objects(told.waiting));
        }
        _ => {
            let current = outlook.way.as_ref().and_then(|way| way.course.current());
            return current.map_or_else(|| "objects are being applied".to_owned(), StageState::words);
        }
    };
    words.to_owned()
}
