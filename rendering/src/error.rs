//! Why there is no rendering, and whether trying again can help.

use std::error::Error;
use std::io;
use std::time::Duration;

use helm::ManifestError;
use helm::chart::LoadError;

use crate::ObjectError;
use crate::answers::Lookup;

/// Why there is no rendering. The sources have the engine's own words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The caller could not read the chart.
    #[error("failed to read the chart {chart}")]
    ReadChart {
        /// [What the chart is](crate::RenderRequest::identity).
        chart: String,
        /// The caller's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// What was read is no chart, or breaks a limit.
    #[error("unable to load the chart {chart}")]
    LoadChart {
        /// [What the chart is](crate::RenderRequest::identity).
        chart: String,
        /// What is wrong with it.
        #[source]
        source: LoadError,
    },
    /// The chart may be right, but the function is random or tells the time: nobody answers that here, because
    /// every rendering has to give the same bytes.
    #[error("the chart needs Helm's function {function:?}, which is not answered here")]
    MissingFunction {
        /// The name of the function.
        function: &'static str,
        /// Where it is called.
        #[source]
        source: helm::RenderError,
    },
    /// The chart is not whole. Who makes releases can see to that, and nobody else.
    #[error(
        "the chart needs {}, which its folder charts/ does not have: make the release again with `kubectl stacks release create --charts DIR`, \
         which takes what is missing from DIR, or with `--chart-registry OCI`, which fetches it from there", .dependencies.join(", ")
    )]
    MissingDependencies {
        /// The names of the charts that are not there.
        dependencies: Vec<String>,
    },
    /// The templates look up objects of the cluster that are not among those that were [found](crate::answers::Answers::found). Nothing is
    /// wrong: render again with them.
    #[error("the chart looks up objects of the cluster that nobody has looked for yet: {}", named(.lookups))]
    Needs {
        /// All that was asked in this render, before it made keys. With their answers it may ask for others.
        lookups: Vec<Lookup>,
    },
    /// A file of `crds/` is no YAML.
    #[error("unable to read what the chart has in crds/")]
    ReadCrds(#[source] ManifestError),
    /// Templates, values or manifests are wrong.
    #[error("unable to render the chart as release {release:?}")]
    RenderChart {
        /// The name of the release.
        release: String,
        /// What is wrong, in Helm's words.
        #[source]
        source: helm::RenderError,
    },
    /// The chart takes too long for the quick lane.
    #[error("the chart takes more than {limit:?} to render as release {release:?}")]
    TooSlow {
        /// The name of the release.
        release: String,
        /// How long they had.
        limit: Duration,
    },
    /// The process that renders Tera templates could not be had, or was lost.
    #[error("unable to render the Tera templates of release {release:?}")]
    Tera {
        /// The name of the release.
        release: String,
        /// What failed.
        #[source]
        source: helm::RenderError,
    },
    /// The templates ran too long.
    #[error("the templates of release {release:?} did not end within {limit:?}, so they were stopped")]
    Deadline {
        /// The name of the release.
        release: String,
        /// How long they had.
        limit: Duration,
        /// Where they were stopped.
        #[source]
        source: helm::RenderError,
    },
    /// The chart took too long to load.
    #[error("the chart {chart} was not loaded within {limit:?}")]
    LoadDeadline {
        /// [What the chart is](crate::RenderRequest::identity).
        chart: String,
        /// How long it had.
        limit: Duration,
    },
    /// The system has no thread for the deadline.
    #[error("unable to watch how long templates run")]
    Watch(#[source] io::Error),
    /// A manifest is no object that can be applied.
    #[error("unable to use what the chart renders")]
    UseManifest(#[source] ObjectError),
}

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// It can.
    Transient,
    /// Only another chart or other values can.
    Terminal,
}

impl RenderError {
    /// Whether trying again can help.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::ReadChart { .. }
            | Self::Needs { .. }
            | Self::TooSlow { .. }
            | Self::Tera { .. }
            | Self::Deadline { .. }
            | Self::LoadDeadline { .. }
            | Self::Watch(_) => ErrorClass::Transient,
            Self::LoadChart { .. }
            | Self::MissingFunction { .. }
            | Self::MissingDependencies { .. }
            | Self::ReadCrds(_)
            | Self::RenderChart { .. }
            | Self::UseManifest(_) => ErrorClass::Terminal,
        }
    }

    /// The template that the error is about, as `chart/templates/name.yaml`, and the line in it where one is known, from 1.
    pub fn place(&self) -> Option<(&str, Option<usize>)> {
        match self {
            Self::MissingFunction { source, .. }
            | Self::RenderChart { source, .. }
            | Self::Tera { source, .. }
            | Self::Deadline { source, .. } => source.place(),
            Self::UseManifest(source) => Some((source.template(), None)),
            Self::ReadCrds(source) => Some((&source.source_file, source.line)),
            Self::ReadChart { .. }
            | Self::MissingDependencies { .. }
            | Self::Needs { .. }
            | Self::LoadChart { .. }
            | Self::LoadDeadline { .. }
            | Self::TooSlow { .. }
            | Self::Watch(_) => None,
        }
    }
}

/// Objects for people, a few of them.
fn named(lookups: &[Lookup]) -> String {
    let name = |lookup: &Lookup| {
        let Lookup {
            api_version,
            kind,
            namespace,
            name,
        } = lookup;
        let name = if name.is_empty() { "*" } else { name };
        format!("{api_version} {kind} {namespace}/{name}")
    };
    let mut names: Vec<String> = lookups.iter().take(SHOWN).map(name).collect();
    names.extend((lookups.len() > SHOWN).then(|| format!("{} more", lookups.len() - SHOWN)));
    names.join(", ")
}

/// So many objects are named.
const SHOWN: usize = 5;
