//! What a lifecycle hook of Cluster API is answered, from the Cluster in the request and the ClusterAddon in a watch. Nothing is started by a call, and nothing
//! is waited for: a call that is not let through is made again.

use std::collections::BTreeSet;

use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus, StagePhase, StageProgress};
use crds::conditions::{Condition, ConditionStatus, ConditionType, Reason, find, is_true};
use crds::labels::{PAUSED, SKIP_HOOK};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cluster::ClusterSeen;
use super::course::TIMEOUT_OF_DELETION;
use super::hold::{Hold, SkippedOn, Waits};
use super::hook::Hook;
use super::marks::{Marks, misspelt, skipped_hooks};
use super::presence::is_begun;
use crate::outline::{Fields, Kept, Scalar, TOPOLOGY};

/// A call of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The hook.
    pub hook: Hook,
    /// The Cluster as Cluster API has it, perhaps an old one. Without status from 1.11 on.
    pub cluster: ClusterSeen,
    /// When the Cluster was made.
    pub created: Option<Timestamp>,
    /// The Kubernetes version of the step: since 1.12 an upgrade may take several, and the hooks between are called for each.
    pub version: Option<String>,
    /// The hooks that somebody lets the cluster go on without though it has no ClusterAddon, as the annotation on the Cluster says.
    pub skipped: BTreeSet<(Hook, String)>,
}

/// What is read of a request, which may be as large as a Cluster is.
const REQUEST: Kept = Fields(&[
    (
        "cluster",
        Fields(&[
            (
                "metadata",
                Fields(&[
                    ("namespace", Scalar),
                    ("name", Scalar),
                    ("uid", Scalar),
                    ("generation", Scalar),
                    ("creationTimestamp", Scalar),
                    ("deletionTimestamp", Scalar),
                    ("annotations", Fields(&[(SKIP_HOOK, Scalar)])),
                ]),
            ),
            ("spec", Fields(&[("topology", TOPOLOGY)])),
        ]),
    ),
    ("toKubernetesVersion", Scalar),
    ("kubernetesVersion", Scalar),
]);

impl Call {
    /// Reads the bytes of a request as far as [`answer`] wants to know; `None` when they are no JSON, or about no Cluster.
    pub fn read(hook: Hook, request: &[u8]) -> Option<Self> {
        Self::of(hook, &REQUEST.of(request)?)
    }

    /// Reads the body of a request; `None` if it is about no Cluster.
    ///
    /// The fields are those of `lifecyclehooks_types.go`, 1.10.5 to 1.14.2: `cluster` in all of them, `toKubernetesVersion` before and `kubernetesVersion`
    /// after something.
    pub fn of(hook: Hook, request: &Value) -> Option<Self> {
        let cluster = ClusterSeen::of(request.get("cluster")?, None);
        let text = |name: &str| {
            request
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let version = text("toKubernetesVersion").or_else(|| text("kubernetesVersion"));
        let created = request.pointer("/cluster/metadata/creationTimestamp");
        let annotations = request.pointer("/cluster/metadata/annotations");
        let skipped = annotations.and_then(|annotations| annotations.get(SKIP_HOOK)?.as_str());
        (!cluster.name.is_empty() && !cluster.namespace.is_empty()).then(|| Self {
            hook,
            cluster,
            created: created.and_then(|time| time.as_str()?.parse().ok()),
            version: version.map(str::to_owned),
            skipped: skipped.map(skipped_hooks).unwrap_or_default(),
        })
    }

    /// Whether it is about a step on the way to the version that the Cluster wants.
    pub(super) fn is_step(&self) -> bool {
        let version = self.version.as_deref();
        version.is_some_and(|version| version != self.cluster.version())
    }
}

/// What the process that answers knows so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<'a> {
    /// All ClusterAddons.
    pub addons: bool,
    /// The ClusterStackRelease of the Cluster's class.
    pub release: ReleaseListed,
    /// Why the ClusterAddon could not be made when that was tried last; known where it is tried alone.
    #[serde(borrow)]
    pub unmade: Option<Unmade<'a>>,
    /// The API server of the cluster has never answered, as the Cluster says; `false` also where nobody knows.
    #[serde(default)]
    pub never_initialized: bool,
    /// Since when the Cluster waits.
    #[serde(default)]
    pub waits: Waits,
}

/// Why a ClusterAddon could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmade<'a> {
    /// In the words of whoever refused it.
    pub why: &'a str,
    /// Its namespace is being deleted: nothing is made there any more.
    pub namespace_ends: bool,
}

/// Whether there is a ClusterStackRelease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseListed {
    /// Not all of them are known.
    NotYet,
    /// There is none.
    Absent,
    /// There is one.
    Present,
    /// The operator does not look after the namespace of the Cluster.
    OutOfScope,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// Whether the call could be answered.
    pub status: HookStatus,
    /// Seconds until the call shall be made again; 0 lets the cluster go on.
    pub retry_after_seconds: u32,
    /// Why. Of an answer that holds the cluster up: the reason, since when, until when, and how to go on all the same.
    pub message: String,
}

/// Whether a call could be answered. [`answer`] always can; a request that cannot be read cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookStatus {
    /// It could.
    Success,
    /// It could not; Cluster API tries again, ever later.
    Failure,
}

/// Answers a call.
///
/// A Cluster whose class is not ours goes on at once. Of ours it goes on when the status is about this Cluster and about no earlier one, its target has class and
/// version of the Cluster in the request, and no stage up to the moment of the hook is left: what was done for another target counts for nothing.
pub fn answer(call: &Call, addon: Option<&ClusterAddon>, listed: Listed<'_>, now: Timestamp) -> HookAnswer {
    let Call { hook, cluster, .. } = call;
    let is_named_like_ours = cluster
        .topology
        .as_ref()
        .is_some_and(|topology| topology.class_name().is_ok());
    if !is_named_like_ours {
        return go_on("the class of the Cluster belongs to no cluster stack");
    }
    // Cluster API does not wait for an answer to this one.
    if *hook == Hook::AfterControlPlaneInitialized {
        return go_on("");
    }
    if listed.release == ReleaseListed::OutOfScope {
        return go_on("the operator does not look after the namespace of the Cluster");
    }
    if !listed.addons {
        let words =
            "this replica of the operator has not listed the ClusterAddons yet; if that stays, its log says why";
        let skipped = addon.map(|addon| Marks::of(addon).skipped).unwrap_or_default();
        return Hold::unseen(words).answer(call, &skipped, listed.waits);
    }
    match (addon, listed.release) {
        (None, ReleaseListed::Absent) => go_on("the class of the Cluster belongs to no cluster stack"),
        // One of an earlier Cluster of this name goes, and none is made for this one.
        (Some(addon), ReleaseListed::Absent) if !is_begun(addon) || is_of_another(addon, &cluster.uid) => {
            go_on("the class of the Cluster belongs to no cluster stack")
        }
        (Some(addon), _) if !is_of_another(addon, &cluster.uid) => of_addon(call, addon, listed.waits, now),
        // What is said on that of an earlier Cluster of this name is about that one.
        (Some(_), _) => {
            let words = "the ClusterAddon is that of an earlier Cluster of this name, and another has to be made";
            let held = Hold {
                since: call.created,
                ..Hold::undone(words)
            };
            without_addon(call, held, listed, now)
        }
        (None, _) => without_addon(call, unmade(listed.unmade), listed, now),
    }
}

/// There is no ClusterAddon that is for this Cluster, which holds it up so.
///
/// A Cluster that is to go may have lost its own a moment ago: another one is made, which does what comes before the deletion. Where none can be made any more, or
/// nothing can be there that it would take away, nobody waits for it.
fn without_addon(call: &Call, held: Hold, listed: Listed<'_>, now: Timestamp) -> HookAnswer {
    if call.skipped.contains(&(call.hook, call.cluster.class().to_owned())) {
        return go_on(&format!(
            "the annotation {SKIP_HOOK} of the Cluster says to go on without add-ons"
        ));
    }
    let held = Hold {
        skipped_on: SkippedOn::Cluster,
        ..held
    };
    if call.hook != Hook::BeforeClusterDelete {
        return held.answer(call, &call.skipped, listed.waits);
    }
    let none_can_be_made = listed.unmade.is_some_and(|unmade| unmade.namespace_ends);
    let (since, end) = usual_deletion(call, now);
    if listed.never_initialized || none_can_be_made || now >= end {
        return go_on("the cluster has no add-ons");
    }
    let held = Hold {
        since: Some(since),
        deadline: Some(end),
        ..held
    };
    held.answer(call, &call.skipped, listed.waits)
}

/// None has been made. Who answers may be another replica than the one that makes it.
fn unmade(unmade: Option<Unmade<'_>>) -> Hold {
    match unmade {
        None => Hold::undone("the ClusterAddon has not been made yet"),
        Some(Unmade { why, .. }) => Hold::unseen(&format!(
            "the ClusterAddon could not be made, and is tried again: {why}"
        )),
    }
}

pub(super) fn has_annotation(addon: &ClusterAddon, name: &str) -> bool {
    let annotations = addon.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(name))
}

fn of_addon(call: &Call, addon: &ClusterAddon, waits: Waits, now: Timestamp) -> HookAnswer {
    let empty = ClusterAddonStatus::default();
    let status = addon.status.as_ref().unwrap_or(&empty);
    let (hook, class) = (call.hook, call.cluster.class());
    let marks = Marks::of(addon);
    if marks.skips(hook, class) {
        let message =
            format!("the annotation {SKIP_HOOK} of the ClusterAddon says to go on without the stages of {hook}");
        return go_on(&message);
    }
    let held = if hook == Hook::BeforeClusterDelete {
        before_deletion(call, addon, status, now)
    } else {
        behind(call, addon, status).or_else(|| left(call, status, now))
    };
    let Some(held) = held else {
        return go_on("the add-ons are ready for it");
    };
    let annotations = addon.metadata.annotations.as_ref();
    let skip = annotations.and_then(|annotations| annotations.get(SKIP_HOOK));
    let held = match skip.and_then(|skip| misspelt(skip)) {
        Some(entry) => held.misspelt(entry),
        None => held,
    };
    held.answer(call, &marks.skipped, waits)
}

/// Whether an owner says that it was made for a Cluster of another uid.
fn is_of_another(addon: &ClusterAddon, uid: &str) -> bool {
    !uid.is_empty() && clusters_of(addon).any(|owner| owner != uid)
}

/// Whether its owner says that it was made for the Cluster of this uid.
pub(super) fn is_made_for(addon: &ClusterAddon, uid: &str) -> bool {
    clusters_of(addon).any(|owner| owner == uid) && !is_of_another(addon, uid)
}

/// The uids of the Clusters that own it.
fn clusters_of(addon: &ClusterAddon) -> impl Iterator<Item = &str> {
    let owners = addon.metadata.owner_references.iter().flatten();
    let clusters = owners.filter(|owner| owner.kind == "Cluster" && !owner.uid.is_empty());
    clusters.map(|owner| owner.uid.as_str())
}

/// What holds a deletion up: never longer than its stages may take, whoever is not at work.
fn before_deletion(call: &Call, addon: &ClusterAddon, status: &ClusterAddonStatus, now: Timestamp) -> Option<Hold> {
    let hook = Hook::BeforeClusterDelete;
    let progress = status.hook.as_ref().filter(|progress| progress.name == hook.name());
    let (since, usual) = usual_deletion(call, now);
    let deadline = progress
        .and_then(|progress| progress.deadline.as_ref())
        .map_or(usual, |time| time.0);
    if now >= deadline {
        return None;
    }
    let held = match progress {
        None => Hold::undone("nobody has looked at the deletion of the Cluster yet"),
        Some(_) => Hold::of_row(first_left(status, hook)?, now),
    };
    Some(Hold {
        since: Some(since),
        deadline: Some(deadline),
        ..pause(addon, status).unwrap_or(held)
    })
}

/// Since when a Cluster is to go, and until when that is held up where nobody has said how long its stages may take.
fn usual_deletion(call: &Call, now: Timestamp) -> (Timestamp, Timestamp) {
    let since = call.cluster.deleting.unwrap_or(now);
    let usual = SignedDuration::try_from(TIMEOUT_OF_DELETION).unwrap_or(SignedDuration::MAX);
    (since, since.checked_add(usual).unwrap_or(Timestamp::MAX))
}

/// What holds up whoever asks about add-ons that somebody paused.
fn pause(addon: &ClusterAddon, status: &ClusterAddonStatus) -> Option<Hold> {
    has_annotation(addon, PAUSED).then(|| {
        let message = format!("the annotation {PAUSED} of the ClusterAddon is set; remove it to go on");
        Hold {
            since: find(&status.conditions, ConditionType::Paused).map(|paused| paused.last_transition_time.0),
            ..Hold::new(Reason::Paused.as_str(), &message)
        }
    })
}

/// What holds up whoever asks about more than the status knows.
fn behind(call: &Call, addon: &ClusterAddon, status: &ClusterAddonStatus) -> Option<Hold> {
    if let Some(paused) = pause(addon, status) {
        return Some(paused);
    }
    if status
        .cluster_generation
        .is_none_or(|seen| seen < call.cluster.generation)
    {
        return Some(Hold::undone("nobody has looked at the Cluster since it was changed"));
    }
    let is_target = status.target.as_ref().is_some_and(|target| {
        target.cluster_stack == call.cluster.class()
            && target.kubernetes_version.as_deref() == Some(call.cluster.version())
    });
    // Values are made of objects, too, that Cluster API makes once this hook lets it.
    if is_target || (call.hook == Hook::BeforeClusterCreate && is_release_usable(status)) {
        return None;
    }
    let Some(why) = why_without_target(&status.conditions) else {
        return Some(Hold::undone("nobody has looked at what the Cluster wants yet"));
    };
    let reason = why.reason.as_deref().unwrap_or(Reason::Progressing.as_str());
    let message = why
        .message
        .as_deref()
        .unwrap_or("the add-ons are not led to what the Cluster wants yet");
    Some(Hold {
        since: Some(why.last_transition_time.0),
        ..Hold::new(reason, message)
    })
}

/// What says why there is no target: rather that than what is worse and holds nobody up here.
fn why_without_target(conditions: &[Condition]) -> Option<&Condition> {
    let of_the_target = [
        ConditionType::ClusterStackReleaseDownloaded,
        ConditionType::ClusterAddonConfigValidated,
    ];
    let fails = |condition: &&Condition| condition.status == ConditionStatus::False;
    let fails_of = |type_| find(conditions, type_).filter(fails);
    of_the_target
        .into_iter()
        .find_map(fails_of)
        .or_else(|| mismatch(conditions))
        .or_else(|| fails_of(ConditionType::HelmChartTemplated))
        .or_else(|| find(conditions, ConditionType::Ready))
}

fn mismatch(conditions: &[Condition]) -> Option<&Condition> {
    let reason = Some(Reason::VersionMismatch.as_str());
    conditions
        .iter()
        .find(|condition| condition.reason.as_deref() == reason)
}

/// Whether the release can be used for the Cluster as it is, whatever becomes of its values.
fn is_release_usable(status: &ClusterAddonStatus) -> bool {
    let conditions = status.conditions.as_slice();
    is_true(conditions, ConditionType::ClusterStackReleaseDownloaded)
        && is_true(conditions, ConditionType::ClusterAddonConfigValidated)
        && mismatch(conditions).is_none()
}

/// The stages that are left before the cluster may go on.
fn left(call: &Call, status: &ClusterAddonStatus, now: Timestamp) -> Option<Hold> {
    let Call { hook, .. } = call;
    // Nothing can run in a cluster that is not there.
    if *hook == Hook::BeforeClusterCreate {
        return None;
    }
    // A step on the way to the version that the stages of these hooks are for.
    if call.is_step() && *hook >= Hook::AfterControlPlaneUpgrade {
        return None;
    }
    Some(Hold::of_row(first_left(status, hook.last_of_moment())?, now))
}

/// The first stage that is not over, of hooks up to this one.
pub(super) fn first_left(status: &ClusterAddonStatus, last: Hook) -> Option<&StageProgress> {
    status.stages.iter().find(|row| {
        let is_over = row.phase == StagePhase::Done || row.passed_over;
        let hook = row.hook.as_deref().and_then(Hook::named);
        !is_over && hook.is_some_and(|hook| hook <= last)
    })
}

fn go_on(message: &str) -> HookAnswer {
    HookAnswer {
        status: HookStatus::Success,
        retry_after_seconds: 0,
        message: message.to_owned(),
    }
}
