use http::Method;
use serde_json::json;

use super::*;
use crate::stub::{self, Asked, refusal};

const OPTIONS: ApplyOptions<'static> = ApplyOptions {
    field_manager: "us",
    force: false,
    dry_run: false,
    namespace: "fleet",
    only_new: false,
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
async fn an_answer_tells_what_is_stored_and_who_else_owns_it() {
    let applied = applied(&deployment(), &OPTIONS, stored).await.unwrap();
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
async fn a_dry_run_is_asked_for_as_one() {
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
    assert_eq!(answer.await.unwrap().live.metadata.name.as_deref(), Some("web"));
}

#[tokio::test]
async fn what_is_to_be_new_names_a_version_that_no_object_has_and_a_conflict_is_the_object_that_is_there() {
    let only_new = ApplyOptions {
        only_new: true,
        ..OPTIONS
    };
    let intent = deployment();
    let made = applied(&intent, &only_new, |asked| {
        assert_eq!(asked.body["metadata"]["resourceVersion"], OF_NONE);
        stored(asked)
    });
    made.await.unwrap();
    let differs = || refusal(409, "Conflict", "the object has been modified", &json!({}));
    for answer in [conflict(), differs()] {
        let error = applied(&intent, &only_new, move |_| answer.clone()).await.unwrap_err();
        assert!(matches!(error, ApplyError::AlreadyThere), "{error:?}");
    }
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
async fn a_namespace_that_an_object_names_whose_kind_has_none_is_stepped_over() {
    let metadata = json!({ "name": "extra", "namespace": "elsewhere" });
    let intent = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
    let answer = applied(&intent, &OPTIONS, |asked| {
        assert_eq!(asked.path, "/api/v1/namespaces/extra");
        (200, asked.body.clone())
    });
    assert_eq!(answer.await.unwrap().live.metadata.name.as_deref(), Some("extra"));
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

fn conflict() -> (u16, Value) {
    let details = json!({ "causes": [
        { "reason": "FieldManagerConflict", "field": ".spec.replicas", "message": "conflict with \"scaler\" using apps/v1" },
        { "reason": "FieldManagerConflict", "field": ".spec.paused",
          "message": "conflict with \"kubectl\" with subresource \"scale\" using apps/v1 at 2026-01-01T00:00:00Z" },
    ] });
    refusal(409, "Conflict", "Apply failed with 2 conflicts", &details)
}

/// Refusals as an API server of Kubernetes 1.36 words them, what we say before its words, and the class.
fn refusals() -> Vec<((u16, Value), &'static str, Class)> {
    let none = json!({});
    let fixed = json!({ "reason": "FieldValueInvalid", "field": "spec.selector", "message": "Invalid value: {}: field is immutable" });
    let lacking = json!({ "reason": "FieldValueRequired", "field": "spec.template", "message": "Required value" });
    let ending =
        json!({ "reason": "NamespaceTerminating", "field": "metadata.namespace", "message": "is being terminated" });
    let causes = |causes: &[&Value]| json!({ "causes": causes });
    let namespace = json!({ "name": "fleet", "kind": "namespaces" });
    let wrong_type = "failed to create typed patch object (/web; apps/v1): .spec.replicas: expected numeric";
    vec![
        (conflict(), "", Class::Terminal),
        (
            refusal(409, "Conflict", "the object has been modified", &none),
            "failed to apply for now: ",
            Class::Transient,
        ),
        (
            refusal(422, "Invalid", "one", &causes(&[&fixed])),
            "a field cannot be changed: ",
            Class::Terminal,
        ),
        (
            refusal(422, "Invalid", "two", &causes(&[&fixed, &lacking])),
            "the object is refused: ",
            Class::Terminal,
        ),
        (
            refusal(400, "BadRequest", "strict decoding error", &none),
            "the object is refused: ",
            Class::Terminal,
        ),
        (
            refusal(500, "", wrong_type, &none),
            "the object is refused: ",
            Class::Terminal,
        ),
        (
            refusal(403, "Forbidden", "cannot patch", &namespace),
            "not allowed: ",
            Class::Transient,
        ),
        (
            refusal(403, "Forbidden", "ending", &causes(&[&ending])),
            "the namespace is being deleted: ",
            Class::Waiting,
        ),
        (
            refusal(404, "NotFound", "namespaces \"fleet\" not found", &namespace),
            "the namespace does not exist: ",
            Class::Waiting,
        ),
        (
            refusal(429, "TooManyRequests", "slow down", &none),
            "failed to apply for now: ",
            Class::Transient,
        ),
        (
            refusal(500, "InternalError", "failed calling webhook", &none),
            "failed to apply for now: ",
            Class::Transient,
        ),
    ]
}

#[tokio::test]
async fn refusals_are_sorted_by_what_helps() {
    for (answer, prefix, class) in refusals() {
        let expected = format!("{prefix}{}", answer.1["message"].as_str().unwrap());
        let error = applied(&deployment(), &OPTIONS, move |_| answer.clone())
            .await
            .unwrap_err();
        assert_eq!((error.to_string(), error.class()), (expected, class));
    }
}

#[tokio::test]
async fn a_kind_that_went_is_waited_for_and_discovery_is_told() {
    let mut readings = 0;
    let client = stub::client(move |asked| {
        readings += usize::from(asked.path == "/apis");
        assert!(readings <= 2, "discovery is read again once");
        stub::discovery(asked).unwrap_or_else(|| {
            refusal(
                404,
                "NotFound",
                "the server could not find the requested resource",
                &json!({}),
            )
        })
    });
    let discovery = Discovery::new(client.clone());
    let error = apply(&client, &discovery, &deployment(), &OPTIONS).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kind Deployment in apps/v1 is not served; install its CRD"
    );
    assert_eq!(error.class(), Class::Waiting);
    assert!(
        discovery
            .resolve(&GroupVersionKind::gvk("apps", "v2", "Deployment"))
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_conflict_names_managers_and_fields() {
    let error = applied(&deployment(), &OPTIONS, |_| conflict()).await.unwrap_err();
    let ApplyError::Conflict { conflicts, .. } = error else {
        panic!("{error}")
    };
    let conflicts: Vec<_> = conflicts
        .iter()
        .map(|conflict| (conflict.manager.as_str(), conflict.field.as_str()))
        .collect();
    assert_eq!(conflicts, [("kubectl", ".spec.paused"), ("scaler", ".spec.replicas")]);
}

/// It names the fields that may change, and none that may not.
#[tokio::test]
async fn what_an_api_server_says_of_a_stateful_set_that_is_fixed_is_told_as_a_field_that_cannot_be_changed() {
    let words = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    let cause = json!({ "reason": "FieldValueForbidden", "field": "spec", "message": words });
    let answer = refusal(422, "Invalid", words, &json!({ "causes": [cause] }));
    let error = applied(&deployment(), &OPTIONS, move |_| answer.clone())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ApplyError::Immutable { fields, .. } if *fields == ["spec"]),
        "{error:?}"
    );
}
