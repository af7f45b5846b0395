//! What annotations of a ClusterAddon say: which add-ons creation made, whether they were upgraded, which hook was called, which is to be skipped.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::ClusterAddon;
use crds::labels::{CLUSTER_ADDON_STAGE, CREATED_WITH, HOOK_CALLED, PAUSED, SKIP_HOOK, STAGE_CREATED, STAGE_UPGRADED};
use serde::{Deserialize, Serialize};

use super::answer::{Call, HookAnswer, HookStatus, has_annotation, is_made_for};
use super::cluster::ClusterSeen;
use super::course::Kind;
use super::hook::Hook;
use super::target::Target;

/// The annotations of a ClusterAddon, read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// What the stages of creation made; `None` until they were over once.
    pub created_with: Option<CreatedWith>,
    /// An upgrade was over once.
    pub upgraded: bool,
    /// The hook that was called last.
    pub called: Option<HookCalled>,
    /// The hooks that somebody lets the cluster go on without, each with the class that this holds for.
    pub skipped: BTreeSet<(Hook, String)>,
}

/// The add-ons that creation made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreatedWith {
    /// Ours: version of the add-ons and of Kubernetes, as [`Target::created_with`] writes them.
    Content(String),
    /// The Go operator's: the class that was complete last. It never said that it had upgraded (F14), so this may be the class of an upgrade.
    Class(String),
}

/// A hook that was called, and what the Cluster wanted then: an upgrade that comes after that one may be to the same Kubernetes version, and then no hook
/// is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCalled {
    /// The hook.
    pub hook: Hook,
    /// `spec.topology.version` of the request.
    pub version: String,
    /// The class of the request.
    pub class: String,
}

impl HookCalled {
    /// Reads the value of the annotation.
    pub fn parse(value: &str) -> Option<Self> {
        let (hook, rest) = value.split_once('@')?;
        let (version, class) = rest.split_once('@')?;
        Some(Self {
            hook: Hook::named(hook)?,
            version: version.to_owned(),
            class: class.to_owned(),
        })
    }

    /// The value of the annotation.
    pub fn text(&self) -> String {
        format!("{}@{}@{}", self.hook, self.version, self.class)
    }

    /// Whether it is about what the Cluster wants now.
    pub(super) fn is_of(&self, cluster: &ClusterSeen) -> bool {
        self.version == cluster.version() && self.class == cluster.class()
    }
}

impl Marks {
    /// Reads them; what is written wrongly is absent.
    pub fn of(addon: &ClusterAddon) -> Self {
        let empty = BTreeMap::new();
        let annotations = addon.metadata.annotations.as_ref().unwrap_or(&empty);
        let text = |name: &str| annotations.get(name).map(String::as_str);
        let predecessors = || {
            let class = addon.spec.cluster_stack.clone().filter(|class| !class.is_empty())?;
            (text(CLUSTER_ADDON_STAGE) == Some(STAGE_CREATED)).then_some(CreatedWith::Class(class))
        };
        let ours = text(CREATED_WITH).filter(|content| !content.is_empty());
        Self {
            created_with: ours
                .map(|content| CreatedWith::Content(content.to_owned()))
                .or_else(predecessors),
            upgraded: text(CLUSTER_ADDON_STAGE) == Some(STAGE_UPGRADED),
            called: text(HOOK_CALLED).and_then(HookCalled::parse),
            skipped: skipped_hooks(text(SKIP_HOOK).unwrap_or_default()),
        }
    }

    /// Whether somebody lets the cluster go on without the stages of a hook.
    pub fn skips(&self, hook: Hook, class: &str) -> bool {
        self.skipped.contains(&(hook, class.to_owned()))
    }

    /// Whether the add-ons were made by the stages of creation, as the target wants them, and not upgraded since.
    pub(super) fn is_creation_of(&self, target: &Target) -> bool {
        match &self.created_with {
            _ if self.upgraded => false,
            None => true,
            Some(CreatedWith::Content(content)) => *content == target.created_with(),
            Some(CreatedWith::Class(class)) => *class == target.class,
        }
    }

    /// The annotation that tells of a call, emptied where that is about something else than the Cluster wants by now. Somebody may go back to that, and where Kubernetes
    /// stays as it is no hook is called for it: what is left of the call would tell of an upgrade that was over long ago.
    pub(super) fn forgotten(&self, cluster: &ClusterSeen) -> Option<(&'static str, String)> {
        let called = self.called.as_ref()?;
        (cluster.deleting.is_none() && !called.is_of(cluster)).then(|| (HOOK_CALLED, String::new()))
    }

    /// The annotations that are to be written when all stages are over, with their values; empty when they are there.
    pub fn after(&self, kind: Kind, target: &Target) -> BTreeMap<&'static str, String> {
        let mut marks = BTreeMap::new();
        match kind {
            Kind::Creation => {
                let content = target.created_with();
                if self.created_with != Some(CreatedWith::Content(content.clone())) {
                    marks.insert(CREATED_WITH, content);
                    marks.insert(CLUSTER_ADDON_STAGE, STAGE_CREATED.to_owned());
                }
            }
            Kind::Upgrade => {
                if !self.upgraded {
                    marks.insert(CLUSTER_ADDON_STAGE, STAGE_UPGRADED.to_owned());
                }
            }
            Kind::Deletion => {}
        }
        marks
    }
}

/// What the annotation on the ClusterAddon of a call is to say, where that opens a moment that nothing else may show (see [`super::due`]); `None` when it says
/// so already, or nothing waits for that moment.
///
/// Nothing is waited for where the cluster may go on. A step on the way to the Cluster's version is not the end of an upgrade. Of somebody's hands off
/// the add-ons we keep ours off.
///
/// Whoever reaches the port can call, so that what is written must be bounded whatever a call says: it has to know the uid of the Cluster, which Cluster API
/// sends (read in 1.10, 1.12, 1.13 and 1.14), its class and version have to be those that the operator has seen of the Cluster and found its release to be for, and of these later moments are written
/// over earlier ones alone. Where the operator has not looked yet, the call is made again after it has.
pub fn noted(call: &Call, addon: &ClusterAddon, answer: &HookAnswer) -> Option<HookCalled> {
    let Call { hook, cluster, .. } = call;
    let opens = match hook {
        Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => true,
        Hook::AfterWorkersUpgrade | Hook::AfterClusterUpgrade => !call.is_step(),
        Hook::BeforeClusterCreate
        | Hook::AfterControlPlaneInitialized
        | Hook::AfterControlPlaneUpgrade
        | Hook::BeforeWorkersUpgrade
        | Hook::BeforeClusterDelete => false,
    };
    let is_held = answer.status == HookStatus::Success && answer.retry_after_seconds > 0;
    if !opens || !is_held || !is_made_for(addon, &cluster.uid) || has_annotation(addon, PAUSED) {
        return None;
    }
    let target = addon.status.as_ref().and_then(|status| status.target.as_ref());
    let is_wanted = target.is_some_and(|target| {
        target.cluster_stack == cluster.class() && target.kubernetes_version.as_deref() == Some(cluster.version())
    });
    if !is_wanted {
        return None;
    }
    let called = Marks::of(addon).called;
    let says_so =
        called.is_some_and(|called| called.is_of(cluster) && called.hook.last_of_moment() >= hook.last_of_moment());
    (!says_so).then(|| HookCalled {
        hook: *hook,
        version: cluster.version().to_owned(),
        class: cluster.class().to_owned(),
    })
}

/// The first entry that is no `<hook>@<class>`: whoever wrote it waits in vain.
pub(super) fn misspelt(value: &str) -> Option<&str> {
    let is_read = |entry: &str| {
        entry
            .split_once('@')
            .is_some_and(|(hook, _)| Hook::named(hook).is_some())
    };
    let mut entries = value.split(',').map(str::trim);
    entries.find(|entry| !entry.is_empty() && !is_read(entry))
}

/// Reads `<hook>@<class>`, several separated by commas.
pub(super) fn skipped_hooks(value: &str) -> BTreeSet<(Hook, String)> {
    let entries = value.split(',').filter_map(|entry| entry.trim().split_once('@'));
    entries
        .filter_map(|(hook, class)| Some((Hook::named(hook)?, class.to_owned())))
        .collect()
}
