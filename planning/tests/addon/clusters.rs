use planning::addon::{ClusterSeen, Hook, PausedBy};
use serde_json::{Value, json};

use crate::given::cluster_value;

fn seen(cluster: &Value) -> ClusterSeen {
    ClusterSeen::of(cluster, None)
}

#[test]
fn a_cluster_says_the_same_in_both_api_versions() {
    let control_plane = json!({
        "spec": {"version": "v1.33.1"},
        "status": {"version": "v1.33.1", "initialized": true, "initialization": {"controlPlaneInitialized": true}},
    });
    let metadata = json!({
        "namespace": "team", "name": "web", "uid": "uid-1", "generation": 7, "deletionTimestamp": "2026-11-21T10:00:00Z",
        "annotations": {
            "runtime.cluster.x-k8s.io/pending-hooks": "AfterClusterUpgrade, AfterControlPlaneUpgrade,AfterSomethingElse,",
            "runtime.cluster.x-k8s.io/ok-to-delete": "",
        },
    });
    let rolling = json!({"type": "WorkerMachinesUpToDate", "status": "False", "reason": "NotUpToDate"});
    let upgrading = json!({"type": "TopologyReconciled", "status": "False", "reason": "ClusterUpgrading"});
    let initialized = json!({"type": "ControlPlaneInitialized", "status": "True"});
    let older = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "metadata": metadata,
        "spec": {
            "paused": true,
            "topology": {"class": "any", "version": "v1.34.0"},
            "infrastructureRef": {"apiVersion": "x/v1", "kind": "X", "name": "web"},
            "controlPlaneRef": {"apiVersion": "x/v1", "kind": "X", "name": "web"},
        },
        "status": {"conditions": [initialized], "v1beta2": {"conditions": [upgrading, rolling]}},
    });
    let newer = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "metadata": metadata,
        "spec": {
            "paused": true,
            "topology": {"classRef": {"name": "any"}, "version": "v1.34.0"},
            "infrastructureRef": {"apiGroup": "x", "kind": "X", "name": "web"},
            "controlPlaneRef": {"apiGroup": "x", "kind": "X", "name": "web"},
        },
        "status": {
            "initialization": {"controlPlaneInitialized": true}, "conditions": [upgrading, rolling],
        },
    });
    let mut older = ClusterSeen::of(&older, Some(&control_plane));
    let newer = ClusterSeen::of(&newer, Some(&control_plane));
    // The one difference: where the name of the class stands.
    older.topology.as_mut().expect("a class").spelling = newer.topology.as_ref().expect("a class").spelling;
    assert_eq!(older, newer);
    assert_eq!(newer.paused, Some(PausedBy::Spec));
    assert!(newer.workers_roll && newer.initialized && newer.ok_to_delete && newer.deleting.is_some());
    assert!(!newer.reconciled);
    let pending = [Hook::AfterControlPlaneUpgrade, Hook::AfterClusterUpgrade];
    assert_eq!(newer.pending, pending.into());
}

#[test]
fn a_control_plane_of_either_contract_tells_that_the_api_server_answered_once() {
    let mut cluster = cluster_value("any", "v1.33.1");
    cluster["status"] = Value::Null;
    for (status, initialized) in [
        (json!({"initialized": true}), true),
        (json!({"initialization": {"controlPlaneInitialized": true}}), true),
        (
            json!({"initialized": false, "initialization": {"controlPlaneInitialized": false}}),
            false,
        ),
        (json!({"initialized": "true"}), false),
        (json!({}), false),
    ] {
        let control_plane = json!({ "status": status });
        let seen = ClusterSeen::of(&cluster, Some(&control_plane));
        assert_eq!(seen.initialized, initialized, "{control_plane}");
    }
}

#[test]
fn a_cluster_of_a_request_is_read_without_api_version_and_status() {
    let mut cluster = cluster_value("docker-scs-1-33-v1", "v1.33.1");
    cluster["status"] = Value::Null;
    let seen = seen(&cluster);
    assert_eq!(
        (seen.class(), seen.version(), seen.generation),
        ("docker-scs-1-33-v1", "v1.33.1", 3)
    );
    assert!(!seen.initialized && !seen.workers_roll);
}

#[test]
fn nothing_in_a_cluster_that_is_of_another_shape_is_an_error() {
    for cluster in [
        json!(null),
        json!([1]),
        json!({"metadata": 1, "spec": [], "status": "x"}),
        json!({"metadata": {"annotations": [], "generation": "1", "deletionTimestamp": "soon"}}),
        json!({"status": {"conditions": {"type": "Ready"}, "workers": 3}}),
        json!({"status": {"conditions": [null, 1, {"type": 1}, {"type": "WorkerMachinesUpToDate"}]}}),
    ] {
        let seen = ClusterSeen::of(&cluster, Some(&cluster));
        assert_eq!((seen.initialized, seen.workers_roll, seen.class()), (false, false, ""));
    }
    // It is to go, whenever that was said.
    assert!(
        seen(&json!({"metadata": {"deletionTimestamp": "soon"}}))
            .deleting
            .is_some()
    );
}

/// From 1.14 on Cluster API counts the replicas of MachinePools among the workers, as up to date those that the pools report.
#[test]
fn workers_roll_while_machines_of_machine_deployments_are_outdated_however_those_of_machine_pools_are_counted() {
    let rolls = |condition: &Value, up_to_date: &Value| {
        let mut conditions = vec![json!({"type": "TopologyReconciled", "status": "True"})];
        conditions.extend((!condition.is_null()).then(|| condition.clone()));
        let status = json!({"conditions": conditions, "workers": {"replicas": 6, "upToDateReplicas": up_to_date}});
        let newer = seen(&json!({"status": status})).workers_roll;
        // What says nothing of the form of v1beta2 does not hide it.
        let old = [json!({"type": "TopologyReconciled", "status": "True"})];
        let older = seen(&json!({"status": {"conditions": old, "v1beta2": status}})).workers_roll;
        assert_eq!(newer, older, "{condition}");
        newer
    };
    let says =
        |status: &str, reason: &str| json!({"type": "WorkerMachinesUpToDate", "status": status, "reason": reason});
    for up_to_date in [json!(3), json!(6), json!(8), Value::Null] {
        assert!(rolls(&says("False", "NotUpToDate"), &up_to_date), "{up_to_date}");
        assert!(!rolls(&says("True", "UpToDate"), &up_to_date), "{up_to_date}");
        assert!(
            !rolls(&says("True", "NoReplicas"), &up_to_date),
            "pools alone: {up_to_date}"
        );
        assert!(!rolls(&Value::Null, &up_to_date), "{up_to_date}");
    }
    assert!(
        !rolls(&says("Unknown", "UpToDateUnknown"), &json!(3)),
        "Machines of nobody who says it"
    );
    assert!(rolls(&says("Unknown", "InternalError"), &json!(6)), "nobody could look");
}

#[test]
fn the_annotation_pauses_a_cluster_as_its_spec_does() {
    let mut cluster = cluster_value("any", "v1.33.1");
    assert_eq!(seen(&cluster).paused, None);
    cluster["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    assert_eq!(seen(&cluster).paused, Some(PausedBy::Annotation));
    cluster["spec"]["paused"] = json!(true);
    assert_eq!(seen(&cluster).paused, Some(PausedBy::Spec));
}

#[test]
fn what_cluster_api_said_of_an_earlier_generation_does_not_count() {
    let cluster = |generation: i64, observed: Value| {
        let condition = json!({ "type": "TopologyReconciled", "status": "True", "observedGeneration": observed });
        let metadata = json!({ "namespace": "team", "name": "web", "generation": generation });
        ClusterSeen::of(
            &json!({ "metadata": metadata, "status": { "conditions": [condition] } }),
            None,
        )
    };
    assert!(cluster(7, json!(7)).reconciled);
    assert!(!cluster(8, json!(7)).reconciled);
    assert!(cluster(8, Value::Null).reconciled, "the form of v1beta1 does not tell");
}

/// What a Cluster of v1beta1 says in the form of that changes its time with every word.
#[test]
fn a_cluster_tells_since_when_it_is_not_as_its_topology_says() {
    let condition = |status: &str, time: &str| json!({ "type": "TopologyReconciled", "status": status, "lastTransitionTime": time });
    let since = |status: Value| seen(&json!({ "status": status })).unreconciled_since;
    let (first, later) = ("2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z");
    let told = Some(first.parse().expect("a time"));
    assert_eq!(since(json!({ "conditions": [condition("False", first)] })), told);
    let both = json!({
        "conditions": [condition("False", later)], "v1beta2": { "conditions": [condition("False", first)] },
    });
    assert_eq!(since(both), told);
    for status in [
        json!({ "conditions": [condition("True", first)] }),
        json!({ "conditions": [condition("False", "soon")] }),
        json!({}),
    ] {
        assert_eq!(since(status.clone()), None, "{status}");
    }
}
