use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::templates_of;
use crate::stack::{ActionFailure, StackAction, StackObserved, StackPlan, StackWaiting, plan};

const CLASS: &str = "docker-harbor-1-34-";

fn key(name: &str) -> String {
    format!("DockerMachineTemplate.infrastructure.cluster.x-k8s.io stacks/{name}")
}

/// A class that was left behind, with the names of its templates.
fn left(version: &str, templates: &[&str]) -> (String, Value) {
    let templates: Vec<String> = templates.iter().map(|name| key(name)).collect();
    let leftover = json!({"uid": format!("uid of {version}"), "deleting": false, "templates": templates});
    (format!("{CLASS}{version}"), leftover)
}

/// A stack that has and wants v3, with these classes of the Go operator.
fn observed(leftovers: impl IntoIterator<Item = (String, Value)>) -> StackObserved {
    let leftovers: serde_json::Map<String, Value> = leftovers.into_iter().collect();
    let spec = json!({
        "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "noProvider": true, "autoSubscribe": false,
        "versions": ["v3"],
    });
    let release = json!({
        "uid": "v3", "owner": "Us", "deleting": false, "spec": {}, "ready": true, "kubernetes_version": null,
        "digest": null, "source": null, "conditions": [],
    });
    let observed = json!({
        "name": "harbor", "namespace": "stacks", "uid": "a", "generation": 1, "deleting": false, "paused": false,
        "requested_at": null, "approved_prune": null, "labels": {}, "annotations": {}, "spec": spec, "status": {},
        "status_written_at": null, "listing": "NotAsked", "releases": {"docker-harbor-1-34-v3": release}, "used_by": {},
        "template": "NotWanted", "provider_objects": {}, "leftovers": leftovers,
    });
    serde_json::from_value(observed).expect("a look at a stack")
}

fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().expect("a time")
}

fn digests(plan: &StackPlan) -> Vec<Option<String>> {
    let orphans = plan.status.orphans.iter().flat_map(|orphans| &orphans.classes);
    orphans.map(|class| class.digest.clone()).collect()
}

/// What the status shows has been allowed to go.
fn approve_all(observed: &mut StackObserved) {
    let digests: Vec<String> = digests(&plan(observed, now())).into_iter().flatten().collect();
    // As in a file, a line each.
    observed.approved_orphans = Some(digests.join("\n"));
}

/// The classes that the plan deletes, each with the names of its templates.
fn deleted(plan: &StackPlan) -> Vec<(String, Vec<String>)> {
    let orphans = plan.actions.iter().filter_map(|action| match action {
        StackAction::DeleteOrphan { class, templates, .. } => {
            let names = templates.iter().map(|key| key.name.clone()).collect();
            Some((class.clone(), names))
        }
        _ => None,
    });
    orphans.collect()
}

#[test]
fn orphans_are_told_once_and_nothing_goes_that_nobody_allowed() {
    let mut observed = observed([left("v2", &["a", "b"])]);
    let first = plan(&observed, now());
    let orphans = first.status.orphans.clone().expect("orphans");
    assert_eq!(orphans.count, 1);
    assert_eq!(orphans.classes[0].name, "docker-harbor-1-34-v2");
    assert_eq!(
        orphans.classes[0].objects,
        ["DockerMachineTemplate a", "DockerMachineTemplate b"]
    );
    assert_eq!(deleted(&first), []);
    let told = |plan: &StackPlan| {
        plan.notes
            .iter()
            .filter(|note| note.reason == crds::events::Happening::OrphansFound)
            .count()
    };
    assert_eq!(told(&first), 1);
    observed.status = first.status.clone();
    observed.approved_orphans = Some("sha256:0123".to_owned());
    let second = plan(&observed, now());
    assert_eq!((deleted(&second), told(&second)), (vec![], 0));
    assert_eq!(second.status.orphans, first.status.orphans);
}

#[test]
fn what_is_allowed_goes_and_a_part_that_is_left_needs_no_second_word() {
    let all = [left("v1", &["a", "shared"]), left("v2", &["b", "shared"])];
    let mut observed = observed(all);
    approve_all(&mut observed);
    let both = plan(&observed, now());
    let expected =
        |version: &str, name: &str| (format!("{CLASS}{version}"), vec![name.to_owned(), "shared".to_owned()]);
    assert_eq!(deleted(&both), [expected("v1", "a"), expected("v2", "b")]);
    // Killed in between.
    observed
        .leftovers
        .as_mut()
        .expect("leftovers")
        .remove("docker-harbor-1-34-v1");
    assert_eq!(deleted(&plan(&observed, now())), [expected("v2", "b")]);
}

#[test]
fn approval_of_one_leaves_the_other_and_what_both_name() {
    let mut observed = observed([left("v1", &["a", "shared"]), left("v2", &["b", "shared"])]);
    let first = digests(&plan(&observed, now())).remove(0);
    observed.approved_orphans = first;
    assert_eq!(
        deleted(&plan(&observed, now())),
        [("docker-harbor-1-34-v1".to_owned(), vec!["a".to_owned()])]
    );
}

#[test]
fn approval_is_not_for_another_class_of_the_name_nor_for_other_templates() {
    let mut before = observed([left("v2", &["a"])]);
    approve_all(&mut before);
    assert_eq!(deleted(&plan(&before, now())).len(), 1);
    for change in [json!({"uid": "another"}), json!({"templates": [key("a"), key("b")]})] {
        let (name, mut leftover) = left("v2", &["a"]);
        for (field, value) in change.as_object().expect("fields") {
            leftover[field] = value.clone();
        }
        let mut now_there = observed([(name, leftover)]);
        now_there.approved_orphans = before.approved_orphans.clone();
        assert_eq!(deleted(&plan(&now_there, now())), [], "{change}");
    }
}

#[test]
fn class_in_use_is_told_with_its_clusters_and_cannot_be_allowed_to_go() {
    let mut observed = observed([left("v1", &[]), left("v2", &[])]);
    approve_all(&mut observed);
    let users = BTreeSet::from(["team/web".to_owned()]);
    let used_by = observed.used_by.as_mut().expect("clusters");
    used_by.insert("docker-harbor-1-34-v1".to_owned(), users);
    let plan = plan(&observed, now());
    assert_eq!(deleted(&plan), [("docker-harbor-1-34-v2".to_owned(), vec![])]);
    let orphans = plan.status.orphans.expect("orphans");
    let last = orphans.classes.last().expect("two");
    assert_eq!(
        (last.digest.as_ref(), last.used_by.as_slice()),
        (None, &["team/web".to_owned()][..])
    );
}

#[test]
fn classes_of_releases_that_are_there_or_will_be_are_no_orphans() {
    let mut observed = observed([left("v3", &[]), left("v4", &[])]);
    observed.spec.versions.push("v4".to_owned());
    let plan = plan(&observed, now());
    assert_eq!(plan.status.orphans, None);
    assert!(
        plan.actions
            .iter()
            .any(|action| matches!(action, StackAction::CreateRelease { tag, .. } if tag.ends_with("v4")))
    );
}

#[test]
fn what_releases_have_in_their_inventory_is_not_part_of_an_orphan() {
    let (name, mut leftover) = left("v2", &["a", "image"]);
    leftover["held"] = json!([key("image")]);
    let mut observed = observed([(name, leftover)]);
    approve_all(&mut observed);
    let plan = plan(&observed, now());
    assert_eq!(
        plan.status.orphans.as_ref().expect("orphans").classes[0].objects,
        ["DockerMachineTemplate a"]
    );
    assert_eq!(deleted(&plan)[0].1, ["a"]);
}

#[test]
fn before_classes_and_clusters_are_listed_the_status_stays_and_nothing_goes() {
    let mut known = observed([left("v2", &["a"])]);
    approve_all(&mut known);
    known.status = plan(&known, now()).status;
    for forget in [
        |observed: &mut StackObserved| observed.leftovers = None,
        |observed: &mut StackObserved| {
            observed.used_by = None;
        },
    ] {
        let mut blind = known.clone();
        forget(&mut blind);
        let plan = plan(&blind, now());
        assert_eq!((deleted(&plan), &plan.status.orphans), (vec![], &known.status.orphans));
    }
}

#[test]
fn refused_deletion_is_told_beside_the_class_and_does_not_make_the_stack_unready() {
    let mut observed = observed([left("v2", &["a"])]);
    approve_all(&mut observed);
    let before = plan(&observed, now()).status.conditions;
    let failure = ActionFailure {
        message: "admission webhook denied the request".to_owned(),
        attempts: 1,
        at: now(),
    };
    observed
        .failures
        .insert("ClusterClass docker-harbor-1-34-v2".to_owned(), failure);
    let plan = plan(&observed, now());
    assert_eq!(deleted(&plan), []);
    assert!(
        matches!(plan.waiting.as_slice(), [StackWaiting::OrphanDelete { .. }]),
        "{:?}",
        plan.waiting
    );
    let orphans = plan.status.orphans.expect("orphans");
    assert_eq!(
        orphans.classes[0].message.as_deref(),
        Some("admission webhook denied the request")
    );
    let ready = |conditions: &[crds::conditions::Condition]| conditions[0].status;
    assert_eq!(ready(&plan.status.conditions), ready(&before));
}

#[test]
fn status_names_twenty_and_counts_all() {
    let mut observed = observed((10..40).map(|number| left(&format!("v{number}"), &[])));
    approve_all(&mut observed);
    let plan = plan(&observed, now());
    let orphans = plan.status.orphans.as_ref().expect("orphans");
    assert_eq!(
        (orphans.count, orphans.classes.len(), deleted(&plan).len()),
        (30, 20, 20)
    );
    assert_eq!(orphans.classes[0].name, "docker-harbor-1-34-v10");
}

#[test]
fn templates_are_found_in_both_spellings_and_only_in_the_namespace_of_the_class() {
    let reference = |kind: &str, name: &str| json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": name});
    let mut elsewhere = reference("DockerMachineTemplate", "elsewhere");
    elsewhere["namespace"] = json!("other");
    let old = json!({"spec": {
        "infrastructure": {"ref": reference("DockerClusterTemplate", "cluster")},
        "controlPlane": {
            "ref": reference("KubeadmControlPlaneTemplate", "plane"),
            "machineInfrastructure": {"ref": reference("DockerMachineTemplate", "machine")},
            "machineHealthCheck": {"remediationTemplate": reference("Metal3RemediationTemplate", "repair")},
        },
        "workers": {
            "machineDeployments": [{"template": {"infrastructure": {"ref": elsewhere}, "bootstrap": {"ref": reference("KubeadmConfigTemplate", "worker")}}}],
            "machinePools": [{"template": {"infrastructure": {"ref": reference("DockerMachinePoolTemplate", "pool")}}}],
        },
        "patches": [{"definitions": [{"jsonPatches": [{"valueFrom": {"ref": reference("Nothing", "patch")}}]}]}],
    }});
    let new = json!({"spec": {
        "infrastructure": {"templateRef": reference("DockerClusterTemplate", "cluster")},
        "workers": {"machineDeployments": [{"bootstrap": {"templateRef": reference("KubeadmConfigTemplate", "worker")}}]},
    }});
    let names = |class: &Value| -> Vec<String> {
        let templates = templates_of(class, "stacks");
        templates.into_iter().map(|key| key.name).collect()
    };
    assert_eq!(names(&old), ["cluster", "pool", "machine", "worker", "plane", "repair"]);
    assert_eq!(names(&new), ["cluster", "worker"]);
    assert_eq!(names(&json!({})), Vec::<String>::new());
}
