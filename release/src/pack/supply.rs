//! Charts that the charts of a stack need: which are there, and which are taken from a directory and from registries that somebody names. Nothing is
//! downloaded from where nobody named.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    PackError,
    chart::{self, CHART, ChartFile, Dependency},
    registry::{self, ChartRegistries, Clerk, Found, Wish},
    tree::{self, Tree},
};
use crate::{
    Digest,
    archive::{self, ChartIdentity},
    http::HttpError,
    source::oci::{OciError, Repository},
};

/// Where charts lie that others need, and how versions are read.
#[derive(Clone, Copy, Debug)]
pub struct Supply<'a> {
    /// A directory with charts side by side: archives as `helm package` and `helm pull` make them, and directories.
    pub charts: Option<&'a Path>,
    /// Registries that are asked for what is not in the directory, as far as a Chart.yaml names them.
    pub registries: Option<&'a ChartRegistries>,
    /// The position of the newest of these versions in a range, as Helm reads both.
    pub newest: fn(range: &str, versions: &[&str]) -> Option<usize>,
}

/// A chart that was taken from a [`Supply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplied {
    /// The directory of the chart that needs it.
    pub into: PathBuf,
    /// Where it was.
    pub from: Origin,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Where a chart was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the directory of charts.
    Path(PathBuf),
    /// In a registry.
    Registry {
        /// The repository with its versions.
        repository: Repository,
        /// The tag of its version.
        tag: String,
        /// Of the manifest that had this tag.
        manifest: Digest,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(formatter),
            Self::Registry {
                repository,
                tag,
                manifest,
            } => write!(formatter, "oci://{repository}:{tag}@{manifest}"),
        }
    }
}

/// The file that says which versions were chosen before.
const LOCK: &str = "Chart.lock";
/// Where the charts are that a chart needs.
const CHARTS: &str = "charts";
/// How deeply charts may need charts that are taken from the directory; more than any need, and those that need each other end here.
const MAX_DEPTH: usize = 10;
/// Most versions of a registry that a message names, the newest.
const TOLD_VERSIONS: usize = 10;

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

/// The charts of a directory, and who asks registries for others.
pub(super) struct Shelf<'a> {
    supply: Supply<'a>,
    offers: BTreeMap<String, Vec<Offer>>,
    clerk: Option<Clerk<'a>>,
    supplied: Vec<Supplied>,
}

/// A chart of one name.
#[derive(Clone)]
struct Offer {
    version: String,
    path: PathBuf,
    is_directory: bool,
}

impl<'a> Shelf<'a> {
    /// Looks through the directory. What is no chart may lie there too, but no archive that cannot be read. Asks no registry yet.
    pub(super) fn read(supply: Supply<'a>) -> Result<Self, PackError> {
        let offers = supply.charts.map(offers).transpose()?.unwrap_or_default();
        let clerk = supply.registries.map(Clerk::new).transpose();
        Ok(Self {
            supply,
            offers,
            clerk: clerk.map_err(|source| PackError::Asking { source })?,
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
            let wish = self.wish(dependency, &lock);
            match self.choose(wish).cloned() {
                Some(offer) => self.take(tree, directory, wish.name, offer, depth)?,
                None => self.fetch(tree, directory, &chart, wish)?,
            }
        }
        Ok(())
    }

    /// What a Chart.yaml wants, with what Chart.lock says if that is in the range.
    fn wish<'b>(&self, dependency: &'b Dependency, lock: &'b Lock) -> Wish<'b> {
        let range = dependency.version.as_str();
        let locked = lock
            .dependencies
            .iter()
            .find(|locked| locked.name == dependency.name)
            .map(|locked| locked.version.as_str());
        Wish {
            name: &dependency.name,
            range,
            locked: locked.filter(|locked| (self.supply.newest)(range, &[locked]).is_some()),
            repository: dependency.repository(),
        }
    }

    /// What Chart.lock says, if that is there; else the newest in the range.
    fn choose(&self, wish: Wish<'_>) -> Option<&Offer> {
        let offers = self.offers.get(wish.name)?;
        let locked = wish.locked;
        let locked = locked.and_then(|locked| offers.iter().find(|offer| offer.version == locked));
        locked.or_else(|| {
            let versions: Vec<&str> = offers.iter().map(|offer| offer.version.as_str()).collect();
            offers.get((self.supply.newest)(wish.range, &versions)?)
        })
    }

    /// Puts a chart of the directory into charts/ of the one in this directory of the tree, and what it lacks itself.
    fn take(&mut self, tree: &mut Tree, into: &str, name: &str, offer: Offer, depth: usize) -> Result<(), PackError> {
        let Offer {
            version,
            path,
            is_directory,
        } = offer;
        let file = archive_in(into, name, &version);
        self.supplied.push(Supplied {
            into: tree.path(into),
            from: Origin::Path(path.clone()),
            name: name.to_owned(),
            version,
        });
        if !is_directory {
            return tree.add(file, tree::read_file(&path)?);
        }
        let inside = format!("{into}/{CHARTS}/{name}");
        for (path, content) in chart::without_ignored(Tree::read_all(&path)?)?.files {
            tree.add(format!("{inside}/{path}"), content)?;
        }
        self.complete_at(tree, &inside, depth + 1)
    }

    /// Puts a chart of a registry into charts/ of the one in this directory of the tree. It is an archive, and taken as it is.
    fn fetch(&mut self, tree: &mut Tree, into: &str, chart: &Tree, wish: Wish<'_>) -> Result<(), PackError> {
        let clerk = self.clerk.as_mut().filter(|clerk| clerk.may_ask(wish.repository));
        let (Some(clerk), Some(repository)) = (clerk, Clerk::repository(wish)) else {
            return Err(self.lacks(chart, wish, None));
        };
        let found = clerk.fetch(&repository, wish, self.supply.newest);
        let found = found.map_err(|source| PackError::Fetch {
            path: chart.path(CHART),
            line: chart::line_of_dependency(chart, wish.name),
            dependency: wish.name.to_owned(),
            range: wish.range.to_owned(),
            advice: self.advice(&repository, &source),
            source: Box::new(source),
        })?;
        let (version, pulled) = match found {
            Found::Chart { version, chart } => (version, chart),
            Found::Versions(versions) => return Err(self.lacks(chart, wish, Some((&repository, versions)))),
        };
        let from = Origin::Registry {
            repository,
            tag: pulled.tag,
            manifest: pulled.manifest,
        };
        check(&from, &pulled.archive, wish.name, &version)?;
        tree.add(archive_in(into, wish.name, &version), pulled.archive)?;
        self.supplied.push(Supplied {
            into: chart.origin.clone(),
            from,
            name: wish.name.to_owned(),
            version,
        });
        Ok(())
    }

    /// What to do about a registry that gave nothing, with the flags that the command has for it.
    fn advice(&self, repository: &Repository, error: &OciError) -> String {
        let host = repository.host();
        match error {
            OciError::Unauthenticated { .. }
            | OciError::CredentialsRefused { .. }
            | OciError::PasswordWanted { .. }
            | OciError::Denied { .. } => {
                let logins = self.supply.registries.map(|registries| &registries.logins);
                let helper = logins
                    .filter(|logins| logins.has_helper())
                    .map(|_| " (what a credential helper keeps is not read)");
                format!(
                    "; log in with `helm registry login {host}`, or name a file that has the login with --registry-config{}",
                    helper.unwrap_or_default()
                )
            }
            OciError::ForeignRealm { .. } => "; its host is named with --token-host".to_owned(),
            OciError::Request { source, .. } if matches!(**source, HttpError::Tls { .. } | HttpError::NoRoots) => {
                format!("; if {host} has an authority of its own, name its certificate with --ca-file")
            }
            _ => String::new(),
        }
    }

    fn lacks(&self, chart: &Tree, wish: Wish<'_>, asked: Option<(&Repository, Vec<String>)>) -> PackError {
        let told = |versions: &[&str]| match versions {
            [] => "no version of it".to_owned(),
            versions => versions.join(", "),
        };
        let mut found = Vec::new();
        if let Some(charts) = self.supply.charts {
            let offers = self.offers.get(wish.name).into_iter().flatten();
            let versions: Vec<&str> = offers.map(|offer| offer.version.as_str()).collect();
            found.push(format!("{} has {}", charts.display(), told(&versions)));
        }
        let named = wish.repository;
        let fetched = format!("have it fetched with --chart-registry {named}");
        let advice = match (&asked, self.supply.charts) {
            (Some((_, versions)), _) if versions.is_empty() => "correct the name or the repository".to_owned(),
            (Some(_), _) => "name a version that is there".to_owned(),
            (None, Some(_)) if registry::is_registry(named) => format!("put it there, or {fetched}"),
            (None, None) if registry::is_registry(named) => fetched,
            (None, Some(_)) => "put it there".to_owned(),
            (None, None) => "put it into a directory, and name that with --charts".to_owned(),
        };
        if let Some((repository, versions)) = asked {
            let newest = newest_of(&versions, self.supply.newest);
            found.push(format!("oci://{repository} has {}", told(&newest)));
        } else if found.is_empty() {
            found.push(match named {
                "" => "it names no repository".to_owned(),
                named => format!("it names the repository {named}"),
            });
        }
        PackError::NotSupplied {
            path: chart.path(CHART),
            line: chart::line_of_dependency(chart, wish.name),
            dependency: wish.name.to_owned(),
            range: wish.range.to_owned(),
            found: found.join(", ").into(),
            advice: advice.into(),
        }
    }
}

/// The charts in a directory, by name.
fn offers(charts: &Path) -> Result<BTreeMap<String, Vec<Offer>>, PackError> {
    let unreadable = |source| PackError::Read {
        path: charts.to_owned(),
        source,
    };
    let entries = fs::read_dir(charts).map_err(unreadable)?;
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
    Ok(offers)
}

/// Where the archive of a chart lies in the chart that needs it.
fn archive_in(into: &str, name: &str, version: &str) -> String {
    format!("{into}/{CHARTS}/{name}-{version}.tgz")
}

/// Refuses what a registry gave for a chart and is another, or none.
fn check(from: &Origin, archive: &[u8], name: &str, version: &str) -> Result<(), PackError> {
    let contents = archive::inspect(archive, &BTreeSet::new()).map_err(|source| PackError::FetchedArchive {
        reference: from.to_string(),
        source,
    })?;
    let found = match contents.single_chart() {
        Some(found) if found.name == name && found.version == version => return Ok(()),
        Some(found) => format!("the chart {} {}", found.name, found.version),
        None => "no chart in one directory".to_owned(),
    };
    Err(PackError::OtherChart {
        reference: from.to_string(),
        found,
        wanted: format!("{name} {version}"),
    })
}

/// The newest of many versions, in this order; also those before a release.
fn newest_of(versions: &[String], newest: fn(&str, &[&str]) -> Option<usize>) -> Vec<&str> {
    let mut left: Vec<&str> = versions.iter().map(String::as_str).collect();
    let mut told = Vec::new();
    while told.len() < TOLD_VERSIONS
        && let Some(position) = newest(">=0.0.0-0", &left)
    {
        told.push(left.remove(position));
    }
    if told.len() == TOLD_VERSIONS && !left.is_empty() {
        told.push("…");
    }
    told
}

fn lock(chart: &Tree) -> Result<Lock, PackError> {
    let Some(content) = chart.description(LOCK)? else {
        return Ok(Lock::default());
    };
    serde_yaml::from_slice(content).map_err(|source| PackError::read_yaml(chart.path(LOCK), source))
}
