//! Objects of releases are applied, by one manager and by two, and listed by their labels.

use serde_json::{Value, json};

use super::requests::{METADATA_LIST, Step, apply, read};

/// An object of a release with these metadata and this load balancer.
pub(super) fn template(metadata: Value, balancer: Value) -> Value {
    let mut template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerClusterTemplate",
    });
    template["metadata"] = metadata;
    template["spec"]["template"]["spec"]["loadBalancer"] = balancer;
    template
}

/// By one manager.
pub(super) fn applied() -> Vec<Step> {
    let marked = |name: &str| json!({ "name": name, "labels": { "mark": "ours" } });
    let (at, tag) = (
        "dockerclustertemplates/one?fieldManager=contract&force=true",
        json!({ "imageTag": "v1" }),
    );
    let both = json!({ "imageRepository": "ours", "imageTag": "v1" });
    let (dry, two) = (
        "dockerclustertemplates/one?fieldManager=contract&force=true&dryRun=All",
        "dockerclustertemplates/two?fieldManager=contract&force=true&dryRun=All",
    );
    vec![
        apply(
            "an object is created by applying it",
            at,
            template(marked("one"), both.clone()),
        ),
        apply(
            "applying the same again makes no version",
            at,
            template(marked("one"), both),
        ),
        apply("what is applied no more goes", at, template(marked("one"), tag.clone())),
        apply(
            "a dry run answers as if",
            dry,
            template(marked("one"), json!({ "imageTag": "v2" })),
        ),
        read("a dry run changes nothing", "dockerclustertemplates/one"),
        apply(
            "a dry run answers as if it made an object",
            two,
            template(marked("two"), tag.clone()),
        ),
        read("a dry run makes nothing", "dockerclustertemplates/two"),
        apply(
            "nothing is applied to a namespace that is not there",
            "nowhere:dockerclustertemplates/one?fieldManager=contract&force=true",
            template(marked("one"), tag),
        ),
    ]
}

/// By two managers.
pub(super) fn contested() -> Vec<Step> {
    let plain = || json!({ "name": "one" });
    let tag = |tag: &str| template(plain(), json!({ "imageTag": tag }));
    let marked = |balancer: Value| template(json!({ "name": "one", "labels": { "mark": "ours" } }), balancer);
    let (polite, forced) = (
        "dockerclustertemplates/one?fieldManager=another",
        "dockerclustertemplates/one?fieldManager=another&force=true",
    );
    let ours = "dockerclustertemplates/one?fieldManager=contract";
    vec![
        apply("who wants the same owns it too", polite, tag("v1")),
        apply("who wants something else is told whose it is", polite, tag("v2")),
        apply(
            "a dry run is told so too",
            "dockerclustertemplates/one?fieldManager=another&dryRun=All",
            tag("v2"),
        ),
        apply("with force it changes hands", forced, tag("v2")),
        apply("who lost it is told so", ours, marked(json!({ "imageTag": "v1" }))),
        apply(
            "who does not want it any more leaves it",
            ours,
            marked(json!({ "imageRepository": "ours" })),
        ),
        apply(
            "it goes with its last owner",
            polite,
            template(plain(), json!({ "imageRepository": "ours" })),
        ),
    ]
}

/// Owners and finalizers are lists with more than one author.
pub(super) fn owned() -> Vec<Step> {
    let owner = || {
        json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "name": "one",
            "uid": "{uid of clusterstackreleases/one}",
        })
    };
    let balancer = || json!({ "imageTag": "v1" });
    let (ours, another) = (
        "dockerclustertemplates/owned?fieldManager=contract",
        "dockerclustertemplates/owned?fieldManager=another",
    );
    let with = |more: Value| {
        let mut metadata = more;
        metadata["name"] = "owned".into();
        template(metadata, balancer())
    };
    vec![
        apply(
            "an object has an owner",
            ours,
            with(json!({ "ownerReferences": [owner()], "finalizers": ["contract.x-k8s.io/ours"] })),
        ),
        apply(
            "and from another the same one",
            another,
            with(json!({ "ownerReferences": [owner()], "finalizers": ["contract.x-k8s.io/another"] })),
        ),
        apply("it keeps it until both are silent", ours, with(json!({}))),
        apply("then it has none", another, with(json!({}))),
    ]
}

/// Who applies says which object is meant.
pub(super) fn identified() -> Vec<Step> {
    let meant = |name: &str, uid: &str| template(json!({ "name": name, "uid": uid }), json!({ "imageTag": "v2" }));
    let stranger = "{uid of clusterstackreleases/one}";
    let (ours, nothing) = (
        "dockerclustertemplates/owned?fieldManager=contract&force=true",
        "dockerclustertemplates/nothing?fieldManager=contract&force=true",
    );
    vec![
        apply(
            "applying to what is gone makes nothing where its identity is named",
            nothing,
            meant("nothing", stranger),
        ),
        read("and there is nothing", "dockerclustertemplates/nothing"),
        apply(
            "applying to another one of that name changes nothing",
            ours,
            meant("owned", stranger),
        ),
        read("and it is as it was", "dockerclustertemplates/owned"),
        apply(
            "applying to the one that is meant changes it",
            ours,
            meant("owned", "{uid of dockerclustertemplates/owned}"),
        ),
    ]
}

/// Who applies says that no object is meant: by a version that none has.
pub(super) fn made() -> Vec<Step> {
    let new = |tag: &str| {
        template(
            json!({ "name": "new", "resourceVersion": i64::MAX.to_string() }),
            json!({ "imageTag": tag }),
        )
    };
    let (one, another, forced) = (
        "dockerclustertemplates/new?fieldManager=contract",
        "dockerclustertemplates/new?fieldManager=another",
        "dockerclustertemplates/new?fieldManager=another&force=true",
    );
    vec![
        apply(
            "an object that is to be new is made where there is none",
            one,
            new("v1"),
        ),
        apply("and refused where there is one", one, new("v1")),
        apply("also to another one, who wants something else", another, new("v2")),
        apply("and with force", forced, new("v2")),
        read("it is as it was made", "dockerclustertemplates/new"),
    ]
}

pub(super) fn listed() -> Vec<Step> {
    let marked = |name: &str, mark: &str| {
        template(
            json!({ "name": name, "labels": { "mark": mark } }),
            json!({ "imageTag": "v1" }),
        )
    };
    vec![
        apply(
            "a second object",
            "dockerclustertemplates/two?fieldManager=contract",
            marked("two", "ours"),
        ),
        apply(
            "a third object",
            "dockerclustertemplates/three?fieldManager=contract",
            marked("three", "theirs"),
        ),
        read("all are listed", "dockerclustertemplates"),
        read(
            "those with a label are listed",
            "dockerclustertemplates?labelSelector=mark",
        )
        .accepting(METADATA_LIST),
        read(
            "those without are listed",
            "dockerclustertemplates?labelSelector=%21mark",
        )
        .accepting(METADATA_LIST),
        read("a first page", "dockerclustertemplates?labelSelector=mark&limit=2").accepting(METADATA_LIST),
        read(
            "the next page",
            "dockerclustertemplates?labelSelector=mark&limit=2&continue={next page}",
        )
        .accepting(METADATA_LIST),
        read(
            "those with a value are listed",
            "dockerclustertemplates?labelSelector=mark%3Dours",
        )
        .accepting(METADATA_LIST),
    ]
}
