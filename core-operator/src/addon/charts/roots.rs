//! The objects that values are made of, read from the management cluster: the Cluster in the API version that the release names, and what it refers to.

use crds::release_files::ClusterApiVersion;
use operator_kit::failure::Class;
use operator_kit::object::{ObjectKey, json_of};
use operator_kit::read::ReadError;
use rendering::Roots;
use serde_json::Value;

use crate::clusters::{CLUSTER_API_GROUP, is_of_cluster_api};
use crate::objects::Place;

/// What templates of values see.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RootObjects {
    cluster: Value,
    control_plane: Option<Value>,
    infra_cluster: Option<Value>,
    /// What is otherwise than the release asks for, in words.
    pub(crate) note: Option<String>,
}

/// Why they are not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootsError {
    /// The API server did not give one of them.
    #[error("failed to read an object that values are made of")]
    Read(#[source] Box<ReadError>),
    /// It is not there (yet, or any more).
    #[error("{key} is not there, of which values are made; it is looked for again")]
    Missing {
        /// Which.
        key: ObjectKey,
    },
    /// The Cluster refers to what is no part of a cluster.
    #[error(
        "{field} of the Cluster names {kind} of the group {group:?}: values are made of kinds of {CLUSTER_API_GROUP} alone"
    )]
    Foreign {
        /// Where it says so.
        field: &'static str,
        /// The kind.
        kind: String,
        /// Its group.
        group: String,
    },
    /// The Cluster refers to an object of another namespace.
    #[error(
        "{field} of the Cluster names an object in the namespace {namespace:?}: it has to be in that of the Cluster"
    )]
    Elsewhere {
        /// Where it says so.
        field: &'static str,
        /// Which namespace.
        namespace: String,
    },
}

impl From<ReadError> for RootsError {
    fn from(error: ReadError) -> Self {
        Self::Read(Box::new(error))
    }
}

impl RootsError {
    /// Whether it may be otherwise when it is tried again, without anybody having changed the Cluster.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Read(error) => error.class() != Class::Terminal,
            Self::Missing { .. } => true,
            Self::Foreign { .. } | Self::Elsewhere { .. } => false,
        }
    }
}

impl RootObjects {
    /// The Cluster.
    pub(super) fn cluster(&self) -> &Value {
        &self.cluster
    }

    /// As the templates see them.
    pub(super) fn roots(&self) -> Roots<'_> {
        Roots {
            cluster: &self.cluster,
            control_plane: self.control_plane.as_ref(),
            infra_cluster: self.infra_cluster.as_ref(),
        }
    }
}

/// Reads the objects of a Cluster.
pub(crate) async fn read(
    management: &Place,
    (namespace, name): (&str, &str),
    version: ClusterApiVersion,
) -> Result<RootObjects, RootsError> {
    let key = ObjectKey::new(CLUSTER_API_GROUP, "Cluster", namespace, name);
    let wanted = version.to_string();
    let found = management.read_in(&key, &wanted).await?;
    let cluster = json(found, &key)?;
    let note = note(&cluster, &wanted);
    let control_plane = referred(management, &cluster, namespace, &Field::CONTROL_PLANE).await?;
    let infra_cluster = referred(management, &cluster, namespace, &Field::INFRASTRUCTURE).await?;
    Ok(RootObjects {
        cluster,
        control_plane,
        infra_cluster,
        note,
    })
}

/// What templates may stumble over, when the API server gives another version than the release names.
fn note(cluster: &Value, wanted: &str) -> Option<String> {
    let given = cluster.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    (given != format!("{CLUSTER_API_GROUP}/{wanted}")).then(|| {
        format!(
            "the API server does not serve Clusters in the version {wanted}, which the values of the release are written for; they get {given}: \
             say so in clusteraddon.yaml (clusterApiVersion)"
        )
    })
}

/// A field of a Cluster that refers to another object.
struct Field {
    pointer: &'static str,
    name: &'static str,
}

impl Field {
    const CONTROL_PLANE: Self = Self {
        pointer: "/spec/controlPlaneRef",
        name: "spec.controlPlaneRef",
    };
    const INFRASTRUCTURE: Self = Self {
        pointer: "/spec/infrastructureRef",
        name: "spec.infrastructureRef",
    };
}

async fn referred(
    management: &Place,
    cluster: &Value,
    namespace: &str,
    field: &Field,
) -> Result<Option<Value>, RootsError> {
    let Some(Reference { key, version }) = reference(cluster, namespace, field)? else {
        return Ok(None);
    };
    let found = match version {
        Some(version) => management.read_in(&key, &version).await?,
        None => management.read(&key).await?,
    };
    json(found, &key).map(Some)
}

struct Reference {
    key: ObjectKey,
    version: Option<String>,
}

/// In v1beta1 a reference says `apiVersion` and may say a namespace, in v1beta2 `apiGroup`. Whoever may write Clusters must not read through it what only
/// we may read.
fn reference(cluster: &Value, namespace: &str, field: &Field) -> Result<Option<Reference>, RootsError> {
    let text = |name: &str| {
        let text = cluster.pointer(field.pointer)?.get(name)?.as_str()?;
        (!text.is_empty()).then_some(text)
    };
    let (Some(kind), Some(name)) = (text("kind"), text("name")) else {
        return Ok(None);
    };
    let (group, version) = match (text("apiGroup"), text("apiVersion")) {
        (Some(group), _) => (group, None),
        (None, Some(api_version)) => match api_version.split_once('/') {
            Some((group, version)) => (group, Some(version.to_owned())),
            None => ("", Some(api_version.to_owned())),
        },
        (None, None) => ("", None),
    };
    if let Some(elsewhere) = text("namespace").filter(|elsewhere| *elsewhere != namespace) {
        return Err(RootsError::Elsewhere {
            field: field.name,
            namespace: elsewhere.to_owned(),
        });
    }
    if !is_of_cluster_api(group) {
        return Err(RootsError::Foreign {
            field: field.name,
            kind: kind.to_owned(),
            group: group.to_owned(),
        });
    }
    let key = ObjectKey::new(group, kind, namespace, name);
    Ok(Some(Reference { key, version }))
}

fn json(found: Option<kube::api::DynamicObject>, key: &ObjectKey) -> Result<Value, RootsError> {
    let missing = || RootsError::Missing { key: key.clone() };
    let mut found = found.ok_or_else(missing)?;
    // Values that said who wrote which field when would be others all the time.
    found.metadata.managed_fields = None;
    Ok(json_of(found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn referred(reference_: &Value) -> Result<Option<(String, Option<String>)>, String> {
        let cluster = json!({ "spec": { "controlPlaneRef": reference_ } });
        let found = reference(&cluster, "fleet", &Field::CONTROL_PLANE);
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.map(|found| (found.key.to_string(), found.version)))
    }

    #[test]
    fn references_of_both_versions_are_followed() {
        let (group, kind) = ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane");
        let key = ObjectKey::new(group, kind, "fleet", "wharf").to_string();
        let old =
            json!({ "apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "wharf", "namespace": "fleet" });
        assert_eq!(referred(&old), Ok(Some((key.clone(), Some("v1beta1".to_owned())))));
        let new = json!({ "apiGroup": group, "kind": kind, "name": "wharf" });
        assert_eq!(referred(&new), Ok(Some((key, None))));
        assert_eq!(referred(&json!({})), Ok(None));
    }

    #[test]
    fn whoever_writes_a_cluster_reads_nothing_through_it_that_is_no_part_of_a_cluster() {
        let kubeconfig = json!({ "apiVersion": "v1", "kind": "Secret", "name": "other-kubeconfig" });
        for (reference, words) in [
            (kubeconfig, "names Secret of the group \"\""),
            (
                json!({ "kind": "Secret", "name": "a" }),
                "names Secret of the group \"\"",
            ),
            (
                json!({ "apiGroup": "evilcluster.x-k8s.io", "kind": "A", "name": "a" }),
                "of the group \"evilcluster.x-k8s.io\"",
            ),
            (
                json!({ "apiVersion": "a.cluster.x-k8s.io/v1", "kind": "A", "name": "a", "namespace": "other" }),
                "in the namespace \"other\"",
            ),
        ] {
            let told = referred(&reference).expect_err("it is refused");
            assert!(told.contains(words), "{told}");
        }
    }
}
