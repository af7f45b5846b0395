//! What stages wait for: whether it can be meant of objects of these kinds. A misspelt field would otherwise be waited for in vain.

use std::collections::{BTreeMap, BTreeSet};

use crds::release_files::{AddonStage, CLUSTER_ADDON_CONFIG, ClusterAddonConfig, WaitForCondition};
use expressions::{ObjectKind, Schemas, Severity};
use serde_json::Value;

use super::ReleaseError;

/// The groups of the API of which the conditions need definitions that Kubernetes itself does not bring.
pub(super) fn groups(stages: &ClusterAddonConfig) -> BTreeSet<String> {
    let built_in = Schemas::built_in();
    let conditions = conditions(stages).map(|(.., condition)| condition);
    let kinds = conditions.flat_map(|condition| kinds(condition).into_values());
    let unknown = kinds.filter(|kind| !built_in.describes(kind));
    unknown
        .filter_map(|kind| Some(kind.api_version.split_once('/')?.0.to_owned()))
        .collect()
}

/// Refuses the first condition that cannot hold, or does not say what is meant.
pub(super) fn check(stages: &ClusterAddonConfig, definitions: Vec<Value>) -> Result<(), ReleaseError> {
    let mut schemas = Schemas::built_in();
    definitions
        .into_iter()
        .for_each(|definition| schemas.add_definition(definition));
    for (hook, stage, name, condition) in conditions(stages) {
        if let Some(problem) = problem(condition, &schemas) {
            return Err(ReleaseError::Condition {
                file: CLUSTER_ADDON_CONFIG.to_owned(),
                hook: hook.to_owned(),
                stage: stage.name.clone(),
                condition: name,
                problem,
            });
        }
    }
    Ok(())
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

fn problem(condition: &WaitForCondition, schemas: &Schemas) -> Option<String> {
    let kinds = kinds(condition);
    if kinds.len() < condition.objects.len() {
        return Some("two objects have the same key; give each its own".to_owned());
    }
    let expression = match expressions::parse(&condition.conditions) {
        Ok(expression) => expression,
        Err(error) => return Some(error.to_string()),
    };
    let findings = expressions::check(&expression, &kinds, schemas);
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let first = errors.next()?;
    let more = match errors.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("{}: {}: {}{more}", first.position, first.path, first.message))
}
