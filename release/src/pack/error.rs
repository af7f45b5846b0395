//! Why a stack cannot be made into a release, in words for the person who writes it.

use std::{io, path::PathBuf};

use crds::{
    names::{NameError, ReleaseTag},
    release_files::ReleaseFileError,
};
use thiserror::Error;

use super::{faults::Faults, placeholder::Placeholder};
use crate::{
    ReleaseError,
    archive::{ArchiveError, MAX_ENTRIES},
    description::MAX_BRACKETS,
    source::oci::OciError,
};

/// Why no release was made. Nothing was written in that case. Where a line can be named, the message begins `file:line:`.
#[derive(Debug, Error)]
pub enum PackError {
    /// A file or directory of the stack could not be read.
    #[error("{}: unable to read it", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A stack that is not where it should be.
    #[error("{}: there is no such directory; give the directory of the stack, the one with csctl.yaml", .path.display())]
    NoStack {
        /// Where it should be.
        path: PathBuf,
    },
    /// Releases that would become part of the next release.
    #[error("{}: is inside of {}, which goes into the release; choose a directory for releases outside of it", .path.display(), .packed.display())]
    OutputInsideStack {
        /// The directory of releases.
        path: PathBuf,
        /// The part of the stack that it is in.
        packed: PathBuf,
    },
    /// A file that the stack needs.
    #[error("{}: missing; {advice}", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// Nobody can tell which of two templates counts.
    #[error("{}: is there beside {beside}; take one of the two out", .path.display())]
    TwoValues {
        /// The first of them.
        path: PathBuf,
        /// The name of the other one.
        beside: &'static str,
    },
    /// A file that looks like the template of the values of a chart that has none.
    #[error("{}: nobody reads this file, so the chart would get no values: did you mean {meant}?", .path.display())]
    UnreadValues {
        /// The file.
        path: PathBuf,
        /// The name that such a template has.
        meant: &'static str,
    },
    /// A link, device or oddly named file.
    #[error("{}: is {kind}; put a regular file there", .path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        kind: &'static str,
    },
    /// A file that no reader of the release would accept.
    #[error("{}: is larger than {limit} bytes; leave out what is not needed", .path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// A description that would keep the parser busy.
    #[error("{}:{line}: opens one bracket more than the {MAX_BRACKETS} that this file may have", .path.display())]
    TooManyBrackets {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
    },
    /// More files than any reader of the release would accept.
    #[error("{}: holds more than {MAX_ENTRIES} files; leave out what is generated", .path.display())]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
    },
    /// A YAML file that is no YAML or lacks a key.
    #[error("{}:{line}: is not what this file must be", .path.display())]
    ReadYaml {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// What the parser met.
        #[source]
        source: serde_yaml::Error,
    },
    /// One of the files that go into the release unchanged.
    #[error("{}: is not what this file must be", .path.display())]
    ReadReleaseFile {
        /// The file.
        path: PathBuf,
        /// What the parser met, and where.
        #[source]
        source: ReleaseFileError,
    },
    /// A setting of csctl.yaml that cannot be part of a tag.
    #[error("{}:{line}: unable to use {key}", .path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// The setting.
        key: &'static str,
        /// What is wrong with it.
        #[source]
        source: NameError,
    },
    /// A description in another language.
    #[error("{}:{line}: apiVersion is {found:?}; write {expected:?}", .path.display())]
    ApiVersion {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// What it says.
        found: String,
        /// What it must say.
        expected: &'static str,
    },
    /// A Kubernetes version without patch or without its `v`.
    #[error("{}:{line}: kubernetesVersion is {found:?}; write the full version, such as v1.34.2", .path.display())]
    KubernetesVersion {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// What it says.
        found: String,
    },
    /// A placeholder that nothing is known for.
    #[error("{}:{line}: nothing is known for {found:?}; there are {}", .path.display(), Placeholder::known())]
    UnknownPlaceholder {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// The placeholder with its marks.
        found: String,
    },
    /// A chart whose name does not give the file name that readers look for.
    #[error("{}:{line}: the chart is named {found:?}; name it {expected:?}", .path.display())]
    ChartName {
        /// The `Chart.yaml`.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// Its name.
        found: String,
        /// The name that it must have.
        expected: String,
    },
    /// A chart whose version could not be set.
    #[error("{}: unable to set the version; write `version: v0` on a line of its own", .path.display())]
    ChartVersion {
        /// The `Chart.yaml`.
        path: PathBuf,
    },
    /// A chart that would have to be completed from the internet at run time.
    #[error(
        "{}:{line}: the dependency {dependency:?} is not in charts/; run `helm dependency build {}`, or name the directory that has it with --charts{}",
        .path.display(), .chart.display(), fetched(.registry.as_deref())
    )]
    MissingDependency {
        /// The `Chart.yaml`.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// Name of the dependency.
        dependency: String,
        /// Directory of the chart.
        chart: PathBuf,
        /// The registry that it names, if it names one.
        registry: Option<String>,
    },
    /// A chart that is neither there nor where charts are taken from in a version that fits.
    #[error("{}:{line}: the dependency {dependency:?} of version {range:?} is not in charts/; {found}: {advice}", .path.display())]
    NotSupplied {
        /// The `Chart.yaml`.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// Name of the dependency.
        dependency: String,
        /// The versions that fit.
        range: String,
        // These two without room to grow: no other error has so many parts, and every result of packing is as large as the largest.
        /// What is where it was looked for.
        found: Box<str>,
        /// What to do.
        advice: Box<str>,
    },
    /// A chart that its registry did not give.
    #[error("{}:{line}: unable to fetch the dependency {dependency:?} of version {range:?}{advice}", .path.display())]
    Fetch {
        /// The `Chart.yaml`.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// Name of the dependency.
        dependency: String,
        /// The versions that fit.
        range: String,
        /// What to do, where the cause does not say it.
        advice: String,
        /// Why.
        #[source]
        source: Box<OciError>,
    },
    /// A chart of a registry that cannot be read.
    #[error("{reference}: is not the archive of a chart")]
    FetchedArchive {
        /// The chart, as the registry has it.
        reference: String,
        /// What is wrong with it.
        #[source]
        source: ArchiveError,
    },
    /// Something else than what was asked for.
    #[error("{reference}: has {found}, and not the chart {wanted}; push that under this tag")]
    OtherChart {
        /// The chart, as the registry has it.
        reference: String,
        /// What is in the archive.
        found: String,
        /// What should be.
        wanted: String,
    },
    /// Nobody can be asked.
    #[error("failed to make ready for asking registries")]
    Asking {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Charts that need charts that need charts.
    #[error("{}: the dependency {dependency:?} is too deep in others; charts that need each other cannot be used", .path.display())]
    DeepCharts {
        /// The `Chart.yaml`.
        path: PathBuf,
        /// Name of the dependency.
        dependency: String,
    },
    /// The archive of a chart that cannot be read.
    #[error("{}: is not the archive of a chart", .path.display())]
    ChartArchive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: ArchiveError,
    },
    /// A pattern of .helmignore that Helm does not understand either.
    #[error("{}:{line}: the pattern {pattern:?} is not supported; use *, ? and [...] within one directory", .path.display())]
    IgnorePattern {
        /// The `.helmignore`.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
        /// The pattern.
        pattern: String,
    },
    /// A list of stages that would not do what is meant.
    #[error("{faults}")]
    AddonStages {
        /// All that is wrong with it.
        faults: Faults,
    },
    /// A node image that is to be built.
    #[error("{}:{line}: the image has an imageDir but no url; build and upload it first, then write its url", .path.display())]
    UnbuiltImage {
        /// The file.
        path: PathBuf,
        /// Line in it, from 1.
        line: usize,
    },
    /// A stem and a version that make no tag.
    #[error("unable to name the release")]
    Tag {
        /// What is wrong.
        #[source]
        source: NameError,
    },
    /// The release before has no versions to go on from.
    #[error("{}: unable to go on from this release; repair it or give the version", .path.display())]
    PreviousRelease {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: ReleaseFileError,
    },
    /// The release could not be written.
    #[error("{}: unable to write it", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What was made would not be accepted by its readers.
    #[error("the release {tag} would not be accepted")]
    Unusable {
        /// The release.
        tag: ReleaseTag,
        /// Why.
        #[source]
        source: Box<ReleaseError>,
    },
    /// The output has another release of this name.
    #[error("{}: holds this release with other content; a release never changes: choose the next version, or remove it if nobody has it yet", .path.display())]
    OtherRelease {
        /// Its directory.
        path: PathBuf,
    },
}

/// What to do besides, as a part of a sentence.
fn fetched(registry: Option<&str>) -> String {
    registry.map_or_else(String::new, |registry| {
        format!(", or have it fetched with --chart-registry {registry}")
    })
}

impl PackError {
    pub(super) fn read_yaml(path: PathBuf, source: serde_yaml::Error) -> Self {
        let line = source.location().map_or(1, |location| location.line());
        Self::ReadYaml { path, line, source }
    }
}
