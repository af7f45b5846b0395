//! Tables of requests and answers, with the words of the contract.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;

const UNSEEN: &str = "cannot validate clusterClass and Kubernetes version. Getting clusterStackRelease object failed: ";

fn cluster(class: &str, version: &str) -> Value {
    json!({"spec": {"topology": {"class": class, "version": version}}})
}

fn by_reference(class: &str, version: &str) -> Value {
    json!({"spec": {"topology": {"classRef": {"name": class}, "version": version}}})
}

fn found(version: &str) -> ReleaseSight {
    ReleaseSight::Found {
        kubernetes_version: Some(version.to_owned()),
        deleting: false,
    }
}

fn going(version: Option<&str>) -> ReleaseSight {
    ReleaseSight::Found {
        kubernetes_version: version.map(str::to_owned),
        deleting: true,
    }
}

fn allowed() -> Verdict {
    Verdict::default()
}

fn warned(warnings: &[&str]) -> Verdict {
    Verdict {
        refusal: None,
        warnings: warnings.iter().map(|warning| (*warning).to_owned()).collect(),
    }
}

fn refused(code: u16, reason: &'static str, message: &str) -> Verdict {
    let message = message.to_owned();
    allowed().refused(Refusal { code, reason, message })
}

/// The answer about a Cluster `team/web` when its release is seen like this.
fn judged(before: Option<&Value>, after: &Value, release: &ReleaseSight) -> Verdict {
    let change = ClusterChange::of("web", "team", before, after);
    change.verdict(change.release().map(|_| release))
}

#[test]
fn new_clusters_have_the_kubernetes_version_of_their_class() {
    let class = "docker-ferrol-1-27-v1";
    let mismatch = |class: &str, got: &str| {
        let detail = format!("clusterClass {class} expects Kubernetes version v1.27.3, but got {got}");
        let message = format!("spec.topology.version: Invalid value: {got:?}: {detail}");
        refused(403, "Forbidden", &message)
    };
    let seen = found("v1.27.3");
    let no_version = ReleaseSight::Found {
        kubernetes_version: None,
        deleting: false,
    };
    let unread = ReleaseSight::Unread {
        error: "the API server is away".to_owned(),
    };
    let manually = "no Kubernetes version set in status of clusterStackRelease object. Cannot validate Kubernetes version. \
                    Check out the ClusterStackReleaseObject team/docker-ferrol-1-27-v1 manually";
    let missing =
        format!("{UNSEEN}clusterclass does not exist: clusterstackreleases.clusterstack.x-k8s.io {class:?} not found");
    let away = format!(
        "{UNSEEN}failed to get ClusterStackRelease - cannot validate Kubernetes version: the API server is away"
    );
    let table = [
        (cluster(class, "v1.27.3"), &seen, allowed()),
        (by_reference(class, "v1.27.3"), &seen, allowed()),
        (cluster(class, "v1.27.4"), &seen, mismatch(class, "v1.27.4")),
        (by_reference(class, "v1.27.4"), &seen, mismatch(class, "v1.27.4")),
        (cluster(class, "1.27.3"), &seen, mismatch(class, "1.27.3")),
        (cluster(class, ""), &seen, mismatch(class, "")),
        (cluster("docker-ferrol-1-27-v0-sha.abc", "v1.27.3"), &seen, allowed()),
        (cluster(class, "v1.27.4"), &no_version, warned(&[manually])),
        (cluster(class, "v1.27.4"), &ReleaseSight::Missing, warned(&[&missing])),
        (cluster(class, "v1.27.4"), &unread, warned(&[&away])),
    ];
    for (after, release, expected) in table {
        assert_eq!(judged(None, &after, release), expected, "{after} {release:?}");
    }
}

#[test]
fn classes_change_within_a_stack_and_one_minor_up_at_most() {
    let before = "docker-ferrol-1-27-v1";
    let form = "expected a clusterclass of form <provider>-<clusterStackName>-<kubernetesVersion>-<clusterStackVersion> but got ";
    let invalid = |class: &str, details: &[&str]| {
        let faults: Vec<String> = details
            .iter()
            .map(|detail| format!("spec.topology.class: Invalid value: {class:?}: {detail}"))
            .collect();
        let faults = if faults.len() == 1 {
            faults[0].clone()
        } else {
            format!("[{}]", faults.join(", "))
        };
        refused(
            422,
            "Invalid",
            &format!("Cluster.cluster.x-k8s.io \"web\" is invalid: {faults}"),
        )
    };
    let minors =
        |got: &str| format!("kubernetes version must be the same or higher by one. Got {got}, want 1-27 or 1-28");
    let (provider, name) = (
        "provider name must not change. Got openstack, want docker",
        "cluster stack name must not change. Got scs, want ferrol",
    );
    let table = [
        ("docker-ferrol-1-27-v2", allowed()),
        ("docker-ferrol-1-27-v0-sha.abc", allowed()),
        ("docker-ferrol-1-28-v1", allowed()),
        (
            "docker-ferrol-1-29-v1",
            invalid("docker-ferrol-1-29-v1", &[&minors("1-29")]),
        ),
        (
            "docker-ferrol-1-26-v1",
            invalid("docker-ferrol-1-26-v1", &[&minors("1-26")]),
        ),
        (
            "docker-ferrol-2-27-v1",
            invalid("docker-ferrol-2-27-v1", &[&minors("2-27")]),
        ),
        (
            "openstack-ferrol-1-27-v1",
            invalid("openstack-ferrol-1-27-v1", &[provider]),
        ),
        ("docker-scs-1-27-v1", invalid("docker-scs-1-27-v1", &[name])),
        (
            "openstack-scs-1-29-v1",
            invalid("openstack-scs-1-29-v1", &[provider, name, &minors("1-29")]),
        ),
        (
            "quick-start",
            refused(
                403,
                "Forbidden",
                &format!(
                    "{form}quick-start: invalid format: \"quick-start\" is not of the form <provider>-<name>-<major>-<minor>-<version>"
                ),
            ),
        ),
    ];
    for (class, expected) in table {
        let (old, new) = (cluster(before, "v1.27.3"), cluster(class, "v1.27.3"));
        assert_eq!(judged(Some(&old), &new, &found("v1.27.3")), expected, "{class}");
    }
    let adopted = judged(
        Some(&cluster("quick-start", "v1.27.3")),
        &cluster(before, "v1.27.3"),
        &found("v1.27.3"),
    );
    let message = adopted.refusal.map(|refusal| refusal.message).unwrap_or_default();
    assert!(message.starts_with(&format!("{form}quick-start: ")), "{message}");
}

#[test]
fn the_field_of_a_refusal_is_the_one_that_the_user_wrote() {
    let (old, new) = (
        by_reference("docker-ferrol-1-27-v1", "v1.27.3"),
        by_reference("docker-scs-1-27-v1", "v1.27.3"),
    );
    let message = "Cluster.cluster.x-k8s.io \"web\" is invalid: spec.topology.classRef.name: Invalid value: \"docker-scs-1-27-v1\": \
                   cluster stack name must not change. Got scs, want ferrol";
    let expected = refused(422, "Invalid", message);
    assert_eq!(judged(Some(&old), &new, &found("v1.27.3")), expected);
}

/// The refusal of a class that goes with its release.
fn goes(field: &str, class: &str, release: &str) -> Verdict {
    let detail = format!(
        "clusterClass {class} comes from clusterStackRelease {release}, which is being deleted. Take a class of another release, \
         or try again when this one has been deleted and is there anew"
    );
    refused(
        403,
        "Forbidden",
        &format!("{field}: Invalid value: {class:?}: {detail}"),
    )
}

#[test]
fn no_cluster_takes_a_class_whose_release_is_being_deleted() {
    let (old, class) = ("docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2");
    let release = "team/docker-ferrol-1-27-v2";
    let refusal = || goes("spec.topology.class", class, release);
    let with = |mut verdict: Verdict, warning: &str| {
        verdict.warnings.push(warning.to_owned());
        verdict
    };
    let far = {
        let mut far = cluster(class, "v1.27.3");
        far["spec"]["topology"]["classNamespace"] = json!("fleet");
        far
    };
    let (classic, new) = (json!({"spec": {}}), cluster(class, "v1.27.3"));
    let hash = "docker-ferrol-1-27-v0-sha.abc";
    let table = [
        (None, new.clone(), refusal()),
        (Some(classic), new.clone(), refusal()),
        (Some(cluster(old, "v1.27.3")), new.clone(), refusal()),
        (
            None,
            by_reference(class, "v1.27.3"),
            goes("spec.topology.classRef.name", class, release),
        ),
        // The class of that name in another namespace is another class.
        (
            Some(new),
            far.clone(),
            goes("spec.topology.class", class, "fleet/docker-ferrol-1-27-v2"),
        ),
        (
            None,
            cluster(hash, "v1.27.3"),
            goes("spec.topology.class", hash, "team/docker-ferrol-1-27-v0-sha-abc"),
        ),
        (
            Some(cluster("docker-ferrol-1-27-v3", "v1.27.3")),
            cluster(class, "v1.27.3"),
            with(refusal(), "cluster stack version goes back. Got v2, had v3"),
        ),
    ];
    for (before, after, expected) in table {
        let verdict = judged(before.as_ref(), &after, &going(Some("v1.27.3")));
        assert_eq!(verdict, expected, "{before:?} to {after}");
    }
    let manually = "no Kubernetes version set in status of clusterStackRelease object. Cannot validate Kubernetes version. \
                    Check out the ClusterStackReleaseObject team/docker-ferrol-1-27-v2 manually";
    let unfinished = judged(None, &cluster(class, "v1.27.3"), &going(None));
    assert_eq!(unfinished, with(refusal(), manually));
}

#[test]
fn clusters_that_have_the_class_of_a_release_that_goes_are_as_free_as_before() {
    let class = "docker-ferrol-1-27-v1";
    let have = cluster(class, "v1.27.2");
    for after in [cluster(class, "v1.27.3"), by_reference(class, "v1.27.3")] {
        assert_eq!(
            judged(Some(&have), &after, &going(Some("v1.27.3"))),
            allowed(),
            "{after}"
        );
    }
    let leaves = cluster("docker-ferrol-1-27-v2", "v1.27.3");
    assert_eq!(judged(Some(&have), &leaves, &found("v1.27.3")), allowed());
}

#[test]
fn what_the_contract_refuses_is_refused_in_its_words_while_the_release_goes_too() {
    let going = going(Some("v1.27.3"));
    let (old, new) = (
        cluster("docker-ferrol-1-27-v1", "v1.27.3"),
        cluster("docker-scs-1-27-v1", "v1.27.3"),
    );
    for (before, after) in [
        (None, cluster("docker-ferrol-1-27-v1", "v1.27.4")),
        (Some(&old), cluster("docker-ferrol-1-27-v2", "v1.27.4")),
        (Some(&old), new),
    ] {
        let usual = judged(before, &after, &found("v1.27.3"));
        assert!(usual.refusal.is_some(), "{after}");
        assert_eq!(judged(before, &after, &going), usual, "{before:?} to {after}");
    }
}

#[test]
fn a_class_that_nobody_has_seen_does_not_open_the_way_to_another_stack() {
    let (old, new) = (
        cluster("docker-ferrol-1-27-v1", "v1.27.3"),
        cluster("docker-ferrol-1-29-v1", "v1.29.1"),
    );
    let verdict = judged(Some(&old), &new, &ReleaseSight::Missing);
    assert_eq!(verdict.refusal.map(|refusal| refusal.code), Some(422));
    assert_eq!(verdict.warnings.len(), 1, "{:?}", verdict.warnings);
}

#[test]
fn the_version_is_refused_before_the_class() {
    let (old, new) = (
        cluster("docker-ferrol-1-27-v1", "v1.27.3"),
        cluster("docker-scs-1-27-v1", "v1.27.3"),
    );
    let verdict = judged(Some(&old), &new, &found("v1.27.9"));
    assert_eq!(verdict.refusal.map(|refusal| refusal.code), Some(403));
}

#[test]
fn going_back_to_an_older_version_of_a_stack_is_told_and_allowed() {
    let way = |from: &str, to: &str| {
        let (old, new) = (cluster(from, "v1.27.3"), cluster(to, "v1.27.3"));
        judged(Some(&old), &new, &found("v1.27.3"))
    };
    let back = warned(&["cluster stack version goes back. Got v9, had v10"]);
    assert_eq!(way("docker-ferrol-1-27-v10", "docker-ferrol-1-27-v9"), back);
    assert_eq!(way("docker-ferrol-1-27-v10", "docker-ferrol-1-28-v1"), allowed());
    let hashes = way("docker-ferrol-1-27-v0-sha.b", "docker-ferrol-1-27-v0-sha.a");
    assert_eq!(hashes, allowed(), "hashes have no order");
}

#[test]
fn no_rule_applies_to_clusters_of_others_and_to_other_changes() {
    let ours = cluster("docker-ferrol-1-27-v1", "v1.27.3");
    let with = |key: &str, value: Value| {
        let mut cluster = ours.clone();
        cluster["metadata"] = json!({ key: value });
        cluster
    };
    let wrong = with("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let mut terminating = wrong.clone();
    terminating["spec"]["topology"]["version"] = json!("v1.99.0");
    let respelled = by_reference("docker-ferrol-1-27-v1", "v1.27.3");
    let classic = json!({"spec": {}});
    let foreign = cluster("quick-start", "v1.27.3");
    let table = [
        (None, &foreign),
        (None, &classic),
        (Some(&foreign), &foreign),
        (Some(&classic), &classic),
        (Some(&classic), &foreign),
        (Some(&ours), &classic),
        (Some(&ours), &ours),
        (Some(&ours), &wrong),
        (Some(&ours), &terminating),
        (Some(&ours), &respelled),
    ];
    for (before, after) in table {
        let change = ClusterChange::of("web", "team", before, after);
        assert_eq!(change.release(), None, "{before:?} {after}");
        assert_eq!(change.verdict(None), allowed(), "{before:?} {after}");
    }
}

#[test]
fn a_cluster_that_had_no_class_is_judged_like_a_new_one() {
    let (classic, ours) = (json!({"spec": {}}), cluster("docker-ferrol-1-27-v1", "v1.27.3"));
    assert_eq!(judged(Some(&classic), &ours, &found("v1.27.3")), allowed());
    let other = judged(Some(&classic), &ours, &found("v1.27.4"));
    assert_eq!(other.refusal.map(|refusal| refusal.code), Some(403));
}

#[test]
fn the_release_is_looked_for_where_the_class_is() {
    let mut after = cluster("docker-ferrol-1-27-v0-sha.abc", "v1.27.3");
    let place = |after: &Value| {
        let place = ClusterChange::of("web", "team", None, after).release();
        place.map(|place| (place.namespace, place.tag.to_string()))
    };
    let tag = "docker-ferrol-1-27-v0-sha-abc".to_owned();
    assert_eq!(place(&after), Some(("team".to_owned(), tag.clone())));
    after["spec"]["topology"]["classNamespace"] = json!("fleet");
    assert_eq!(place(&after), Some(("fleet".to_owned(), tag)));
    assert_eq!(place(&cluster("quick-start", "v1.27.3")), None);
}

fn used(by: &[(&str, &[&str])]) -> BTreeMap<crds::names::ReleaseTag, BTreeSet<String>> {
    by.iter()
        .map(|(tag, clusters)| {
            let clusters = clusters.iter().map(|cluster| (*cluster).to_owned()).collect();
            (tag.parse().expect("a tag"), clusters)
        })
        .collect()
}

fn stack(channel: &str, versions: &[&str]) -> crds::ClusterStackSpec {
    let spec = json!({
        "provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", "channel": channel, "versions": versions,
    });
    serde_json::from_value(spec).expect("a spec")
}

#[test]
fn a_stack_is_used_by_clusters_of_its_channel_and_of_the_versions_that_it_lists() {
    let used = used(&[
        ("docker-ferrol-1-27-v1", &["fleet/b", "fleet/a"]),
        ("docker-ferrol-1-27-v2", &["team/c"]),
        ("docker-ferrol-1-27-v0-sha-abc", &["fleet/hash"]),
        ("docker-ferrol-1-27-v0-alpha-1", &["fleet/alpha"]),
        ("docker-ferrol-1-28-v1", &["fleet/newer"]),
        ("docker-scs-1-27-v1", &["fleet/other"]),
        ("openstack-ferrol-1-27-v1", &["fleet/cloud"]),
    ]);
    let table: [(&str, &[&str], &[&str]); 5] = [
        ("stable", &[], &["fleet/a", "fleet/b", "team/c"]),
        (
            "stable",
            &["v0-sha.abc"],
            &["fleet/a", "fleet/b", "fleet/hash", "team/c"],
        ),
        ("sha", &[], &["fleet/hash"]),
        ("custom", &[], &["fleet/alpha", "fleet/hash"]),
        ("beta", &[], &[]),
    ];
    for (channel, versions, expected) in table {
        let users = users_of_stack(&stack(channel, versions), &used);
        let users: Vec<&str> = users.iter().map(String::as_str).collect();
        assert_eq!(users, expected, "{channel} {versions:?}");
    }
}

#[test]
fn a_release_is_used_by_clusters_of_its_class_whatever_other_classes_there_are() {
    let used = used(&[
        ("docker-ferrol-1-27-v0-sha-abc", &["fleet/hash"]),
        ("docker-ferrol-1-27-v1", &["fleet/a"]),
    ]);
    let users = |name: &str| Vec::from_iter(users_of_release(name, &used));
    assert_eq!(users("docker-ferrol-1-27-v0-sha-abc"), ["fleet/hash"]);
    assert!(users("docker-ferrol-1-27-v2").is_empty());
    assert!(users("no-release-of-anybody").is_empty());
}

#[test]
fn what_clusters_use_is_not_deleted() {
    let known = |clusters: &[&str]| Users::Known(clusters.iter().map(|cluster| (*cluster).to_owned()).collect());
    let unknown = Users::Unknown {
        error: "forbidden".to_owned(),
    };
    let in_use = |kind: &str, names: &str| {
        let message = format!("can't delete {kind} as there are clusters using it: [\"{names}\"]");
        refused(400, "BadRequest", &message)
    };
    let untold = |word: &str| {
        format!(
            "cannot validate whether {word} is still in use. Watch out for potentially orphaned resources: failed to list clusters: forbidden"
        )
    };
    let (stack, release) = (InUse::Stack, InUse::Release);
    let table = [
        (stack, known(&[]), allowed()),
        (stack, known(&["fleet/b", "fleet/a"]), in_use("ClusterStack", "a, b")),
        (stack, unknown.clone(), warned(&[&untold("clusterstack")])),
        (release, known(&[]), allowed()),
        (release, known(&["fleet/a"]), in_use("ClusterStackRelease", "a")),
        (
            release,
            known(&["team/a", "fleet/b"]),
            in_use("ClusterStackRelease", "b, team/a"),
        ),
        (release, unknown, warned(&[&untold("clusterstackrelease")])),
    ];
    for (of, users, expected) in table {
        assert_eq!(deletion(of, "fleet", &users), expected, "{of:?} {users:?}");
    }
}

#[test]
fn add_ons_stay_in_the_namespace_of_their_cluster() {
    let addon = |namespace: Option<&str>| json!({"spec": {"clusterRef": {"kind": "Cluster", "name": "web", "namespace": namespace}}});
    let message = "ClusterAddon.clusterstack.x-k8s.io \"cluster-addon-web\" is invalid: spec.clusterRef.namespace: Invalid value: \
                   \"fleet\": cluster and clusterAddon need to be in same namespace";
    let (own, other) = (Some("team"), Some("fleet"));
    let table = [
        (own, own, allowed()),
        (own, other, refused(422, "Invalid", message)),
        (None, other, refused(422, "Invalid", message)),
        (own, None, allowed()),
        (other, own, allowed()),
        (other, other, allowed()),
    ];
    for (before, after, expected) in table {
        let verdict = addon_update("cluster-addon-web", "team", &addon(before), &addon(after));
        assert_eq!(verdict, expected, "{before:?} to {after:?}");
    }
}
