#![expect(
    clippy::needless_pass_by_value,
    reason = "a table of schemas reads better without ampersands"
)]

use serde_json::{Value, json};

use super::{losses, refusal};
use crate::objects::OwnerKind;

/// A CRD with these versions, each with the schema of its objects; the first is the one that objects are stored in.
fn crd(versions: &[(&str, Value)]) -> Value {
    let versions = versions.iter().enumerate().map(|(number, (name, schema))| {
        json!({
            "name": name, "served": true, "storage": number == 0,
            "schema": { "openAPIV3Schema": schema },
        })
    });
    json!({ "spec": { "versions": versions.collect::<Vec<_>>() } })
}

fn with_stored(mut crd: Value, stored: &[&str]) -> Value {
    crd["status"]["storedVersions"] = json!(stored);
    crd
}

fn with_webhook(mut crd: Value) -> Value {
    crd["spec"]["conversion"]["strategy"] = json!("Webhook");
    crd
}

/// An object whose spec has this schema.
fn spec(schema: Value) -> Value {
    json!({ "type": "object", "properties": {
        "apiVersion": { "type": "string" }, "kind": { "type": "string" }, "metadata": { "type": "object" }, "spec": schema,
    } })
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn lost(before: &Value, after: &Value) -> Vec<String> {
    losses(before, after).into_iter().collect()
}

/// Both ways of one pair of schemas of `spec`: what the change loses, and what the way back loses.
#[test]
fn a_change_of_a_schema_loses_what_it_no_longer_describes() {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let map = json!({ "type": "object", "additionalProperties": text() });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let both = || json!({ "size": text(), "color": text() });
    let of_any_type = json!({ "x-kubernetes-int-or-string": true });
    let embedded = json!({ "type": "object", "x-kubernetes-embedded-resource": true, "properties": both() });
    let refused = json!({ "type": "object", "required": ["color"], "properties": {
        "size": { "type": "string", "maxLength": 1, "enum": ["s"] }, "color": text(),
    } });
    for (before, after, forth, back) in [
        (object(both()), object(both()), vec![], vec![]),
        (
            object(both()),
            object(json!({ "size": text() })),
            vec!["v1.spec.color would be dropped"],
            vec![],
        ),
        (
            list(object(both())),
            list(object(json!({ "color": text() }))),
            vec!["v1.spec[].size would be dropped"],
            vec![],
        ),
        (
            json!({ "type": "object", "additionalProperties": object(both()) }),
            json!({ "type": "object", "additionalProperties": object(json!({ "color": text() })) }),
            vec!["v1.spec.*.size would be dropped"],
            vec![],
        ),
        (
            object(both()),
            map.clone(),
            vec![],
            vec!["v1.spec is a map, whose other keys would be dropped"],
        ),
        (
            object(both()),
            open.clone(),
            vec![],
            vec!["v1.spec keeps fields that nobody described, which would be dropped"],
        ),
        (
            map,
            open,
            vec![],
            vec!["v1.spec keeps fields that nobody described, which would be dropped"],
        ),
        (
            object(json!({ "size": text() })),
            object(json!({ "size": { "type": "integer" } })),
            vec!["v1.spec.size is string and becomes integer"],
            vec!["v1.spec.size is integer and becomes string"],
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "number" }),
            vec![],
            vec!["v1.spec is number and becomes integer"],
        ),
        (
            text(),
            of_any_type,
            vec![],
            vec!["v1.spec is an integer or a string and becomes string"],
        ),
        (
            embedded,
            object(both()),
            vec!["v1.spec is a whole object, whose apiVersion, kind and metadata would be dropped"],
            vec![],
        ),
        // What later writes may not say is stored all the same.
        (object(both()), refused, vec![], vec![]),
    ] {
        let (before, after) = (crd(&[("v1", spec(before))]), crd(&[("v1", spec(after))]));
        assert_eq!(lost(&before, &after), forth, "{before} {after}");
        assert_eq!(lost(&after, &before), back, "back: {after} {before}");
    }
}

#[test]
fn the_api_server_keeps_the_head_of_an_object_without_a_description() {
    let bare = |schema: Value| crd(&[("v1", object(json!({ "spec": schema })))]);
    let before = crd(&[("v1", spec(text()))]);
    assert_eq!(lost(&before, &bare(text())), Vec::<String>::new());
    let head = || object(json!({ "kind": text() }));
    assert_eq!(
        lost(&bare(head()), &bare(object(json!({})))),
        ["v1.spec.kind would be dropped"]
    );
}

#[test]
fn versions_are_kept_as_long_as_objects_are_stored_in_them() {
    let whole = || spec(object(json!({ "size": text(), "color": text() })));
    let half = || spec(object(json!({ "size": text() })));
    let (old, new) = (("v1", whole()), ("v2", half()));
    let gone = "v1 would be gone, and objects are stored in it";
    let dropped = "v1 (read as v2).spec.color would be dropped";
    let both = crd(&[new.clone(), old.clone()]);
    let only = crd(std::slice::from_ref(&new));
    // Objects were stored in v1 until now.
    assert_eq!(lost(&crd(std::slice::from_ref(&old)), &only), [gone]);
    assert_eq!(lost(&crd(&[old.clone(), new.clone()]), &both), [dropped]);
    // Somebody converts them.
    let converted = with_webhook(both.clone());
    assert_eq!(
        lost(&crd(&[old.clone(), new.clone()]), &converted),
        Vec::<String>::new()
    );
    assert_eq!(lost(&with_stored(converted, &["v1", "v2"]), &both), [dropped]);
    // It has been so before.
    assert_eq!(
        lost(&with_stored(both.clone(), &["v1", "v2"]), &both),
        Vec::<String>::new()
    );
    // Nothing is stored in v1 any more.
    assert_eq!(lost(&with_stored(both.clone(), &["v2"]), &only), Vec::<String>::new());
    assert_eq!(lost(&with_stored(both, &["v1", "v2"]), &only), [gone]);
}

#[test]
fn a_loss_is_approved_by_its_digest_and_no_other_is() {
    let fields = |names: std::ops::Range<usize>| {
        let fields: serde_json::Map<String, Value> = names.map(|number| (format!("f{number}"), text())).collect();
        crd(&[("v1", spec(object(Value::Object(fields))))])
    };
    let (before, after) = (fields(0..7), fields(6..7));
    let refused = |after: &Value, approved| refusal(OwnerKind::Release, &before, after, approved);
    let words = refused(&after, None).expect("a refusal");
    let (losses, digest) = words
        .split_once(". Publish a release that keeps it")
        .and_then(|(losses, rest)| Some((losses, rest.split_once("approve-data-loss=")?.1)))
        .expect("losses and digest");
    assert_eq!(
        losses,
        "this change of the CRD would lose stored data: v1.spec.f0 would be dropped; v1.spec.f1 would be dropped; \
         v1.spec.f2 would be dropped; v1.spec.f3 would be dropped; v1.spec.f4 would be dropped; and 1 more"
    );
    assert_eq!(refused(&after, Some(digest)), None);
    assert!(refused(&fields(7..7), Some(digest)).is_some());
    assert!(refused(&after, Some("")).is_some());
    assert_eq!(refused(&before, None), None);
}

#[test]
fn who_approves_a_loss_is_told_which_object_to_annotate() {
    let field = |name: &str| crd(&[("v1", spec(object(json!({ name: text() }))))]);
    for (owner, object) in [
        (OwnerKind::Release, "ClusterStackRelease"),
        (OwnerKind::Addon, "ClusterAddon"),
    ] {
        let words = refusal(owner, &field("size"), &field("color"), None).expect("a refusal");
        let advice = format!("annotate the {object} with clusterstack.x-k8s.io/approve-data-loss=");
        assert!(words.contains(&advice), "{words}");
    }
}
