//! Charts of a stack: which files belong to one, whether it stands on its own, and setting its version.

use serde::Deserialize;

use super::{
    PackError,
    ignore::IgnoreRules,
    overwrite::OVERWRITES,
    registry, supply,
    tree::{Tree, line_of},
};
use crate::archive::ChartIdentity;

/// The file that makes a directory a chart.
pub(super) const CHART: &str = "Chart.yaml";
const IGNORE: &str = ".helmignore";

#[derive(Deserialize)]
pub(super) struct ChartFile {
    #[serde(flatten)]
    pub(super) identity: ChartIdentity,
    #[serde(default)]
    pub(super) dependencies: Vec<Dependency>,
}

/// A chart that another one needs.
#[derive(Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// A range in Chart.yaml, and the version that was chosen in Chart.lock.
    #[serde(default, deserialize_with = "range")]
    pub(super) version: String,
    /// The address of the repository that has it.
    repository: Option<String>,
}

impl Dependency {
    /// The address of the repository that has it; empty where none is named.
    pub(super) fn repository(&self) -> &str {
        self.repository.as_deref().unwrap_or_default()
    }
}

/// YAML reads an unquoted `1.2` as a number; Helm takes it as text.
fn range<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match serde_yaml::Value::deserialize(deserializer)? {
        serde_yaml::Value::String(text) => Ok(text),
        serde_yaml::Value::Number(number) => Ok(number.to_string()),
        serde_yaml::Value::Null => Ok(String::new()),
        _ => Err(serde::de::Error::custom("the version of a dependency must be a text")),
    }
}

/// The files that belong to the chart in this directory.
///
/// Refuses a chart without name or version, and one whose dependencies would have to be downloaded when it is rendered.
pub(super) fn chart_files(chart: Tree) -> Result<Tree, PackError> {
    let chart = without_ignored(chart)?;
    let ChartFile { dependencies, .. } = read(&chart)?;
    let present = supply::present(&chart)?;
    match dependencies
        .into_iter()
        .find(|dependency| !present.contains(&dependency.name))
    {
        Some(dependency) => Err(PackError::MissingDependency {
            path: chart.path(CHART),
            line: line_of_dependency(&chart, &dependency.name),
            registry: Some(dependency.repository())
                .filter(|named| registry::is_registry(named))
                .map(str::to_owned),
            dependency: dependency.name,
            chart: chart.origin,
        }),
        None => Ok(chart),
    }
}

/// The line of Chart.yaml, from 1, that names a dependency.
pub(super) fn line_of_dependency(chart: &Tree, name: &str) -> usize {
    let is_named = |line: &str| {
        let is_of_name = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        line.contains("name:") && line.split(|letter| !is_of_name(letter)).any(|word| word == name)
    };
    let lines = chart.text(CHART).unwrap_or_default().lines().enumerate();
    // Above it is the name of the chart itself, which may be the same.
    let mut listed = lines.skip_while(|(_, line)| !line.starts_with("dependencies:"));
    listed
        .find(|(_, line)| is_named(line))
        .map_or(1, |(index, _)| index + 1)
}

/// The chart in this directory without what its .helmignore leaves out.
pub(super) fn without_ignored(mut chart: Tree) -> Result<Tree, PackError> {
    if let Some(text) = chart.text(IGNORE) {
        let rules = IgnoreRules::parse(text).map_err(|(line, pattern)| PackError::IgnorePattern {
            path: chart.path(IGNORE),
            line,
            pattern,
        })?;
        chart
            .files
            .retain(|path, _| OVERWRITES.contains(&path.as_str()) || path == IGNORE || !rules.ignore(path));
    }
    Ok(chart)
}

/// Refuses a chart of another name: readers look for the file name that follows from it.
pub(super) fn check_name(chart: &Tree, expected: &str) -> Result<(), PackError> {
    let found = read(chart)?.identity.name;
    if found == expected {
        return Ok(());
    }
    let line = line_of(chart.text(CHART).unwrap_or_default(), "name");
    Err(PackError::ChartName {
        path: chart.path(CHART),
        line,
        found,
        expected: expected.to_owned(),
    })
}

/// Sets the version by changing one line, so that comments and order stay.
pub(super) fn set_version(chart: &mut Tree, version: &str) -> Result<(), PackError> {
    let text = chart.text(CHART).unwrap_or_default();
    let lines = text
        .split_inclusive('\n')
        .map(|line| match line.strip_prefix("version:") {
            Some(_) => format!("version: {version}\n"),
            None => line.to_owned(),
        });
    let content = lines.collect::<String>().into_bytes();
    chart.files.insert(CHART.to_owned(), content);
    if read(chart)?.identity.version == version {
        Ok(())
    } else {
        Err(PackError::ChartVersion {
            path: chart.path(CHART),
        })
    }
}

/// What Chart.yaml says.
pub(super) fn read(chart: &Tree) -> Result<ChartFile, PackError> {
    let path = chart.path(CHART);
    let Some(content) = chart.description(CHART)? else {
        return Err(PackError::Missing {
            path,
            advice: "a chart needs it, with a name and a version",
        });
    };
    serde_yaml::from_slice(content).map_err(|source| PackError::read_yaml(path, source))
}
