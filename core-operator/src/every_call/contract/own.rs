//! An object of ours is written as the operator writes it: created, replaced, its status replaced, merged into, deleted at the version that was read.

use serde_json::{Value, json};

use super::parts::template;
use super::requests::{LAST, METADATA, Step, apply, create, delete, merge, read, replace};

/// A release with this metadata, which asks for this image.
fn release(metadata: Value, image: &str) -> Value {
    let mut release = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
        "spec": { "providerRef": {
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackRelease", "name": image,
        } },
    });
    release["metadata"] = metadata;
    release
}

pub(super) fn created() -> Vec<Step> {
    let metadata = json!({ "name": "one", "labels": { "stack": "harbor" }, "finalizers": ["contract.x-k8s.io/kept"] });
    vec![
        read("an object that is not there is not found", "clusterstackreleases/one"),
        create(
            "an object is created",
            "clusterstackreleases?fieldManager=contract",
            release(metadata.clone(), "small"),
        ),
        create(
            "it is created once",
            "clusterstackreleases?fieldManager=contract",
            release(metadata.clone(), "large"),
        ),
        create(
            "nothing is created in a namespace that is not there",
            "nowhere:clusterstackreleases",
            release(metadata, "small"),
        ),
        read("it is read", "clusterstackreleases/one"),
        read("its metadata are read", "clusterstackreleases/one").accepting(METADATA),
    ]
}

/// The object, and its status.
const AT: &str = "clusterstackreleases/one?fieldManager=contract";
const STATUS: &str = "clusterstackreleases/one/status?fieldManager=contract";

const UID: &str = "{uid of clusterstackreleases/one}";
const NEWEST: &str = "{version of clusterstackreleases/one}";
const STALE: &str = "{first version of clusterstackreleases/one}";

/// As it is written back at this version.
fn written(version: &str, image: &str) -> Value {
    let metadata = json!({
        "name": "one", "resourceVersion": version, "labels": { "stack": "harbor" }, "finalizers": ["contract.x-k8s.io/kept"],
    });
    release(metadata, image)
}

fn with_status(version: &str, ready: bool) -> Value {
    let mut object = written(version, "of the status");
    object["status"] = json!({ "ready": ready, "kubernetesVersion": "v1.34.0" });
    object
}

fn without_version() -> Value {
    release(json!({ "name": "one" }), "small")
}

pub(super) fn replaced() -> Vec<Step> {
    vec![
        replace("a replaced spec is another generation", AT, written(NEWEST, "large")),
        replace("what changes nothing makes no version", AT, written(NEWEST, "large")),
        replace("an old version replaces nothing", AT, written(STALE, "small")),
        replace("no version replaces nothing", AT, without_version()),
        replace(
            "a status is stored without the spec beside it",
            STATUS,
            with_status(NEWEST, true),
        ),
        replace(
            "a status that is the same makes no version",
            STATUS,
            with_status(NEWEST, true),
        ),
        replace(
            "a status of an old version is not stored",
            STATUS,
            with_status(STALE, false),
        ),
        replace("a status of no version is not stored", STATUS, without_version()),
        replace(
            "who replaces the object leaves its status alone",
            AT,
            written(NEWEST, "medium"),
        ),
        replace(
            "what is not there is not replaced",
            "clusterstackreleases/two",
            release(json!({ "name": "two", "resourceVersion": "1" }), "small"),
        ),
        replace(
            "what is not there has no status",
            "clusterstackreleases/two/status",
            release(json!({ "name": "two", "resourceVersion": "1" }), "small"),
        ),
    ]
}

pub(super) fn merged() -> Vec<Step> {
    let note = |version: &str, note: Value| json!({ "metadata": { "resourceVersion": version, "annotations": { "note": note } } });
    vec![
        merge("an old version is not merged into", AT, note(STALE, json!("old"))),
        merge("metadata are of no generation", AT, note(NEWEST, json!("new"))),
        merge("metadata alone are answered", AT, note(NEWEST, Value::Null)).accepting(METADATA),
        merge(
            "what changes nothing makes no version either",
            AT,
            note(NEWEST, Value::Null),
        ),
        merge(
            "a status is not merged into",
            AT,
            json!({ "status": { "ready": false } }),
        ),
        merge(
            "what is not there is not merged into",
            "clusterstackreleases/two",
            json!({ "metadata": { "finalizers": [] } }),
        ),
    ]
}

pub(super) fn deleted() -> Vec<Step> {
    let metadata = || json!({ "name": "one" });
    let exactly = |uid: &str, version: &str| json!({ "uid": uid, "resourceVersion": version });
    let at = "clusterstackreleases/one";
    let free = json!({ "metadata": { "resourceVersion": NEWEST, "finalizers": [] } });
    let last = json!({ "name": LAST, "labels": { "mark": "last" } });
    vec![
        apply(
            "what is not asked for any more goes",
            "dockerclustertemplates/two?fieldManager=contract",
            template(json!({ "name": "two" }), json!({ "imageTag": "v1" })),
        ),
        delete("an object goes at once", "dockerclustertemplates/three", Value::Null),
        delete(
            "another object of the name is not deleted",
            at,
            exactly("00000000-0000-0000-0000-000000000000", NEWEST),
        ),
        delete("an object that has changed is not deleted", at, exactly(UID, STALE)),
        delete("finalizers keep an object", at, exactly(UID, NEWEST)),
        delete("it is deleted once", at, exactly(UID, NEWEST)),
        replace(
            "it still has a status",
            STATUS,
            json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
                "metadata": { "name": "one", "resourceVersion": NEWEST }, "spec": {}, "status": { "ready": false },
            }),
        ),
        merge("without finalizers it goes", AT, free),
        read("it is gone", at),
        delete("what is gone is not deleted", at, exactly(UID, NEWEST)),
        create(
            "another object of the name",
            "clusterstackreleases?fieldManager=contract",
            release(metadata(), "small"),
        ),
        apply(
            "the last object of one kind",
            "dockerclustertemplates/zz-last?fieldManager=contract",
            template(last, json!({ "imageTag": "v1" })),
        ),
        create(
            "the last object",
            "clusterstackreleases?fieldManager=contract",
            release(json!({ "name": LAST }), "small"),
        ),
    ]
}
