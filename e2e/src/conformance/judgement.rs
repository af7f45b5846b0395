//! What versions of an object say about rows of the contract. Pure.

use std::collections::{BTreeSet, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{ResourceExt, api::DynamicObject};
use serde_json::Value;

/// The finding: what was seen, or why not.
pub(super) type Verdict = Result<String, String>;

pub(super) fn status(object: &DynamicObject) -> &Value {
    object.data.get("status").unwrap_or(&Value::Null)
}

/// Whether the core operator would take the release for usable.
pub(super) fn is_ready(object: &DynamicObject) -> bool {
    status(object)["ready"].as_bool() == Some(true)
}

/// Whether somebody besides `us` has written to the object.
pub(super) fn is_noticed(object: &DynamicObject, us: &str) -> bool {
    let others = object.metadata.managed_fields.iter().flatten();
    let is_other = |manager: Option<&str>| manager.is_some_and(|manager| manager != us);
    others.into_iter().any(|entry| is_other(entry.manager.as_deref())) || !object.finalizers().is_empty()
}

/// A condition of this type.
fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let conditions = status(object)["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_)
}

/// M4: whenever there is a readiness it is a boolean.
pub(super) fn readiness_is_boolean<'a>(versions: impl IntoIterator<Item = &'a DynamicObject>) -> Verdict {
    for object in versions {
        match &status(object)["ready"] {
            Value::Null | Value::Bool(_) => {}
            other => {
                return Err(format!(
                    "status.ready was {other}, which the core operator takes for false"
                ));
            }
        }
    }
    Ok("status.ready was a boolean in every version".to_owned())
}

/// M5: the spec stays as it was made, and nobody besides us says anything about it.
pub(super) fn spec_is_ours<'a>(
    versions: impl IntoIterator<Item = &'a DynamicObject>,
    made: &Value,
    us: &str,
) -> Verdict {
    let mut seen = 0;
    for object in versions {
        seen += 1;
        let spec = object.data.get("spec").unwrap_or(&Value::Null);
        if spec != made {
            return Err(format!("spec was {made} and became {spec}"));
        }
        let entries = object.metadata.managed_fields.iter().flatten();
        let mut others = entries.filter(|entry| entry.manager.as_deref() != Some(us));
        let writes =
            |fields: &k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1| fields.0.get("f:spec").is_some();
        if let Some(entry) = others.find(|entry| entry.fields_v1.as_ref().is_some_and(writes)) {
            let manager = entry.manager.as_deref().unwrap_or_default();
            return Err(format!("the field manager {manager:?} claims fields of spec"));
        }
    }
    Ok(format!("spec was the same in {seen} versions"))
}

/// M9: all these owners are in every version.
pub(super) fn owners_stay<'a>(
    versions: impl IntoIterator<Item = &'a DynamicObject>,
    owners: &[OwnerReference],
) -> Verdict {
    let mut seen = 0;
    for object in versions {
        seen += 1;
        let there: HashSet<&str> = object
            .owner_references()
            .iter()
            .map(|owner| owner.uid.as_str())
            .collect();
        if let Some(lost) = owners.iter().find(|owner| !there.contains(owner.uid.as_str())) {
            return Err(format!("the owner reference to {} {} went", lost.kind, lost.name));
        }
    }
    Ok(format!("both were there in {seen} versions"))
}

/// S1: what the core operator repeats was told at some time.
pub(super) fn progress_is_told<'a>(versions: impl IntoIterator<Item = &'a DynamicObject>) -> Verdict {
    let mut told = BTreeSet::new();
    for object in versions {
        let status = status(object);
        for field in ["phase", "message"] {
            if status[field].as_str().is_some_and(|words| !words.is_empty()) {
                told.insert(field);
            }
        }
        match &status["progress"] {
            Value::Null => {}
            progress => {
                let total = &progress["total"];
                let is_right = progress["done"].is_u64()
                    && (total.is_null() || total.is_u64())
                    && (progress["unit"].is_null() || progress["unit"].is_string());
                if !is_right {
                    return Err(format!(
                        "status.progress was {progress}; it has the integers done and total and the word unit"
                    ));
                }
                told.insert("progress");
            }
        }
    }
    let missing: Vec<&str> = ["phase", "message", "progress"]
        .into_iter()
        .filter(|field| !told.contains(field))
        .collect();
    if missing.is_empty() {
        Ok("all three were told".to_owned())
    } else {
        Err(format!("status never had {}", missing.join(", ")))
    }
}

/// S2: what the condition said on the way, and what it says of an object that is ready.
pub(super) fn ready_is_a_condition<'a>(
    versions: impl IntoIterator<Item = &'a DynamicObject>,
    ready: &DynamicObject,
) -> Verdict {
    let mut reasons = BTreeSet::new();
    for condition in versions.into_iter().filter_map(|object| condition(object, "Ready")) {
        match (condition["status"].as_str(), condition["reason"].as_str()) {
            (_, Some(reason)) if !reason.is_empty() => {
                reasons.insert(reason.to_owned());
            }
            (Some("True"), _) => {}
            (other, _) => {
                let status = other.unwrap_or("without status");
                return Err(format!("the condition Ready was {status} and had no reason"));
            }
        }
    }
    match condition(ready, "Ready").map(|condition| condition["status"].as_str()) {
        None => Err("a release that is ready has no condition Ready".to_owned()),
        Some(Some("True")) if reasons.is_empty() => Ok("Ready=True".to_owned()),
        Some(Some("True")) => Ok(format!(
            "Ready=True; on the way: {}",
            Vec::from_iter(reasons).join(", ")
        )),
        Some(other) => Err(format!(
            "status.ready is true, and the condition Ready is {}",
            other.unwrap_or("without status")
        )),
    }
}

/// S5: of an object that is ready.
pub(super) fn generation_is_told(object: &DynamicObject) -> Verdict {
    let (told, is) = (
        status(object)["observedGeneration"].as_i64(),
        object.metadata.generation,
    );
    match told {
        Some(_) if told == is => Ok(format!("it was {}", is.unwrap_or_default())),
        Some(told) => Err(format!(
            "it was {told} when the generation was {}",
            is.unwrap_or_default()
        )),
        None => Err("status has no observedGeneration".to_owned()),
    }
}

/// S6: what the condition says that ends a wait.
pub(super) fn stalled(object: &DynamicObject) -> Option<String> {
    let condition = condition(object, "Stalled").filter(|condition| condition["status"] == "True")?;
    Some(condition["reason"].as_str().unwrap_or("without a reason").to_owned())
}

/// S3: the object that both own, if there is one.
pub(super) fn shared<'a>(images: impl IntoIterator<Item = &'a DynamicObject>, uids: [&str; 2]) -> Option<String> {
    let owns = |image: &DynamicObject, uid: &str| image.owner_references().iter().any(|owner| owner.uid == uid);
    let found = images
        .into_iter()
        .find(|image| uids.iter().all(|uid| owns(image, uid)))?;
    Some(found.name_any())
}

#[cfg(test)]
mod tests {
    use kube::{api::ApiResource, core::GroupVersionKind};
    use serde_json::json;

    use super::*;

    fn object(data: Value) -> DynamicObject {
        let kind = GroupVersionKind::gvk("infrastructure.clusterstack.x-k8s.io", "v1", "AcmeClusterStackRelease");
        let mut object = DynamicObject::new("acme-scs-1-34-v1", &ApiResource::from_gvk(&kind)).data(data);
        object.metadata.generation = Some(1);
        object
    }

    #[test]
    fn a_word_is_no_readiness() {
        let ready = object(json!({ "status": { "ready": "true" } }));
        assert!(!is_ready(&ready));
        let verdict = readiness_is_boolean([&object(json!({})), &ready]);
        assert!(verdict.is_err_and(|reason| reason.contains("\"true\"")));
    }

    #[test]
    fn a_spec_that_was_written_back_is_seen_by_who_claims_it() {
        let made = json!({ "size": "small" });
        let mut touched = object(json!({ "spec": { "size": "small" } }));
        assert!(spec_is_ours([&touched], &made, "us").is_ok());
        touched.metadata.managed_fields = Some(
            serde_json::from_value(json!([
                { "manager": "us", "fieldsV1": { "f:spec": { "f:size": {} } } },
                { "manager": "them", "fieldsV1": { "f:spec": { "f:mark": {} } } },
            ]))
            .expect("entries"),
        );
        let reason = spec_is_ours([&touched], &made, "us").expect_err("them");
        assert!(reason.contains("them"), "{reason}");
        let changed = object(json!({ "spec": { "size": "large" } }));
        assert!(spec_is_ours([&changed], &made, "us").is_err());
    }

    #[test]
    fn progress_has_numbers_and_a_unit() {
        let told = |progress: Value| {
            progress_is_told([&object(
                json!({ "status": { "phase": "Transferring", "message": "m", "progress": progress } }),
            )])
        };
        assert!(told(json!({ "done": 1, "total": 3, "unit": "images" })).is_ok());
        assert!(told(json!({ "done": "1" })).is_err());
        assert_eq!(told(Value::Null), Err("status never had progress".to_owned()));
    }

    #[test]
    fn ready_and_its_condition_say_the_same() {
        let told = |status: &str, reason: Value| {
            object(json!({ "status": { "conditions": [{ "type": "Ready", "status": status, "reason": reason }] } }))
        };
        let (ready, waiting) = (told("True", Value::Null), told("False", json!("Working")));
        let verdict = ready_is_a_condition([&waiting, &ready], &ready);
        assert_eq!(verdict, Ok("Ready=True; on the way: Working".to_owned()));
        assert!(ready_is_a_condition([&ready], &waiting).is_err());
        assert!(ready_is_a_condition([&told("False", json!("")), &ready], &ready).is_err());
        assert!(ready_is_a_condition([], &object(json!({}))).is_err());
    }

    #[test]
    fn a_generation_that_is_missing_or_old_is_told() {
        let told =
            |generation: Value| generation_is_told(&object(json!({ "status": { "observedGeneration": generation } })));
        assert!(told(json!(1)).is_ok());
        assert!(told(json!(0)).is_err());
        assert!(told(Value::Null).is_err());
    }
}
