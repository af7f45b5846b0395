//! One render: from a chart, values and a release to manifests, in the steps and with the errors of `helm template`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::chart::Chart;
use crate::chart::coalesce::{Nulls, coalesce};
use crate::chart::dependencies::{Instance, is_compatible};
use crate::chart::schemas::check_schemas;
use crate::layout::{CrdFile, Layout, Template, VALUES_TYPE, base_name};
use crate::manifest::{self, Manifest, ManifestError};
use crate::objects::Capabilities;
use crate::options::{OtherLanguage, RenderOptions};
use crate::plain;
use crate::template::{ExecError, Executor, ParseError, StackError, on_deep_stack};
use crate::value::{Map, Value};
use crate::yaml::Node;

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Rendering {
    /// The files of `crds/`, as they are in the charts.
    pub crds: Vec<CrdFile>,
    /// The manifests in order of installation.
    pub manifests: Vec<Manifest>,
    /// The hooks by kind.
    pub hooks: Vec<Manifest>,
    /// What Helm would say on its error output.
    pub warnings: Vec<String>,
}

impl Rendering {
    /// What `helm template` writes to its standard output, byte for byte.
    pub fn stdout(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut write = |source: &str, text: &[u8]| {
            out.extend_from_slice(b"---\n# Source: ");
            out.extend_from_slice(source.as_bytes());
            out.push(b'\n');
            out.extend_from_slice(text);
            out.push(b'\n');
        };
        for crd in &self.crds {
            write(&crd.source, &crd.data);
        }
        for manifest in &self.manifests {
            write(&manifest.source, manifest.text.as_bytes());
        }
        let mut out = crate::text::trim_space(&out).to_vec();
        out.push(b'\n');
        for hook in &self.hooks {
            out.extend_from_slice(format!("---\n# Source: {}\n{}\n", hook.source, hook.text).as_bytes());
        }
        out
    }
}

/// Why a chart does not render. Displays as Helm's error without `Error: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The name of the release is empty, too long or not made of DNS labels.
    #[error(
        "release name {0:?}: invalid release name, must match regex {RELEASE_NAME} and the length must not be longer than 53"
    )]
    ReleaseName(String),
    /// The Kubernetes version is none.
    #[error("invalid kube version '{version}': {problem}")]
    KubeVersion {
        /// The version as given.
        version: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A library chart only defines templates for other charts.
    #[error("library charts are not installable")]
    Library,
    /// `Chart.yaml` names charts that the archive does not have.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        .0.join(", ")
    )]
    MissingDependencies(Vec<String>),
    /// The values do not go together with the charts.
    #[error("{0}")]
    Values(String),
    /// The chart is for other Kubernetes versions.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {actual}")]
    IncompatibleKubeVersion {
        /// The range that the chart wants.
        wanted: String,
        /// The version rendered for.
        actual: String,
    },
    /// A file of `templates/` is no template.
    #[error("{}", .0.helm_text())]
    Parse(ParseError),
    /// A template failed.
    #[error("{0}")]
    Execute(ExecError),
    /// A template of another language failed.
    #[error("{template}: {problem}")]
    OtherLanguage {
        /// The path of the template.
        template: String,
        /// What its engine says.
        problem: String,
    },
    /// What a template wrote is no manifest.
    #[error("{0}")]
    Manifest(ManifestError),
    /// The system has no thread for the templates.
    #[error("unable to render")]
    Thread(#[source] StackError),
}

impl RenderError {
    /// What `helm template` writes to its error output, without log lines.
    pub fn stderr(&self) -> String {
        let hint = match self {
            Self::IncompatibleKubeVersion { .. } | Self::Parse(_) | Self::Execute(_) | Self::Manifest(_) => {
                "\n\nUse --debug flag to render out invalid YAML"
            }
            _ => "",
        };
        format!("Error: {self}{hint}\n")
    }

    /// The template that the error is about, as `chart/templates/name.yaml`, and the line in it where one is known, from 1.
    pub fn place(&self) -> Option<(&str, Option<usize>)> {
        match self {
            Self::Parse(error) => Some((&error.file, Some(error.line))),
            Self::Execute(error) => error.place().map(|place| (&*place.file, Some(place.line))),
            Self::Manifest(error) => Some((&error.source_file, None)),
            Self::OtherLanguage { template, .. } => Some((template, None)),
            _ => None,
        }
    }

    /// Whether the templates were stopped by [`RenderOptions::cancelled`]: nothing may be wrong with them.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Execute(error) if error.is_cancelled())
    }

    /// The function of Helm's that is not here yet or that nothing answered, if that is why there is no rendering.
    pub fn lacks(&self) -> Option<&'static str> {
        match self {
            Self::Parse(error) => error.lacks,
            Self::Execute(error) => error.lacks(),
            _ => None,
        }
    }
}

const RELEASE_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const MAX_RELEASE_NAME: usize = 53;

impl Chart {
    /// Renders the chart. `values` is what the user sets over the defaults: a mapping, or null for nothing. Numbers of documents are
    /// floats there ([`crate::yaml::parse`]); integers are what only [`crate::command_line`] gives.
    ///
    /// Runs on a thread of its own, because templates may nest deeply, and returns when it is done.
    pub fn render(&self, values: &Node, options: &RenderOptions) -> Result<Rendering, RenderError> {
        check_release_name(&options.release_name)?;
        on_deep_stack(|| Render { chart: self, options }.run(values)).map_err(RenderError::Thread)?
    }
}

fn check_release_name(name: &str) -> Result<(), RenderError> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new(RELEASE_NAME).expect("a constant pattern compiles"));
    if name.len() <= MAX_RELEASE_NAME && PATTERN.is_match(name) {
        return Ok(());
    }
    Err(RenderError::ReleaseName(name.to_owned()))
}

/// Everything the steps of one render share.
struct Render<'a> {
    chart: &'a Chart,
    options: &'a RenderOptions,
}

impl Render<'_> {
    fn run(&self, values: &Node) -> Result<Rendering, RenderError> {
        let mut warnings = Vec::new();
        let capabilities = self.capabilities()?;
        let mut chart = Instance::new(self.chart.root());
        check_installable(&chart)?;
        let Value::Map(values) = values_or_empty(values).to_user_value() else {
            return Err(RenderError::Values("values must be a mapping".to_owned()));
        };
        chart.process(&values, &mut warnings).map_err(RenderError::Values)?;
        let values = coalesce(&chart, &values, Nulls::Delete, &mut warnings).map_err(RenderError::Values)?;
        check_schemas(&chart, &values).map_err(RenderError::Values)?;
        let wanted = &chart.metadata.kube_version;
        if !wanted.is_empty() && !is_compatible(wanted, capabilities.kube_version()) {
            return Err(RenderError::IncompatibleKubeVersion {
                wanted: wanted.clone(),
                actual: capabilities.kube_version().to_owned(),
            });
        }
        let mut layout = Layout::new(&chart, self.options, Value::Obj(Rc::new(capabilities)), &values);
        let files = self.execute(&layout)?;
        let sorted = manifest::sort(&files, self.options.profile, &mut warnings).map_err(RenderError::Manifest)?;
        Ok(Rendering {
            crds: std::mem::take(&mut layout.crds),
            manifests: sorted.manifests,
            hooks: sorted.hooks,
            warnings,
        })
    }

    fn capabilities(&self) -> Result<Capabilities, RenderError> {
        let kube_version = self.options.kube_version.as_deref();
        Capabilities::new(self.options.profile, kube_version, &self.options.api_versions).map_err(|problem| {
            RenderError::KubeVersion {
                version: kube_version.unwrap_or_default().to_owned(),
                problem,
            }
        })
    }

    /// Executes the templates and gives what goes into manifests by path.
    fn execute(&self, layout: &Layout) -> Result<BTreeMap<String, Vec<u8>>, RenderError> {
        let templates = self
            .chart
            .parsed()
            .get(layout, self.options.profile)
            .map_err(RenderError::Parse)?;
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
    ) -> Result<BTreeMap<String, Vec<u8>>, RenderError> {
        let mut rendered = BTreeMap::new();
        for template in layout.all() {
            if base_name(&template.path).starts_with('_') {
                continue;
            }
            let about = Map::new();
            about.insert("Name", template.path.as_str());
            about.insert("BasePath", template.base_path.as_str());
            template.root.insert("Template", about.named(VALUES_TYPE));
            let root = Value::Map(template.root.named(VALUES_TYPE));
            let output = match &self.options.other_language {
                Some(language) if template.is_other => other(&**language, layout, template, &root)?,
                _ => executor.execute(&template.path, root).map_err(RenderError::Execute)?,
            };
            if !template.path.ends_with("NOTES.txt") {
                rendered.insert(template.path.clone(), output);
            }
        }
        Ok(rendered)
    }
}

fn other(
    language: &dyn OtherLanguage,
    layout: &Layout,
    template: &Template,
    root: &Value,
) -> Result<Vec<u8>, RenderError> {
    let others = layout.all().filter(|template| template.is_other);
    let files: Vec<(&str, &[u8])> = others
        .map(|template| (template.path.as_str(), &*template.text))
        .collect();
    plain::data(root)
        .map_err(|bound| bound.to_string())
        .and_then(|root| language.render(&files, &template.path, &root))
        .map_err(|problem| RenderError::OtherLanguage {
            template: template.path.clone(),
            problem,
        })
}

fn values_or_empty(values: &Node) -> std::borrow::Cow<'_, Node> {
    match values {
        Node::Null => std::borrow::Cow::Owned(Node::empty_map()),
        values => std::borrow::Cow::Borrowed(values),
    }
}

fn check_installable(chart: &Instance) -> Result<(), RenderError> {
    if chart.metadata.is_library() {
        return Err(RenderError::Library);
    }
    let missing = chart.missing_dependencies();
    if missing.is_empty() {
        return Ok(());
    }
    Err(RenderError::MissingDependencies(
        missing.into_iter().map(str::to_owned).collect(),
    ))
}
