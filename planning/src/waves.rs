//! In which order kinds are applied: what others need comes first. Decides by kind alone, never by the order of the manifests.
//!
//! Deletion goes through the same waves backwards, after the ClusterClasses.

use serde::{Deserialize, Serialize};

use crate::object_key::GroupKind;

/// A group of kinds that may be applied side by side. Waves sort in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Wave {
    /// Kinds themselves: nothing of a kind can be written before the kind is established.
    CustomResourceDefinitions,
    /// Namespaces and the cluster-wide classes that others name.
    Foundations,
    /// Who may do what.
    AccessControl,
    /// What workloads read or are bounded by.
    Configuration,
    /// Everything else, custom resources included.
    Workloads,
    /// What stands in the way of other writes; last, so that its server runs before it is asked.
    Webhooks,
}

impl Wave {
    /// All waves as they are applied; deletion takes them from the back, one after the other.
    pub const ALL: [Self; 6] = [
        Self::CustomResourceDefinitions,
        Self::Foundations,
        Self::AccessControl,
        Self::Configuration,
        Self::Workloads,
        Self::Webhooks,
    ];
}

/// The wave of a kind. Groups matter: a custom resource that is also called `Role` is a workload.
pub fn wave_of(group_kind: &GroupKind) -> Wave {
    match (group_kind.group.as_str(), group_kind.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Wave::CustomResourceDefinitions,
        ("", "Namespace")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("storage.k8s.io", "StorageClass" | "CSIDriver" | "VolumeAttributesClass")
        | ("snapshot.storage.k8s.io", "VolumeSnapshotClass")
        | ("networking.k8s.io", "IngressClass")
        | ("gateway.networking.k8s.io", "GatewayClass")
        | ("node.k8s.io", "RuntimeClass")
        | ("resource.k8s.io", "DeviceClass") => Wave::Foundations,
        ("", "ServiceAccount") | ("rbac.authorization.k8s.io", _) => Wave::AccessControl,
        (
            "",
            "ConfigMap" | "Secret" | "LimitRange" | "ResourceQuota" | "PersistentVolume" | "PersistentVolumeClaim",
        )
        | ("networking.k8s.io", "NetworkPolicy")
        | ("policy", "PodDisruptionBudget") => Wave::Configuration,
        // Admission policies and flow schemas decide about other writes as webhooks do.
        ("admissionregistration.k8s.io", _) | ("apiregistration.k8s.io", "APIService") => Wave::Webhooks,
        _ => Wave::Workloads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_wave() {
        let table = [
            (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                Wave::CustomResourceDefinitions,
            ),
            ("", "Namespace", Wave::Foundations),
            ("scheduling.k8s.io", "PriorityClass", Wave::Foundations),
            ("storage.k8s.io", "StorageClass", Wave::Foundations),
            ("networking.k8s.io", "IngressClass", Wave::Foundations),
            ("gateway.networking.k8s.io", "GatewayClass", Wave::Foundations),
            ("node.k8s.io", "RuntimeClass", Wave::Foundations),
            ("", "ServiceAccount", Wave::AccessControl),
            ("rbac.authorization.k8s.io", "ClusterRoleBinding", Wave::AccessControl),
            ("iam.example.org", "Role", Wave::Workloads),
            ("", "ConfigMap", Wave::Configuration),
            ("", "Secret", Wave::Configuration),
            ("networking.k8s.io", "NetworkPolicy", Wave::Configuration),
            ("cilium.io", "NetworkPolicy", Wave::Workloads),
            ("networking.k8s.io", "Ingress", Wave::Workloads),
            ("apps", "Deployment", Wave::Workloads),
            ("", "Service", Wave::Workloads),
            ("cluster.x-k8s.io", "ClusterClass", Wave::Workloads),
            (
                "infrastructure.cluster.x-k8s.io",
                "DockerMachineTemplate",
                Wave::Workloads,
            ),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                Wave::Webhooks,
            ),
            (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
                Wave::Webhooks,
            ),
            ("apiregistration.k8s.io", "APIService", Wave::Webhooks),
        ];
        for (group, kind, wave) in table {
            assert_eq!(wave_of(&GroupKind::new(group, kind)), wave, "{kind} in {group:?}");
        }
    }

    #[test]
    fn waves_sort_in_the_order_of_application() {
        assert!(Wave::ALL.is_sorted());
    }
}
