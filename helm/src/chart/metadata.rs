//! `Chart.yaml`: its fields, how loosely they are read, and what Helm refuses in them.

use std::collections::{BTreeMap, HashSet};

use super::coalesce::printed;
use crate::fields::{Setter, Struct};
use crate::semver::{Library, Version};
use crate::text::{is_print, is_space};
use crate::yaml::Node;

/// What a chart says about itself. Absent strings are empty; a list that is there may be empty too, which templates can see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The name of the chart; the alias once it is used under one.
    pub name: String,
    /// URL of the project.
    pub home: String,
    /// URLs of the source code.
    pub sources: Option<Vec<String>>,
    /// The version of the chart, semantic but possibly short.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Words to search for.
    pub keywords: Option<Vec<String>>,
    /// Who to ask.
    pub maintainers: Option<Vec<Maintainer>>,
    /// URL of a picture.
    pub icon: String,
    /// `v1` or `v2`, the version of the chart format.
    pub api_version: String,
    /// Unused by Helm, kept for templates.
    pub condition: String,
    /// Unused by Helm, kept for templates.
    pub tags: String,
    /// The version of what the chart installs, free text.
    pub app_version: String,
    /// Whether nobody should use it any more.
    pub deprecated: bool,
    /// Free pairs.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Range of Kubernetes versions that the chart is for.
    pub kube_version: String,
    /// The charts it needs. Only where it has a list of them, be it empty, Helm decides what the charts below need.
    pub dependencies: Option<Vec<Dependency>>,
    /// Empty, `application` or `library`.
    pub chart_type: String,
    /// How many maintainers, or charts that it needs, stand before a null, which is refused.
    pub(crate) null_maintainer: Option<usize>,
    pub(crate) null_dependency: Option<usize>,
}

/// Who maintains a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maintainer {
    /// A name.
    pub name: String,
    /// An address.
    pub email: String,
    /// A URL.
    pub url: String,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency {
    /// The name of the chart.
    pub name: String,
    /// A range of versions.
    pub version: String,
    /// Where it was found.
    pub repository: String,
    /// Comma-separated paths of values; the first boolean one decides whether the chart is used.
    pub condition: String,
    /// Names of values below `tags` that decide where no condition does.
    pub tags: Option<Vec<String>>,
    /// Whether the chart is used; computed, whatever the file says.
    pub enabled: bool,
    /// Values of the chart that its parent wants.
    pub import_values: Vec<ImportValues>,
    /// The name under which the parent uses it.
    pub alias: String,
}

/// A part of a subchart's values that becomes a part of its parent's.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportValues {
    /// Path of a mapping in the values of the subchart.
    pub child: String,
    /// Path in the values of the parent, `.` for their root.
    pub parent: String,
    /// Whether it was asked for by a name of `exports` alone.
    pub is_by_name: bool,
}

impl Dependency {
    /// What the parent calls the chart.
    pub(super) fn name_in_parent(&self) -> &str {
        if self.alias.is_empty() { &self.name } else { &self.alias }
    }
}

impl Metadata {
    /// Whether the chart only defines templates for others.
    pub fn is_library(&self) -> bool {
        self.chart_type.eq_ignore_ascii_case("library")
    }

    /// Cleans the strings and checks the rules that every chart must keep. The error is Helm's text without `validation: `.
    pub(super) fn validate(&mut self) -> Result<(), String> {
        self.sanitize();
        let name = &self.name;
        if name.is_empty() {
            return Err("chart.metadata.name is required".to_owned());
        }
        // Helm 3 lets these pass, as the name of a folder nobody wants them.
        if name == "." || name == ".." {
            return Err(format!("chart.metadata.name {name:?} is not allowed"));
        }
        if name.contains('/') {
            return Err(format!("chart.metadata.name {name:?} is invalid"));
        }
        if self.version.is_empty() {
            return Err("chart.metadata.version is required".to_owned());
        }
        // Loading knows no profile; what a newer library refuses comes with the others that profiles refuse.
        self.check_version(Library::V3_4)?;
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return Err("chart.metadata.type must be application or library".to_owned());
        }
        if self.null_maintainer.is_some() {
            return Err("maintainers must not contain empty or null nodes".to_owned());
        }
        self.validate_dependencies()
    }

    /// Checks that the chart has a version that a library reads. The error is Helm's text without `validation: `.
    pub(super) fn check_version(&self, library: Library) -> Result<(), String> {
        match Version::parse(self.version.as_bytes(), library) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("chart.metadata.version {:?} is invalid", self.version)),
        }
    }

    fn validate_dependencies(&self) -> Result<(), String> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let mut seen = HashSet::new();
        let before_null = self.null_dependency.unwrap_or(usize::MAX);
        for dependency in self.dependencies.iter().flatten().take(before_null) {
            let Dependency { name, alias, .. } = dependency;
            if !alias.bytes().all(is_part) {
                return Err(format!("dependency {name:?} has disallowed characters in the alias"));
            }
            let key = dependency.name_in_parent();
            if !seen.insert(key) {
                return Err(format!("more than one dependency with name or alias {key:?}"));
            }
        }
        if self.null_dependency.is_some() {
            return Err("dependencies must not contain empty or null nodes".to_owned());
        }
        Ok(())
    }

    fn sanitize(&mut self) {
        let texts = [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ];
        let lists = [&mut self.sources, &mut self.keywords];
        let listed = lists.into_iter().flatten().flatten();
        texts.into_iter().chain(listed).for_each(sanitize);
        for maintainer in self.maintainers.iter_mut().flatten() {
            sanitize(&mut maintainer.name);
            sanitize(&mut maintainer.email);
            sanitize(&mut maintainer.url);
        }
        for dependency in self.dependencies.iter_mut().flatten() {
            sanitize(&mut dependency.name);
            sanitize(&mut dependency.version);
            sanitize(&mut dependency.repository);
            sanitize(&mut dependency.condition);
            dependency.tags.iter_mut().flatten().for_each(sanitize);
        }
    }
}

impl Struct for Metadata {
    const NAME: &'static str = "Metadata";
    const TYPE: &'static str = "chart.Metadata";
    const FIELDS: &'static [(&'static str, Setter<Self>)] = &[
        ("name", |chart, field| field.text(&mut chart.name)),
        ("home", |chart, field| field.text(&mut chart.home)),
        ("sources", |chart, field| field.texts(&mut chart.sources)),
        ("version", |chart, field| field.text(&mut chart.version)),
        ("description", |chart, field| field.text(&mut chart.description)),
        ("keywords", |chart, field| field.texts(&mut chart.keywords)),
        ("maintainers", |chart, field| {
            chart.null_maintainer = field.structs(&mut chart.maintainers);
        }),
        ("icon", |chart, field| field.text(&mut chart.icon)),
        ("apiVersion", |chart, field| field.text(&mut chart.api_version)),
        ("condition", |chart, field| field.text(&mut chart.condition)),
        ("tags", |chart, field| field.text(&mut chart.tags)),
        ("appVersion", |chart, field| field.text(&mut chart.app_version)),
        ("deprecated", |chart, field| field.flag(&mut chart.deprecated)),
        ("annotations", |chart, field| field.pairs(&mut chart.annotations)),
        ("kubeVersion", |chart, field| field.text(&mut chart.kube_version)),
        ("dependencies", |chart, field| {
            chart.null_dependency = field.structs(&mut chart.dependencies);
        }),
        ("type", |chart, field| field.text(&mut chart.chart_type)),
    ];
}

impl Struct for Maintainer {
    const NAME: &'static str = "Maintainer";
    const TYPE: &'static str = "chart.Maintainer";
    const FIELDS: &'static [(&'static str, Setter<Self>)] = &[
        ("name", |maintainer, field| field.text(&mut maintainer.name)),
        ("email", |maintainer, field| field.text(&mut maintainer.email)),
        ("url", |maintainer, field| field.text(&mut maintainer.url)),
    ];
}

impl Struct for Dependency {
    const NAME: &'static str = "Dependency";
    const TYPE: &'static str = "chart.Dependency";
    const FIELDS: &'static [(&'static str, Setter<Self>)] = &[
        ("name", |dependency, field| field.text(&mut dependency.name)),
        ("version", |dependency, field| field.text(&mut dependency.version)),
        ("repository", |dependency, field| field.text(&mut dependency.repository)),
        ("condition", |dependency, field| field.text(&mut dependency.condition)),
        ("tags", |dependency, field| field.texts(&mut dependency.tags)),
        ("enabled", |dependency, field| field.flag(&mut dependency.enabled)),
        ("import-values", |dependency, field| {
            let items = field.items("[]interface {}").unwrap_or_default();
            dependency.import_values = items.iter().filter_map(ImportValues::read).collect();
        }),
        ("alias", |dependency, field| field.text(&mut dependency.alias)),
    ];
}

/// `Chart.lock`, which must be sound although nothing of it is used.
#[derive(Default)]
pub(super) struct Lock {
    digest: String,
    dependencies: Option<Vec<Dependency>>,
}

impl Struct for Lock {
    const NAME: &'static str = "Lock";
    const TYPE: &'static str = "chart.Lock";
    const FIELDS: &'static [(&'static str, Setter<Self>)] = &[
        ("generated", |_, field| field.time()),
        ("digest", |lock, field| field.text(&mut lock.digest)),
        ("dependencies", |lock, field| {
            field.structs(&mut lock.dependencies);
        }),
    ];
}

impl ImportValues {
    /// A name stands for `exports.NAME`, laid over the root of the parent's values. What is neither a name nor a mapping is nothing.
    fn read(node: &Node) -> Option<Self> {
        let part = |key| printed(&node.get(key).map(Node::to_value).unwrap_or_default(), b"%v");
        match node {
            Node::Map(_) => Some(Self {
                child: part("child"),
                parent: part("parent"),
                is_by_name: false,
            }),
            Node::Text(name) => Some(Self {
                child: format!("exports.{name}"),
                parent: ".".to_owned(),
                is_by_name: true,
            }),
            _ => None,
        }
    }
}

/// White space of any kind becomes a blank, what cannot be printed goes.
fn sanitize(text: &mut String) {
    let blank = |character| if is_space(character) { ' ' } else { character };
    *text = text
        .chars()
        .map(blank)
        .filter(|&character| is_print(character))
        .collect();
}
