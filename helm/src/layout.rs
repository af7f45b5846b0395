//! The charts of one render laid out for templates: which files take part, in which order, and what each of them finds.

use std::rc::Rc;
use std::sync::Arc;

use crate::bounds::Apart;
use crate::chart::dependencies::table;
use crate::chart::instances::Instance;
use crate::manifest::{self, Manifest, ManifestError};
use crate::objects::{Files, chart_object};
use crate::options::RenderOptions;
use crate::value::{Map, Value};

/// A file of `crds/`. It may hold several documents and is never a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrdFile {
    /// Its path, from the root chart on.
    pub source: String,
    /// Its bytes.
    pub data: Arc<[u8]>,
}

impl CrdFile {
    /// The documents of the file, in its order and as it separates them. Helm prints the file as it is, and whoever applies what Helm prints
    /// reads it so. Takes as many steps as the templates of a render may, and ends when that is cancelled.
    pub fn manifests(&self, options: &RenderOptions) -> Result<Vec<Manifest>, ManifestError> {
        let _apart = Apart::within(options.limits.steps, Some(Arc::clone(&options.cancelled)));
        manifest::plain(&self.source, &self.data, options.profile)
    }
}

/// Whether a file of a chart is one of manifests in `crds/`.
pub(crate) fn is_of_crds(name: &str) -> bool {
    let extensions = [".yaml", ".yml", ".json"];
    name.starts_with("crds/") && extensions.iter().any(|extension| name.ends_with(extension))
}

/// What follows the last slash.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A chart with all below it, laid out for templates.
pub(crate) struct Layout {
    /// In order of parsing and executing.
    templates: Vec<Template>,
    pub(crate) crds: Vec<CrdFile>,
}

/// One template file.
pub(crate) struct Template {
    pub(crate) path: String,
    /// Files in deeper folders are parsed and executed first.
    depth: usize,
    pub(crate) base_path: String,
    pub(crate) text: Arc<[u8]>,
    /// Not in Helm's language.
    pub(crate) is_other: bool,
    /// The root object, one for all templates of a chart.
    pub(crate) root: Map,
}

impl Layout {
    pub(crate) fn new(root: Instance<'_>, options: &RenderOptions, capabilities: Value, values: &Map) -> Self {
        let release: Map = [
            ("Name", Value::from(options.release_name.as_str())),
            ("Namespace", Value::from(options.namespace.as_str())),
            ("IsUpgrade", Value::Bool(options.is_upgrade)),
            ("IsInstall", Value::Bool(!options.is_upgrade)),
            ("Revision", Value::int(1)),
            ("Service", Value::from("Helm")),
        ]
        .into_iter()
        .collect();
        let mut layout = Self {
            templates: Vec::new(),
            crds: Vec::new(),
        };
        let shared = Shared {
            release,
            capabilities,
            include_crds: options.include_crds,
            other_suffix: options
                .other_language
                .as_ref()
                .map(|language| language.suffix().to_owned()),
        };
        layout.add(root, &shared, values);
        // A path that two charts share belongs to the later one.
        layout.templates.reverse();
        layout
            .templates
            .sort_by(|left, right| (right.depth, &right.path).cmp(&(left.depth, &left.path)));
        layout.templates.dedup_by(|later, earlier| later.path == earlier.path);
        layout
    }

    /// All templates in order of execution.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Template> {
        self.templates.iter()
    }

    /// Those in Helm's language, in order of parsing.
    pub(crate) fn in_helms_language(&self) -> impl Iterator<Item = &Template> {
        self.all().filter(|template| !template.is_other)
    }

    fn add(&mut self, chart: Instance<'_>, shared: &Shared, values: &Map) -> Map {
        let path = chart.path();
        let profile = chart.profile();
        let subcharts = Map::new();
        let root = Map::new();
        root.insert(
            "Chart",
            chart_object(&chart.metadata(), chart.is_root(), profile.chart_object),
        );
        root.insert(
            "Files",
            Value::Obj(Rc::new(Files::new(chart.files(), profile.lines_of_empty_file))),
        );
        root.insert("Release", shared.release.clone());
        root.insert("Capabilities", shared.capabilities.clone());
        root.insert("Values", values.named(&profile.go_types.values));
        root.insert("Subcharts", subcharts.clone());
        if shared.include_crds {
            self.add_crds(chart, &path);
        }
        for child in chart.dependencies() {
            let section = table(values, child.name()).unwrap_or_default();
            subcharts.insert(child.name(), self.add(child, shared, &section));
        }
        for file in chart.templates() {
            if chart.is_library() && !base_name(&file.name).starts_with('_') {
                continue;
            }
            let path_of_file = format!("{path}/{}", file.name);
            self.templates.push(Template {
                depth: path_of_file.matches('/').count(),
                path: path_of_file,
                base_path: format!("{path}/templates"),
                text: Arc::clone(&file.data),
                is_other: shared
                    .other_suffix
                    .as_ref()
                    .is_some_and(|suffix| file.name.ends_with(suffix)),
                root: root.clone(),
            });
        }
        root
    }

    fn add_crds(&mut self, chart: Instance<'_>, path: &str) {
        for file in chart.files().iter() {
            if is_of_crds(&file.name) {
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
    other_suffix: Option<String>,
}
