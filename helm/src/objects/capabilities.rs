//! `.Capabilities`: what the cluster and Helm are said to be.

use std::rc::Rc;

use crate::profile::{Build, KubeVersionSuffix, Profile};
use crate::value::{GoObject, Json, List, Shape, Signature, Type, Value};

/// `Capabilities` of Helm's chart package.
#[derive(Clone)]
pub(crate) struct Capabilities {
    type_name: &'static str,
    kube_version: Rc<KubeVersion>,
    api_versions: Rc<VersionSet>,
    build: Rc<BuildInfo>,
}

impl Capabilities {
    /// The profile's own capabilities, with another Kubernetes version and more API versions. The error is Helm's text.
    pub(crate) fn new(profile: &Profile, kube_version: Option<&str>, more: &[String]) -> Result<Self, String> {
        let kube_version = kube_version.unwrap_or(profile.kube_version);
        let known = profile.api_versions.iter().map(Value::from);
        let given = more.iter().map(|version| Value::from(version.as_str()));
        Ok(Self {
            type_name: profile.go_types.capabilities,
            kube_version: Rc::new(KubeVersion::parse(kube_version, profile)?),
            api_versions: Rc::new(VersionSet {
                type_name: profile.go_types.version_set,
                versions: known.chain(given).collect(),
            }),
            build: Rc::new(BuildInfo(profile.build)),
        })
    }

    /// The numbers of the Kubernetes version with a `v`, which constraints are checked against.
    pub(crate) fn kube_version(&self) -> &str {
        &self.kube_version.numbers
    }

    /// The Kubernetes version as errors say it.
    pub(crate) fn full_kube_version(&self) -> &str {
        &self.kube_version.version
    }
}

impl GoObject for Capabilities {
    fn type_name(&self) -> String {
        self.type_name.to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Pointer(vec![
            ("KubeVersion", Value::Obj(Rc::<KubeVersion>::clone(&self.kube_version))),
            ("APIVersions", Value::Obj(Rc::<VersionSet>::clone(&self.api_versions))),
            ("HelmVersion", Value::Obj(Rc::<BuildInfo>::clone(&self.build))),
        ])
    }

    fn copied(&self) -> Option<Value> {
        Some(Value::Obj(Rc::new(Self {
            kube_version: Rc::new(self.kube_version.copied_fields()),
            ..self.clone()
        })))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Copy").then_some(NO_PARAMETERS)
    }

    fn call(&self, _name: &str, _arguments: &[Value]) -> Result<Value, String> {
        Ok(Value::Obj(Rc::new(self.clone())))
    }
}

/// `KubeVersion` of Helm's chart package.
#[derive(Clone)]
struct KubeVersion {
    type_name: &'static str,
    suffix: KubeVersionSuffix,
    version: String,
    numbers: String,
    major: String,
    minor: String,
    /// It stands in an `interface {}`, without the methods of its pointer.
    is_boxed: bool,
}

impl KubeVersion {
    fn parse(text: &str, profile: &Profile) -> Result<Self, String> {
        let Numbers { all, major, minor } = Numbers::parse(text)?;
        let suffix = profile.kube_version_suffix;
        Ok(Self {
            type_name: profile.go_types.kube_version,
            suffix,
            version: match suffix {
                KubeVersionSuffix::Cut => all.clone(),
                KubeVersionSuffix::Kept if text.starts_with('v') => text.to_owned(),
                KubeVersionSuffix::Kept => format!("v{text}"),
            },
            numbers: all,
            major,
            minor,
            is_boxed: false,
        })
    }
}

/// The numbers that a Kubernetes version begins with.
struct Numbers {
    /// All of them, with a `v`.
    all: String,
    major: String,
    minor: String,
}

impl Numbers {
    /// Reads them; what follows is cut off.
    fn parse(text: &str) -> Result<Self, String> {
        let unread = text.trim_start();
        let unread = unread.strip_prefix('v').unwrap_or(unread);
        let mut components = Vec::new();
        for written in components_of(unread) {
            if components.is_empty() && written != "0" && written.starts_with('0') {
                return Err(format!(
                    "illegal zero-prefixed version component {written:?} in {text:?}"
                ));
            }
            let component: u64 = written.parse().map_err(|_| {
                format!(
                    "illegal non-numeric version component {written:?} in {text:?}: \
                     strconv.ParseUint: parsing {written:?}: value out of range"
                )
            })?;
            components.push(component.to_string());
        }
        match components.as_slice() {
            [] => Err(format!("could not parse {text:?} as version")),
            [_] => Err(format!("illegal version string {text:?}")),
            [major, minor, ..] => Ok(Self {
                all: format!("v{}", components.join(".")),
                major: major.clone(),
                minor: minor.clone(),
            }),
        }
    }
}

/// The numbers that a text begins with, as long as each has a dot before it.
fn components_of(text: &str) -> impl Iterator<Item = &str> {
    let digits = |part: &str| part.len() - part.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (component, behind) = rest?.split_at(digits(rest?));
        rest = behind.strip_prefix('.');
        (!component.is_empty()).then_some(component)
    })
}

impl KubeVersion {
    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Version", Value::from(self.version.as_str())),
            ("Major", Value::from(self.major.as_str())),
            ("Minor", Value::from(self.minor.as_str())),
        ]
    }

    /// What `String()` gives.
    fn text(&self) -> &str {
        if self.numbers.is_empty() {
            &self.version
        } else {
            &self.numbers
        }
    }

    /// What `deepCopy` makes of it: the numbers are not exported where they are not the version.
    fn copied_fields(&self) -> Self {
        let numbers = match self.suffix {
            KubeVersionSuffix::Cut => self.numbers.clone(),
            KubeVersionSuffix::Kept => String::new(),
        };
        Self {
            numbers,
            ..self.clone()
        }
    }
}

impl GoObject for KubeVersion {
    fn type_name(&self) -> String {
        self.type_name.to_owned()
    }

    fn shape(&self) -> Shape {
        let mut fields = self.fields();
        if self.suffix == KubeVersionSuffix::Kept {
            fields.insert(1, ("normalizedVersion", Value::from(self.numbers.as_str())));
        }
        Shape::Struct(fields)
    }

    /// Only what Go exports.
    fn field(&self, name: &str) -> Option<Value> {
        let fields = self.fields().into_iter();
        fields
            .into_iter()
            .find_map(|(field, value)| (field == name).then_some(value))
    }

    fn json(&self) -> Option<Json> {
        Some(Json::Fields(self.fields()))
    }

    fn copied(&self) -> Option<Value> {
        Some(Value::Obj(Rc::new(self.copied_fields())))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (!self.is_boxed && matches!(name, "String" | "GitVersion")).then_some(NO_PARAMETERS)
    }

    fn call(&self, name: &str, _arguments: &[Value]) -> Result<Value, String> {
        let version = if name == "String" { self.text() } else { &self.version };
        Ok(Value::from(version))
    }

    fn pointer_string(&self) -> Option<String> {
        (!self.is_boxed).then(|| self.text().to_owned())
    }

    fn boxed(&self) -> Option<Value> {
        Some(Value::Obj(Rc::new(Self {
            is_boxed: true,
            ..self.clone()
        })))
    }
}

/// `VersionSet` of Helm's chart package.
struct VersionSet {
    type_name: &'static str,
    versions: Vec<Value>,
}

impl GoObject for VersionSet {
    fn type_name(&self) -> String {
        self.type_name.to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::List(List::of(crate::value::Element::Str, self.versions.clone()))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then_some(Signature {
            parameters: &[Type::Str],
            variadic: false,
        })
    }

    fn call(&self, _name: &str, arguments: &[Value]) -> Result<Value, String> {
        let wanted = arguments.first().and_then(Value::as_str);
        Ok(Value::Bool(
            self.versions.iter().any(|version| version.as_str() == wanted),
        ))
    }
}

/// `version.BuildInfo`
struct BuildInfo(Build);

impl BuildInfo {
    /// Go's name of each field, the one in JSON, the value.
    fn fields(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let Build {
            version,
            git_commit,
            git_tree_state,
            go_version,
            kube_client_version,
        } = self.0;
        let mut fields = vec![
            ("Version", "version", version),
            ("GitCommit", "git_commit", git_commit),
            ("GitTreeState", "git_tree_state", git_tree_state),
            ("GoVersion", "go_version", go_version),
        ];
        fields.extend(kube_client_version.map(|version| ("KubeClientVersion", "kube_client_version", version)));
        fields
    }
}

impl GoObject for BuildInfo {
    fn type_name(&self) -> String {
        "version.BuildInfo".to_owned()
    }

    fn shape(&self) -> Shape {
        let fields = self.fields().into_iter();
        Shape::Struct(fields.map(|(name, _, value)| (name, Value::from(value))).collect())
    }

    fn json(&self) -> Option<Json> {
        let fields = self.fields().into_iter().filter(|(.., value)| !value.is_empty());
        Some(Json::Fields(
            fields.map(|(_, name, value)| (name, Value::from(value))).collect(),
        ))
    }
}

const NO_PARAMETERS: Signature = Signature {
    parameters: &[],
    variadic: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_versions_are_cut_to_their_numbers() {
        for (text, version) in [
            ("1.33.0", Some("v1.33.0")),
            ("v1.33.4-gke.1", Some("v1.33.4")),
            ("v1.33", Some("v1.33")),
            ("1", None),
            ("1.033", Some("v1.33")),
            ("x", None),
        ] {
            let parsed = Numbers::parse(text).ok().map(|parsed| parsed.all);
            assert_eq!(parsed.as_deref(), version, "{text}");
        }
    }
}
