use http::Method;
use serde_json::json;

use super::*;
use crate::stub::{self, Asked, refusal};

const OPTIONS: ApplyOptions<'static> = ApplyOptions {
    field_manager: "us",
    force: false,
    dry_run: false,
    namespace: "fleet",
    known_version: Some("7"),
};

fn deployment() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": { "replicas": 2 } })
}

async fn applied(
    intent: &Value,
    options: &ApplyOptions<'_>,
    answer: impl Fn(&Asked) -> (u16, Value) + Send + 'static,
) -> Result<AppliedObject, ApplyError> {
    let client = stub::client(move |asked| stub::discovery(asked).unwrap_or_else(|| answer(asked)));
    apply(&client, &Discovery::new(client.clone()), intent, options).await
}

fn stored(asked: &Asked) -> (u16, Value) {
    assert_eq!(asked.method, Method::PATCH);
    assert_eq!(asked.path, "/apis/apps/v1/namespaces/fleet/deployments/web");
    let mut object = asked.body.clone();
    object["metadata"]["resourceVersion"] = json!("8");
    object["metadata"]["managedFields"] = json!([
        { "manager": "us", "operation": "Apply", "fieldsV1": { "f:spec": { "f:replicas": {} } } },
        { "manager": "scaler", "operation": "Update", "fieldsV1": { "f:spec": { "f:replicas": {} } } },
    ]);
    (200, object)
}

#[tokio::test]
async fn an_answer_tells_what_is_stored_whether_it_changed_and_who_else_owns_it() {
    let applied = applied(&deployment(), &OPTIONS, stored).await.unwrap();
    assert_eq!(applied.changed, Some(true));
    assert_eq!(applied.live.metadata.managed_fields, None);
    assert_eq!(
        applied
            .owners
            .iter()
            .map(|owner| owner.manager.as_str())
            .collect::<Vec<_>>(),
        ["scaler"]
    );
}

#[tokio::test]
async fn a_known_version_that_stays_is_no_change_and_a_dry_run_cannot_tell() {
    let same = ApplyOptions {
        known_version: Some("8"),
        ..OPTIONS
    };
    assert_eq!(
        applied(&deployment(), &same, stored).await.unwrap().changed,
        Some(false)
    );
    let dry_run = ApplyOptions {
        dry_run: true,
        ..OPTIONS
    };
    let intent = deployment();
    let answer = applied(&intent, &dry_run, |asked| {
        assert!(
            asked.query.contains("dryRun=All")
                && asked.query.contains("fieldManager=us")
                && !asked.query.contains("force")
        );
        stored(asked)
    });
    assert_eq!(answer.await.unwrap().changed, None);
}

#[tokio::test]
async fn an_object_for_another_namespace_is_refused_without_asking() {
    let mut intent = deployment();
    intent["metadata"]["namespace"] = json!("elsewhere");
    let error = applied(&intent, &OPTIONS, |asked| unreachable!("{asked:?}"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ApplyError::NamespaceDiffers { found, wanted } if found == "elsewhere" && wanted == "fleet")
    );
    assert_eq!(error.class(), Class::Terminal);
}

#[tokio::test]
async fn what_is_no_object_is_refused_without_asking() {
    for (missing, intent) in [
        ("apiVersion", json!([])),
        ("kind", json!({ "apiVersion": "v1" })),
        (
            "metadata.name",
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": 5 } }),
        ),
    ] {
        let error = applied(&intent, &OPTIONS, |asked| unreachable!("{asked:?}"))
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("unable to apply an object without {missing}")
        );
    }
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_waited_for() {
    let mut intent = deployment();
    intent["kind"] = json!("Missing");
    let error = applied(&intent, &OPTIONS, |asked| unreachable!("{asked:?}"))
        .await
        .unwrap_err();
    assert!(matches!(&error, ApplyError::KindMissing { gvk } if gvk.kind == "Missing"));
    assert_eq!(error.class(), Class::Waiting);
}

/// Refusals as an API server of Kubernetes 1.36 words them.
fn refusals() -> Vec<(&'static str, (u16, Value), &'static str, Class)> {
    let conflict = json!({ "causes": [
        { "reason": "FieldManagerConflict", "message": "conflict with \"scaler\" using apps/v1", "field": ".spec.replicas" },
        { "reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" with subresource \"scale\" using apps/v1 at 2026-01-01T00:00:00Z", "field": ".spec.paused" },
    ] });
    let immutable = json!({ "causes": [{ "reason": "FieldValueInvalid", "message": "Invalid value: {}: field is immutable", "field": "spec.selector" }] });
    let mixed = json!({ "causes": [
        { "reason": "FieldValueInvalid", "message": "Invalid value: {}: field is immutable", "field": "spec.selector" },
        { "reason": "FieldValueRequired", "message": "Required value", "field": "spec.template" },
    ] });
    vec![
        (
            "conflict",
            refusal(409, "Conflict", "Apply failed with 2 conflicts", &conflict),
            "conflict with kubectl, scaler: Apply failed with 2 conflicts",
            Class::Terminal,
        ),
        (
            "other conflict",
            refusal(409, "Conflict", "the object has been modified", &json!({})),
            "failed to apply for now: the object has been modified",
            Class::Transient,
        ),
        (
            "immutable",
            refusal(422, "Invalid", "spec.selector: field is immutable", &immutable),
            "a field cannot be changed: spec.selector: field is immutable",
            Class::Terminal,
        ),
        (
            "invalid",
            refusal(422, "Invalid", "two faults", &mixed),
            "the object is refused: two faults",
            Class::Terminal,
        ),
        (
            "malformed",
            refusal(400, "BadRequest", "strict decoding error", &json!({})),
            "the object is refused: strict decoding error",
            Class::Terminal,
        ),
        (
            "forbidden",
            refusal(403, "Forbidden", "cannot patch", &json!({ "kind": "deployments" })),
            "not allowed: cannot patch",
            Class::Transient,
        ),
        (
            "terminating",
            refusal(
                403,
                "Forbidden",
                "is being terminated",
                &json!({ "causes": [{ "reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace" }] }),
            ),
            "the namespace is being deleted: is being terminated",
            Class::Waiting,
        ),
        (
            "no namespace",
            refusal(
                404,
                "NotFound",
                "namespaces \"fleet\" not found",
                &json!({ "name": "fleet", "kind": "namespaces" }),
            ),
            "the namespace does not exist: namespaces \"fleet\" not found",
            Class::Waiting,
        ),
        (
            "no kind",
            refusal(
                404,
                "NotFound",
                "the server could not find the requested resource",
                &json!({}),
            ),
            "the kind Deployment in apps/v1 is not served; install its CRD",
            Class::Waiting,
        ),
        (
            "overload",
            refusal(429, "TooManyRequests", "slow down", &json!({})),
            "failed to apply for now: slow down",
            Class::Transient,
        ),
        (
            "webhook",
            refusal(500, "InternalError", "failed calling webhook", &json!({})),
            "failed to apply for now: failed calling webhook",
            Class::Transient,
        ),
    ]
}

#[tokio::test]
async fn refusals_are_sorted_by_what_helps() {
    for (case, answer, message, class) in refusals() {
        let error = applied(&deployment(), &OPTIONS, move |_| answer.clone())
            .await
            .unwrap_err();
        assert_eq!((error.to_string().as_str(), error.class()), (message, class), "{case}");
    }
}

#[tokio::test]
async fn a_conflict_names_managers_and_fields() {
    let (_, answer, ..) = refusals().swap_remove(0);
    let error = applied(&deployment(), &OPTIONS, move |_| answer.clone())
        .await
        .unwrap_err();
    let ApplyError::Conflict { conflicts, .. } = error else {
        panic!("{error}")
    };
    let conflicts: Vec<_> = conflicts
        .iter()
        .map(|conflict| (conflict.manager.as_str(), conflict.field.as_str()))
        .collect();
    assert_eq!(conflicts, [("kubectl", ".spec.paused"), ("scaler", ".spec.replicas")]);
}
