//! Which hooks' stages may run now, as the Cluster and its control plane tell.

use std::collections::BTreeSet;

use super::cluster::ClusterSeen;
use super::hook::Hook;
use super::marks::HookCalled;

/// The hooks whose moment has come. A hook whose moment has passed without its stages being done is among them: they run at the next moment, so that a
/// cluster never waits for a call.
///
/// | hooks | their moment |
/// |---|---|
/// | `BeforeClusterCreate`, `AfterControlPlaneInitialized` | the API server answered once. Before, no stage can run; what the first of them holds up is the making of the cluster, see [`super::answer()`] |
/// | `BeforeClusterUpgrade`, `BeforeControlPlaneUpgrade` | the control plane is settled at another version than the Cluster's, and no workers roll; or it has been told the Cluster's |
/// | `AfterControlPlaneUpgrade`, `BeforeWorkersUpgrade` | the control plane has the Cluster's version |
/// | `AfterWorkersUpgrade`, `AfterClusterUpgrade` | the same, no workers roll, and the workers were told the version, see `workers_are_over` |
/// | `BeforeClusterDelete` | the Cluster is to go, and Cluster API was not told yet that it may |
///
/// Cluster API itself calls the hooks so: 1.10.5 `exp/topology/desiredstate/desired_state.go:417-556` and
/// `internal/controllers/topology/cluster/reconcile_state.go:180-262`; 1.13.6 and 1.14.2 the same files with `lifecycle_hooks.go`. It knows one thing that
/// cannot be seen in the Cluster: which set of workers has been told the version since 1.12, and which workers roll to a version only. So its call, noted as
/// `called`, opens a moment of which the rest is there; it is never waited for. One about another class or version opens nothing: an upgrade of the same Kubernetes
/// is one of its own, which no hook is called for.
pub fn due(cluster: &ClusterSeen, called: Option<&HookCalled>) -> BTreeSet<Hook> {
    if cluster.deleting.is_some() {
        let hook = (!cluster.ok_to_delete && cluster.initialized).then_some(Hook::BeforeClusterDelete);
        return hook.into_iter().collect();
    }
    if !cluster.initialized {
        return BTreeSet::new();
    }
    let mut due = BTreeSet::from(Hook::OF_CREATION);
    due.extend(upgrade_hooks(cluster, called));
    due
}

/// The hooks of an upgrade up to the last whose moment has come.
fn upgrade_hooks(cluster: &ClusterSeen, called: Option<&HookCalled>) -> impl Iterator<Item = Hook> + use<> {
    let last = last_of_upgrade(cluster, called);
    Hook::OF_UPGRADE
        .into_iter()
        .filter(move |hook| last.is_some_and(|last| *hook <= last))
}

fn last_of_upgrade(cluster: &ClusterSeen, called: Option<&HookCalled>) -> Option<Hook> {
    let control_plane = cluster.control_plane.as_ref()?;
    let version = cluster.version();
    // Whoever was called at a later moment of an upgrade has passed the earlier ones.
    let called = |first: Hook| {
        let upgrade = first..=Hook::AfterClusterUpgrade;
        called.is_some_and(|called| called.is_of(cluster) && upgrade.contains(&called.hook))
    };
    if control_plane.is_at(version) {
        let is_over = called(Hook::AfterWorkersUpgrade) || workers_are_over(cluster);
        return Some(if is_over {
            Hook::AfterClusterUpgrade
        } else {
            Hook::BeforeWorkersUpgrade
        });
    }
    let has_begun = control_plane.wanted.as_deref() == Some(version);
    let may_begin = !cluster.workers_roll || called(Hook::BeforeClusterUpgrade);
    (has_begun || control_plane.is_settled() && may_begin).then_some(Hook::BeforeControlPlaneUpgrade)
}

/// Whether an upgrade of Kubernetes is over as far as the Cluster tells, or there is none: all workers were told the version, and none roll.
///
/// While Cluster API owes any hook of what comes after the control plane, it is not over. `AfterClusterUpgrade` is owed before the control plane is told the version
/// (`desired_state.go` 1.14.2:687) and the others only after that (590), so that for a moment it is the only one at the beginning too, as it is at the end; there its call
/// tells, or that it is owed no more: earlier minors stop owing it with the call, whoever answers what (1.10.5:255), and all of them where nobody is to be called.
/// Without runtime hooks, and for a class that keeps the Kubernetes version, none is owed.
fn workers_are_over(cluster: &ClusterSeen) -> bool {
    let after_the_control_plane = [
        Hook::AfterControlPlaneUpgrade,
        Hook::BeforeWorkersUpgrade,
        Hook::AfterWorkersUpgrade,
        Hook::AfterClusterUpgrade,
    ];
    let is_owed = after_the_control_plane
        .iter()
        .any(|hook| cluster.pending.contains(hook));
    cluster.reconciled && !cluster.workers_roll && !is_owed
}
