//! Small values: references to providers, prune limits, label values, annotations, phases.

use crds::{
    cluster_addon::StagePhase, cluster_stack::ReleasePhase, cluster_stack_release::provider_kind, labels,
    policy::PruneLimit, resource::SyncStatus,
};
use serde_json::{Value, json};

#[test]
fn only_a_kind_of_the_provider_group_is_a_providers_kind() {
    let kind_of = |reference: Value| {
        let reference = serde_json::from_value(reference).expect("a reference");
        provider_kind(&reference).map(str::to_owned)
    };
    let images = json!({"apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "Images", "name": "x"});
    assert_eq!(kind_of(images).as_deref(), Some("Images"));
    for foreign in [
        json!({"apiVersion": "v1", "kind": "Secret", "name": "x"}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}),
        json!({"apiVersion": "infrastructure.clusterstack.x-k8s.io", "kind": "Images"}),
        json!({"apiVersion": "infrastructure.clusterstack.x-k8s.io.example.com/v1", "kind": "Images"}),
        json!({"apiVersion": "x.infrastructure.clusterstack.x-k8s.io/v1", "kind": "Images"}),
        json!({"apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease"}),
        json!({"apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": ""}),
        json!({"apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1"}),
        json!({"kind": "Images"}),
        json!({}),
    ] {
        assert_eq!(kind_of(foreign.clone()), None, "{foreign}");
    }
}

#[test]
fn prune_limits_are_numbers_or_percentages() {
    for (wire, limit) in [
        (json!(25), PruneLimit::Count(25)),
        (json!("50%"), PruneLimit::Percent(50)),
        (json!("0%"), PruneLimit::Percent(0)),
        (json!("100%"), PruneLimit::Percent(100)),
    ] {
        assert_eq!(
            serde_json::from_value::<PruneLimit>(wire.clone()).expect("a limit"),
            limit
        );
        assert_eq!(serde_json::to_value(limit).expect("JSON"), wire);
    }
    for bad in [
        json!("101%"),
        json!("%"),
        json!("many"),
        json!(-1),
        json!(1.5),
        json!(null),
        json!("-1%"),
        json!(""),
    ] {
        assert!(serde_json::from_value::<PruneLimit>(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn ten_objects_may_always_go() {
    for (limit, total, allowed) in [
        (PruneLimit::Percent(50), 100, 50),
        (PruneLimit::Percent(50), 101, 50),
        (PruneLimit::Percent(50), 4, 10),
        (PruneLimit::Percent(0), 1000, 10),
        (PruneLimit::Percent(100), 1000, 1000),
        (PruneLimit::Count(3), 1000, 10),
        (PruneLimit::Count(300), 1000, 300),
        (PruneLimit::Percent(100), usize::MAX, usize::MAX / 100),
    ] {
        assert_eq!(limit.of(total), allowed, "{limit} of {total}");
    }
}

#[test]
fn only_a_stack_of_our_group_is_a_stack_among_the_owners_of_a_release() {
    let owner = |group: &str, version: &str, name: &str| serde_json::json!({ "apiVersion": format!("{group}/{version}"), "kind": "ClusterStack", "name": name, "uid": name });
    let release: crds::ClusterStackRelease = serde_json::from_value(serde_json::json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "spec": {},
        "metadata": { "name": "docker-scs-1-30-v1", "ownerReferences": [
            owner("example.org", "v1alpha1", "theirs"), owner("clusterstack.x-k8s.io", "v1beta7", "ours"),
        ] },
    }))
    .expect("a release");
    let stacks: Vec<&str> = release.stacks().map(|stack| stack.name.as_str()).collect();
    assert_eq!(stacks, ["ours"]);
}

#[test]
fn owners_are_told_apart_by_a_valid_label_value() {
    let value = labels::part_of("ClusterStackRelease", "fleet", "docker-scs-1-30-v1");
    assert!(labels::is_part_of(&value) && !labels::is_part_of("somebody-else"));
    assert_eq!(value.len(), 32);
    assert!(
        value
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
    );
    // Known from another implementation of SHA-256: this value is stored in clusters and must never change.
    assert_eq!(value, "7fd4d891eccfd346d4c2cbfc5a53be77");
    for (kind, namespace, name) in [
        ("ClusterStack", "fleet", "docker-scs-1-30-v1"),
        ("ClusterStackRelease", "other", "docker-scs-1-30-v1"),
        ("ClusterStackRelease", "fleet", "docker-scs-1-30-v2"),
    ] {
        assert_ne!(labels::part_of(kind, namespace, name), value);
    }
}

#[test]
fn group_kinds_survive_the_annotation() {
    let pairs = [
        ("cluster.x-k8s.io", "ClusterClass"),
        ("", "ConfigMap"),
        ("apps", "Deployment"),
        ("", "ConfigMap"),
    ];
    let value = labels::format_group_kinds(pairs);
    assert_eq!(value, "ClusterClass.cluster.x-k8s.io,ConfigMap,Deployment.apps");
    let expected = pairs.map(|(group, kind)| (group.to_owned(), kind.to_owned())).into();
    assert_eq!(labels::parse_group_kinds(&value), expected);
    assert!(labels::parse_group_kinds(" , ").is_empty());
}

#[test]
fn phases_and_states_are_the_words_of_the_contract() {
    fn words<T: serde::Serialize + ToString>(values: &[T]) -> Vec<String> {
        for value in values {
            assert_eq!(
                serde_json::to_value(value).expect("JSON"),
                Value::String(value.to_string())
            );
        }
        values.iter().map(ToString::to_string).collect()
    }
    use ReleasePhase as Release;
    use StagePhase as Stage;
    let release = [
        Release::Unknown,
        Release::DownloadingAssets,
        Release::ProviderWork,
        Release::ApplyingObjects,
        Release::Done,
    ];
    assert_eq!(
        words(&release),
        [
            "",
            "downloading release assets",
            "provider-specific work",
            "applying objects",
            "done"
        ]
    );
    let stage = [
        Stage::Unknown,
        Stage::Pending,
        Stage::WaitingForPreCondition,
        Stage::ApplyingOrDeleting,
        Stage::WaitingForPostCondition,
        Stage::Done,
    ];
    assert_eq!(
        words(&stage),
        [
            "",
            "Pending",
            "waitingForPreCondition",
            "applyingOrDeleting",
            "waitingForPostCondition",
            "done"
        ]
    );
    assert_eq!(
        words(&[SyncStatus::Synced, SyncStatus::NotSynced]),
        ["synced", "not-synced"]
    );
}
