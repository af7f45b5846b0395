//! Charts to Kubernetes objects: the only caller of the chart engine.
//!
//! Decides which engine renders which file, what an object must have to be one, and what is kept of past renderings. It knows neither a
//! cluster nor a disk: the bytes of a chart come from the caller, and only when they are needed. Templates of an engine that cannot be
//! bounded run in a process of their own ([`serve_tera`]).

mod cache;
mod deadline;
mod digest;
mod objects;
mod tera;

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helm::chart::{ArchiveLimits, LoadError};
use helm::{Chart, Profile, RenderOptions, RenderProblem};
use isolation::Program;
use serde_json::Value;

use cache::{Cache, Key};
use tera::{TeraError, TeraLanguage};

pub use crds::policy::HelmProfile;
pub use objects::ObjectError;
pub use tera::serve_tera;

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
    tera: Program,
    /// The digests of charts whose Tera templates take too long for the quick lane.
    slow: Mutex<BTreeSet<String>>,
    counters: Counters,
}

/// What became of requests since a renderer was made. One that is too slow for its lane is in none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renderings {
    /// Found among what was rendered before.
    pub cached: u64,
    /// Rendered.
    pub rendered: u64,
    /// Not rendered, because something is wrong with the chart or with the machine.
    pub failed: u64,
}

/// The same, while it changes.
#[derive(Default)]
struct Counters {
    cached: AtomicU64,
    rendered: AtomicU64,
    failed: AtomicU64,
}

/// Where a chart is rendered. Charts without Tera templates belong into the quick one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// One chart at a time. Tera templates have half a second for all of a chart; those that take longer are
    /// [`RenderError::TooSlow`] and belong into the other lane. Which those are is remembered, so that they take that time from others once.
    Quick,
    /// Beside the others, with four seconds for Tera templates. Each caller loads a chart and starts a process of its own: how many do so
    /// at once is up to them.
    Slow,
}

/// How many slow charts are remembered. Forgotten ones cost others half a second.
const MAX_SLOW: usize = 1_000;

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
    /// The Tera templates take too long for the quick lane.
    #[error("the Tera templates of release {release:?} take more than {limit:?}")]
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
            | Self::TooSlow { .. }
            | Self::Tera { .. }
            | Self::Deadline { .. }
            | Self::Watch(_) => ErrorClass::Transient,
            Self::LoadChart { .. } | Self::MissingFunction { .. } | Self::RenderChart { .. } | Self::UseManifest(_) => {
                ErrorClass::Terminal
            }
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
            Self::ReadChart { .. } | Self::LoadChart { .. } | Self::TooSlow { .. } | Self::Watch(_) => None,
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
            tera: tera::itself(),
            slow: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// The same renderer, but with another time for the templates of one chart; 20 seconds otherwise.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same renderer, but Tera templates are rendered by another program that calls [`serve_tera`], and not by this one.
    #[must_use]
    pub fn with_tera_of(self, program: &Path) -> Self {
        Self {
            tera: tera::at(program),
            ..self
        }
    }

    /// Renders a chart, or finds what it rendered before. Blocks while templates run, also those of others in the quick lane, and none
    /// longer than the deadline. What did not end in time is not kept.
    pub fn render(&self, request: &RenderRequest<'_>, lane: Lane) -> Result<Rendered, RenderError> {
        let key = Key::of(request);
        if let Some(rendered) = self.cached(&key) {
            return Ok(rendered);
        }
        match lane {
            Lane::Quick => self.render_in_turn(request, key),
            Lane::Slow => self.render_anew(request, key, &mut None, lane),
        }
    }

    /// What became of all requests so far.
    pub fn renderings(&self) -> Renderings {
        let Counters {
            cached,
            rendered,
            failed,
        } = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Renderings {
            cached: read(cached),
            rendered: read(rendered),
            failed: read(failed),
        }
    }

    fn cached(&self, key: &Key) -> Option<Rendered> {
        let rendered = self.cache.get(key)?;
        self.counters.cached.fetch_add(1, Ordering::Relaxed);
        Some(rendered)
    }

    fn render_in_turn(&self, request: &RenderRequest<'_>, key: Key) -> Result<Rendered, RenderError> {
        let mut turn = lock(&self.turn);
        // Somebody may have rendered the same while this waited.
        if let Some(rendered) = self.cached(&key) {
            return Ok(rendered);
        }
        if lock(&self.slow).contains(request.chart_digest) {
            return Err(too_slow(request));
        }
        let rendered = self.render_anew(request, key, &mut turn, Lane::Quick);
        if let Err(RenderError::TooSlow { .. }) = rendered {
            self.remember_as_slow(request.chart_digest);
        }
        rendered
    }

    fn remember_as_slow(&self, chart_digest: &str) {
        let mut slow = lock(&self.slow);
        if slow.len() >= MAX_SLOW {
            slow.clear();
        }
        slow.insert(chart_digest.to_owned());
    }

    fn render_anew(
        &self,
        request: &RenderRequest<'_>,
        key: Key,
        last: &mut Option<LoadedChart>,
        lane: Lane,
    ) -> Result<Rendered, RenderError> {
        let rendered = self.render_and_keep(request, key, last, lane);
        match &rendered {
            Ok(_) => self.counters.rendered.fetch_add(1, Ordering::Relaxed),
            Err(RenderError::TooSlow { .. }) => 0,
            Err(_) => self.counters.failed.fetch_add(1, Ordering::Relaxed),
        };
        rendered
    }

    /// Renders the chart, which takes the place of the one that was rendered last, and keeps what comes of it.
    fn render_and_keep(
        &self,
        request: &RenderRequest<'_>,
        key: Key,
        last: &mut Option<LoadedChart>,
        lane: Lane,
    ) -> Result<Rendered, RenderError> {
        let chart = loaded(request, last)?;
        let over = Arc::<AtomicBool>::default();
        let language = TeraLanguage {
            program: self.tera.clone(),
            deadline: time_for_tera(lane),
            over: Arc::clone(&over),
        };
        let options = RenderOptions {
            kube_version: request.kubernetes_version.map(str::to_owned),
            api_versions: request.api_versions.to_vec(),
            profile: engine_profile(request.profile),
            other_language: Some(Arc::new(language)),
            cancelled: Arc::clone(&over),
            ..RenderOptions::new(request.release_name, request.namespace)
        };
        let values = objects::to_node(request.values);
        let rendering = deadline::within(self.deadline, &over, || chart.render(&values, &options))
            .map_err(RenderError::Watch)?
            .map_err(|source| self.classified(source, request, lane))?;
        let rendered = objects::collect(rendering, request.namespace).map_err(RenderError::UseManifest)?;
        self.cache.insert(key, &rendered);
        Ok(rendered)
    }

    fn classified(&self, source: helm::RenderError, request: &RenderRequest<'_>, lane: Lane) -> RenderError {
        let release = request.release_name.to_owned();
        if source.is_cancelled() {
            let limit = self.deadline;
            return RenderError::Deadline { release, limit, source };
        }
        if let Some(function) = source.lacks() {
            return RenderError::MissingFunction { function, source };
        }
        let of_tera = match source.problem() {
            RenderProblem::OtherLanguage(problem) => problem.source.downcast_ref::<TeraError>(),
            _ => None,
        };
        match of_tera {
            Some(TeraError::Deadline) if lane == Lane::Quick => too_slow(request),
            Some(TeraError::Deadline) => RenderError::Deadline {
                release,
                limit: time_for_tera(lane),
                source,
            },
            Some(problem) if problem.class() == ErrorClass::Transient => RenderError::Tera { release, source },
            _ => RenderError::RenderChart { release, source },
        }
    }
}

fn too_slow(request: &RenderRequest<'_>) -> RenderError {
    RenderError::TooSlow {
        release: request.release_name.to_owned(),
        limit: time_for_tera(Lane::Quick),
    }
}

/// How long the Tera templates of a chart may take together.
fn time_for_tera(lane: Lane) -> Duration {
    match lane {
        Lane::Quick => tera::QUICK,
        Lane::Slow => tera::SLOW,
    }
}

/// A panic while templates run leaves nothing behind, so the poison means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
