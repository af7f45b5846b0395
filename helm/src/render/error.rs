//! Why a chart does not render: what is wrong, where, and how each Helm version says so.

use std::error::Error;
use std::fmt;

use crate::chart::LoadError;
use crate::chart::schemas::{SchemaError, SchemaFinding};
use crate::manifest::ManifestError;
use crate::options::OtherProblem;
use crate::profile::Profile;
use crate::release_name;
use crate::template::{ExecError, ParseError, StackError};
use crate::warning::{Said, Warning};

/// Why a chart does not render. Displays as the Helm version of the profile says it, without `Error: `; [`RenderError::problem`] is the
/// same as data.
#[derive(Debug)]
pub struct RenderError {
    problem: Box<RenderProblem>,
    profile: &'static Profile,
    is_limit: bool,
    warnings: Vec<Warning>,
}

/// What is wrong with a chart, its values or what it is rendered for.
#[derive(Debug)]
#[non_exhaustive]
pub enum RenderProblem {
    /// The name of the release is empty, too long or not made of DNS labels.
    ReleaseName(String),
    /// The Kubernetes version is none.
    KubeVersion {
        /// The version as given.
        version: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The `apiVersion` of the chart is one that this version of Helm does not render.
    ChartApiVersion(String),
    /// A file of the chart is not what the Helm version of the profile wants it to be.
    Load(LoadError),
    /// A library chart only defines templates for other charts.
    Library,
    /// `Chart.yaml` names charts that the archive does not have.
    MissingDependencies(Vec<String>),
    /// Dependencies cannot be switched or their values imported.
    Dependencies(String),
    /// The values do not go together with the charts.
    Values(String),
    /// The values do not satisfy the schemas of the charts.
    Schema(SchemaError),
    /// The chart is for other Kubernetes versions.
    IncompatibleKubeVersion {
        /// The range that the chart wants.
        wanted: String,
        /// The version rendered for.
        actual: String,
    },
    /// A file of `templates/` is no template.
    Parse(ParseError),
    /// A template failed.
    Execute(ExecError),
    /// A template of another language failed.
    OtherLanguage(OtherProblem),
    /// What a template wrote is no manifest.
    Manifest(ManifestError),
    /// [`RenderOptions::cancelled`](crate::RenderOptions::cancelled) was raised while no template ran.
    Cancelled,
    /// The system has no thread for the templates.
    Thread(StackError),
}

/// What Helm versions say differently around errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorWords {
    /// The step that refuses a release name that is none, where Helm names it.
    pub(crate) release_name: Option<&'static str>,
    /// Before the names of missing dependencies.
    pub(crate) missing_dependencies: &'static str,
    /// The step that refuses dependencies, likewise.
    pub(crate) dependencies: Option<&'static str>,
    /// Go's package of the types of `Chart.yaml`.
    pub(crate) metadata_package: &'static str,
    /// The Go type that `Chart.yaml` is read as.
    pub(crate) metadata_type: &'static str,
    /// Go's package of the types of manifests.
    pub(crate) manifest_package: &'static str,
}

impl ErrorWords {
    /// What Go says of the `Chart.yaml` of the outermost chart, which is looked at for its version first.
    pub(crate) fn first_look(&self, problem: &str) -> String {
        let struct_name = self.metadata_type.rsplit('.').next().unwrap_or_default();
        problem
            .replace("type chart.Metadata", &format!("type {}", self.metadata_type))
            .replace(
                "field Metadata.apiVersion ",
                &format!("field {struct_name}.apiVersion "),
            )
    }
}

impl RenderError {
    pub(super) fn new(problem: RenderProblem, profile: &'static Profile, is_limit: bool) -> Self {
        Self {
            problem: Box::new(problem),
            profile,
            is_limit,
            warnings: Vec::new(),
        }
    }

    pub(super) fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        Self { warnings, ..self }
    }

    /// What Helm logs of it before its error.
    pub(super) fn logged(&self) -> Option<Said> {
        let (step, problem) = self.step()?;
        Some(Said::Failed { step, problem })
    }

    /// The step that failed and why, where Helm names it.
    fn step(&self) -> Option<(&'static str, String)> {
        let words = &self.profile.error_words;
        match &*self.problem {
            RenderProblem::ReleaseName(name) => Some((words.release_name?, release_name::refusal(name))),
            RenderProblem::Dependencies(problem) => Some((words.dependencies?, problem.clone())),
            _ => None,
        }
    }

    /// What is wrong.
    pub fn problem(&self) -> &RenderProblem {
        &self.problem
    }

    /// What Helm says on its error output before the error, as of a chart that renders ([`Rendering::warnings`](crate::Rendering::warnings)),
    /// and what it logs of the error itself.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What `helm template` writes to its error output, without log lines.
    pub fn stderr(&self) -> String {
        let hint = match self.debug_output() {
            Some(_) => "\n\nUse --debug flag to render out invalid YAML",
            None => "",
        };
        format!("Error: {self}{hint}\n")
    }

    /// What `helm template --debug` writes to its standard output although there is an error; nothing for an error before the templates.
    pub fn debug_output(&self) -> Option<Vec<u8>> {
        match &*self.problem {
            RenderProblem::IncompatibleKubeVersion { .. }
            | RenderProblem::Parse(_)
            | RenderProblem::Execute(_)
            | RenderProblem::OtherLanguage(_) => Some(b"\n".to_vec()),
            RenderProblem::Manifest(error) => Some(error.debug_output()),
            _ => None,
        }
    }

    /// The template that the error is about, as `chart/templates/name.yaml`, and the line in it, from 1, when it is the template that is
    /// wrong and not what it wrote.
    pub fn place(&self) -> Option<(&str, Option<usize>)> {
        match &*self.problem {
            RenderProblem::Parse(error) => Some((&error.file, Some(error.line))),
            RenderProblem::Execute(error) => error.place().map(|place| (&*place.file, Some(place.line))),
            RenderProblem::Manifest(error) => Some((&error.source_file, None)),
            RenderProblem::OtherLanguage(problem) => Some((&problem.template, problem.line)),
            _ => None,
        }
    }

    /// The value that is missing or wrong, where that is known: as a template reads it (`.Values.image.tag`, `$image.tag`), or from the
    /// root of the values when a schema refuses it (`.Values.image.tag`). Of several, the first.
    pub fn value_path(&self) -> Option<String> {
        match &*self.problem {
            RenderProblem::Execute(error) => error.value_path().map(str::to_owned),
            RenderProblem::Schema(error) => error.findings().first().map(SchemaFinding::value_path),
            _ => None,
        }
    }

    /// Whether the render was stopped by [`RenderOptions::cancelled`](crate::RenderOptions::cancelled): nothing may be wrong with them.
    pub fn is_cancelled(&self) -> bool {
        match &*self.problem {
            RenderProblem::Execute(error) => error.is_cancelled(),
            problem => matches!(problem, RenderProblem::Cancelled),
        }
    }

    /// Whether something met a limit that Helm does not have, of [`RenderOptions::limits`](crate::RenderOptions::limits) or of a single
    /// value, document or function: Helm might render the chart.
    pub fn is_limit(&self) -> bool {
        self.is_limit
    }

    /// The function of Helm's that nothing answered, if that is why there is no rendering.
    pub fn lacks(&self) -> Option<&'static str> {
        match &*self.problem {
            RenderProblem::Execute(error) => error.lacks(),
            _ => None,
        }
    }
}

impl Error for RenderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.problem {
            RenderProblem::Thread(error) => Some(error),
            RenderProblem::OtherLanguage(problem) => Some(&*problem.source),
            _ => None,
        }
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((step, problem)) = self.step() {
            return write!(formatter, "{step}: {problem}");
        }
        let words = &self.profile.error_words;
        match &*self.problem {
            RenderProblem::ReleaseName(name) => formatter.write_str(&release_name::refusal(name)),
            RenderProblem::KubeVersion { version, problem } => {
                write!(formatter, "invalid kube version '{version}': {problem}")
            }
            RenderProblem::ChartApiVersion(version) if version == super::EXPERIMENTAL => {
                formatter.write_str("invalid chart apiVersion")
            }
            RenderProblem::ChartApiVersion(_) => formatter.write_str("unsupported chart version"),
            RenderProblem::Load(error) => formatter.write_str(&error.helm_text(self.profile)),
            RenderProblem::Library => formatter.write_str("library charts are not installable"),
            RenderProblem::MissingDependencies(names) => write!(
                formatter,
                "{}: found in Chart.yaml, but missing in charts/ directory: {}",
                words.missing_dependencies,
                names.join(", ")
            ),
            RenderProblem::Dependencies(problem) | RenderProblem::Values(problem) => formatter.write_str(problem),
            RenderProblem::Schema(error) => error.fmt(formatter),
            RenderProblem::IncompatibleKubeVersion { wanted, actual } => write!(
                formatter,
                "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {actual}"
            ),
            RenderProblem::Parse(error) => formatter.write_str(&error.helm_text()),
            RenderProblem::Execute(error) => formatter.write_str(&error.helm_text(self.profile.error_form)),
            RenderProblem::OtherLanguage(OtherProblem { template, line, .. }) => match line {
                Some(line) => write!(formatter, "{template}:{line}"),
                None => formatter.write_str(template),
            },
            RenderProblem::Manifest(error) => {
                let text = error.to_string().replace("releaseutil.", words.manifest_package);
                formatter.write_str(&text)
            }
            RenderProblem::Cancelled => formatter.write_str("the render was cancelled"),
            RenderProblem::Thread(_) => formatter.write_str("unable to render"),
        }
    }
}
