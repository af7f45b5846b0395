//! The generated CRDs against the contract, field by field: what an object of the Go operator may say, and what its users see.

mod schema;

use serde_json::{Value, json};

use schema::{columns, crd, fields, holds, is_bounded, is_described, required};

#[test]
fn cluster_stack_has_every_field_of_the_contract() {
    let string = || json!({"type": "string"});
    let immutable = json!({"rule": "self == oldSelf", "message": "field is immutable"});
    holds(
        "clusterstacks",
        &[
            (
                "spec.provider",
                json!({"type": "string", "minLength": 1, "maxLength": 63}),
            ),
            ("spec.provider.x-kubernetes-validations.0", immutable.clone()),
            ("spec.name", json!({"type": "string", "minLength": 1, "maxLength": 63})),
            ("spec.name.x-kubernetes-validations.0", immutable.clone()),
            (
                "spec.kubernetesVersion",
                json!({"type": "string", "pattern": r"^\d\.\d+$"}),
            ),
            ("spec.kubernetesVersion.x-kubernetes-validations.0", immutable.clone()),
            (
                "spec.channel",
                json!({"type": "string", "default": "stable", "pattern": "^[a-z0-9]+$"}),
            ),
            ("spec.channel.x-kubernetes-validations.0", immutable),
            ("spec.versions", json!({"type": "array", "maxItems": 1024})),
            ("spec.versions[]", json!({"type": "string", "maxLength": 63})),
            ("spec.autoSubscribe", json!({"type": "boolean", "default": true})),
            ("spec.noProvider", json!({"type": "boolean", "default": false})),
            (
                "spec.providerRef",
                json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
            ),
            ("spec.providerRef.apiVersion", string()),
            ("spec.providerRef.fieldPath", string()),
            ("spec.providerRef.kind", string()),
            ("spec.providerRef.name", string()),
            ("spec.providerRef.namespace", string()),
            ("spec.providerRef.resourceVersion", string()),
            ("spec.providerRef.uid", string()),
            ("status.latestRelease", string()),
            ("status.summary", json!({"type": "array"})),
            ("status.summary[].name", string()),
            ("status.summary[].ready", json!({"type": "boolean"})),
            ("status.summary[].phase", string()),
            ("status.summary[].message", string()),
            ("status.usableVersions", string()),
        ],
    );
    assert_eq!(
        required("clusterstacks", "spec"),
        ["kubernetesVersion", "name", "provider"]
    );
}

#[test]
fn cluster_stack_has_every_additive_field() {
    holds(
        "clusterstacks",
        &[
            ("spec.source.github.owner", json!({"type": "string"})),
            ("spec.source.github.repository", json!({"type": "string"})),
            ("spec.source.github.apiUrl", json!({"type": "string"})),
            ("spec.source.github.tokenSecretRef.name", json!({"type": "string"})),
            ("spec.source.github.caSecretRef.name", json!({"type": "string"})),
            ("spec.source.oci.repository", json!({"type": "string"})),
            ("spec.source.oci.credentialsSecretRef.name", json!({"type": "string"})),
            ("spec.source.oci.caSecretRef.name", json!({"type": "string"})),
            ("spec.source.oci.plainHttp", json!({"type": "boolean"})),
            ("spec.source.http.url", json!({"type": "string"})),
            ("spec.source.http.credentialsSecretRef.name", json!({"type": "string"})),
            ("spec.source.http.caSecretRef.name", json!({"type": "string"})),
            ("spec.source.directory.path", json!({"type": "string"})),
            ("spec.interval", json!({"type": "string", "default": "5m"})),
            (
                "spec.verification.mode",
                json!({"default": "Off", "enum": ["Off", "Warn", "Require"]}),
            ),
            (
                "spec.verification.cosign.publicKeySecretRef.name",
                json!({"type": "string"}),
            ),
            ("spec.verification.cosign.keyless.issuer", json!({"type": "string"})),
            ("spec.verification.cosign.keyless.identity", json!({"type": "string"})),
            (
                "spec.verification.cosign.keyless.trustRootSecretRef.name",
                json!({"type": "string"}),
            ),
            (
                "spec.drift",
                json!({"default": "Correct", "enum": ["Correct", "Warn", "Ignore"]}),
            ),
            (
                "spec.helmProfile",
                json!({"default": "v3.19", "enum": ["v3.19", "v4.1", "v4.2", "v4.3"]}),
            ),
            ("spec.suspend", json!({"type": "boolean", "default": false})),
            (
                "spec.pruneLimit",
                json!({"x-kubernetes-int-or-string": true, "default": "50%"}),
            ),
            (
                "status.observedGeneration",
                json!({"type": "integer", "format": "int64"}),
            ),
            ("status.available[].version", json!({"type": "string"})),
            ("status.available[].release", json!({"type": "string"})),
            ("status.available[].kubernetesVersion", json!({"type": "string"})),
            ("status.available[].digest", json!({"type": "string"})),
            ("status.available[].ready", json!({"type": "boolean"})),
            ("status.availableCount", json!({"type": "integer"})),
            ("status.orphans.count", json!({"type": "integer"})),
            ("status.orphans.classes[].name", json!({"type": "string"})),
            ("status.orphans.classes[].digest", json!({"type": "string"})),
            ("status.orphans.classes[].objects[]", json!({"type": "string"})),
            ("status.orphans.classes[].usedBy[]", json!({"type": "string"})),
            ("status.orphans.classes[].message", json!({"type": "string"})),
            ("status.foreignCount", json!({"type": "integer"})),
            ("status.nextRelease", json!({"type": "string"})),
            ("status.lastHandledReconcileAt", json!({"type": "string"})),
        ],
    );
}

#[test]
fn cluster_stack_release_has_every_field() {
    holds(
        "clusterstackreleases",
        &[
            (
                "spec.providerRef",
                json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
            ),
            ("status.kubernetesVersion", json!({"type": "string"})),
            ("status.ready", json!({"type": "boolean", "default": false})),
            // Additive.
            ("spec.source.directory.path", json!({"type": "string"})),
            ("spec.policy.helmProfile", json!({"default": "v3.19"})),
            ("spec.policy.drift", json!({"default": "Correct"})),
            ("spec.policy.verification.mode", json!({"default": "Off"})),
            ("spec.policy.pruneLimit", json!({"default": "50%"})),
            ("status.observedGeneration", json!({"type": "integer"})),
            ("status.assets.digest", json!({"type": "string"})),
            ("status.assets.source", json!({"type": "string"})),
            ("status.assets.verifiedBy", json!({"type": "string"})),
            ("status.lastHandledReconcileAt", json!({"type": "string"})),
        ],
    );
    assert!(required("clusterstackreleases", "spec").is_empty());
}

#[test]
fn cluster_addon_has_every_field() {
    holds(
        "clusteraddons",
        &[
            (
                "spec.clusterRef",
                json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
            ),
            ("spec.clusterStack", json!({"type": "string"})),
            ("spec.version", json!({"type": "string"})),
            ("spec.hook", json!({"type": "string"})),
            ("status.stages[].name", json!({"type": "string"})),
            (
                "status.stages[].action",
                json!({"type": "string", "enum": ["apply", "delete"]}),
            ),
            ("status.stages[].phase", json!({"type": "string"})),
            ("status.ready", json!({"type": "boolean", "default": false})),
            // Additive.
            ("status.observedGeneration", json!({"type": "integer"})),
            ("status.target.clusterStack", json!({"type": "string"})),
            ("status.target.version", json!({"type": "string"})),
            ("status.target.kubernetesVersion", json!({"type": "string"})),
            ("status.applied.clusterStack", json!({"type": "string"})),
            ("status.applied.version", json!({"type": "string"})),
            ("status.applied.kubernetesVersion", json!({"type": "string"})),
            ("status.hook.name", json!({"type": "string"})),
            ("status.hook.since", json!({"type": "string", "format": "date-time"})),
            ("status.hook.deadline", json!({"type": "string", "format": "date-time"})),
            ("status.stages[].reason", json!({"type": "string"})),
            (
                "status.stages[].since",
                json!({"type": "string", "format": "date-time"}),
            ),
            ("status.lastHandledReconcileAt", json!({"type": "string"})),
        ],
    );
    assert_eq!(required("clusteraddons", "spec"), ["clusterRef"]);
}

#[test]
fn resources_are_the_same_in_releases_and_add_ons() {
    for plural in ["clusterstackreleases", "clusteraddons"] {
        let of_the_go_operator = ["group", "version", "kind", "namespace", "name", "status", "error"];
        for field in of_the_go_operator.into_iter().chain(["digest", "health", "manager"]) {
            holds(
                plural,
                &[(&format!("status.resources[].{field}"), json!({"type": "string"}))],
            );
        }
        assert!(required(plural, "status.resources[]").is_empty());
    }
}

#[test]
fn conditions_have_the_shape_of_cluster_api() {
    for plural in ["clusterstacks", "clusterstackreleases", "clusteraddons"] {
        holds(
            plural,
            &[
                ("status.conditions[].type", json!({"type": "string"})),
                ("status.conditions[].status", json!({"type": "string"})),
                ("status.conditions[].severity", json!({"type": "string"})),
                (
                    "status.conditions[].lastTransitionTime",
                    json!({"type": "string", "format": "date-time"}),
                ),
                ("status.conditions[].reason", json!({"type": "string"})),
                ("status.conditions[].message", json!({"type": "string"})),
            ],
        );
        assert_eq!(
            required(plural, "status.conditions[]"),
            ["lastTransitionTime", "status", "type"]
        );
    }
}

#[test]
fn columns_stand_in_the_order_of_the_contract() {
    let age = ("Age", "date", ".metadata.creationTimestamp");
    let reason = ("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason");
    let message = ("Message", "string", ".status.conditions[?(@.type=='Ready')].message");
    let ready = ("Ready", "boolean", ".status.ready");
    let stack = [
        ("Provider", "string", ".spec.provider"),
        ("ClusterStack", "string", ".spec.name"),
        ("K8s", "string", ".spec.kubernetesVersion"),
        ("Channel", "string", ".spec.channel"),
        ("Autosubscribe", "string", ".spec.autoSubscribe"),
        ("Usable", "string", ".status.usableVersions"),
        ("Latest", "string", ".status.latestRelease"),
        age,
        reason,
        message,
    ];
    let release = [
        ("K8s Version", "string", ".status.kubernetesVersion"),
        ready,
        age,
        reason,
        message,
    ];
    let addon = [
        (
            "Cluster",
            "string",
            r#".metadata.ownerReferences[?(@.kind=="Cluster")].name"#,
        ),
        // `.spec.hook` in the Go operator, which is empty with us, or says what was called last before the takeover.
        ("Hook", "string", ".status.hook.name"),
        ready,
        age,
        reason,
        message,
    ];
    for (plural, expected) in [
        ("clusterstacks", &stack[..]),
        ("clusterstackreleases", &release[..]),
        ("clusteraddons", &addon[..]),
    ] {
        assert_eq!(columns(plural), expected, "{plural}");
    }
}

#[test]
fn kinds_are_named_labelled_and_served_as_the_contract_says() {
    for (plural, kind, short) in [
        ("clusterstacks", "ClusterStack", "csk"),
        ("clusterstackreleases", "ClusterStackRelease", "cskr"),
        ("clusteraddons", "ClusterAddon", "caddon"),
    ] {
        let crd = crd(plural);
        assert_eq!(crd["spec"]["group"], "clusterstack.x-k8s.io");
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        assert_eq!(crd["spec"]["names"]["kind"], kind);
        assert_eq!(crd["spec"]["names"]["plural"], plural);
        assert_eq!(crd["spec"]["names"]["shortNames"], json!([short]));
        assert_eq!(crd["spec"]["names"]["categories"], Value::Null);
        let versions = crd["spec"]["versions"].as_array().expect("versions");
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0]["name"], "v1alpha1");
        assert_eq!(
            (&versions[0]["served"], &versions[0]["storage"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(versions[0]["subresources"], json!({"status": {}}));
        assert_eq!(
            crd["metadata"]["labels"],
            json!({
                "cluster.x-k8s.io/provider": "cluster-stack-operator",
                "cluster.x-k8s.io/v1beta1": "v1beta1",
                "clusterctl.cluster.x-k8s.io": "",
                "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
            })
        );
    }
}

#[test]
fn every_field_is_described_and_none_is_nullable() {
    for plural in ["clusterstacks", "clusterstackreleases", "clusteraddons"] {
        assert!(
            fields(plural).len() > 30,
            "{plural} has only {} fields",
            fields(plural).len()
        );
        is_described(plural);
    }
}

#[test]
fn every_text_and_list_under_a_rule_is_bounded() {
    for plural in ["clusterstacks", "clusterstackreleases", "clusteraddons"] {
        is_bounded(plural);
    }
}
