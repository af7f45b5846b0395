//! One render: from a chart, values and a release to manifests, in the steps and with the errors of `helm template`.

mod error;
mod trial;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bounds;
use crate::chart::coalesce::{Nulls, Sharing, coalesce};
use crate::chart::dependencies::{is_compatible, missing_dependencies, process};
use crate::chart::instances::Instances;
use crate::chart::schemas::check_schemas;
use crate::chart::{Chart, Loaded};
use crate::layout::{CrdFile, Layout};
use crate::manifest::{self, Manifest};
use crate::objects::Capabilities;
use crate::options::{OtherChart, OtherLanguage, OtherProblem, RenderOptions, is_rendered};
use crate::plain;
use crate::profile::Profile;
use crate::release_name;
use crate::template::{Executor, Origin, Output, on_deep_stack};
use crate::value::{Map, Value};
use crate::warning::{Said, Warning};
use crate::yaml::Node;

pub(crate) use error::ErrorWords;
pub use error::{RenderError, RenderProblem};
pub use trial::FileProblem;

/// What came out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Rendering {
    /// The files of `crds/`, as they are in the charts.
    pub crds: Vec<CrdFile>,
    /// The manifests in order of installation.
    pub manifests: Vec<Manifest>,
    /// The hooks, ordered by kind.
    pub hooks: Vec<Manifest>,
    /// What Helm would say of them on its error output. What is said of the values of one mapping comes by key; Helm's order is random.
    pub warnings: Vec<Warning>,
}

impl Chart {
    /// Renders the chart. `values` is what the user sets over the defaults: a mapping, or null for nothing. Numbers of documents are
    /// floats there ([`crate::yaml::parse`]); integers are what only [`crate::command_line`] gives.
    ///
    /// Runs on a thread of its own, because templates may nest deeply, and returns when it is done.
    pub fn render(&self, values: &Node, options: &RenderOptions) -> Result<Rendering, RenderError> {
        let mut said = Vec::new();
        let rendering = on_deep_stack(|| {
            Render { chart: self, options }
                .run(values, &mut said)
                .map_err(|problem| (problem, bounds::is_met()))
        })
        .unwrap_or_else(|problem| Err((RenderProblem::Thread(problem), false)));
        let rendering = rendering.map_err(|(problem, is_limit)| {
            let problem = match problem {
                // Templates say where they were; what else was cancelled has nothing to say.
                problem @ RenderProblem::Execute(_) => problem,
                _ if options.cancelled.load(Ordering::Relaxed) => RenderProblem::Cancelled,
                problem => problem,
            };
            (problem, is_limit)
        });
        let rendering = rendering.map_err(|(problem, is_limit)| RenderError::new(problem, options.profile, is_limit));
        said.extend(rendering.as_ref().err().and_then(RenderError::logged));
        let warnings = said
            .into_iter()
            .map(|said| Warning::new(said, options.profile))
            .collect();
        match rendering {
            Ok(rendering) => Ok(Rendering { warnings, ..rendering }),
            Err(error) => Err(error.with_warnings(warnings)),
        }
    }
}

impl RenderOptions {
    /// Whether the Kubernetes version is one: what a render finds out first, without a chart.
    pub fn check_kube_version(&self) -> Result<(), RenderError> {
        let checked = capabilities(self).map(|_| ());
        checked.map_err(|problem| RenderError::new(problem, self.profile, false))
    }
}

fn capabilities(options: &RenderOptions) -> Result<Capabilities, RenderProblem> {
    let kube_version = options.kube_version.as_deref();
    Capabilities::new(options.profile, kube_version, &options.api_versions).map_err(|problem| {
        RenderProblem::KubeVersion {
            version: kube_version.unwrap_or_default().to_owned(),
            problem,
        }
    })
}

/// Everything the steps of one render share.
struct Render<'a> {
    chart: &'a Chart,
    options: &'a RenderOptions,
}

impl Render<'_> {
    /// What comes out, without the warnings, which are also there when nothing does.
    fn run(&self, values: &Node, warnings: &mut Vec<Said>) -> Result<Rendering, RenderProblem> {
        let capabilities = capabilities(self.options)?;
        self.begin_phase();
        let profile = self.options.profile;
        let chart = self.chart.root();
        warnings.extend(chart.warnings().cloned());
        chart.check(profile).map_err(RenderProblem::Load)?;
        check_installable(chart, profile)?;
        warnings.extend(chart.metadata.deprecated.then_some(Said::Deprecated));
        check_complete(chart)?;
        if !release_name::is_allowed(&self.options.release_name) {
            return Err(RenderProblem::ReleaseName(self.options.release_name.clone()));
        }
        let Value::Map(values) = values_or_empty(values).to_user_value() else {
            return Err(RenderProblem::Values("values must be a mapping".to_owned()));
        };
        let mut charts = Instances::new(self.chart.root(), profile);
        process(&mut charts, &values, warnings).map_err(RenderProblem::Dependencies)?;
        // Nobody reads the default values of a chart alone once they are part of its values.
        let sharing = if charts.root().dependencies().next().is_none() {
            Sharing::Allowed
        } else {
            Sharing::Forbidden
        };
        let values =
            coalesce(charts.root(), &values, Nulls::Delete, sharing, warnings).map_err(RenderProblem::Values)?;
        if self.options.check_schemas {
            check_schemas(charts.root(), &values, profile.schemas, warnings).map_err(RenderProblem::Schema)?;
        }
        check_kube_version(chart, &capabilities, profile)?;
        let mut layout = Layout::new(charts.root(), self.options, Value::Obj(Rc::new(capabilities)), &values);
        let files = self.execute(&layout)?;
        self.begin_phase();
        let sorted = manifest::sort(&files, self.options.profile, warnings)
            .map_err(|error| RenderProblem::Manifest(error.with(&files)))?;
        Ok(Rendering {
            crds: std::mem::take(&mut layout.crds),
            manifests: sorted.manifests,
            hooks: sorted.hooks,
            warnings: Vec::new(),
        })
    }

    /// What is no template may take as many steps as templates may.
    fn begin_phase(&self) {
        bounds::begin(self.options.limits.steps, &self.options.cancelled);
    }

    /// Executes the templates and gives what goes into manifests by path.
    fn execute(&self, layout: &Layout) -> Result<BTreeMap<String, Output>, RenderProblem> {
        let templates = self
            .chart
            .parsed()
            .get(layout, self.options.profile)
            .map_err(RenderProblem::Parse)?;
        let answers = Arc::clone(&self.options.answers);
        let mut executor =
            Executor::new(&templates, self.options.limits, answers).cancelled_by(Arc::clone(&self.options.cancelled));
        let rendered = self.execute_all(layout, &mut executor);
        executor.dismantle();
        rendered
    }

    /// Deepest path first.
    fn execute_all(
        &self,
        layout: &Layout,
        executor: &mut Executor<'_>,
    ) -> Result<BTreeMap<String, Output>, RenderProblem> {
        let values_type = &self.options.profile.go_types.values;
        let mut rendered = BTreeMap::new();
        let mut others = match &self.options.other_language {
            Some(language) => others(&**language, layout)?,
            None => BTreeMap::new(),
        };
        for template in layout.all().filter(|template| is_rendered(&template.path)) {
            let about = Map::new();
            about.insert("Name", template.path.as_str());
            about.insert("BasePath", template.base_path.as_str());
            template.root.insert("Template", about.named(values_type));
            let root = Value::Map(template.root.named(values_type));
            let output = match others.remove(&*template.path) {
                Some(text) => Output {
                    text,
                    ..Output::default()
                },
                None => Output {
                    text: executor.execute(&template.path, root).map_err(RenderProblem::Execute)?,
                    origin: Arc::new(Origin {
                        file: Arc::clone(&template.text),
                        parts: executor.take_origins(),
                    }),
                },
            };
            if !template.path.ends_with("NOTES.txt") {
                rendered.insert(template.path.clone(), output);
            }
        }
        Ok(rendered)
    }
}

/// What the templates of another language write, by path.
fn others<'a>(language: &dyn OtherLanguage, layout: &'a Layout) -> Result<BTreeMap<&'a str, Vec<u8>>, RenderProblem> {
    let mut charts: Vec<OtherChart<'a>> = Vec::new();
    for template in layout.all().filter(|template| template.is_other) {
        let file = (&*template.path, &*template.text);
        match charts.iter_mut().find(|chart| chart.folder == template.base_path) {
            Some(chart) => chart.files.push(file),
            None => charts.push(OtherChart {
                folder: &template.base_path,
                root: plain::data(&Value::Map(template.root.clone())).map_err(|bound| {
                    RenderProblem::OtherLanguage(OtherProblem {
                        template: template.path.clone(),
                        line: None,
                        source: bound.into(),
                    })
                })?,
                files: vec![file],
            }),
        }
    }
    if charts.is_empty() {
        return Ok(BTreeMap::new());
    }
    let outputs = language.render(&charts).map_err(RenderProblem::OtherLanguage)?;
    let paths = charts.iter().flat_map(|chart| &chart.files).map(|(path, _)| *path);
    Ok(paths.filter(|path| is_rendered(path)).zip(outputs).collect())
}

fn values_or_empty(values: &Node) -> std::borrow::Cow<'_, Node> {
    match values {
        Node::Null => std::borrow::Cow::Owned(Node::empty_map()),
        values => std::borrow::Cow::Borrowed(values),
    }
}

/// The `apiVersion` of charts that Helm 4 can load, but not render.
const EXPERIMENTAL: &str = "v3";

fn check_installable(chart: &Loaded, profile: &Profile) -> Result<(), RenderProblem> {
    let version = &chart.metadata.api_version;
    let is_known = |known: &[&str]| known.contains(&version.as_str());
    let is_unknown = !profile.chart_api_versions.is_none_or(is_known);
    if chart.metadata.is_library() && !(is_unknown && version != EXPERIMENTAL) {
        return Err(RenderProblem::Library);
    }
    if is_unknown {
        return Err(RenderProblem::ChartApiVersion(version.clone()));
    }
    Ok(())
}

/// Helm asks the outermost chart alone.
fn check_kube_version(chart: &Loaded, capabilities: &Capabilities, profile: &Profile) -> Result<(), RenderProblem> {
    let wanted = &chart.metadata.kube_version;
    if wanted.is_empty() || is_compatible(wanted, capabilities.kube_version(), profile.versions) {
        return Ok(());
    }
    Err(RenderProblem::IncompatibleKubeVersion {
        wanted: wanted.clone(),
        actual: capabilities.full_kube_version().to_owned(),
    })
}

fn check_complete(chart: &Loaded) -> Result<(), RenderProblem> {
    let missing = missing_dependencies(chart);
    if missing.is_empty() {
        return Ok(());
    }
    Err(RenderProblem::MissingDependencies(
        missing.into_iter().map(str::to_owned).collect(),
    ))
}
