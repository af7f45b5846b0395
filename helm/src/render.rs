//! One render: from a chart, values and a release to manifests, in the steps and with the errors of `helm template`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::Regex;

use crate::chart::Chart;
use crate::chart::coalesce::{Nulls, coalesce};
use crate::chart::dependencies::{Instance, is_compatible, table};
use crate::manifest::{self, Manifest, ManifestError};
use crate::objects::{Capabilities, ChartObject, Files};
use crate::profile::Profile;
use crate::template::{ExecError, Executor, Limits, ParseError, StackError, Templates, on_deep_stack};
use crate::value::{Map, Value};
use crate::yaml::Node;

/// What a render is for. [`RenderOptions::new`] gives what `helm template NAME CHART --namespace NS` would use.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// The name of the release.
    pub release_name: String,
    /// The namespace of the release.
    pub namespace: String,
    /// The Kubernetes version to render for; the profile's own when absent.
    pub kube_version: Option<String>,
    /// API versions (`group/version` or `group/version/Kind`) besides those of the profile.
    pub api_versions: Vec<String>,
    /// The Helm version to be equal to.
    pub profile: &'static Profile,
    /// Whether the files of `crds/` are part of the output.
    pub include_crds: bool,
    /// What the templates may use up.
    pub limits: Limits,
}

impl RenderOptions {
    /// Options for a release with the newest profile that is complete, and no other wishes.
    pub fn new(release_name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            release_name: release_name.into(),
            namespace: namespace.into(),
            kube_version: None,
            api_versions: Vec::new(),
            profile: Profile::V3_19,
            include_crds: false,
            limits: Limits::default(),
        }
    }
}

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

/// A file of `crds/`. It may hold several documents and is never a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdFile {
    /// Its path, from the root chart on.
    pub source: String,
    /// Its bytes.
    pub data: Arc<[u8]>,
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
    #[error("{}", .0.helm_text())]
    Execute(ExecError),
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

    /// The template that the error is about: `chart/templates/name.yaml`.
    pub fn template(&self) -> Option<&str> {
        match self {
            Self::Parse(error) => Some(&error.file),
            Self::Manifest(error) => Some(&error.source_file),
            _ => None,
        }
    }
}

const RELEASE_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const MAX_RELEASE_NAME: usize = 53;

impl Chart {
    /// Renders the chart. `values` is what the user sets over the defaults: a mapping, or null for nothing.
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
        let Value::Map(values) = values_or_empty(values).to_value() else {
            return Err(RenderError::Values("values must be a mapping".to_owned()));
        };
        chart.process(&values, &mut warnings).map_err(RenderError::Values)?;
        let values = coalesce(&chart, &values, Nulls::Delete, &mut warnings).map_err(RenderError::Values)?;
        let wanted = &chart.metadata.kube_version;
        if !wanted.is_empty() && !is_compatible(wanted, capabilities.kube_version()) {
            return Err(RenderError::IncompatibleKubeVersion {
                wanted: wanted.clone(),
                actual: capabilities.kube_version().to_owned(),
            });
        }
        let mut tree = Tree::new(&chart, self.options, Value::Obj(Rc::new(capabilities)), &values);
        if tree.has_schema {
            warnings.push("values.schema.json is not checked".to_owned());
        }
        let files = self.execute(&tree)?;
        let sorted = manifest::sort(&files, self.options.profile, &mut warnings).map_err(RenderError::Manifest)?;
        Ok(Rendering {
            crds: std::mem::take(&mut tree.crds),
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

    /// Executes the templates, deepest path first, and gives what goes into manifests by path.
    fn execute(&self, tree: &Tree) -> Result<BTreeMap<String, Vec<u8>>, RenderError> {
        let templates = self.chart.parsed().get(tree, self.options.profile).map_err(RenderError::Parse)?;
        let mut executor = Executor::new(&templates, self.options.limits);
        let mut rendered = BTreeMap::new();
        for template in &tree.templates {
            if base_name(&template.path).starts_with('_') {
                continue;
            }
            let about = Map::new();
            about.insert("Name", template.path.as_str());
            about.insert("BasePath", template.base_path.as_str());
            template.root.insert("Template", about.named(VALUES_TYPE));
            let output = executor
                .execute(&template.path, Value::Map(template.root.named(VALUES_TYPE)))
                .map_err(RenderError::Execute)?;
            if !template.path.ends_with("NOTES.txt") {
                rendered.insert(template.path.clone(), output);
            }
        }
        Ok(rendered)
    }
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
    Err(RenderError::MissingDependencies(missing.into_iter().map(str::to_owned).collect()))
}

const VALUES_TYPE: &str = "chartutil.Values";

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A chart with all below it, laid out for templates.
struct Tree {
    /// In order of parsing and executing.
    templates: Vec<Template>,
    crds: Vec<CrdFile>,
    has_schema: bool,
}

/// One template file.
struct Template {
    path: String,
    base_path: String,
    text: Arc<[u8]>,
    /// The root object, one for all templates of a chart.
    root: Map,
}

impl Tree {
    fn new(chart: &Instance, options: &RenderOptions, capabilities: Value, values: &Map) -> Self {
        let release: Map = [
            ("Name", Value::from(options.release_name.as_str())),
            ("Namespace", Value::from(options.namespace.as_str())),
            ("IsUpgrade", Value::Bool(false)),
            ("IsInstall", Value::Bool(true)),
            ("Revision", Value::int(1)),
            ("Service", Value::from("Helm")),
        ]
        .into_iter()
        .collect();
        let mut tree = Self {
            templates: Vec::new(),
            crds: Vec::new(),
            has_schema: false,
        };
        let shared = Shared {
            release,
            capabilities,
            include_crds: options.include_crds,
        };
        tree.add(chart, &shared, values.clone(), &chart.metadata.name, true);
        // A path that two charts share belongs to the later one.
        tree.templates.reverse();
        tree.templates.sort_by(|left, right| sort_key(&right.path).cmp(&sort_key(&left.path)));
        tree.templates.dedup_by(|later, earlier| later.path == earlier.path);
        tree
    }

    fn add(&mut self, chart: &Instance, shared: &Shared, values: Map, path: &str, is_root: bool) -> Map {
        let subcharts = Map::new();
        let root = Map::new();
        root.insert("Chart", Value::Obj(Rc::new(ChartObject::new(&chart.metadata, is_root))));
        root.insert("Files", Value::Obj(Rc::new(Files::new(chart.files()))));
        root.insert("Release", shared.release.clone());
        root.insert("Capabilities", shared.capabilities.clone());
        root.insert("Values", values.named(VALUES_TYPE));
        root.insert("Subcharts", subcharts.clone());
        self.has_schema |= chart.has_schema();
        if shared.include_crds {
            self.add_crds(chart, path);
        }
        for child in &chart.dependencies {
            let name = &child.metadata.name;
            let section = table(&values, name).unwrap_or_default();
            let child_path = format!("{path}/charts/{name}");
            subcharts.insert(name.as_str(), self.add(child, shared, section, &child_path, false));
        }
        for file in chart.templates() {
            if chart.metadata.is_library() && !base_name(&file.name).starts_with('_') {
                continue;
            }
            self.templates.push(Template {
                path: format!("{path}/{}", file.name),
                base_path: format!("{path}/templates"),
                text: Arc::clone(&file.data),
                root: root.clone(),
            });
        }
        root
    }

    fn add_crds(&mut self, chart: &Instance, path: &str) {
        let is_manifest = |name: &str| [".yaml", ".yml", ".json"].iter().any(|extension| name.ends_with(extension));
        for file in chart.files().iter() {
            if file.name.starts_with("crds/") && is_manifest(&file.name) {
                self.crds.push(CrdFile {
                    source: format!("{path}/{}", file.name),
                    data: Arc::clone(&file.data),
                });
            }
        }
    }
}

/// What is the same object in the roots of all charts.
struct Shared {
    release: Map,
    capabilities: Value,
    include_crds: bool,
}

/// Files in deeper folders come later in this order, and are parsed and executed first.
fn sort_key(path: &str) -> (usize, &str) {
    (path.matches('/').count(), path)
}

/// The parsed templates of the last render, kept with the chart: which templates take part depends on the values, but rarely changes.
#[derive(Debug, Default)]
pub(crate) struct ParsedTemplates(Mutex<Option<Parsed>>);

#[derive(Debug)]
struct Parsed {
    profile: &'static str,
    paths: Vec<String>,
    templates: Arc<Templates>,
}

impl ParsedTemplates {
    fn get(&self, tree: &Tree, profile: &Profile) -> Result<Arc<Templates>, ParseError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = &*kept
            && parsed.profile == profile.name
            && parsed.paths.iter().eq(tree.templates.iter().map(|template| &template.path))
        {
            return Ok(Arc::clone(&parsed.templates));
        }
        let mut templates = Templates::new((profile.functions)());
        for template in &tree.templates {
            templates.parse(&template.path, &template.text)?;
        }
        let templates = Arc::new(templates);
        *kept = Some(Parsed {
            profile: profile.name,
            paths: tree.templates.iter().map(|template| template.path.clone()).collect(),
            templates: Arc::clone(&templates),
        });
        Ok(templates)
    }
}
