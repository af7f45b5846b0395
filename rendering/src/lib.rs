//! Charts to Kubernetes objects: the only caller of the chart engine.
//!
//! Decides which engine renders which file, what an object must have to be one, and what is kept of past renderings. It knows neither a
//! cluster nor a disk: the bytes of a chart come from the caller, and only when they are needed.

mod cache;
mod deadline;
mod digest;
mod objects;
mod tera;

use std::error::Error;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helm::chart::{ArchiveLimits, LoadError};
use helm::{Chart, OtherLanguage, Profile, RenderOptions};
use serde_json::Value;

use cache::{Cache, Key};
use tera::TeraLanguage;

pub use crds::policy::HelmProfile;
pub use objects::ObjectError;

/// How long the templates of one chart may run. Real charts take milliseconds; their steps are limited too, so only a machine that has
/// no time for them, or steps that take far longer than usual, come this far.
const DEADLINE: Duration = Duration::from_secs(20);

/// Renders charts, and keeps what it rendered up to a number of bytes. One for the whole process.
pub struct Renderer {
    cache: Cache,
    /// Held while templates run. Renderings take milliseconds, and one at a time takes a tenth of the memory of eight. The chart that was
    /// rendered last stays loaded: the clusters of a class ask for it one after the other, each with its own values.
    turn: Mutex<Option<LoadedChart>>,
    deadline: Duration,
    tera: Arc<dyn OtherLanguage>,
}

struct LoadedChart {
    digest: String,
    chart: Chart,
}

/// What to render. Equal requests have equal answers; only `chart` is not looked at to tell them apart.
#[derive(Clone, Copy)]
pub struct RenderRequest<'a> {
    /// The digest of the chart's archive, which the caller has verified.
    pub chart_digest: &'a str,
    /// Reads the archive (`.tgz`); called when neither the rendering is in the cache nor the chart the one that was rendered last.
    pub chart: &'a dyn Fn() -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>,
    /// `.Release.Name`
    pub release_name: &'a str,
    /// `.Release.Namespace`
    pub namespace: &'a str,
    /// The Kubernetes version to render for; what the Helm version assumes when absent.
    pub kubernetes_version: Option<&'a str>,
    /// API versions (`group/version` or `group/version/Kind`) besides those that the Helm version knows.
    pub api_versions: &'a [String],
    /// Whose behaviour to follow.
    pub profile: HelmProfile,
    /// The values over the chart's defaults: an object, or null for none.
    pub values: &'a Value,
}

/// What a chart asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// In Helm's order of installation; hooks, which are objects like all others here, at the end.
    pub objects: Vec<RenderedObject>,
    /// What is strange but no error, one sentence each.
    pub warnings: Vec<String>,
    /// `sha256:<hex>` over the digests of the objects in their order.
    pub digest: String,
}

/// One object as the chart wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedObject {
    /// The object, with apiVersion, kind and metadata.name.
    pub value: Value,
    /// `sha256:<hex>` of the canonical JSON of the object.
    pub digest: String,
    /// The template that it came from: `chart/templates/name.yaml`.
    pub source: String,
}

/// Why there is no rendering. The sources have the engine's own words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The caller could not read the archive.
    #[error("failed to read the chart {digest}")]
    ReadChart {
        /// The digest of the archive.
        digest: String,
        /// The caller's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The archive is no chart, or breaks a limit.
    #[error("unable to load the chart {digest}")]
    LoadChart {
        /// The digest of the archive.
        digest: String,
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
    /// Templates, values or manifests are wrong.
    #[error("unable to render the chart as release {release:?}")]
    RenderChart {
        /// The name of the release.
        release: String,
        /// What is wrong, in Helm's words.
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
            Self::ReadChart { .. } | Self::Deadline { .. } | Self::Watch(_) => ErrorClass::Transient,
            Self::LoadChart { .. } | Self::MissingFunction { .. } | Self::RenderChart { .. } | Self::UseManifest(_) => {
                ErrorClass::Terminal
            }
        }
    }

    /// The template that the error is about, as `chart/templates/name.yaml`, and the line in it where one is known, from 1.
    pub fn place(&self) -> Option<(&str, Option<usize>)> {
        match self {
            Self::MissingFunction { source, .. } | Self::RenderChart { source, .. } | Self::Deadline { source, .. } => {
                source.place()
            }
            Self::UseManifest(source) => Some((source.template(), None)),
            Self::ReadChart { .. } | Self::LoadChart { .. } | Self::Watch(_) => None,
        }
    }
}

/// The engine's name for the Helm version of a stack.
fn engine_profile(profile: HelmProfile) -> &'static Profile {
    match profile {
        HelmProfile::V3_19 => Profile::V3_19,
        HelmProfile::V4_1 => Profile::V4_1,
        HelmProfile::V4_2 => Profile::V4_2,
        HelmProfile::V4_3 => Profile::V4_3,
    }
}

impl Renderer {
    /// A renderer that keeps renderings of about `cache_bytes` in memory; 0 keeps none.
    pub fn new(cache_bytes: usize) -> Self {
        Self {
            cache: Cache::new(cache_bytes),
            turn: Mutex::default(),
            deadline: DEADLINE,
            tera: Arc::new(TeraLanguage),
        }
    }

    /// The same renderer, but with another time for the templates of one chart; 20 seconds otherwise.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Renders a chart, or finds what it rendered before. Blocks while templates run, also those of others: one
    /// chart is rendered at a time, and none longer than the deadline.
    pub fn render(&self, request: &RenderRequest<'_>) -> Result<Arc<Rendered>, RenderError> {
        let key = Key::of(request);
        if let Some(rendered) = self.cache.get(&key) {
            return Ok(rendered);
        }
        // A panic while templates run leaves nothing behind, so the poison means nothing.
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have rendered the same while this waited.
        if let Some(rendered) = self.cache.get(&key) {
            return Ok(rendered);
        }
        let rendered = Arc::new(self.render_anew(request, &loaded(request, &mut turn)?)?);
        self.cache.insert(key, &rendered);
        Ok(rendered)
    }

    fn render_anew(&self, request: &RenderRequest<'_>, chart: &Chart) -> Result<Rendered, RenderError> {
        let over = Arc::<AtomicBool>::default();
        let options = RenderOptions {
            kube_version: request.kubernetes_version.map(str::to_owned),
            api_versions: request.api_versions.to_vec(),
            profile: engine_profile(request.profile),
            other_language: Some(Arc::clone(&self.tera)),
            cancelled: Arc::clone(&over),
            ..RenderOptions::new(request.release_name, request.namespace)
        };
        let values = objects::to_node(request.values);
        let release = || request.release_name.to_owned();
        let rendering = deadline::within(self.deadline, &over, || chart.render(&values, &options))
            .map_err(RenderError::Watch)?
            .map_err(|source| match source.lacks() {
                _ if source.is_cancelled() => RenderError::Deadline {
                    release: release(),
                    limit: self.deadline,
                    source,
                },
                Some(function) => RenderError::MissingFunction { function, source },
                None => RenderError::RenderChart {
                    release: release(),
                    source,
                },
            })?;
        objects::collect(rendering, request.namespace).map_err(RenderError::UseManifest)
    }
}

/// The chart of a request, which takes the place of the one that was rendered last.
fn loaded(request: &RenderRequest<'_>, last: &mut Option<LoadedChart>) -> Result<Chart, RenderError> {
    let digest = || request.chart_digest.to_owned();
    if let Some(last) = last.as_ref().filter(|last| last.digest == request.chart_digest) {
        return Ok(last.chart.clone());
    }
    // What it takes is free before the other one is loaded.
    *last = None;
    let archive = (request.chart)().map_err(|source| RenderError::ReadChart {
        digest: digest(),
        source,
    })?;
    let chart = Chart::from_archive(&archive, &ArchiveLimits::default()).map_err(|source| RenderError::LoadChart {
        digest: digest(),
        source,
    })?;
    *last = Some(LoadedChart {
        digest: digest(),
        chart: chart.clone(),
    });
    Ok(chart)
}
