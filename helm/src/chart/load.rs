//! What each file of a chart is, and the errors of charts that cannot be loaded. Error texts are Helm's where Helm has them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::archive::{self, ArchiveLimits, Budget};
use super::ignore::{IgnoreError, IgnoreRules};
use super::metadata::{Lock, Metadata};
use super::values::Defaults;
use super::{File, Loaded};
use crate::bounds::{self, Apart, BoundError};
use crate::fields::{Struct, decode};
use crate::profile::Profile;
use crate::render::FileProblem;
use crate::schema::Schema;
use crate::warning::Said;
use crate::yaml;

/// Why a chart cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are not a gzipped tar archive, or it is damaged.
    #[error("failed to read the chart archive")]
    ReadArchive(#[source] io::Error),
    /// The archive or the list has no files.
    #[error("no files in chart archive")]
    Empty,
    /// All files together are too large.
    #[error("decompressed chart is larger than the maximum file size {limit}")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// One file is too large.
    #[error("decompressed chart file {name:?} is larger than the maximum file size {limit}")]
    FileTooLarge {
        /// The file as the archive names it.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The values of all charts together take too much memory.
    #[error("values of the charts take more than {limit} bytes")]
    TooMuchMemory {
        /// The limit, about what they may take once read.
        limit: usize,
    },
    /// Reading the files takes too long.
    #[error("loading the chart takes more than {limit} steps")]
    TooManySteps {
        /// The limit that was given.
        limit: u64,
    },
    /// Too many files and directories.
    #[error("chart has more than {limit} files")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// A name starts with `/`.
    #[error("chart illegally contains absolute paths")]
    AbsolutePath,
    /// A name leads out of the chart.
    #[error("chart illegally references parent directory")]
    ParentDirectory,
    /// A file lies beside the folder of the chart.
    #[error("chart illegally contains content outside the base directory: {name:?}")]
    OutsideBaseDirectory {
        /// The file as the archive names it.
        name: String,
    },
    /// A name starts with a Windows drive.
    #[error("chart contains illegally named files")]
    DriveLetter,
    /// The archive has no folder around the files.
    #[error("chart yaml not in base directory")]
    NoBaseDirectory,
    /// There is no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    NoMetadata,
    /// A file that every chart has the same meaning for cannot be read.
    #[error("cannot load {file}: {problem}")]
    ReadFile {
        /// The file, relative to its chart.
        file: &'static str,
        /// What is wrong, in Helm's words.
        problem: String,
        /// Whether that is a limit that Helm does not have.
        is_limit: bool,
    },
    /// `Chart.yaml` can be read but says something that is not allowed.
    #[error("validation: {0}")]
    Invalid(String),
    /// Charts nest too deeply.
    #[error("charts nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// `.helmignore` has a pattern that is not allowed.
    #[error("failed to read .helmignore")]
    Ignore(#[source] IgnoreError),
    /// Somebody raised the flag of the limits.
    #[error("loading the chart was cancelled")]
    Cancelled,
    /// A chart inside this one cannot be loaded.
    #[error("error unpacking subchart {name} in {parent}: {problem}")]
    Subchart {
        /// The folder or archive under `charts/`.
        name: String,
        /// The chart that holds it.
        parent: String,
        /// Why.
        problem: Box<Self>,
    },
}

impl LoadError {
    /// Whether a limit was met that Helm does not have.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::TooMuchMemory { .. } | Self::TooManySteps { .. } | Self::TooManyEntries { .. } | Self::TooDeep => {
                true
            }
            Self::ReadFile { is_limit, .. } => *is_limit,
            Self::Ignore(source) => source.is_limit(),
            Self::Subchart { problem, .. } => problem.is_limit(),
            _ => false,
        }
    }

    /// What `helm template` of a profile says, without `Error: `. Loading knows no profile, but its words differ.
    pub fn helm_text(&self, profile: &Profile) -> String {
        self.text_at(0, profile)
    }

    /// What is said of a chart that lies that deep; only the outermost one is looked at twice, first for its version.
    fn text_at(&self, depth: usize, profile: &Profile) -> String {
        let words = &profile.error_words;
        match self {
            Self::ReadFile { file, problem, .. } => {
                let problem = match (depth, *file) {
                    (0, "Chart.yaml") => words.first_look(problem),
                    _ => problem.clone(),
                };
                let problem = problem.replace("*chart.", &format!("*{}", words.metadata_package));
                let problem = problem.replace("type chart.", &format!("type {}", words.metadata_package));
                format!("cannot load {file}: {problem}")
            }
            Self::Ignore(source) => source.to_string(),
            Self::ReadArchive(cause) => archive_words(cause).to_owned(),
            Self::Subchart { name, parent, problem } => {
                format!(
                    "error unpacking subchart {name} in {parent}: {}",
                    problem.text_at(depth + 1, profile)
                )
            }
            _ => self.to_string(),
        }
    }
}

impl LoadError {
    /// The same about the file that is wrong, in the words of a profile.
    pub fn located(&self, profile: &Profile) -> FileProblem {
        self.located_at(0, profile)
    }

    fn located_at(&self, depth: usize, profile: &Profile) -> FileProblem {
        let file = match self {
            Self::Subchart { name, problem, .. } => {
                let inner = problem.located_at(depth + 1, profile);
                let separator = if inner.file.is_empty() { "" } else { "/" };
                let file = format!("charts/{name}{separator}{}", inner.file);
                return FileProblem { file, ..inner };
            }
            Self::ReadFile { file, .. } => *file,
            Self::NoMetadata | Self::Invalid(_) => "Chart.yaml",
            Self::Ignore(_) => ".helmignore",
            _ => "",
        };
        FileProblem::new(file.to_owned(), None, self.text_at(depth, profile))
    }
}

/// What Go says of an archive that is damaged.
fn archive_words(cause: &io::Error) -> &'static str {
    let text = cause.to_string();
    let says = |words: &str| text.contains(words);
    if text == archive::NO_BYTES {
        "EOF"
    } else if cause.kind() == io::ErrorKind::UnexpectedEof || says("entire block") {
        "unexpected EOF"
    } else if says("gzip header") {
        "gzip: invalid header"
    } else if says("gzip stream") {
        "gzip: invalid checksum"
    } else if says("deflate") {
        "flate: corrupt input"
    } else {
        "archive/tar: invalid tar header"
    }
}

/// Charts nested deeper are refused.
const MAX_DEPTH: usize = 20;

/// About what a chart takes in a render besides its values and templates, and a template besides its text.
const PER_CHART: usize = 8 << 10;
const PER_TEMPLATE: usize = 1 << 10;

/// Loads within limits. Whatever went wrong after the flag was raised, or the steps were spent, went wrong because of that.
fn within(
    limits: &ArchiveLimits,
    load: impl FnOnce(&mut Budget<'_>) -> Result<Loaded, LoadError>,
) -> Result<Loaded, LoadError> {
    let _apart = Apart::within(limits.steps, Some(Arc::clone(&limits.cancelled)));
    let mut budget = Budget::new(limits);
    let loaded = load(&mut budget);
    budget.check()?;
    loaded
}

impl Loaded {
    pub(super) fn from_archive(archive: &[u8], limits: &ArchiveLimits) -> Result<Self, LoadError> {
        within(limits, |budget| {
            let files = archive::unpack(archive, budget)?;
            Self::from_files(files, budget, 0)
        })
    }

    pub(super) fn from_directory(files: Vec<(String, Vec<u8>)>, limits: &ArchiveLimits) -> Result<Self, LoadError> {
        within(limits, |budget| {
            for (name, data) in &files {
                budget.take(name, data.len() as u64)?;
                if name.starts_with('/') {
                    return Err(LoadError::AbsolutePath);
                }
                if archive::clean(name) != *name || name.starts_with("..") {
                    return Err(LoadError::ParentDirectory);
                }
            }
            let written = files.iter().find(|(name, _)| name == ".helmignore");
            let rules = IgnoreRules::parse(written.map_or(&[], |(_, data)| data)).map_err(LoadError::Ignore)?;
            let mut kept = Vec::new();
            for (name, data) in files {
                budget.check()?;
                if !rules.ignore(&name).map_err(LoadError::Ignore)? {
                    let data = data.into();
                    kept.push(File { name, data });
                }
            }
            Self::from_files(kept, budget, 0)
        })
    }

    /// What is said of its files and of those of the charts below.
    pub(crate) fn warnings(&self) -> Box<dyn Iterator<Item = &Said> + '_> {
        let below = self.dependencies.iter().flat_map(|chart| chart.warnings());
        Box::new(self.warnings.iter().chain(below))
    }

    /// Whether Helm of a profile takes the files of the chart and of all below it for what they should be.
    pub(crate) fn check(&self, profile: &Profile) -> Result<(), LoadError> {
        if let Err(problem) = self.values.read_as(profile.values_files) {
            return Err(LoadError::ReadFile {
                file: "values.yaml",
                problem: problem.to_owned(),
                is_limit: bounds::is_met(),
            });
        }
        let version = self.metadata.check_version(profile.versions);
        version.map_err(LoadError::Invalid)?;
        self.dependencies.iter().try_for_each(|chart| {
            chart.check(profile).map_err(|problem| LoadError::Subchart {
                name: chart.folder.clone(),
                parent: self.metadata.name.clone(),
                problem: Box::new(problem),
            })
        })
    }

    fn from_files(mut files: Vec<File>, budget: &mut Budget<'_>, depth: usize) -> Result<Self, LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::TooDeep);
        }
        for file in &mut files {
            if let Some(data) = file.data.strip_prefix(b"\xef\xbb\xbf") {
                file.data = data.into();
            }
        }
        let kept_before = budget.kept();
        let mut parts = Parts::default();
        let mut metadata = None;
        for file in files.iter().filter(|file| file.name == "Chart.yaml") {
            let metadata = metadata.get_or_insert_with(Metadata::default);
            read("Chart.yaml", &file.data, metadata, budget)?;
        }
        let described = budget.kept() - kept_before;
        let mut metadata = metadata.ok_or(LoadError::NoMetadata)?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
        for file in files {
            budget.check()?;
            parts.add(file, &mut metadata, budget)?;
        }
        metadata.validate().map_err(LoadError::Invalid)?;
        let mut dependencies = Vec::new();
        for (name, files) in parts.subcharts {
            if let Some(chart) = subchart(&name, files, &metadata, budget, depth)? {
                dependencies.push(Arc::new(chart));
            }
        }
        let memory = described + parts.values.memory() + PER_CHART + PER_TEMPLATE * parts.templates.len();
        Ok(Self {
            memory,
            folder: String::new(),
            metadata: Arc::new(metadata),
            values: parts.values,
            templates: parts.templates,
            files: parts.files.into(),
            schema: parts.schema,
            dependencies,
            warnings: parts.warnings,
        })
    }
}

/// The files of a chart by what they are for.
#[derive(Default)]
struct Parts {
    values: Defaults,
    templates: Vec<File>,
    files: Vec<File>,
    schema: Option<Schema>,
    subcharts: BTreeMap<String, Vec<File>>,
    warnings: Vec<Said>,
}

impl Parts {
    fn add(&mut self, file: File, metadata: &mut Metadata, budget: &mut Budget<'_>) -> Result<(), LoadError> {
        let first_version = metadata.api_version == "v1";
        let File { name, data } = &file;
        match name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => {
                read("Chart.lock", data, &mut Lock::default(), budget)?;
            }
            "values.yaml" => {
                self.values = Defaults::new(data);
                budget.keep(self.values.memory())?;
            }
            "values.schema.json" => self.schema = Some(Schema::new(Arc::clone(data))),
            "requirements.yaml" => {
                read("requirements.yaml", data, metadata, budget)?;
                self.keep_old(first_version, file, Said::OldRequirements);
            }
            "requirements.lock" => {
                read("requirements.lock", data, &mut Lock::default(), budget)?;
                self.keep_old(first_version, file, Said::OldLock);
            }
            _ if name.starts_with("templates/") => self.templates.push(file),
            _ => match name.strip_prefix("charts/") {
                Some(inner) if !has_extension(name, "prov") => {
                    let chart = inner.split('/').next().unwrap_or_default().to_owned();
                    let name = inner.to_owned();
                    self.subcharts.entry(chart).or_default().push(File { name, ..file });
                }
                _ => self.keep_if(true, file),
            },
        }
        Ok(())
    }

    /// A file that only charts of the first version should have.
    fn keep_old(&mut self, first_version: bool, file: File, said: Said) {
        self.warnings.extend((!first_version).then_some(said));
        self.keep_if(first_version, file);
    }

    fn keep_if(&mut self, keep: bool, file: File) {
        if keep {
            self.files.push(file);
        }
    }
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found == extension)
}

fn read<T: Struct>(file: &'static str, data: &[u8], target: &mut T, budget: &mut Budget<'_>) -> Result<(), LoadError> {
    let failed = |problem, is_limit| LoadError::ReadFile {
        file,
        problem,
        is_limit,
    };
    let document = yaml::read(data).map_err(|error| {
        let is_limit = matches!(&error, yaml::Error::Bound(bound) if *bound != BoundError::Cancelled);
        failed(yaml::convert_error(error), is_limit)
    })?;
    let document = document.node;
    budget.keep(document.memory())?;
    decode(&document, target).map_err(|problem| failed(problem, false))
}

/// The chart in one folder or archive under `charts/`; nothing for a name that hides it.
fn subchart(
    name: &str,
    files: Vec<File>,
    parent: &Metadata,
    budget: &mut Budget<'_>,
    depth: usize,
) -> Result<Option<Loaded>, LoadError> {
    if name.starts_with(['_', '.']) {
        return Ok(None);
    }
    let loaded = if has_extension(name, "tgz") {
        let archive = files
            .first()
            .filter(|file| file.name == name)
            .map_or(&[][..], |file| &*file.data);
        archive::unpack(archive, budget).and_then(|files| Loaded::from_files(files, budget, depth + 1))
    } else {
        // A file that lies directly under charts/ is no chart.
        let inner = files.into_iter().filter_map(|file| {
            let (_, name) = file.name.split_once('/')?;
            let name = name.to_owned();
            Some(File { name, ..file })
        });
        Loaded::from_files(inner.collect(), budget, depth + 1)
    };
    match loaded {
        Ok(chart) => Ok(Some(Loaded {
            folder: name.to_owned(),
            ..chart
        })),
        Err(problem) => Err(LoadError::Subchart {
            name: name.to_owned(),
            parent: parent.name.clone(),
            problem: Box::new(problem),
        }),
    }
}
