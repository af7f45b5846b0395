//! What stages wait for: whether it can be meant of objects of these kinds. A misspelt field would otherwise be waited for in vain.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    names::KubernetesMinor,
    release_files::{AddonStage, CLUSTER_ADDON_CONFIG, ClusterAddonConfig, WaitForCondition},
};
use expressions::{Finding, ObjectKind, Schemas, Severity};
use serde_json::Value;

use super::ReleaseError;

/// Notes that are kept, however many conditions there are.
const MOST_NOTES: usize = 32;

/// The groups of the API of which the conditions need definitions that Kubernetes itself does not bring.
pub(crate) fn groups(stages: &ClusterAddonConfig) -> BTreeSet<String> {
    let built_in = Schemas::built_in();
    let conditions = conditions(stages).map(|(.., condition)| condition);
    let kinds = conditions.flat_map(|condition| kinds(condition).into_values());
    let unknown = kinds.filter(|kind| !built_in.describes(kind));
    unknown
        .filter_map(|kind| Some(kind.api_version.split_once('/')?.0.to_owned()))
        .collect()
}

/// Refuses the first condition that cannot hold, or does not say what is meant. Gives what could not be checked, a sentence each.
pub(super) fn check(
    stages: &ClusterAddonConfig,
    definitions: Vec<Value>,
    kubernetes: KubernetesMinor,
) -> Result<Vec<String>, ReleaseError> {
    let mut schemas = Schemas::of_kubernetes((kubernetes.major().into(), kubernetes.minor()));
    for definition in definitions {
        schemas.add_definition(definition);
    }
    let (mut notes, mut more) = (Vec::new(), 0);
    for (hook, stage, name, condition) in conditions(stages) {
        let found = look(condition, &schemas).map_err(|problem| ReleaseError::Condition {
            file: CLUSTER_ADDON_CONFIG.to_owned(),
            hook: hook.to_owned(),
            stage: stage.name.clone(),
            condition: name,
            problem,
        })?;
        for note in found {
            if notes.len() < MOST_NOTES {
                let stage = &stage.name;
                notes.push(format!(
                    "{CLUSTER_ADDON_CONFIG}: {name} of the stage {stage:?} of {hook}: {note}"
                ));
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        notes.push(format!("{CLUSTER_ADDON_CONFIG}: {more} more of the kind"));
    }
    Ok(notes)
}

/// All conditions, with the hook and the stage to which they belong and the key in it. One that says nothing at all is none.
fn conditions(
    stages: &ClusterAddonConfig,
) -> impl Iterator<Item = (&str, &AddonStage, &'static str, &WaitForCondition)> {
    let stages = stages.addon_stages.iter();
    stages
        .flat_map(|(hook, stages)| stages.iter().map(move |stage| (hook.as_str(), stage)))
        .flat_map(|(hook, stage)| {
            let both = [
                ("waitForPreCondition", stage.wait_for_pre_condition.as_ref()),
                ("waitForPostCondition", stage.wait_for_post_condition.as_ref()),
            ];
            both.into_iter()
                .filter_map(move |(name, condition)| Some((hook, stage, name, condition?)))
        })
        .filter(|(.., condition)| !condition.conditions.trim().is_empty() || !condition.objects.is_empty())
}

fn kinds(condition: &WaitForCondition) -> BTreeMap<String, ObjectKind> {
    let objects = condition.objects.iter();
    objects
        .map(|object| {
            let kind = ObjectKind::new(object.api_version.clone(), object.kind.clone());
            (object.key.clone(), kind)
        })
        .collect()
}

/// What could not be checked of a condition; or what is wrong with it.
fn look(condition: &WaitForCondition, schemas: &Schemas) -> Result<Vec<String>, String> {
    let kinds = kinds(condition);
    if kinds.len() < condition.objects.len() {
        return Err("two objects have the same key; give each its own".to_owned());
    }
    let expression = expressions::parse(&condition.conditions).map_err(|error| error.to_string())?;
    let findings = expressions::check(&expression, &kinds, schemas).into_iter();
    let (errors, notes): (Vec<_>, Vec<_>) = findings.partition(|finding| finding.severity == Severity::Error);
    match errors.as_slice() {
        [] => Ok(notes.iter().map(told).collect()),
        [only] => Err(told(only)),
        [first, more @ ..] => Err(format!("{} (and {} more)", told(first), more.len())),
    }
}

fn told(finding: &Finding) -> String {
    format!("{}: {}: {}", finding.position, finding.path, finding.message)
}
