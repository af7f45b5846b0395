//! What one look at a ClusterAddon and all that it depends on has found.
//!
//! Facts only: nothing here is judged. Whoever fills these types reads caches, watches and the process's memory; whoever decides reads nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{AddonMemo, ClusterAddonSpec, ClusterAddonStatus};
use crds::policy::{DriftPolicy, PruneLimit};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cluster::ClusterSeen;
use super::course::{StageKey, Stages};
use super::marks::Marks;
use super::presence::{AddonSeen, ClassOwner};
use super::stage::ConditionSeen;
use super::target::{ReleaseSeen, Values};
use crate::next::Next;
use crate::object_key::{GroupKind, ObjectKey};
use crate::objects::{Intent, ObjectObserved, ObjectSet, OwnerKind, Prune, Rendering};

/// Everything that a decision about the add-ons of one cluster needs, besides the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddonObserved {
    /// Namespace of the ClusterAddon and of its Cluster.
    pub namespace: String,
    /// Name of the ClusterAddon.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whose it is, and what else decides about whether it is there at all.
    pub seen: AddonSeen,
    /// Whether our finalizer is on it.
    pub finalizer: bool,
    /// The kinds named by the annotation that lets a lost status be rebuilt by looking.
    pub group_kinds: BTreeSet<GroupKind>,
    /// What its other annotations say.
    pub marks: Marks,
    /// Value of the annotation that asks for a reconcile now.
    pub requested_at: Option<String>,
    /// Value of the annotation that approves one prune by its digest.
    pub approved_prune: Option<String>,
    /// The spec as read.
    pub spec: ClusterAddonSpec,
    /// The status as read: the inventory lives in it.
    pub status: ClusterAddonStatus,
    /// When this process last wrote the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_written_at: Option<Timestamp>,
    /// What the API server has of the Cluster; `None` only when it said that there is none.
    pub cluster: Option<ClusterSeen>,
    /// Whose the class of the Cluster is.
    pub class: ClassOwner,
    /// The release of the class.
    pub release: ReleaseSeen,
    /// Its list of stages.
    pub layout: Layout,
    /// Digest of its archive with the charts, where that was read.
    pub assets: Option<String>,
    /// What becomes of fields that somebody else changes.
    pub drift: DriftPolicy,
    /// How many objects that left the add-ons may go at once.
    pub prune_limit: PruneLimit,
    /// The values of its charts, made of the Cluster.
    pub values: Values,
    /// What they are made of otherwise than the release asks for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_note: Option<String>,
    /// The charts whose values are those that were made before of the same release and Cluster, and why others cannot be made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values_held: BTreeMap<String, String>,
    /// What the charts drew at random; `None` while nobody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<MemoSeen>,
    /// What became of its charts, by directory: of those that [`charts_needed`](super::charts_needed) names.
    pub charts: BTreeMap<String, ChartSeen>,
    /// What is around the stages, sorted by stage; only of stages that wait for something, and only what was evaluated.
    pub conditions: Vec<StageConditions>,
    /// The way to the cluster.
    pub connection: Connection,
    /// Every object in the cluster that the inventory names, a rendering of these charts wants or a watch shows with our mark.
    pub objects: BTreeMap<ObjectKey, ObjectObserved>,
    /// The chart that an object says it comes from, of those that a watch shows with our mark.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<ObjectKey, String>,
    /// The kinds of the annotation that are served and whose watch has not listed yet: it may show objects that nothing else tells of.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unlisted: BTreeSet<GroupKind>,
    /// Why watches have not listed yet, where the API server of the cluster has said why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "crate::pairs")]
    pub unwatched: BTreeMap<GroupKind, String>,
    /// The kinds that we have not the right to list.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forbidden: BTreeSet<GroupKind>,
}

/// The list of stages of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// Nobody has read it.
    NotRead,
    /// It cannot be read.
    Wrong {
        /// Why, with the place in the file.
        message: String,
    },
    /// This.
    Known(Stages),
}

/// What is known of the answers that charts got where they asked for something random.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoSeen {
    /// What the Secret holds; `None` when there is none.
    pub stored: Option<AddonMemo>,
    /// What it has to hold, so that the charts render again as they did now; `None` when none of them has asked.
    pub drawn: Option<AddonMemo>,
}

/// What became of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChartSeen {
    /// The release does not contain it.
    Missing {
        /// Which is not there, and where it was looked for.
        message: String,
    },
    /// The release contains it.
    Found(Rendering),
}

/// What is around one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageConditions {
    /// Which.
    pub key: StageKey,
    /// What must hold before.
    #[serde(default)]
    pub pre: ConditionSeen,
    /// What must hold after.
    #[serde(default)]
    pub post: ConditionSeen,
}

/// The way to a workload cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Connection {
    /// There is no kubeconfig (yet): somebody has looked.
    Disconnected,
    /// The first attempt is under way.
    Connecting {
        /// Since when.
        since: Timestamp,
    },
    /// It answers.
    Healthy,
    /// It does not answer, or not to us.
    Suspect {
        /// Since when.
        since: Timestamp,
        /// What went wrong last.
        message: String,
    },
    /// Its kubeconfig cannot be used.
    Refused {
        /// What is wrong with it.
        message: String,
    },
}

impl AddonObserved {
    /// Objects of it, and how they are to be treated.
    pub fn set<'a>(
        &'a self,
        intents: Option<&'a BTreeMap<ObjectKey, Intent>>,
        objects: &'a BTreeMap<ObjectKey, ObjectObserved>,
        held: &'a BTreeSet<ObjectKey>,
    ) -> ObjectSet<'a> {
        ObjectSet {
            owner: OwnerKind::Addon,
            intents,
            rows: &self.status.resources,
            objects,
            shows_others: false,
            unlisted: &self.unlisted,
            unwatched: &self.unwatched,
            forbidden: &self.forbidden,
            held,
            drift: self.drift,
            prune: Prune {
                limit: self.prune_limit,
                annotation: self.approved_prune.as_deref(),
                approved: self.status.approved_prune.as_deref(),
            },
            deleting: false,
        }
    }

    /// The objects that a chart asks for, where that is known.
    pub fn intents_of(&self, chart: &str) -> Option<&BTreeMap<ObjectKey, Intent>> {
        match self.charts.get(chart) {
            Some(ChartSeen::Found(rendering)) => rendering.intents(),
            Some(ChartSeen::Missing { .. }) | None => None,
        }
    }

    /// What is around a stage.
    pub(super) fn conditions_of(&self, key: &StageKey) -> (ConditionSeen, ConditionSeen) {
        let around = self.conditions.iter().find(|around| around.key == *key);
        around.map_or_else(Default::default, |around| (around.pre.clone(), around.post.clone()))
    }

    /// Whether the status is about what the Cluster and the ClusterAddon are now.
    pub(super) fn is_up_to_date(&self, cluster: &ClusterSeen) -> bool {
        let status = &self.status;
        status.observed_generation == Some(self.generation)
            && status.cluster_generation == Some(cluster.generation)
            && !status.conditions.is_empty()
    }
}

impl ChartSeen {
    /// Why nobody can render it, unless it is a matter of time.
    pub(super) fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Found(Rendering::Failed { transient: None, .. })
        )
    }

    /// Whether it does not render, or did not when that was tried last.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Missing { .. } => true,
            Self::Found(rendering) => matches!(
                rendering,
                Rendering::Failed { .. } | Rendering::Awaited { failed: Some(_) }
            ),
        }
    }

    /// When it may be rendered again, if it is time that mends it.
    pub(super) fn next(&self, now: Timestamp) -> Next {
        match self {
            Self::Found(rendering) => rendering.next(now),
            Self::Missing { .. } => Next::Await,
        }
    }
}

impl MemoSeen {
    /// Whether what was recorded is gone, or is another than it was, and nobody knows it any more. The answers only become more: where there are more of them
    /// than were recorded, somebody of us was ended before he could say so.
    pub(super) fn is_lost(&self, recorded: Option<&AddonMemo>) -> bool {
        let Some(recorded) = recorded else {
            return false;
        };
        match &self.stored {
            _ if self.drawn.as_ref() == Some(recorded) => false,
            None => true,
            Some(stored) => stored.digest != recorded.digest && stored.entries <= recorded.entries,
        }
    }
}
