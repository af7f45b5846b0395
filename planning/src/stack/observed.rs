//! What one look at a ClusterStack and its surroundings has found. Facts only: nothing here is judged.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::{ClusterStackSpec, ClusterStackStatus};
use crds::cluster_stack_release::ClusterStackReleaseSpec;
use crds::conditions::Condition;
use crds::names::ReleaseTag;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::orphans::Leftover;
use super::plan::StackAction;
use crate::outage::Outage;
use crate::unlisted::Unlisted;

/// Everything that a decision about one stack needs, besides the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackObserved {
    /// Name of the object.
    pub name: String,
    /// Its namespace; releases live here too.
    pub namespace: String,
    /// Its identity, for owner references.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether a deletion timestamp is set. The releases then go by garbage collection.
    pub deleting: bool,
    /// Whether the object is paused by annotation.
    pub paused: bool,
    /// Value of the annotation that asks for a reconcile now.
    pub requested_at: Option<String>,
    /// Value of the annotation that approves one prune by its digest.
    pub approved_prune: Option<String>,
    /// Value of the annotation that allows to delete orphans by their digests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_orphans: Option<String>,
    /// Labels of the object; the provider's objects get them.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the object; the provider's objects get those that are not about the stack itself.
    pub annotations: BTreeMap<String, String>,
    /// The spec as read.
    pub spec: ClusterStackSpec,
    /// The status as read.
    pub status: ClusterStackStatus,
    /// When this process last wrote the status.
    pub status_written_at: Option<Timestamp>,
    /// What the source is and where, in words that complete "it is not in ..."; "the source" where nobody says.
    #[serde(default = "unnamed")]
    pub source: String,
    /// What the source lists.
    pub listing: Listing,
    /// The releases in the namespace that are the stack's, or have a name that the stack could want.
    pub releases: BTreeMap<String, ReleaseView>,
    /// By release tag, the Clusters (`namespace/name`) that use its class; `None` while the watch has not listed them yet.
    pub used_by: Option<BTreeMap<String, BTreeSet<String>>>,
    /// What the Go operator left behind under the names of this stack's classes; `None` while the watch has not listed it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<BTreeMap<String, Leftover>>,
    /// The provider's template.
    pub template: ProviderTemplate,
    /// The provider's release objects in the namespace, by name.
    pub provider_objects: BTreeMap<String, ProviderObject>,
    /// Actions of this process that failed last, by their subject ([`StackAction::subject`](super::StackAction::subject)).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, ActionFailure>,
    /// Provider objects that this process applied, as it did last, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub applied: BTreeMap<String, AppliedProviderObject>,
}

fn unnamed() -> String {
    "the source".to_owned()
}

/// An action that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionFailure {
    /// The API server's words.
    pub message: String,
    /// How many times in a row.
    pub attempts: u32,
    /// When it failed last.
    pub at: Timestamp,
}

/// An apply of a provider object that was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedProviderObject {
    /// What was applied.
    pub action: StackAction,
    /// What the API server made of it: a schema may default fields, and drop those that it does not know.
    pub became: ProviderObject,
    /// When.
    pub at: Timestamp,
    /// When the same was applied again and changed something, which somebody else had changed; the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reversals: Vec<Timestamp>,
}

/// What the source lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Listing {
    /// It has not been asked yet.
    NotAsked,
    /// It cannot be used as configured.
    Unusable {
        /// What to change.
        message: String,
    },
    /// It was asked and did not answer.
    Unavailable {
        /// What it said.
        message: String,
        /// How long this has been so, of a source that is asked from time to time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outage: Option<Outage>,
    },
    /// It answered.
    Known {
        /// The releases of every stack that it holds.
        releases: Vec<ListedRelease>,
        /// How many names it holds that are no release tags.
        foreign: usize,
    },
}

/// One release that the source lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRelease {
    /// Its tag.
    pub tag: ReleaseTag,
    /// When it was published, where the source tells.
    pub published_at: Option<Timestamp>,
    /// Its digest, where the source tells without a download.
    pub digest: Option<String>,
    /// Its Kubernetes version, where the source tells without a download.
    pub kubernetes_version: Option<String>,
}

/// One ClusterStackRelease as the stack sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleaseView {
    /// Its identity.
    pub uid: String,
    /// Who owns it.
    pub owner: Owner,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The value of its label for watch filters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_filter: Option<String>,
    /// Its spec.
    pub spec: ClusterStackReleaseSpec,
    /// `status.ready`.
    pub ready: bool,
    /// `status.kubernetesVersion`.
    pub kubernetes_version: Option<String>,
    /// `status.assets.digest`.
    pub digest: Option<String>,
    /// `status.assets.source`.
    pub source: Option<String>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// Which ClusterStack a release belongs to, by its owner references.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// This one.
    Us,
    /// A stack of our name that is no more: the stack was deleted and created again, or moved between clusters.
    FormerSelf,
    /// None.
    Nobody,
    /// Another stack.
    Other {
        /// Its name.
        name: String,
    },
}

/// State of the provider's template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProviderTemplate {
    /// The stack has no provider.
    NotWanted,
    /// The API server does not serve the kind.
    KindMissing {
        /// The kind, as `Kind.group`.
        kind: String,
    },
    /// The watch of the kind has not listed its objects yet, or that of the release objects.
    NotListed(Unlisted),
    /// It does not exist.
    Missing,
    /// Its `spec.template` is larger than what is taken.
    TooLarge {
        /// Bytes of it.
        bytes: usize,
        /// Bytes that are taken.
        most: usize,
    },
    /// It is nested deeper than it can be read.
    TooDeep,
    /// It is there.
    Found {
        /// `spec.template` of the object.
        template: serde_json::Value,
    },
}

/// One provider release object as the stack sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderObject {
    /// Its spec.
    pub spec: serde_json::Value,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is controlled by something else than the release of its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// Who else has written to its spec, its labels or its annotations, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
}
