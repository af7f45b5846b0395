//! How the conditions of stages are: the objects that they are about are read in the workload cluster, and the expression is evaluated over them.

use std::collections::{BTreeMap, BTreeSet};

use crds::release_files::{WaitForCondition, WatchedObject};
use expressions::{Missing, Outcome, STEPS, evaluate, parse};
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use planning::addon::{ConditionSeen, Stage, StageConditions, StageKey};
use serde_json::Value;

use crate::objects::Place;

/// Evaluates the conditions of those of these stages that somebody waits for.
pub(super) async fn conditions(place: &Place, stages: &[Stage], awaited: &BTreeSet<StageKey>) -> Vec<StageConditions> {
    let mut seen = Vec::new();
    for stage in stages.iter().filter(|stage| awaited.contains(&stage.key)) {
        seen.push(StageConditions {
            key: stage.key.clone(),
            pre: condition(place, stage.pre.as_ref()).await,
            post: condition(place, stage.post.as_ref()).await,
        });
    }
    seen.sort_by(|one, other| one.key.cmp(&other.key));
    seen
}

async fn condition(place: &Place, condition: Option<&WaitForCondition>) -> ConditionSeen {
    let Some(condition) = condition else {
        return ConditionSeen::Unknown;
    };
    let expression = match parse(&condition.conditions) {
        Ok(expression) => expression,
        Err(error) => return fails(chain(&error)),
    };
    let mut objects = BTreeMap::new();
    for object in &condition.objects {
        match read(place, object).await {
            Ok(found) => drop(objects.insert(object.key.clone(), found)),
            Err(message) => return fails(message),
        }
    }
    match evaluate(&expression, &objects, STEPS) {
        Outcome::Holds => ConditionSeen::Holds,
        outcome => fails(words(&outcome, &condition.objects)),
    }
}

fn fails(message: String) -> ConditionSeen {
    ConditionSeen::Fails { message }
}

/// The object as the API server has it now; nothing where there is none.
async fn read(place: &Place, object: &WatchedObject) -> Result<Option<Value>, String> {
    let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
    let key = ObjectKey::new(group, &object.kind, &object.namespace, &object.name);
    let found = place.read_in(&key, version).await;
    let found = found.map_err(|error| format!("failed to read the {key}: {}", chain(&error)))?;
    found
        .map(|found| serde_json::to_value(&found).map_err(|error| format!("unable to understand the {key}: {error}")))
        .transpose()
}

/// Whether an object may hold what whoever reads the status of a ClusterAddon may not read.
fn is_secret(object: &WatchedObject) -> bool {
    object.kind == "Secret" && object.api_version == "v1"
}

/// What does not hold, for people: the first part of the expression, with what its sides are. Of Secrets no value is told.
fn words(outcome: &Outcome, objects: &[WatchedObject]) -> String {
    match outcome {
        Outcome::Holds => "it holds".to_owned(),
        Outcome::Fails { conjunct, .. } if objects.iter().any(is_secret) => format!("`{conjunct}` is false"),
        Outcome::Wrong { .. } if objects.iter().any(is_secret) => {
            "the expression cannot be evaluated; why is not told, because it is about a Secret".to_owned()
        }
        Outcome::Fails { conjunct, sides } => {
            let sides: Vec<String> = sides
                .iter()
                .map(|side| format!("{} is {}", side.text, side.value))
                .collect();
            if sides.is_empty() {
                format!("`{conjunct}` is false")
            } else {
                format!("`{conjunct}` is false: {}", sides.join(", "))
            }
        }
        Outcome::Missing(Missing::Object { object }) => {
            let named = objects.iter().find(|named| named.key == *object);
            named.map_or_else(
                || format!("{object} is not there yet"),
                |WatchedObject {
                     kind, namespace, name, ..
                 }| match namespace.as_str() {
                    "" => format!("the {kind} {name} is not there yet"),
                    namespace => format!("the {kind} {namespace}/{name} is not there yet"),
                },
            )
        }
        Outcome::Missing(Missing::Path { path }) => format!("{path} is not there yet"),
        Outcome::Wrong { message } => message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is said of an expression over one Deployment.
    fn said(text: &str, deployment: Option<Value>) -> String {
        said_of(("apps/v1", "Deployment"), text, deployment)
    }

    fn said_of((api_version, kind): (&str, &str), text: &str, found: Option<Value>) -> String {
        let object = WatchedObject {
            key: "harbor".to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "quay".to_owned(),
            namespace: "kube-system".to_owned(),
        };
        let objects = BTreeMap::from([("harbor".to_owned(), found)]);
        words(
            &evaluate(&parse(text).expect("an expression"), &objects, STEPS),
            &[object],
        )
    }

    #[test]
    fn what_does_not_hold_is_said_with_its_values() {
        let deployment = || Some(json!({ "status": { "readyReplicas": 1 } }));
        let cases = [
            (
                said("harbor.status.readyReplicas == 1", None),
                "the Deployment kube-system/quay is not there yet",
            ),
            (
                said(
                    "harbor.status.readyReplicas > 0 && harbor.status.readyReplicas == 2",
                    deployment(),
                ),
                "`harbor.status.readyReplicas == 2` is false: harbor.status.readyReplicas is 1",
            ),
            (
                said("harbor.status.replicas == 2", deployment()),
                "harbor.status.replicas is not there yet",
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn of_secrets_no_value_is_told() {
        let secret = || Some(json!({ "data": { "password": "c2FsYW1pcw==" } }));
        for text in [
            "harbor.data.password == \"other\"",
            "int(harbor.data.password) > 1",
            "harbor.data.password.matches(\"^a\")",
        ] {
            let said = said_of(("v1", "Secret"), text, secret());
            assert!(!said.is_empty() && !said.contains("c2FsYW1pcw"), "{said}");
        }
        assert_eq!(
            said_of(("v1", "Secret"), "harbor.data.password == \"other\"", secret()),
            "`harbor.data.password == \"other\"` is false"
        );
    }
}
