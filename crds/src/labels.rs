//! Every label, annotation, finalizer and field manager that we write or read, and how their values are made.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// Label on every object that we apply, in management and workload clusters; its value is [`INSTANCE_OWNED`]. Also set on the pod
/// templates of workloads, as the Go operator does.
pub const INSTANCE: &str = "clusterstack.x-k8s.io/instance";
/// The value of [`INSTANCE`].
pub const INSTANCE_OWNED: &str = "owned";
/// Label on every object that we apply: which of our objects it belongs to, see [`part_of`].
pub const PART_OF: &str = "clusterstack.x-k8s.io/part-of";

/// Annotation on the owner: the kinds of objects it may have applied, see [`format_group_kinds`]. Written before the first of them, so that a lost
/// inventory is found again by looking for [`PART_OF`] in these kinds.
pub const CONTAINS_GROUP_KINDS: &str = "clusterstack.x-k8s.io/contains-group-kinds";
/// Annotation by which a user asks for a reconcile now; any new value counts. Answered in `status.lastHandledReconcileAt`.
pub const REQUESTED_AT: &str = "clusterstack.x-k8s.io/requestedAt";
/// Annotation by which a user allows the plan with this digest to delete more than `pruneLimit`.
pub const APPROVE_PRUNE: &str = "clusterstack.x-k8s.io/approve-prune";
/// Annotation on a `ClusterStack` by which a user allows to delete the orphans with these digests (`status.orphans.classes[].digest`), separated by
/// commas or blanks.
pub const APPROVE_ORPHANS: &str = "clusterstack.x-k8s.io/approve-orphans";
/// Annotation by which a user allows a change of a CRD that loses the stored data with this digest.
pub const APPROVE_DATA_LOSS: &str = "clusterstack.x-k8s.io/approve-data-loss";
/// Annotation on a provider's release object: where the release comes from.
pub const SOURCE: &str = "clusterstack.x-k8s.io/source";
/// Annotation on a provider's release object: the digest that the release is pinned to.
pub const DIGEST: &str = "clusterstack.x-k8s.io/digest";
/// Annotation on a provider's release object: digest of all that was applied to it, so that what is no longer wanted is found and taken away.
pub const APPLIED_DIGEST: &str = "clusterstack.x-k8s.io/applied-digest";
/// Annotation on an object of an image: which installation the image in the cloud belongs to. Written before anything is made there; it moves along with
/// the object to another management cluster, so that the image is still known as ours. Whoever edits it after the first attempt has begun changes nothing:
/// `status.owner` counts then. Before, it says under which owner the image will be made.
pub const IMAGE_OWNER: &str = "clusterstack.x-k8s.io/image-owner";
/// Annotation on an object of an image, by which a user has it use the image of the cloud with this id.
pub const ADOPT_IMAGE: &str = "clusterstack.x-k8s.io/adopt-image";
/// Label on the Jobs that do the work for an image, and on their Pods: which object it is for.
pub const JOB_OF: &str = "clusterstack.x-k8s.io/image";
/// Annotation on the Pods of such Jobs: what they are to do.
pub const PLAN: &str = "clusterstack.x-k8s.io/plan";
/// Annotation on such Jobs, once they are over and the status of the object says how they ended: what stays is for people who read logs.
pub const NOTED: &str = "clusterstack.x-k8s.io/noted";
/// Annotation on the Lease that replicas which share shards hold together: the list of them.
pub const MEMBERS: &str = "clusterstack.x-k8s.io/members";
/// Annotation of the Go operator on a `ClusterAddon`: [`STAGE_CREATED`] or [`STAGE_UPGRADED`]. It wrote it once; we write it again when it has changed.
pub const CLUSTER_ADDON_STAGE: &str = "ClusterAddonStage";
/// The value of [`CLUSTER_ADDON_STAGE`] of add-ons that are as the stages of creation made them.
pub const STAGE_CREATED: &str = "created";
/// The value of [`CLUSTER_ADDON_STAGE`] of add-ons that were upgraded.
pub const STAGE_UPGRADED: &str = "upgraded";

/// Annotation on objects of add-ons: the chart that they come from, so that a lost inventory is found again with it.
pub const STAGE: &str = "clusterstack.x-k8s.io/stage";
/// Annotation on a `ClusterAddon`: the lifecycle hook that Cluster API called last, and the Kubernetes version and the class that it is about, as
/// `<hook>@<version>@<class>`; empty once the Cluster wants something else. The only thing that an answer to a hook writes.
pub const HOOK_CALLED: &str = "clusterstack.x-k8s.io/hook-called";
/// Annotation on a `ClusterAddon` by which a user lets a cluster go on without the stages of a lifecycle hook: `<hook>@<class>`, several separated by
/// commas. It says the class, so that it does not hold for the next upgrade.
pub const SKIP_HOOK: &str = "clusterstack.x-k8s.io/skip-hook";
/// Annotation on a `ClusterAddon`: the add-ons that the stages of creation made, as `<version of the add-ons>@<Kubernetes version>`. Beside the status,
/// so that nobody takes a cluster whose status was lost for a new one.
pub const CREATED_WITH: &str = "clusterstack.x-k8s.io/created-with";

/// Annotation on a Cluster: the Secrets and ConfigMaps of its namespace whose values its add-ons get over those of the release, separated by commas:
/// `secret/NAME` or `configmap/NAME`, with `:KEY` behind it unless the key is [`VALUES_KEY`], and `CHART=` before it for one chart alone. Of two that give the
/// same value the later one counts.
pub const VALUES_FROM: &str = "clusterstack.x-k8s.io/values-from";
/// The key of a Secret or ConfigMap under which values are, where [`VALUES_FROM`] says no other one.
pub const VALUES_KEY: &str = "values.yaml";
/// Label on a Secret or ConfigMap by which whoever may write it lets Clusters of its namespace name it in [`VALUES_FROM`]; the value is
/// [`VALUES_ALLOWED`]. Without it nothing in there is read into values: who may write a Cluster need not be allowed to read Secrets.
pub const VALUES: &str = "clusterstack.x-k8s.io/values";
/// The value of [`VALUES`].
pub const VALUES_ALLOWED: &str = "true";

/// Annotation that stops the reconciliation of the object it is on, whatever its value (Cluster API).
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Label that says which operator looks after an object, compared with the flag `--watch-filter` (Cluster API).
pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// Label on the CRDs of a provider: its name (Cluster API).
pub const PROVIDER: &str = "cluster.x-k8s.io/provider";
/// The value of [`PROVIDER`] on our CRDs; that of the Go operator, which `clusterctl` may have installed.
pub const PROVIDER_CLUSTER_STACK_OPERATOR: &str = "cluster-stack-operator";
/// Label on the CRDs of a provider of node images: which of their versions speak our contract v1alpha1.
pub const CONTRACT_V1ALPHA1: &str = "clusterstack.x-k8s.io/v1alpha1";
/// Label on CRDs: which of their versions speak the contract v1beta1 of Cluster API.
pub const CONTRACT_V1BETA1: &str = "cluster.x-k8s.io/v1beta1";
/// Annotation on a Cluster: the lifecycle hooks that Cluster API owes, separated by commas.
pub const PENDING_HOOKS: &str = "runtime.cluster.x-k8s.io/pending-hooks";
/// Annotation on a Cluster: `BeforeClusterDelete` was answered, and nothing holds its deletion up (Cluster API).
pub const OK_TO_DELETE: &str = "runtime.cluster.x-k8s.io/ok-to-delete";
/// Label by which `clusterctl` finds CRDs.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
/// Label on CRDs that makes `clusterctl move` take all objects of the kind along, and what these own.
pub const CLUSTERCTL_MOVE_HIERARCHY: &str = "clusterctl.cluster.x-k8s.io/move-hierarchy";
/// Label that makes `clusterctl move` take an object along, of whatever kind it is.
pub const CLUSTERCTL_MOVE: &str = "clusterctl.cluster.x-k8s.io/move";
/// Annotation that `clusterctl move` puts on an object in place of all others, before it takes its finalizers away and deletes it: in the other management
/// cluster it is made already, and what was made for it is that one's.
pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Label with the name of the Cluster that an object belongs to (Cluster API).
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Annotation of Helm on objects that must stay when they leave the rendering; the value is [`RESOURCE_POLICY_KEEP`].
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// The value of [`RESOURCE_POLICY`] that keeps an object.
pub const RESOURCE_POLICY_KEEP: &str = "keep";

/// Finalizer of `ClusterStackRelease`.
pub const RELEASE_FINALIZER: &str = "clusterstackrelease.clusterstack.x-k8s.io";
/// Finalizer of `ClusterAddon`.
pub const ADDON_FINALIZER: &str = "clusteraddon.clusterstack.x-k8s.io";
/// Finalizer of a provider's release objects, whichever provider's.
pub const PROVIDER_RELEASE_FINALIZER: &str = "providerrelease.infrastructure.clusterstack.x-k8s.io";
/// Finalizer of a provider's image objects, whichever provider's.
pub const NODE_IMAGE_FINALIZER: &str = "nodeimagerelease.infrastructure.clusterstack.x-k8s.io";

/// Field manager of everything we apply.
pub const FIELD_MANAGER: &str = "stackwright";
/// Field manager of the status of our own objects.
pub const STATUS_FIELD_MANAGER: &str = "stackwright-status";
/// Field manager of `status.transfer` of an image object, which whoever transfers the image writes while it does.
pub const PROGRESS_FIELD_MANAGER: &str = "stackwright-progress";
/// Field manager under which the Go operator applied objects.
pub const PREDECESSOR_FIELD_MANAGER: &str = "kubectl";
/// Field manager under which the Go operator wrote its own objects and their status.
pub const PREDECESSOR_STATUS_FIELD_MANAGER: &str = "manager";

/// Field manager under which `clusterctl move --from-directory` makes objects. Without files it moves their owners along.
pub const MOVER_FIELD_MANAGER: &str = "clusterctl";

/// Length of the value of [`PART_OF`].
const HEX_DIGITS: usize = 32;

/// Whether a value of [`PART_OF`] may be of [`part_of`]; anything else was put there by somebody else.
pub fn is_part_of(value: &str) -> bool {
    value.len() == HEX_DIGITS && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The value of [`PART_OF`] for objects of this owner: 32 hex digits, a valid label value.
///
/// Made of kind, namespace and name and not of the uid, so that it stays the same when the owner moves to another management cluster.
pub fn part_of(kind: &str, namespace: &str, name: &str) -> String {
    // None of the three may contain a slash, so different owners never give the same text.
    let digest = Sha256::digest(format!("{kind}/{namespace}/{name}"));
    let mut value = format!("{digest:x}");
    value.truncate(HEX_DIGITS);
    value
}

/// The value of [`CONTAINS_GROUP_KINDS`] for (group, kind) pairs: sorted, each once, `Kind.group` or `Kind` for the core group, joined by commas.
pub fn format_group_kinds<'pair>(group_kinds: impl IntoIterator<Item = (&'pair str, &'pair str)>) -> String {
    let names: BTreeSet<String> = group_kinds
        .into_iter()
        .map(|(group, kind)| {
            if group.is_empty() {
                kind.to_owned()
            } else {
                format!("{kind}.{group}")
            }
        })
        .collect();
    names.into_iter().collect::<Vec<_>>().join(",")
}

/// Reads the value of [`CONTAINS_GROUP_KINDS`] back as (group, kind) pairs; empty entries are skipped.
pub fn parse_group_kinds(value: &str) -> BTreeSet<(String, String)> {
    value
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let (kind, group) = name.split_once('.').unwrap_or((name, ""));
            (group.to_owned(), kind.to_owned())
        })
        .collect()
}
