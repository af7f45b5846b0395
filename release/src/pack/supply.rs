//! Charts that the charts of a stack need: which are there, and which are taken from a directory that somebody names. Nothing is downloaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    PackError,
    chart::{self, CHART, ChartFile, Dependency},
    tree::{self, Tree},
};
use crate::archive::{self, ChartIdentity};

/// Where charts lie that others need, and how versions are read.
#[derive(Clone, Copy, Debug)]
pub struct Supply<'a> {
    /// A directory with charts side by side: archives as `helm package` and `helm pull` make them, and directories.
    pub charts: &'a Path,
    /// The position of the newest of these versions in a range, as Helm reads both.
    pub newest: fn(range: &str, versions: &[&str]) -> Option<usize>,
}

/// A chart that was taken from a [`Supply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplied {
    /// The directory of the chart that needs it.
    pub into: PathBuf,
    /// Where it was.
    pub from: PathBuf,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The file that says which versions were chosen before.
const LOCK: &str = "Chart.lock";
/// Where the charts are that a chart needs.
const CHARTS: &str = "charts";
/// How deeply charts may need charts that are taken from the directory; more than any need, and those that need each other end here.
const MAX_DEPTH: usize = 10;

#[derive(Default, Deserialize)]
struct Lock {
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

/// The names that the charts in the folder charts/ of a chart give themselves: Helm goes by these, and not by those of the files.
pub(super) fn present(chart: &Tree) -> Result<BTreeSet<String>, PackError> {
    let mut names = BTreeSet::new();
    for (path, content) in &chart.files {
        let Some((folder, file)) = path.split_once('/').filter(|(folder, _)| *folder == CHARTS) else {
            continue;
        };
        // Helm passes over these.
        if file.starts_with(['_', '.']) {
            continue;
        }
        if let Some(directory) = file
            .strip_suffix(CHART)
            .and_then(|directory| directory.strip_suffix('/'))
        {
            if !directory.contains('/') {
                let found = chart::read(&chart.below(&format!("{folder}/{directory}")))?;
                names.insert(found.identity.name);
            }
        } else if is_archive(file) && !file.contains('/') {
            names.extend(identity(&chart.path(path), content)?.map(|identity| identity.name));
        }
    }
    Ok(names)
}

fn is_archive(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "tgz")
}

/// The chart in an archive, if it is that of one.
fn identity(path: &Path, archive: &[u8]) -> Result<Option<ChartIdentity>, PackError> {
    let contents = archive::inspect(archive, &BTreeSet::new()).map_err(|source| PackError::ChartArchive {
        path: path.to_owned(),
        source,
    })?;
    Ok(contents.single_chart().cloned())
}

/// The charts of a directory.
pub(super) struct Shelf<'a> {
    supply: Supply<'a>,
    offers: BTreeMap<String, Vec<Offer>>,
    supplied: Vec<Supplied>,
}

/// A chart of one name.
struct Offer {
    version: String,
    path: PathBuf,
    is_directory: bool,
}

impl<'a> Shelf<'a> {
    /// Looks through the directory. What is no chart may lie there too, but no archive that cannot be read.
    pub(super) fn read(supply: Supply<'a>) -> Result<Self, PackError> {
        let unreadable = |source| PackError::Read {
            path: supply.charts.to_owned(),
            source,
        };
        let entries = fs::read_dir(supply.charts).map_err(unreadable)?;
        let mut paths = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(unreadable)?;
        paths.sort();
        let mut offers: BTreeMap<String, Vec<Offer>> = BTreeMap::new();
        for path in paths {
            let is_directory = path.is_dir();
            let found = if is_directory {
                let description = Tree::read(&path, &[CHART])?;
                let is_chart = description.files.contains_key(CHART);
                is_chart
                    .then(|| chart::read(&description))
                    .transpose()?
                    .map(|chart| chart.identity)
            } else if path.file_name().is_some_and(|name| is_archive(&name.to_string_lossy())) {
                identity(&path, &tree::read_file(&path)?)?
            } else {
                None
            };
            if let Some(ChartIdentity { name, version }) = found {
                offers.entry(name).or_default().push(Offer {
                    version,
                    path,
                    is_directory,
                });
            }
        }
        Ok(Self {
            supply,
            offers,
            supplied: Vec::new(),
        })
    }

    /// What was taken.
    pub(super) fn into_supplied(self) -> Vec<Supplied> {
        self.supplied
    }

    /// Puts what the chart in this directory of the tree lacks into its folder charts/. A directory without a chart lacks nothing.
    pub(super) fn complete(&mut self, tree: &mut Tree, directory: &str) -> Result<(), PackError> {
        self.complete_at(tree, directory, 0)
    }

    fn complete_at(&mut self, tree: &mut Tree, directory: &str, depth: usize) -> Result<(), PackError> {
        let chart = tree.below(directory);
        if !chart.files.contains_key(CHART) {
            return Ok(());
        }
        let ChartFile { dependencies, .. } = chart::read(&chart)?;
        let (present, lock) = (present(&chart)?, lock(&chart)?);
        for dependency in dependencies
            .iter()
            .filter(|dependency| !present.contains(&dependency.name))
        {
            if depth == MAX_DEPTH {
                return Err(PackError::DeepCharts {
                    path: chart.path(CHART),
                    dependency: dependency.name.clone(),
                });
            }
            let Offer {
                version,
                path,
                is_directory,
            } = self
                .choose(dependency, &lock)
                .ok_or_else(|| self.lacks(&chart, dependency))?;
            let (name, from, is_directory) = (&dependency.name, path.clone(), *is_directory);
            let supplied = Supplied {
                into: chart.origin.clone(),
                from: from.clone(),
                name: name.clone(),
                version: version.clone(),
            };
            if is_directory {
                let inside = format!("{directory}/{CHARTS}/{name}");
                let taken = Tree::read_all(&from)?;
                for (path, content) in chart::without_ignored(taken)?.files {
                    tree.add(format!("{inside}/{path}"), content)?;
                }
                self.supplied.push(supplied);
                self.complete_at(tree, &inside, depth + 1)?;
            } else {
                let file = format!("{directory}/{CHARTS}/{name}-{version}.tgz", version = supplied.version);
                tree.add(file, tree::read_file(&from)?)?;
                self.supplied.push(supplied);
            }
        }
        Ok(())
    }

    /// What Chart.lock says, if that is there and in the range; else the newest in the range.
    fn choose(&self, dependency: &Dependency, lock: &Lock) -> Option<&Offer> {
        let Dependency { name, version: range } = dependency;
        let offers = self.offers.get(name)?;
        let newest = self.supply.newest;
        let locked = lock.dependencies.iter().find(|locked| locked.name == *name);
        let locked = locked.filter(|locked| newest(range, &[&locked.version]).is_some());
        let locked = locked.and_then(|locked| offers.iter().find(|offer| offer.version == locked.version));
        locked.or_else(|| {
            let versions: Vec<&str> = offers.iter().map(|offer| offer.version.as_str()).collect();
            offers.get(newest(range, &versions)?)
        })
    }

    fn lacks(&self, chart: &Tree, dependency: &Dependency) -> PackError {
        let Dependency { name, version: range } = dependency;
        let offers = self.offers.get(name).into_iter().flatten();
        let versions: Vec<&str> = offers.map(|offer| offer.version.as_str()).collect();
        PackError::NotSupplied {
            path: chart.path(CHART),
            line: chart::line_of_dependency(chart, name),
            dependency: name.clone(),
            range: range.clone(),
            charts: self.supply.charts.to_owned(),
            versions: if versions.is_empty() {
                "no version of it".to_owned()
            } else {
                versions.join(", ")
            },
        }
    }
}

fn lock(chart: &Tree) -> Result<Lock, PackError> {
    let Some(content) = chart.description(LOCK)? else {
        return Ok(Lock::default());
    };
    serde_yaml::from_slice(content).map_err(|source| PackError::read_yaml(chart.path(LOCK), source))
}
