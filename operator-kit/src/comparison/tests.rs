use serde_json::json;

use super::*;

#[test]
fn what_the_api_server_keeps_for_itself_is_no_difference() {
    let live = json!({
        "metadata": { "name": "a", "resourceVersion": "1", "generation": 1, "uid": "u", "creationTimestamp": "t", "managedFields": [] },
        "spec": { "x": 1 },
        "status": { "ready": true }
    });
    let dry_run = json!({
        "metadata": { "name": "a", "resourceVersion": "2", "generation": 2, "managedFields": [{}] },
        "spec": { "x": 1.0, "unset": null }
    });
    assert_eq!(compare(&dry_run, &live), Difference::default());
}

#[test]
fn what_conversion_notes_is_no_difference_and_any_other_annotation_is() {
    let converted = |status: &str, mine: &str| json!({ "metadata": { "annotations": { "cluster.x-k8s.io/conversion-data": status, "mine": mine } } });
    assert_eq!(
        compare(&converted("old", "1"), &converted("new", "1")),
        Difference::default()
    );
    let difference = compare(&converted("old", "1"), &converted("new", "2"));
    assert_eq!(difference.pointers, ["/metadata/annotations/mine"]);
    let unconverted = json!({ "metadata": { "annotations": { "mine": "1" } } });
    assert_eq!(compare(&unconverted, &converted("new", "1")), Difference::default());
    assert_eq!(compare(&converted("old", "1"), &unconverted), Difference::default());
}

#[test]
fn differences_are_named_by_pointers() {
    let live = json!({
        "metadata": { "labels": { "a/b": "1", "gone": "x" }, "generation": 3 },
        "spec": { "status": "inner", "list": [1, 2], "items": [{ "name": "a", "v": 1 }] }
    });
    let dry_run = json!({
        "metadata": { "labels": { "a/b": "2" }, "generation": 4 },
        "spec": { "status": "changed", "list": [1, 2, 3], "items": [{ "name": "a", "v": 2 }], "new": true }
    });
    let difference = compare(&dry_run, &live);
    assert_eq!(
        difference.pointers,
        [
            "/metadata/labels/a~1b",
            "/metadata/labels/gone",
            "/spec/items/0/v",
            "/spec/list",
            "/spec/new",
            "/spec/status"
        ]
    );
    assert_eq!(difference.count, 6);
}

#[test]
fn the_list_of_pointers_is_bounded_and_the_count_is_not() {
    let wanted: Value = (0..50)
        .map(|number| (format!("f{number:02}"), json!(number)))
        .collect::<Map<_, _>>()
        .into();
    let difference = compare(&wanted, &json!({}));
    assert_eq!((difference.pointers.len(), difference.count), (LISTED_POINTERS, 50));
}

#[test]
fn drift_ignores_what_others_add() {
    let intent = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "replicas": 2, "containers": [{ "name": "web", "image": "i:1" }], "none": null }
    });
    let live = json!({
        "metadata": { "labels": { "app": "web", "more": "1" }, "uid": "u" },
        "spec": {
            "replicas": 2, "paused": false,
            "containers": [{ "name": "proxy", "image": "p" }, { "name": "web", "image": "i:1", "policy": "Always" }]
        }
    });
    assert!(drift(&intent, &live).is_empty());
}

#[test]
fn drift_sees_every_field_of_ours_that_differs() {
    let intent = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "replicas": 2, "containers": [{ "name": "web", "image": "i:1" }], "empty": {} }
    });
    let live = json!({
        "metadata": { "labels": {} },
        "spec": { "replicas": 3, "containers": [{ "name": "web", "image": "i:2" }] }
    });
    assert_eq!(
        drift(&intent, &live).pointers,
        [
            "/metadata/labels/app",
            "/spec/containers/0/image",
            "/spec/empty",
            "/spec/replicas"
        ]
    );
}

#[test]
fn same_meaning_knows_no_ignored_fields() {
    assert!(same_meaning(&json!({ "a": 1, "b": null }), &json!({ "a": 1.0 })));
    assert!(!same_meaning(&json!({ "status": 1 }), &json!({ "status": 2 })));
    assert!(!same_meaning(
        &json!({ "metadata": { "uid": 1 } }),
        &json!({ "metadata": { "uid": 2 } })
    ));
    assert!(!same_meaning(&Value::Null, &json!({})));
}
