//! What can be wrong with clusteraddon.yaml, all of it at once.
//!
//! The operators pass over keys that they do not know, because a later format may have more; whoever writes the file means the format of today, and a misspelt
//! key would be as if it were not there.

mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crds::{
    names::KubernetesMinor,
    release_files::{CLUSTER_ADDON_CONFIG, ClusterAddonConfig, ReleaseFileError},
};
use serde_json::Value;

use self::reading::Reading;
use super::{
    PackError, chart,
    faults::Faults,
    objects,
    tree::{Tree, text},
};
use crate::{archive, files::conditions, marked::Node};

/// Refuses keys that nobody reads, values that no operator takes, stages that are never run, a list without any, a stage whose chart is not there, conditions that
/// cannot hold, and objects that there cannot be. Gives what their maker may not have meant, a sentence each.
pub(super) fn check(
    tree: &Tree,
    stages: &[u8],
    charts: &Tree,
    kubernetes: KubernetesMinor,
) -> Result<Vec<String>, PackError> {
    let path = tree.path(CLUSTER_ADDON_CONFIG);
    let refused = ClusterAddonConfig::parse(stages).err();
    let unreadable = |source| match source {
        ReleaseFileError::ReadYaml(source) => PackError::read_yaml(path.clone(), source),
        source => PackError::ReadReleaseFile {
            path: path.clone(),
            source,
        },
    };
    // What is no text is no YAML either.
    let text = text(stages).unwrap_or("\0");
    let file = match Node::read(text) {
        Ok(file) => file,
        Err(source) => return Err(unreadable(refused.unwrap_or(ReleaseFileError::ReadYaml(source)))),
    };
    let mut reading = Reading::new(text, charts, refused.is_some());
    let understood = reading.file(&file);
    let groups = conditions::groups(&understood);
    let schemas = conditions::schemas(definitions(charts, &groups), kubernetes);
    let mut found = reading.into_found();
    let checked = conditions::check(&understood, text, &schemas);
    found.extend(checked.faults);
    found.extend(objects::check(&understood, &schemas, kubernetes, text, &file));
    match refused {
        _ if !found.is_empty() => Err(PackError::AddonStages {
            faults: Faults::new(path, found, checked.more),
        }),
        Some(source) => Err(unreadable(source)),
        None => Ok(unused(charts, &understood)),
    }
}

/// The charts that stages name, in the directory of a stack.
pub(super) fn named(directory: &Path, stages: &[u8]) -> Result<BTreeSet<String>, PackError> {
    let stages = ClusterAddonConfig::parse(stages).map_err(|source| PackError::ReadReleaseFile {
        path: directory.join(CLUSTER_ADDON_CONFIG),
        source,
    })?;
    Ok(names(&stages))
}

fn names(stages: &ClusterAddonConfig) -> BTreeSet<String> {
    let stages = stages.addon_stages.values().flatten();
    stages.map(|stage| stage.name.clone()).collect()
}

/// The charts that no stage names. They are no errors: real stacks have some.
fn unused(charts: &Tree, stages: &ClusterAddonConfig) -> Vec<String> {
    let named = names(stages);
    let is_chart = |folder: &str| charts.files.contains_key(&format!("{folder}/{}", chart::CHART));
    let folders = charts.directories().into_iter();
    let unused = folders.filter(|folder| !named.contains(*folder) && is_chart(folder));
    let advice = format!("list it in {CLUSTER_ADDON_CONFIG} or take it out");
    unused
        .map(|folder| {
            let path = charts.path(folder);
            format!(
                "{}: no stage names this chart, so it is packed and never used; {advice}",
                path.display()
            )
        })
        .collect()
}

/// The definitions of kinds that the charts will bring. Of a chart that cannot be packed there are none: that is told when it is.
fn definitions(charts: &Tree, groups: &BTreeSet<String>) -> Vec<Value> {
    let mut files = BTreeMap::new();
    for directory in charts.directories() {
        if let Ok(chart) = chart::without_ignored(charts.below(directory)) {
            let chart = chart.files.into_iter();
            files.extend(chart.map(|(path, content)| (format!("{directory}/{path}"), content)));
        }
    }
    archive::definitions_in(&files, groups)
}
