//! `Chart.yaml`: its fields, how loosely they are read, and what Helm refuses in them.

use std::collections::{BTreeMap, HashSet};

use crate::fields::{Fields, scalar_text};
use crate::semver::Version;
use crate::yaml::Node;

/// What a chart says about itself. Absent strings are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The name of the chart; the alias once it is used under one.
    pub name: String,
    /// URL of the project.
    pub home: String,
    /// URLs of the source code.
    pub sources: Vec<String>,
    /// The version of the chart, semantic but possibly short.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Words to search for.
    pub keywords: Vec<String>,
    /// Who to ask.
    pub maintainers: Vec<Maintainer>,
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
    pub annotations: BTreeMap<String, String>,
    /// Range of Kubernetes versions that the chart is for.
    pub kube_version: String,
    /// The charts it needs.
    pub dependencies: Vec<Dependency>,
    /// Empty, `application` or `library`.
    pub chart_type: String,
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
    pub tags: Vec<String>,
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
}

impl Metadata {
    /// Reads the fields of a document over what is there, as Go decodes into a struct twice. The error is Go's text.
    pub(super) fn update(&mut self, document: &Node) -> Result<(), String> {
        let fields = Fields::of_document("Metadata", "chart.Metadata", document)?;
        fields.text("name", &mut self.name)?;
        fields.text("home", &mut self.home)?;
        fields.texts("sources", &mut self.sources)?;
        fields.text("version", &mut self.version)?;
        fields.text("description", &mut self.description)?;
        fields.texts("keywords", &mut self.keywords)?;
        fields.structs("maintainers", "Maintainer", &mut self.maintainers, Maintainer::read)?;
        fields.text("icon", &mut self.icon)?;
        fields.text("apiVersion", &mut self.api_version)?;
        fields.text("condition", &mut self.condition)?;
        fields.text("tags", &mut self.tags)?;
        fields.text("appVersion", &mut self.app_version)?;
        fields.flag("deprecated", &mut self.deprecated)?;
        fields.pairs("annotations", &mut self.annotations)?;
        fields.text("kubeVersion", &mut self.kube_version)?;
        fields.structs("dependencies", "Dependency", &mut self.dependencies, Dependency::read)?;
        fields.text("type", &mut self.chart_type)
    }

    /// Refuses empty items of lists that must not have any. The error is Helm's text without `validation: `.
    pub(super) fn refuse_null_items(document: &Node) -> Result<(), String> {
        for field in ["maintainers", "dependencies"] {
            if document
                .get(field)
                .and_then(Node::as_list)
                .is_some_and(|items| items.contains(&Node::Null))
            {
                return Err(format!("{field} must not contain empty or null nodes"));
            }
        }
        Ok(())
    }

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
        if Version::parse(&self.version).is_err() {
            return Err(format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return Err("chart.metadata.type must be application or library".to_owned());
        }
        self.validate_dependencies()
    }

    fn validate_dependencies(&self) -> Result<(), String> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let mut seen = HashSet::new();
        for dependency in &self.dependencies {
            let Dependency { name, alias, .. } = dependency;
            if !alias.bytes().all(is_part) {
                return Err(format!("dependency {name:?} has disallowed characters in the alias"));
            }
            let key = if alias.is_empty() { name } else { alias };
            if !seen.insert(key) {
                return Err(format!("more than one dependency with name or alias {key:?}"));
            }
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
        for text in texts.into_iter().chain(&mut self.sources).chain(&mut self.keywords) {
            sanitize(text);
        }
        for maintainer in &mut self.maintainers {
            sanitize(&mut maintainer.name);
            sanitize(&mut maintainer.email);
            sanitize(&mut maintainer.url);
        }
        for dependency in &mut self.dependencies {
            sanitize(&mut dependency.name);
            sanitize(&mut dependency.version);
            sanitize(&mut dependency.repository);
            sanitize(&mut dependency.condition);
            dependency.tags.iter_mut().for_each(sanitize);
        }
    }
}

impl Maintainer {
    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let mut maintainer = Self::default();
        fields.text("name", &mut maintainer.name)?;
        fields.text("email", &mut maintainer.email)?;
        fields.text("url", &mut maintainer.url)?;
        Ok(maintainer)
    }
}

impl Dependency {
    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let mut dependency = Self::default();
        fields.text("name", &mut dependency.name)?;
        fields.text("version", &mut dependency.version)?;
        fields.text("repository", &mut dependency.repository)?;
        fields.text("condition", &mut dependency.condition)?;
        fields.texts("tags", &mut dependency.tags)?;
        fields.flag("enabled", &mut dependency.enabled)?;
        if let Some(items) = fields.items("import-values", "[]interface {}")? {
            dependency.import_values = items.iter().map(ImportValues::read).collect();
        }
        fields.text("alias", &mut dependency.alias)?;
        Ok(dependency)
    }
}

impl ImportValues {
    /// A name stands for `exports.NAME`, laid over the root of the parent's values.
    fn read(node: &Node) -> Self {
        let part = |key| match node.get(key) {
            None | Some(Node::Null) => "<nil>".to_owned(),
            Some(node) => scalar_text(node).unwrap_or_default(),
        };
        match node {
            Node::Map(_) => Self {
                child: part("child"),
                parent: part("parent"),
            },
            node => Self {
                child: format!("exports.{}", scalar_text(node).unwrap_or_default()),
                parent: ".".to_owned(),
            },
        }
    }
}

/// White space of any kind becomes a blank, what cannot be printed goes.
fn sanitize(text: &mut String) {
    *text = text
        .chars()
        .map(|character| if character.is_whitespace() { ' ' } else { character })
        .filter(|character| !character.is_control())
        .collect();
}
