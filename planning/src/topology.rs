//! What a Cluster says of its class and its Kubernetes version, in either spelling of Cluster API.

use crds::names::{ClassName, NameError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `spec.topology` of a Cluster that has a class, whoever's class that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Name of the class, as written.
    pub class: String,
    /// Namespace of the class: the Cluster's own unless it says another.
    pub class_namespace: String,
    /// Kubernetes version, such as `v1.34.2`; empty when the Cluster has none.
    pub version: String,
    /// Where the name of the class stands.
    pub spelling: Spelling,
}

/// How a Cluster names its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spelling {
    /// `class` and `classNamespace` (v1beta1).
    Class,
    /// `classRef.name` and `classRef.namespace` (v1beta2).
    ClassRef,
}

impl Spelling {
    /// The path of the class's name in the object.
    pub fn field(self) -> &'static str {
        match self {
            Self::Class => "spec.topology.class",
            Self::ClassRef => "spec.topology.classRef.name",
        }
    }
}

impl Topology {
    /// Reads a Cluster, of which `cluster` has at least `spec`; `None` of one without topology or class.
    pub fn of(cluster: &Value, namespace: &str) -> Option<Self> {
        let topology = cluster.pointer("/spec/topology")?;
        let text = |pointer: &str| {
            let text = topology.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let by_reference = text("/classRef/name").map(|class| (class, Spelling::ClassRef));
        let (class, spelling) = by_reference.or_else(|| Some((text("/class")?, Spelling::Class)))?;
        let elsewhere = text("/classRef/namespace").or_else(|| text("/classNamespace"));
        Some(Self {
            class,
            class_namespace: elsewhere.unwrap_or_else(|| namespace.to_owned()),
            version: text("/version").unwrap_or_default(),
            spelling,
        })
    }

    /// The class, if it is named like one of ours.
    pub fn class_name(&self) -> Result<ClassName, NameError> {
        self.class.parse()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_spellings_of_the_class_are_read() {
        let topology = |class: &str, class_namespace: &str, version: &str, spelling| {
            Some(Topology {
                class: class.to_owned(),
                class_namespace: class_namespace.to_owned(),
                version: version.to_owned(),
                spelling,
            })
        };
        let table = [
            (json!({"class": "any"}), topology("any", "team", "", Spelling::Class)),
            (
                json!({"class": "any", "classNamespace": "fleet", "version": "v1.34.2"}),
                topology("any", "fleet", "v1.34.2", Spelling::Class),
            ),
            (
                json!({"classRef": {"name": "any"}, "version": "v1.34.2"}),
                topology("any", "team", "v1.34.2", Spelling::ClassRef),
            ),
            (
                json!({"classRef": {"name": "any", "namespace": "fleet"}}),
                topology("any", "fleet", "", Spelling::ClassRef),
            ),
            (json!({"class": "", "version": "v1.34.2"}), None),
            (json!({"classRef": {}}), None),
            (json!(null), None),
        ];
        for (spec, expected) in table {
            let cluster = json!({"spec": {"topology": spec}});
            assert_eq!(Topology::of(&cluster, "team"), expected, "{cluster}");
        }
        assert_eq!(Topology::of(&json!({"spec": {}}), "team"), None);
        assert_eq!(Topology::of(&json!({}), "team"), None);
    }
}
