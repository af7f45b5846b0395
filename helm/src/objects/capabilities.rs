//! `.Capabilities`: what the cluster and Helm are said to be.

use std::rc::Rc;

use crate::profile::{Build, Profile};
use crate::value::{GoObject, Json, List, Shape, Signature, Type, Value};

/// `*chartutil.Capabilities`
pub(crate) struct Capabilities {
    kube_version: Rc<KubeVersion>,
    api_versions: Rc<VersionSet>,
    build: Rc<BuildInfo>,
}

impl Capabilities {
    /// The profile's own capabilities, with another Kubernetes version and more API versions. The error is Helm's text.
    pub(crate) fn new(profile: &Profile, kube_version: Option<&str>, more: &[String]) -> Result<Self, String> {
        let kube_version = kube_version.unwrap_or(profile.kube_version);
        let known = profile.api_versions.iter().copied();
        Ok(Self {
            kube_version: Rc::new(parse_kube_version(kube_version)?),
            api_versions: Rc::new(VersionSet(
                known.chain(more.iter().map(String::as_str)).map(Value::from).collect(),
            )),
            build: Rc::new(BuildInfo(profile.build)),
        })
    }

    /// The Kubernetes version with a `v`.
    pub(crate) fn kube_version(&self) -> &str {
        &self.kube_version.version
    }
}

impl GoObject for Capabilities {
    fn type_name(&self) -> String {
        "*chartutil.Capabilities".to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Pointer(vec![
            ("KubeVersion", Value::Obj(Rc::<KubeVersion>::clone(&self.kube_version))),
            ("APIVersions", Value::Obj(Rc::<VersionSet>::clone(&self.api_versions))),
            ("HelmVersion", Value::Obj(Rc::<BuildInfo>::clone(&self.build))),
        ])
    }
}

/// `chartutil.KubeVersion`
struct KubeVersion {
    version: String,
    major: String,
    minor: String,
}

/// Reads a Kubernetes version; what follows its numbers is cut off.
fn parse_kube_version(text: &str) -> Result<KubeVersion, String> {
    let numbers = text.trim_start();
    let numbers = numbers.strip_prefix('v').unwrap_or(numbers);
    let end = numbers
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(numbers.len());
    let numbers = numbers[..end].trim_end_matches('.');
    let parts: Vec<&str> = numbers.split('.').collect();
    let well_formed = |part: &&str| !part.is_empty() && (*part == "0" || !part.starts_with('0'));
    match parts.as_slice() {
        [] | [""] => Err(format!("could not parse {text:?} as version")),
        [major, minor, ..] if parts.iter().all(well_formed) => Ok(KubeVersion {
            version: format!("v{numbers}"),
            major: (*major).to_owned(),
            minor: (*minor).to_owned(),
        }),
        _ => Err(format!("illegal version string {text:?}")),
    }
}

impl GoObject for KubeVersion {
    fn type_name(&self) -> String {
        "chartutil.KubeVersion".to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Struct(vec![
            ("Version", Value::from(self.version.as_str())),
            ("Major", Value::from(self.major.as_str())),
            ("Minor", Value::from(self.minor.as_str())),
        ])
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "String" | "GitVersion").then_some(NO_PARAMETERS)
    }

    fn call(&self, _name: &str, _arguments: &[Value]) -> Result<Value, String> {
        Ok(Value::from(self.version.as_str()))
    }

    fn pointer_string(&self) -> Option<String> {
        Some(self.version.clone())
    }
}

/// `chartutil.VersionSet`
struct VersionSet(Vec<Value>);

impl GoObject for VersionSet {
    fn type_name(&self) -> String {
        "chartutil.VersionSet".to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::List(List::of(crate::value::Element::Str, self.0.clone()))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then_some(Signature {
            parameters: &[Type::Str],
            variadic: false,
        })
    }

    fn call(&self, _name: &str, arguments: &[Value]) -> Result<Value, String> {
        let wanted = arguments.first().and_then(Value::as_str);
        Ok(Value::Bool(self.0.iter().any(|version| version.as_str() == wanted)))
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
            ("1.033", None),
            ("x", None),
        ] {
            let parsed = parse_kube_version(text).ok().map(|parsed| parsed.version);
            assert_eq!(parsed.as_deref(), version, "{text}");
        }
    }
}
