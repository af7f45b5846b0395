//! The keys of clusteraddon.yaml. The operators pass over unknown ones, because a later format may have more; whoever writes the file means the format of today,
//! and a misspelt key would be as if it were not there.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};

use super::{PackError, tree::text};

/// The key of clusteraddon.yaml with the stages.
const STAGES: &str = "addonStages";
/// The keys of clusteraddon.yaml.
const FILE: [&str; 5] = ["apiVersion", "kind", "clusterAddonVersion", "clusterApiVersion", STAGES];
/// The keys of a stage.
const STAGE: [&str; 6] = ["name", "action", BEFORE, AFTER, "timeout", "onFailure"];
/// What a stage waits for before it begins.
const BEFORE: &str = "waitForPreCondition";
/// What a stage waits for before it is done.
const AFTER: &str = "waitForPostCondition";
/// The keys of what a stage waits for.
const CONDITION: [&str; 2] = ["objects", "conditions"];
/// The keys of an object that a stage waits for.
const OBJECT: [&str; 5] = ["key", "apiVersion", "kind", "name", "namespace"];

/// The keys of a mapping in their order. What stands under them is nobody's business, and not kept: it may be much, where it is named again and again.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfMapping)
    }
}

/// Reads [`Keys`].
struct OfMapping;

impl<'de> Visitor<'de> for OfMapping {
    type Value = Keys;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = mapping.next_key()? {
            mapping.next_value::<IgnoredAny>()?;
            keys.push(key);
        }
        Ok(Keys(keys))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<S> {
    addon_stages: BTreeMap<String, Vec<S>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stage<C> {
    wait_for_pre_condition: Option<C>,
    wait_for_post_condition: Option<C>,
}

impl<C> Stage<C> {
    /// What the stage at this place waits for, each with its place.
    fn conditions(self, place: &str) -> impl Iterator<Item = (String, C)> {
        let both = [
            (BEFORE, self.wait_for_pre_condition),
            (AFTER, self.wait_for_post_condition),
        ];
        both.into_iter()
            .filter_map(move |(name, condition)| Some((format!("{place}.{name}"), condition?)))
    }
}

#[derive(Deserialize)]
struct Objects {
    #[serde(default)]
    objects: Vec<Keys>,
}

/// Refuses a key at the top that nobody reads, and a file without stages.
pub(super) fn check_top(path: &Path, stages: &[u8]) -> Result<(), PackError> {
    let Keys(keys) = read(path, stages)?;
    if let Some(key) = keys.iter().find(|key| !FILE.contains(&key.as_str())) {
        let mut lines = text(stages).unwrap_or_default().lines();
        let line = lines.position(|line| {
            line.strip_prefix(key.as_str())
                .is_some_and(|rest| rest.starts_with(':'))
        });
        return Err(PackError::UnknownKey {
            path: path.to_owned(),
            line: line.map_or(1, |index| index + 1),
            key: key.clone(),
            known: FILE.join(", "),
        });
    }
    if keys.iter().any(|key| key == STAGES) {
        Ok(())
    } else {
        Err(PackError::NoStages { path: path.to_owned() })
    }
}

/// Refuses a key in a stage that nobody reads, of a file that is otherwise as it must be.
pub(super) fn check_stages(path: &Path, stages: &[u8]) -> Result<(), PackError> {
    for (place, keys) in stages_of::<Keys>(path, stages)? {
        check(path, &place, &keys, &STAGE)?;
    }
    for (place, stage) in stages_of::<Stage<Keys>>(path, stages)? {
        for (place, keys) in stage.conditions(&place) {
            check(path, &place, &keys, &CONDITION)?;
        }
    }
    for (place, stage) in stages_of::<Stage<Objects>>(path, stages)? {
        for (place, condition) in stage.conditions(&place) {
            for (index, keys) in condition.objects.iter().enumerate() {
                check(path, &format!("{place}.objects[{index}]"), keys, &OBJECT)?;
            }
        }
    }
    Ok(())
}

/// The stages of the file, each with its place in it.
fn stages_of<S: DeserializeOwned>(path: &Path, stages: &[u8]) -> Result<Vec<(String, S)>, PackError> {
    let file: File<S> = read(path, stages)?;
    let mut found = Vec::new();
    for (hook, stages) in file.addon_stages {
        let stages = stages.into_iter().enumerate();
        found.extend(stages.map(|(index, stage)| (format!("{STAGES}.{hook}[{index}]"), stage)));
    }
    Ok(found)
}

fn read<T: DeserializeOwned>(path: &Path, stages: &[u8]) -> Result<T, PackError> {
    serde_yaml::from_slice(stages).map_err(|source| PackError::read_yaml(path.to_owned(), source))
}

fn check(path: &Path, place: &str, Keys(keys): &Keys, known: &[&str]) -> Result<(), PackError> {
    match keys.iter().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(PackError::UnknownStageKey {
            path: path.to_owned(),
            place: format!("{place}.{key}"),
            advice: expressions::instead(key, known.iter().copied()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use crds::{
        cluster_addon::StageAction,
        release_files::{AddonStage, ClusterAddonConfig, OnFailure, WaitForCondition, WatchedObject},
    };
    use serde::Serialize;

    use super::*;

    fn keys_of(written: &impl Serialize) -> BTreeSet<String> {
        let text = serde_yaml::to_string(written).unwrap();
        let Keys(keys) = serde_yaml::from_str(&text).unwrap();
        keys.into_iter().collect()
    }

    fn set(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn what_an_operator_reads_of_a_stage_is_known() {
        let object = WatchedObject {
            key: "agent".to_owned(),
            api_version: "apps/v1".to_owned(),
            kind: "DaemonSet".to_owned(),
            name: "agent".to_owned(),
            namespace: "kube-system".to_owned(),
        };
        let condition = WaitForCondition {
            objects: vec![object.clone()],
            conditions: "true".to_owned(),
        };
        let stage = AddonStage {
            name: "network".to_owned(),
            action: StageAction::Apply,
            wait_for_pre_condition: Some(condition.clone()),
            wait_for_post_condition: Some(condition.clone()),
            timeout: Some(Duration::from_mins(1)),
            on_failure: Some(OnFailure::Stop),
        };
        assert_eq!(keys_of(&object), set(&OBJECT));
        assert_eq!(keys_of(&condition), set(&CONDITION));
        assert_eq!(keys_of(&stage), set(&STAGE));
        let mut file = keys_of(&ClusterAddonConfig::default());
        file.extend(set(&["apiVersion", "kind", "clusterAddonVersion"]));
        assert_eq!(file, set(&FILE));
    }
}
