//! What differs between Helm versions, as data. A profile is an argument of every render, never a global.

use crate::functions::FunctionTable;

/// One version of Helm as far as its output tells it from others.
#[derive(Debug)]
pub struct Profile {
    /// The name users give: `v3.19`.
    pub name: &'static str,
    /// What `.Capabilities.HelmVersion` says.
    pub build: Build,
    /// The Kubernetes version assumed when none is given.
    pub kube_version: &'static str,
    /// The API versions assumed to exist, in the order of `.Capabilities.APIVersions`.
    pub api_versions: &'static [&'static str],
    /// The order in which kinds are installed; other kinds follow by name.
    pub kind_order: &'static [&'static str],
    pub(crate) functions: fn() -> &'static FunctionTable,
}

/// How a Helm binary was built.
#[derive(Debug)]
pub struct Build {
    /// The full version with a `v`.
    pub version: &'static str,
    /// The commit it was built from.
    pub git_commit: &'static str,
    /// The version of Go.
    pub go_version: &'static str,
}

impl Profile {
    /// Helm 3.19.0.
    pub const V3_19: &'static Self = &Self {
        name: "v3.19",
        build: Build {
            version: "v3.19.0",
            git_commit: "3d8990f0836691f0229297773f3524598f46bda6",
            go_version: "go1.24.7",
        },
        kube_version: "v1.34.0",
        api_versions: API_VERSIONS_1_34,
        kind_order: KIND_ORDER_V3,
        functions: FunctionTable::v3_19,
    };

    /// The profile of a name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        [Self::V3_19].into_iter().find(|profile| profile.name == name)
    }
}

const API_VERSIONS_1_34: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha1",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1alpha1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

const KIND_ORDER_V3: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];
