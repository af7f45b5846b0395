use serde_json::{Value, json};

use super::HealthState::{Current, Failed, InProgress, Terminating, Unknown};
use super::*;

/// An object of a kind with a spec and a status; generation 2 is observed.
#[expect(clippy::needless_pass_by_value, reason = "the tables read better")]
fn object(api_version: &str, kind: &str, spec: Value, mut status: Value) -> Value {
    if let Some(status) = status.as_object_mut() {
        status.entry("observedGeneration").or_insert(json!(2));
    }
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "generation": 2}, "spec": spec, "status": status
    })
}

fn conditions(list: &[(&str, &str, &str)]) -> Value {
    let list = list
        .iter()
        .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason}));
    json!({"conditions": list.collect::<Vec<_>>()})
}

fn check(name: &str, object: &Value, state: HealthState, message: &str) {
    let found = health(object);
    assert_eq!((found.state, found.message.as_str()), (state, message), "{name}");
}

#[test]
fn what_every_object_can_say_comes_first() {
    let odd = |status: Value| object("example.org/v1", "Odd", json!({}), status);
    let severity = |severity: &str| json!({"conditions": [{"type": "Ready", "status": "False", "severity": severity, "reason": "NoQuota", "message": "quota is used up"}]});
    let table = [
        (
            "no status",
            json!({"apiVersion": "v1", "kind": "Odd", "metadata": {"name": "it"}}),
            Current,
            "",
        ),
        (
            "nothing at all",
            json!({}),
            Unknown,
            "the object has no apiVersion or kind",
        ),
        ("no object", json!([1]), Unknown, "the object has no apiVersion or kind"),
        (
            "deleted",
            json!({"apiVersion": "v1", "kind": "Odd", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            Terminating,
            "the object is being deleted",
        ),
        (
            "behind",
            odd(json!({"observedGeneration": 1})),
            InProgress,
            "its controller has seen generation 1, the object is at 2",
        ),
        ("ready", odd(conditions(&[("Ready", "True", "")])), Current, ""),
        (
            "not ready",
            odd(conditions(&[("Ready", "False", "Waiting")])),
            InProgress,
            "Waiting",
        ),
        (
            "unknown",
            odd(conditions(&[("Ready", "Unknown", "")])),
            InProgress,
            "Ready is Unknown",
        ),
        (
            "Cluster API error",
            odd(severity("Error")),
            Failed,
            "NoQuota: quota is used up",
        ),
        (
            "Cluster API warning",
            odd(severity("Warning")),
            InProgress,
            "NoQuota: quota is used up",
        ),
        (
            "stalled",
            odd(conditions(&[("Stalled", "True", "BadSpec"), ("Ready", "True", "")])),
            Failed,
            "BadSpec",
        ),
        (
            "reconciling",
            odd(conditions(&[
                ("Reconciling", "True", "Upgrading"),
                ("Ready", "True", ""),
            ])),
            InProgress,
            "Upgrading",
        ),
        (
            "not stalled",
            odd(conditions(&[("Stalled", "False", ""), ("Reconciling", "False", "")])),
            Current,
            "",
        ),
        (
            "wrong types",
            odd(json!({"conditions": "many", "observedGeneration": "two"})),
            Current,
            "",
        ),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
}

#[test]
fn deployments_are_current_when_the_rollout_has_ended() {
    let done = [
        ("Progressing", "True", "NewReplicaSetAvailable"),
        ("Available", "True", ""),
    ];
    let with = |counts: [i64; 4], list: &[(&str, &str, &str)]| {
        let mut status = conditions(list);
        for (field, count) in ["replicas", "updatedReplicas", "availableReplicas", "readyReplicas"]
            .into_iter()
            .zip(counts)
        {
            status[field] = json!(count);
        }
        object("apps/v1", "Deployment", json!({"replicas": 3}), status)
    };
    let table = [
        (
            "new",
            object("apps/v1", "Deployment", json!({}), json!({})),
            InProgress,
            "0 of 1 replicas are created",
        ),
        (
            "growing",
            with([2, 2, 2, 2], &done),
            InProgress,
            "2 of 3 replicas are created",
        ),
        (
            "updating",
            with([3, 1, 3, 3], &done),
            InProgress,
            "1 of 3 replicas are updated",
        ),
        (
            "old ones left",
            with([4, 3, 3, 3], &done),
            InProgress,
            "1 surplus replicas are still there",
        ),
        (
            "unavailable",
            with([3, 3, 1, 3], &done),
            InProgress,
            "1 of 3 replicas are available",
        ),
        (
            "unready",
            with([3, 3, 3, 2], &done),
            InProgress,
            "2 of 3 replicas are ready",
        ),
        (
            "rolling",
            with([3, 3, 3, 3], &[("Progressing", "True", "ReplicaSetUpdated")]),
            InProgress,
            "the rollout has not ended",
        ),
        (
            "not available",
            with(
                [3, 3, 3, 3],
                &[done[0], ("Available", "False", "MinimumReplicasUnavailable")],
            ),
            InProgress,
            "MinimumReplicasUnavailable",
        ),
        (
            "too late",
            with([3, 1, 3, 3], &[("Progressing", "False", "ProgressDeadlineExceeded")]),
            Failed,
            "ProgressDeadlineExceeded",
        ),
        ("done", with([3, 3, 3, 3], &done), Current, ""),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
    let endless = object(
        "apps/v1",
        "Deployment",
        json!({"replicas": 0, "progressDeadlineSeconds": i32::MAX}),
        json!({}),
    );
    check("no deadline", &endless, Current, "");
}

#[test]
fn stateful_sets_follow_their_update_strategy() {
    let full =
        json!({"replicas": 3, "readyReplicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
    let with = |strategy: Value, status: &Value| {
        object(
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 3, "updateStrategy": strategy}),
            status.clone(),
        )
    };
    let partition = |from: i64| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": from}});
    let mut same = full.clone();
    same["currentRevision"] = json!("b");
    let table = [
        (
            "new",
            with(Value::Null, &json!({})),
            InProgress,
            "0 of 3 replicas are created",
        ),
        ("on delete", with(json!({"type": "OnDelete"}), &json!({})), Current, ""),
        (
            "unready",
            with(Value::Null, &json!({"replicas": 3, "readyReplicas": 1})),
            InProgress,
            "1 of 3 replicas are ready",
        ),
        (
            "surplus",
            with(Value::Null, &json!({"replicas": 4, "readyReplicas": 4})),
            InProgress,
            "1 surplus replicas are still there",
        ),
        (
            "rolling",
            with(partition(0), &full),
            InProgress,
            "the rollout has not ended",
        ),
        ("partition reached", with(partition(2), &full), Current, ""),
        (
            "partition open",
            with(partition(1), &full),
            InProgress,
            "1 of 2 replicas are updated",
        ),
        ("done", with(partition(0), &same), Current, ""),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
}

#[test]
fn daemon_and_replica_sets_count_their_pods() {
    let daemons = |status: Value| object("apps/v1", "DaemonSet", json!({}), status);
    let all = json!({
        "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": 2
    });
    let mut unready = all.clone();
    unready["numberReady"] = json!(1);
    let replicas = |status: Value| object("apps/v1", "ReplicaSet", json!({"replicas": 1}), status);
    let table = [
        (
            "unseen",
            daemons(json!({})),
            InProgress,
            "its controller has not seen the object",
        ),
        ("unready", daemons(unready), InProgress, "1 of 2 replicas are ready"),
        ("done", daemons(all), Current, ""),
        ("no nodes", daemons(json!({"desiredNumberScheduled": 0})), Current, ""),
        (
            "failing",
            replicas(conditions(&[("ReplicaFailure", "True", "FailedCreate")])),
            InProgress,
            "FailedCreate",
        ),
        ("new", replicas(json!({})), InProgress, "0 of 1 replicas are created"),
        (
            "there",
            replicas(json!({"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1})),
            Current,
            "",
        ),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
}

#[test]
fn pods_and_jobs_are_current_when_they_run_or_have_run() {
    let pod = |status: Value| object("v1", "Pod", json!({}), status);
    let mut crashing = conditions(&[("Ready", "False", "ContainersNotReady")]);
    crashing["phase"] = json!("Running");
    let unready = crashing.clone();
    crashing["containerStatuses"] = json!([{"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    let mut ready = conditions(&[("Ready", "True", "")]);
    ready["phase"] = json!("Running");
    let mut unschedulable = conditions(&[("PodScheduled", "False", "Unschedulable")]);
    unschedulable["phase"] = json!("Pending");
    let job = |spec: Value, status: Value| object("batch/v1", "Job", spec, status);
    let table = [
        ("no phase", pod(json!({})), InProgress, "the pod has no phase yet"),
        ("unschedulable", pod(unschedulable), InProgress, "Unschedulable"),
        (
            "pending",
            pod(json!({"phase": "Pending"})),
            InProgress,
            "the pod is pending",
        ),
        ("unready", pod(unready), InProgress, "ContainersNotReady"),
        (
            "crashing",
            pod(crashing),
            Failed,
            "containers crash again and again: web",
        ),
        ("ready", pod(ready), Current, ""),
        ("over", pod(json!({"phase": "Succeeded"})), Current, ""),
        (
            "failed pod",
            pod(json!({"phase": "Failed"})),
            Failed,
            "the pod has ended without success",
        ),
        (
            "new job",
            job(json!({"completions": 3}), json!({})),
            InProgress,
            "0 of 3 pods have succeeded",
        ),
        (
            "running job",
            job(json!({"parallelism": 2}), json!({"succeeded": 1})),
            InProgress,
            "1 of 2 pods have succeeded",
        ),
        ("suspended job", job(json!({"suspend": true}), json!({})), Current, ""),
        (
            "complete",
            job(json!({}), conditions(&[("Complete", "True", "")])),
            Current,
            "",
        ),
        (
            "failed job",
            job(json!({}), conditions(&[("Failed", "True", "BackoffLimitExceeded")])),
            Failed,
            "BackoffLimitExceeded",
        ),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
}

#[test]
fn the_other_kinds_of_kubernetes_have_their_rules() {
    let claim = |phase: &str| object("v1", "PersistentVolumeClaim", json!({}), json!({"phase": phase}));
    let service = |spec: Value| object("v1", "Service", spec, json!({}));
    let definition = |list: &[(&str, &str, &str)]| {
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            conditions(list),
        )
    };
    let api =
        |list: &[(&str, &str, &str)]| object("apiregistration.k8s.io/v1", "APIService", json!({}), conditions(list));
    let table = [
        ("pending claim", claim("Pending"), InProgress, "the claim is not bound"),
        ("bound", claim("Bound"), Current, ""),
        ("lost", claim("Lost"), Failed, "the volume of the claim is lost"),
        ("plain service", service(json!({"clusterIP": "None"})), Current, ""),
        (
            "balanced",
            service(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"})),
            Current,
            "",
        ),
        (
            "no address",
            service(json!({"type": "LoadBalancer"})),
            InProgress,
            "the service has no cluster IP",
        ),
        ("new kind", definition(&[]), InProgress, "the kind is not served yet"),
        (
            "installing",
            definition(&[("Established", "False", "Installing")]),
            InProgress,
            "the kind is not served yet",
        ),
        (
            "names taken",
            definition(&[("NamesAccepted", "False", "ListKindConflict")]),
            Failed,
            "ListKindConflict",
        ),
        (
            "refused",
            definition(&[("Established", "False", "NotAccepted")]),
            Failed,
            "NotAccepted",
        ),
        (
            "established",
            definition(&[("NamesAccepted", "True", ""), ("Established", "True", "")]),
            Current,
            "",
        ),
        (
            "new API",
            api(&[]),
            InProgress,
            "the API service has not been tried yet",
        ),
        (
            "dead API",
            api(&[("Available", "False", "MissingEndpoints")]),
            InProgress,
            "MissingEndpoints",
        ),
        ("live API", api(&[("Available", "True", "Passed")]), Current, ""),
        (
            "budget",
            object(
                "policy/v1",
                "PodDisruptionBudget",
                json!({}),
                json!({"disruptionsAllowed": 0}),
            ),
            Current,
            "",
        ),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
}

#[test]
fn the_kinds_of_cluster_stacks_have_their_rules() {
    let class =
        |list: &[(&str, &str, &str)]| object("cluster.x-k8s.io/v1beta1", "ClusterClass", json!({}), conditions(list));
    let image =
        |list: &[(&str, &str, &str)]| object("openstack.k-orc.cloud/v1alpha1", "Image", json!({}), conditions(list));
    let template = object(
        "infrastructure.cluster.x-k8s.io/v1beta1",
        "DockerMachineTemplate",
        json!({}),
        conditions(&[("Ready", "False", "Odd")]),
    );
    let table = [
        ("class that nobody looks at", class(&[]), Current, ""),
        (
            "class with an old reference",
            class(&[("RefVersionsUpToDate", "False", "Outdated")]),
            Current,
            "",
        ),
        (
            "class without its variables",
            class(&[("VariablesReconciled", "False", "DiscoveryFailed")]),
            InProgress,
            "DiscoveryFailed",
        ),
        (
            "class with its variables",
            class(&[("VariablesReconciled", "True", "")]),
            Current,
            "",
        ),
        ("template", template, Current, ""),
        ("new image", image(&[]), Current, ""),
        (
            "image on its way",
            image(&[
                ("Available", "False", "Progressing"),
                ("Progressing", "True", "Progressing"),
            ]),
            InProgress,
            "Progressing",
        ),
        (
            "image that cannot be",
            image(&[
                ("Available", "False", "UnrecoverableError"),
                ("Progressing", "False", "InvalidConfiguration"),
            ]),
            Failed,
            "InvalidConfiguration",
        ),
        (
            "image",
            image(&[("Available", "True", "Success"), ("Progressing", "False", "Success")]),
            Current,
            "",
        ),
    ];
    for (name, object, state, message) in table {
        check(name, &object, state, message);
    }
}

#[test]
fn inert_kinds_need_no_look_at_their_health() {
    let table = [
        ("", "ConfigMap", false),
        ("", "Secret", false),
        ("", "Pod", true),
        ("rbac.authorization.k8s.io", "ClusterRole", false),
        ("rbac.authorization.k8s.io", "RoleBinding", false),
        ("infrastructure.cluster.x-k8s.io", "OpenStackMachineTemplate", false),
        ("controlplane.cluster.x-k8s.io", "KubeadmControlPlaneTemplate", false),
        ("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", false),
        (
            "infrastructure.clusterstack.x-k8s.io",
            "OpenStackClusterStackReleaseTemplate",
            false,
        ),
        ("cluster.x-k8s.io", "ClusterClass", true),
        ("notcluster.x-k8s.io", "HouseTemplate", true),
        ("apps", "Deployment", true),
        ("apiextensions.k8s.io", "CustomResourceDefinition", true),
        ("example.org", "PageTemplate", true),
    ];
    for (group, kind, expected) in table {
        assert_eq!(matters(&GroupKind::new(group, kind)), expected, "{kind} in {group:?}");
    }
}

proptest::proptest! {
    /// Fields of any type in the places that the rules read.
    #[test]
    fn no_object_makes_the_rules_panic(kind in 0_usize..12, status in odd_status(), replicas in proptest::prelude::any::<i64>()) {
        let kinds = [
            ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("apps/v1", "ReplicaSet"), ("batch/v1", "Job"),
            ("v1", "Pod"), ("v1", "PersistentVolumeClaim"), ("v1", "Service"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("cluster.x-k8s.io/v1beta1", "ClusterClass"), ("openstack.k-orc.cloud/v1alpha1", "Image"), ("example.org/v1", "Odd"),
        ];
        let (api_version, kind) = kinds[kind];
        let spec = json!({"replicas": replicas, "updateStrategy": {"rollingUpdate": {"partition": replicas}}});
        health(&json!({"apiVersion": api_version, "kind": kind, "spec": spec, "status": status}));
    }
}

fn odd_status() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let scalar = || {
        prop_oneof![
            Just(json!(null)),
            any::<i64>().prop_map(Value::from),
            "[A-Z][a-z]{0,9}".prop_map(Value::from)
        ]
    };
    let kinds = [
        "Ready",
        "Available",
        "Progressing",
        "Established",
        "Complete",
        "Stalled",
        "VariablesReconciled",
    ];
    let one = (
        prop::sample::select(kinds.to_vec()),
        prop::sample::select(vec!["True", "False", "Unknown", ""]),
        scalar(),
    )
        .prop_map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason}));
    let list = prop_oneof![prop::collection::vec(one, 0..4).prop_map(Value::from), scalar()];
    let counts = prop::collection::btree_map(
        prop::sample::select(vec![
            "replicas",
            "readyReplicas",
            "updatedReplicas",
            "desiredNumberScheduled",
            "phase",
            "observedGeneration",
        ]),
        scalar(),
        0..4,
    );
    (list, counts).prop_map(|(list, counts)| {
        let mut status = json!({"conditions": list});
        for (field, count) in counts {
            status[field] = count;
        }
        status
    })
}
