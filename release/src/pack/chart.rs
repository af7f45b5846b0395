//! Charts of a stack: which files belong to one, whether it stands on its own, and setting its version.

use serde::Deserialize;

use super::{
    PackError,
    ignore::IgnoreRules,
    tree::{Tree, line_of},
};
use crate::archive::ChartIdentity;

/// The file that makes a directory a chart.
pub(super) const CHART: &str = "Chart.yaml";
const IGNORE: &str = ".helmignore";
/// Values template of a stage, read by the operators and not by Helm.
const OVERWRITE: &str = "overwrite.yaml";

#[derive(Deserialize)]
struct ChartFile {
    #[serde(flatten)]
    identity: ChartIdentity,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

/// The files that belong to the chart in this directory.
///
/// Refuses a chart without name or version, and one whose dependencies would have to be downloaded when it is rendered.
pub(super) fn chart_files(mut chart: Tree) -> Result<Tree, PackError> {
    if let Some(text) = chart.text(IGNORE) {
        let rules = IgnoreRules::parse(text).map_err(|(line, pattern)| PackError::IgnorePattern {
            path: chart.path(IGNORE),
            line,
            pattern,
        })?;
        chart
            .files
            .retain(|path, _| path == OVERWRITE || path == IGNORE || !rules.ignore(path));
    }
    let ChartFile {
        identity: _,
        dependencies,
    } = read(&chart)?;
    for Dependency { name } in dependencies {
        let (directory, archive) = (format!("charts/{name}/{CHART}"), format!("charts/{name}-"));
        if !chart
            .files
            .keys()
            .any(|path| *path == directory || path.starts_with(&archive))
        {
            let text = chart.text(CHART).unwrap_or_default();
            let line = text
                .lines()
                .position(|line| line.contains("name:") && line.contains(&name))
                .map_or(1, |index| index + 1);
            return Err(PackError::MissingDependency {
                path: chart.path(CHART),
                line,
                dependency: name,
                chart: chart.origin,
            });
        }
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

fn read(chart: &Tree) -> Result<ChartFile, PackError> {
    let path = chart.path(CHART);
    let Some(content) = chart.description(CHART)? else {
        return Err(PackError::Missing {
            path,
            advice: "a chart needs it, with a name and a version",
        });
    };
    serde_yaml::from_slice(content).map_err(|source| PackError::read_yaml(path, source))
}
