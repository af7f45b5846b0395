//! Charts to Kubernetes objects: the only caller of the chart engine.
//!
//! Decides which engine renders which file, what an object must have to be one, and what is kept of past renderings. It knows neither a
//! cluster nor a disk: the bytes of a chart come from the caller, and only when they are needed. Templates of an engine that cannot be
//! bounded run in a process of their own ([`serve_tera`]).

pub mod answers;
mod cache;
mod chart;
mod deadline;
mod digest;
mod error;
mod objects;
mod tera;
mod values;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helm::{Chart, Profile, RenderOptions, RenderProblem};
use isolation::Program;
use serde_json::Value;

use answers::{Answers, Interview, Questions};
use cache::{Cache, Keys};
use chart::{LoadedChart, loaded};
use tera::{TeraError, TeraLanguage};

pub use chart::{ChartBytes, chart_functions, newest_in_range};

pub use crds::policy::HelmProfile;
pub use error::{ErrorClass, RenderError};
pub use helm::{FileProblem, StackError};
pub use objects::ObjectError;
pub use tera::serve_tera;
pub use values::{ChartValues, Roots, ValuesDocument, ValuesError, ValuesTemplate, values_functions};

/// How long a chart may take in the quick lane, in which others wait for it. Real charts take milliseconds.
const QUICK: Duration = Duration::from_millis(500);

/// How long a chart may take at all. Its steps are limited too, so only a machine that has no time for them, or steps that take far longer than
/// usual, come this far.
const DEADLINE: Duration = Duration::from_secs(20);

/// Renders charts, and keeps what it rendered up to a number of bytes. One for the whole process.
pub struct Renderer {
    cache: Cache,
    /// Held while templates run. Renderings take milliseconds, and one at a time takes a tenth of the memory of eight. The chart that was
    /// rendered last stays loaded: the clusters of a class ask for it one after the other, each with its own values.
    turn: Mutex<Option<LoadedChart>>,
    deadline: Duration,
    tera: Program,
    /// The identities of charts that took too long for the quick lane.
    slow: Mutex<BTreeSet<String>>,
    counters: Counters,
}

/// What became of requests since a renderer was made. One that is too slow for its lane, or needs objects of the cluster, is in none of these.
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

/// Where a chart is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// One chart at a time, for half a second. One that takes longer is [`RenderError::TooSlow`] and belongs into the other lane. Which those are
    /// is remembered, so that they take that time from others once.
    Quick,
    /// Beside the others, until the deadline; Tera templates have four seconds of that. Each caller loads a chart and may start a process of its
    /// own: how many do so at once is up to them.
    Slow,
}

/// How many slow charts are remembered. Forgotten ones cost others half a second.
const MAX_SLOW: usize = 1_000;

/// Reads a chart for a [request](RenderRequest::chart).
pub type ReadChart<'a> = dyn Fn() -> Result<ChartBytes, Box<dyn Error + Send + Sync>> + 'a;

/// What to render. Equal requests have equal answers, but for what is drawn anew; only `chart` is not looked at to tell them apart.
#[derive(Clone, Copy)]
pub struct RenderRequest<'a> {
    /// What tells the chart from all others: the digest of its archive, which the caller has verified, and behind a `/` the folder of the chart
    /// where the archive has several.
    pub identity: &'a str,
    /// Reads the chart; called when neither the rendering is in the cache nor the chart the one that was rendered last.
    pub chart: &'a ReadChart<'a>,
    /// `.Release.Name`
    pub release_name: &'a str,
    /// `.Release.Namespace`
    pub namespace: &'a str,
    /// The Kubernetes version to render for; what the Helm version assumes when absent.
    pub kubernetes_version: Option<&'a str>,
    /// API versions (`group/version` or `group/version/Kind`) besides those that the Helm version knows.
    pub api_versions: &'a [String],
    /// Whether the objects of `crds/` are among the others, before them.
    pub include_crds: bool,
    /// Whose behaviour to follow.
    pub profile: HelmProfile,
    /// The values over the chart's defaults: an object, or null for none.
    pub values: &'a Value,
    /// What answers functions that are random, tell the time or look into the cluster. Without it those are errors, but for `lookup`, which finds
    /// nothing, as in `helm template`.
    pub answers: Option<&'a Answers>,
}

/// What a chart asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// What is in `crds/`, if that was asked for; then all others in Helm's order of installation; hooks, which are objects like all others here,
    /// at the end.
    pub objects: Vec<RenderedObject>,
    /// What is strange but no error, one sentence each.
    pub warnings: Vec<String>,
    /// `sha256:<hex>` over the digests of the objects in their order.
    pub digest: String,
    /// What templates asked. Nothing without [answers](RenderRequest::answers).
    pub questions: Questions,
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

/// The engine's name for the Helm version of a stack.
fn engine_profile(profile: HelmProfile) -> &'static Profile {
    match profile {
        HelmProfile::V3_19 => Profile::V3_19,
        HelmProfile::V4_1 => Profile::V4_1,
        HelmProfile::V4_2 => Profile::V4_2,
        HelmProfile::V4_3 => Profile::V4_3,
    }
}

/// One request on its way.
struct Work<'a> {
    request: &'a RenderRequest<'a>,
    /// Answers it, where there are answers.
    interview: Option<Arc<Interview>>,
    lane: Lane,
}

impl Work<'_> {
    fn makes_keys(&self) -> bool {
        self.interview.as_ref().is_some_and(|interview| interview.makes_keys())
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

    /// The same renderer, but with another time for one chart where nobody waits for it; 20 seconds otherwise.
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

    /// Which lane a chart belongs into, as far as is known. Never waits.
    pub fn lane(&self, identity: &str) -> Lane {
        if lock(&self.slow).contains(identity) {
            Lane::Slow
        } else {
            Lane::Quick
        }
    }

    /// What was rendered before, if it is kept. Never waits for templates.
    pub fn kept(&self, request: &RenderRequest<'_>) -> Option<Rendered> {
        self.cached(&Keys::of(request))
    }

    /// Renders a chart, or finds what it rendered before. Blocks while templates run, also those of others in the quick lane, and none
    /// longer than the deadline. What did not end in time is not kept.
    ///
    /// A chart that looks up what is not among the answers [needs](RenderError::Needs) it. One that makes keys is too slow for the quick lane at
    /// once, and is not remembered for that: with a memo that has them, it is as quick as others.
    pub fn render(&self, request: &RenderRequest<'_>, lane: Lane) -> Result<Rendered, RenderError> {
        let keys = Keys::of(request);
        if let Some(rendered) = self.cached(&keys) {
            return Ok(rendered);
        }
        let work = Work {
            request,
            interview: request.answers.map(|answers| Arc::new(Interview::new(answers, lane))),
            lane,
        };
        match lane {
            Lane::Quick => self.render_in_turn(&work, keys),
            Lane::Slow => self.timed(&work, || self.render_anew(&work, keys, &mut None)),
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

    fn cached(&self, keys: &Keys) -> Option<Rendered> {
        let rendered = keys.iter().find_map(|key| self.cache.get(key))?;
        self.counters.cached.fetch_add(1, Ordering::Relaxed);
        Some(rendered)
    }

    fn render_in_turn(&self, work: &Work<'_>, keys: Keys) -> Result<Rendered, RenderError> {
        let mut turn = lock(&self.turn);
        // Somebody may have rendered the same while this waited.
        if let Some(rendered) = self.cached(&keys) {
            return Ok(rendered);
        }
        if lock(&self.slow).contains(work.request.identity) {
            return Err(too_slow(work.request, self.time(Lane::Quick)));
        }
        self.timed(work, || self.render_anew(work, keys, &mut turn))
    }

    /// Renders a chart, and remembers whether that took longer than it may in turn with others: it may have been the machine that was slow.
    fn timed(
        &self,
        work: &Work<'_>,
        render: impl FnOnce() -> Result<Rendered, RenderError>,
    ) -> Result<Rendered, RenderError> {
        let over = AtomicBool::default();
        let rendered = deadline::within(QUICK, &over, render).map_err(RenderError::Watch)?;
        if matches!(rendered, Err(RenderError::ReadChart { .. })) {
            return rendered;
        }
        let identity = work.request.identity;
        let mut slow = lock(&self.slow);
        if !over.into_inner() && !matches!(rendered, Err(RenderError::TooSlow { .. })) {
            slow.remove(identity);
        } else if !work.makes_keys() {
            if slow.len() >= MAX_SLOW {
                slow.clear();
            }
            slow.insert(identity.to_owned());
        }
        rendered
    }

    fn render_anew(
        &self,
        work: &Work<'_>,
        keys: Keys,
        last: &mut Option<LoadedChart>,
    ) -> Result<Rendered, RenderError> {
        let rendered = self.render_and_keep(work, keys, last);
        match &rendered {
            Ok(_) => self.counters.rendered.fetch_add(1, Ordering::Relaxed),
            Err(RenderError::TooSlow { .. } | RenderError::Needs { .. }) => 0,
            Err(_) => self.counters.failed.fetch_add(1, Ordering::Relaxed),
        };
        rendered
    }

    /// Renders the chart, which takes the place of the one that was rendered last, and keeps what comes of it.
    fn render_and_keep(
        &self,
        work: &Work<'_>,
        keys: Keys,
        last: &mut Option<LoadedChart>,
    ) -> Result<Rendered, RenderError> {
        let Work {
            request,
            interview,
            lane,
        } = work;
        let over = Arc::<AtomicBool>::default();
        let run = || self.run(&loaded(request, last, &over)?, work, &over);
        let rendered = deadline::within(self.time(*lane), &over, run).map_err(RenderError::Watch)?;
        if rendered.is_err() && over.load(Ordering::Relaxed) {
            return rendered.map_err(|error| self.late(error, request, *lane));
        }
        let Some(interview) = interview else {
            let rendered = rendered?;
            self.cache
                .insert(keys.of_rendered(request, &rendered.questions), &rendered);
            return Ok(rendered);
        };
        // Whatever came of it, it came of objects that were taken not to be there.
        let lookups = interview.unanswered();
        if !lookups.is_empty() {
            return Err(RenderError::Needs { lookups });
        }
        if interview.is_postponed() {
            return Err(too_slow(request, self.time(*lane)));
        }
        let questions = interview.questions();
        let rendered = Rendered { questions, ..rendered? };
        self.cache
            .insert(keys.of_rendered(request, &rendered.questions), &rendered);
        Ok(rendered)
    }

    /// Tera for one rendering.
    fn tera_language(&self, over: &Arc<AtomicBool>) -> TeraLanguage {
        TeraLanguage {
            program: self.tera.clone(),
            over: Arc::clone(over),
        }
    }

    /// How long a chart may take in a lane.
    fn time(&self, lane: Lane) -> Duration {
        match lane {
            Lane::Quick => QUICK.min(self.deadline),
            Lane::Slow => self.deadline,
        }
    }

    /// Runs the templates, and takes the objects out of what they write.
    fn run(&self, chart: &Chart, work: &Work<'_>, over: &Arc<AtomicBool>) -> Result<Rendered, RenderError> {
        let request = work.request;
        let language = self.tera_language(over);
        let mut options = RenderOptions {
            include_crds: request.include_crds,
            kube_version: request.kubernetes_version.map(str::to_owned),
            api_versions: request.api_versions.to_vec(),
            profile: engine_profile(request.profile),
            other_language: Some(Arc::new(language)),
            cancelled: Arc::clone(over),
            ..RenderOptions::new(request.release_name, request.namespace)
        };
        if let Some(interview) = &work.interview {
            options.answers = Arc::<Interview>::clone(interview);
        }
        let values = objects::to_node(request.values);
        let rendering = chart.render(&values, &options);
        let rendering = rendering.map_err(|source| self.classified(source, request))?;
        let crds = rendering.crds.iter().map(|file| file.manifests(&options));
        let crds = crds.collect::<Result<Vec<_>, _>>().map_err(RenderError::ReadCrds)?;
        let manifests = rendering.manifests.into_iter().chain(rendering.hooks);
        let manifests = crds.into_iter().flatten().chain(manifests);
        objects::collect(manifests, &rendering.warnings, request.namespace).map_err(RenderError::UseManifest)
    }

    fn classified(&self, source: helm::RenderError, request: &RenderRequest<'_>) -> RenderError {
        let release = request.release_name.to_owned();
        if source.is_cancelled() {
            let limit = self.deadline;
            return RenderError::Deadline { release, limit, source };
        }
        if let Some(function) = source.lacks() {
            return RenderError::MissingFunction { function, source };
        }
        if let RenderProblem::MissingDependencies(dependencies) = source.problem() {
            let dependencies = dependencies.clone();
            return RenderError::MissingDependencies { dependencies };
        }
        let of_tera = match source.problem() {
            RenderProblem::OtherLanguage(problem) => problem.source.downcast_ref::<TeraError>(),
            _ => None,
        };
        match of_tera {
            Some(TeraError::Deadline) => {
                let limit = tera::DEADLINE;
                RenderError::Deadline { release, limit, source }
            }
            Some(problem) if problem.class() == ErrorClass::Transient => RenderError::Tera { release, source },
            _ => RenderError::RenderChart { release, source },
        }
    }

    /// What an error is that came when the time was over. In the quick lane it tells nothing, whatever it says: the other one tells.
    fn late(&self, error: RenderError, request: &RenderRequest<'_>, lane: Lane) -> RenderError {
        let limit = self.time(lane);
        match (lane, error) {
            // It was not the chart that was slow.
            (_, error @ RenderError::ReadChart { .. }) => error,
            (Lane::Quick, _) => too_slow(request, limit),
            (Lane::Slow, RenderError::LoadChart { chart, .. }) => RenderError::LoadDeadline { chart, limit },
            (Lane::Slow, RenderError::Tera { release, source }) => RenderError::Deadline { release, limit, source },
            (Lane::Slow, error) => error,
        }
    }
}

fn too_slow(request: &RenderRequest<'_>, limit: Duration) -> RenderError {
    RenderError::TooSlow {
        release: request.release_name.to_owned(),
        limit,
    }
}

/// A panic while templates run leaves nothing behind, so the poison means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
