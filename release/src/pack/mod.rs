//! From the directory of a stack to a release: `release create`.
//!
//! A stack directory is what csctl reads: `csctl.yaml`, the chart `cluster-class/`, the add-ons `cluster-addon/` as one chart with
//! `cluster-addon-values.yaml` or as one chart per directory with `clusteraddon.yaml`, and optionally `node-images.yaml` (or `node-images/config.yaml`).
//! The release is the same bytes for the same stack and versions, whenever, wherever and by whom it is made.

mod chart;
mod error;
mod faults;
mod ignore;
mod objects;
mod output;
mod overwrite;
mod placeholder;
mod registry;
mod stack;
mod stages;
mod supply;
mod tarball;
mod tree;
mod versions;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use crds::{
    names::{ReleaseTag, StackVersion},
    release_files::{
        CLUSTER_ADDON_CONFIG, CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA, HASHES, METADATA, Metadata, NODE_IMAGES,
    },
};

/// Which of the words that there are somebody may have meant.
pub use expressions::nearest;

pub use self::{
    error::PackError,
    faults::Faults,
    registry::{ChartRegistries, ChartRegistry, InvalidChartRegistry},
    supply::{Origin, Supplied, Supply},
};
use self::{
    stack::{Addons, Stack},
    supply::Shelf,
    tree::Tree,
};
use crate::{Digest, FileRef, FolderFiles, archive, files};

/// How the versions of the new release are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Versioning {
    /// This version for the stack, its add-ons and its node images.
    Given(StackVersion),
    /// One more than the highest stable release in this directory of releases, `v1` if there is none; add-ons and node images only if they changed.
    NextAfter(PathBuf),
}

/// A release that was made, or was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The name of the release.
    pub tag: ReleaseTag,
    /// Where it is.
    pub directory: PathBuf,
    /// Digest of the whole release.
    pub digest: Digest,
    /// Its files, sorted by name.
    pub files: Vec<FileRef>,
    /// What was done.
    pub packing: Packing,
    /// What could not be checked, and what its maker may not have meant, a sentence each.
    pub notes: Vec<String>,
}

/// What was done for a [`Packed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The release was written.
    Created,
    /// The release was there with exactly these bytes.
    AlreadyThere,
}

/// The answer to [`prepare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// The release that would be written.
    Prepared(Prepared),
    /// The stack is what the newest release was made from.
    Unchanged {
        /// The newest release.
        since: ReleaseTag,
    },
}

/// A release in memory, for a look at it before it is there for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    tag: ReleaseTag,
    stack: PathBuf,
    output: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
    /// The name of the archive of the add-ons.
    addon_chart: String,
    kubernetes: String,
    supplied: Vec<Supplied>,
    notes: Vec<String>,
}

/// A chart of the add-ons of a [`Prepared`], as operators take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddonChart {
    /// Where the stack has it; a text is there with the same lines. What came from a [`Supply`] is not there.
    pub directory: PathBuf,
    /// Its files, by their paths in it.
    pub files: FolderFiles,
    /// The template of its values, behind the place where the stack has it.
    pub values: Option<(PathBuf, Vec<u8>)>,
}

impl Prepared {
    /// The name of the release.
    pub fn tag(&self) -> &ReleaseTag {
        &self.tag
    }

    /// The Kubernetes version that its `metadata.yaml` names, which is that of all its clusters.
    pub fn kubernetes(&self) -> &str {
        &self.kubernetes
    }

    /// The archive of the class chart.
    pub fn class_chart(&self) -> &[u8] {
        &self.files[&files::class_chart_name(&self.tag)]
    }

    /// Where the stack has what the class chart calls `<chart>/templates/name.yaml`; a template is there with the same lines.
    pub fn class_file(&self, path: &str) -> PathBuf {
        let below = path.split_once('/').map_or(path, |(_, below)| below);
        self.stack.join(stack::CLASS).join(below)
    }

    /// The charts of the add-ons that are used, by the names of their folders.
    pub fn addon_charts(&self) -> Result<Vec<AddonChart>, PackError> {
        let directory = self.stack.join(stack::ADDON);
        let archive = self.files[&self.addon_chart].as_slice();
        let charts = archive::split(archive, |_, _| true).map_err(|source| PackError::ChartArchive {
            path: directory.clone(),
            source,
        })?;
        let stages = self.files.get(CLUSTER_ADDON_CONFIG);
        let stages = stages.map(|text| stages::named(&self.stack, text)).transpose()?;
        let is_used = |folder: &str| stages.as_ref().is_none_or(|stages| stages.contains(folder));
        let charts = charts.into_iter().filter(|(folder, _)| is_used(folder));
        let charts = charts.map(|(folder, files)| {
            if stages.is_some() {
                let directory = directory.join(folder);
                let mut templates = files
                    .iter()
                    .filter(|(path, _)| overwrite::OVERWRITES.contains(&path.as_str()));
                let values = templates
                    .next()
                    .map(|(path, text)| (directory.join(path), text.clone()));
                AddonChart {
                    directory,
                    files,
                    values,
                }
            } else {
                AddonChart {
                    directory: directory.clone(),
                    files,
                    values: self.values(),
                }
            }
        });
        Ok(charts.collect())
    }

    /// The template of the values of the only chart.
    fn values(&self) -> Option<(PathBuf, Vec<u8>)> {
        let mut names = [CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA].into_iter();
        names.find_map(|name| Some((self.stack.join(name), self.files.get(name)?.clone())))
    }

    /// The charts that were taken from the [`Supply`], in the order in which they were.
    pub fn supplied(&self) -> &[Supplied] {
        &self.supplied
    }

    /// Writes it to the directory `<output>/<tag>`. Blocks.
    pub fn write(&self) -> Result<Packed, PackError> {
        let packed = output::write(&self.output, &self.tag, &self.files)?;
        // Each of a release begins with the name of a file, which the stack has with the same lines.
        let of_release = packed.notes.iter().map(|note| self.stack.join(note));
        let of_release = of_release.map(|note| note.display().to_string());
        let notes = self.notes.iter().cloned().chain(of_release).collect();
        Ok(Packed { notes, ..packed })
    }
}

/// The answer to [`create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation {
    /// There is a release of this stack.
    Packed(Packed),
    /// No release was made, because the stack is what the newest release was made from.
    Unchanged {
        /// The newest release.
        since: ReleaseTag,
    },
}

/// Makes a release of the stack in `stack`, whose charts have all that they need, and writes it to the directory `<output>/<tag>`. Blocks.
pub fn create(stack: &Path, output: &Path, versioning: &Versioning) -> Result<Creation, PackError> {
    Ok(match prepare(stack, output, versioning, None)? {
        Preparation::Prepared(prepared) => Creation::Packed(prepared.write()?),
        Preparation::Unchanged { since } => Creation::Unchanged { since },
    })
}

/// Makes a release of the stack in `stack` for the directory `<output>/<tag>`, and writes nothing. What its charts lack comes from the supply, and
/// counts as a part of the stack. Blocks, and where there are registries must not be called from within a runtime of tokio.
pub fn prepare(
    stack: &Path,
    output: &Path,
    versioning: &Versioning,
    supply: Option<Supply<'_>>,
) -> Result<Preparation, PackError> {
    stack::check_output(stack, output)?;
    let directory = stack.to_owned();
    let mut shelf = supply.map(Shelf::read).transpose()?;
    let mut stack = Stack::read(stack, shelf.as_mut())?;
    let versions = match versioning {
        Versioning::Given(version) => versions::given(&stack, version),
        Versioning::NextAfter(releases) => match versions::next_after(&stack, releases)? {
            versions::Next::Versions(versions) => versions,
            versions::Next::Unchanged(since) => return Ok(Preparation::Unchanged { since }),
        },
    };
    let version = versions.cluster_stack.clone();
    let tag = ReleaseTag::new(stack.stem.clone(), version).map_err(|source| PackError::Tag { source })?;
    Ok(Preparation::Prepared(Prepared {
        notes: std::mem::take(&mut stack.notes),
        addon_chart: files::addon_chart_name(&tag, &versions.cluster_addon),
        files: build(stack, &versions, &tag)?,
        kubernetes: versions.kubernetes,
        tag,
        stack: directory,
        output: output.to_owned(),
        supplied: shelf.map(Shelf::into_supplied).unwrap_or_default(),
    }))
}

/// The files of the release by name.
fn build(stack: Stack, versions: &Metadata, tag: &ReleaseTag) -> Result<BTreeMap<String, Vec<u8>>, PackError> {
    let Stack {
        directory,
        stem,
        kubernetes: _,
        class,
        addons,
        node_images,
        hashes,
        notes: _,
    } = stack;
    let mut files = BTreeMap::new();
    let class = whole_chart(
        class,
        &format!("{stem}-cluster-class"),
        &versions.cluster_stack,
        versions,
    )?;
    files.insert(files::class_chart_name(tag), class);

    let addon = match addons {
        Addons::Single { chart, name, values } => {
            let values = fill_file(&directory.join(name), values, versions)?;
            files.insert(name.to_owned(), values);
            whole_chart(
                chart,
                &format!("{stem}-cluster-addon"),
                &versions.cluster_addon,
                versions,
            )?
        }
        Addons::Stages { charts, stages } => {
            let named = stages::named(&directory, &stages)?;
            files.insert(CLUSTER_ADDON_CONFIG.to_owned(), stages);
            stage_charts(charts, &named, versions)?
        }
    };
    files.insert(files::addon_chart_name(tag, &versions.cluster_addon), addon);

    if let Some((file, text)) = node_images {
        files.insert(
            NODE_IMAGES.to_owned(),
            fill_file(&directory.join(file), text, versions)?,
        );
    }
    files.insert(METADATA.to_owned(), versions.to_yaml().into_bytes());
    let hashes = serde_json::to_string_pretty(&hashes).expect("texts are JSON");
    files.insert(HASHES.to_owned(), format!("{hashes}\n").into_bytes());
    Ok(files)
}

/// An archive as `helm package` makes it: everything below one directory with the name of the chart.
fn whole_chart(chart: Tree, name: &str, version: &StackVersion, versions: &Metadata) -> Result<Vec<u8>, PackError> {
    let mut chart = chart::chart_files(fill(chart, versions)?)?;
    chart::check_name(&chart, name)?;
    chart::set_version(&mut chart, &version.to_string())?;
    let Tree { origin, files } = chart;
    let files = files
        .into_iter()
        .map(|(path, content)| (format!("{name}/{path}"), content))
        .collect();
    pack(&origin, &files)
}

/// An archive with one directory per chart. The charts keep versions of their own; who wants them stamped writes a placeholder.
fn stage_charts(charts: Tree, named: &BTreeSet<String>, versions: &Metadata) -> Result<Vec<u8>, PackError> {
    let charts = fill(charts, versions)?;
    let mut files = BTreeMap::new();
    for directory in charts.directories() {
        let chart = chart::chart_files(charts.below(directory))?;
        if named.contains(directory) {
            overwrite::check(&chart)?;
        }
        files.extend(
            chart
                .files
                .into_iter()
                .map(|(path, content)| (format!("{directory}/{path}"), content)),
        );
    }
    pack(&charts.origin, &files)
}

fn pack(origin: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, PackError> {
    tarball::tarball(files).map_err(|source: io::Error| PackError::Write {
        path: origin.to_owned(),
        source,
    })
}

fn fill(mut tree: Tree, versions: &Metadata) -> Result<Tree, PackError> {
    let Tree { origin, files } = &mut tree;
    for (path, content) in files {
        *content = fill_file(&origin.join(path), std::mem::take(content), versions)?;
    }
    Ok(tree)
}

/// Replaces placeholders, unless the file is binary.
fn fill_file(path: &Path, content: Vec<u8>, versions: &Metadata) -> Result<Vec<u8>, PackError> {
    let Some(text) = tree::text(&content) else {
        return Ok(content);
    };
    let filled = placeholder::fill(text, versions);
    let filled = filled.map_err(|placeholder::Unknown { line, found }| PackError::UnknownPlaceholder {
        path: path.to_owned(),
        line,
        found,
    })?;
    Ok(filled.into_bytes())
}
