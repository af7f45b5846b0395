//! Everything that the API server in memory serves.

use operator_kit::in_memory::Served;

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Served {
    Served::namespaced(group, version, kind, plural)
}

const OURS: &str = "clusterstack.x-k8s.io";
const PROVIDERS: &str = "infrastructure.clusterstack.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// The provider's objects, which are ready as soon as they are there.
pub(super) const PROVIDER_KIND: &str = "DockerClusterStackRelease";

/// Everything that is served.
pub(super) static KINDS: [Served; 18] = [
    Served::CRD,
    Served::NAMESPACE,
    Served::SECRET,
    Served::EVENT,
    kind(OURS, "v1alpha1", "ClusterStack", "clusterstacks"),
    kind(OURS, "v1alpha1", "ClusterStackRelease", "clusterstackreleases"),
    kind(OURS, "v1alpha1", "ClusterAddon", "clusteraddons"),
    Served {
        ready_at_once: true,
        ..kind(PROVIDERS, "v1", PROVIDER_KIND, "dockerclusterstackreleases")
    },
    kind(
        PROVIDERS,
        "v1",
        "DockerClusterStackReleaseTemplate",
        "dockerclusterstackreleasetemplates",
    ),
    kind("openstack.k-orc.cloud", "v1alpha1", "Image", "images"),
    kind("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters"),
    kind("cluster.x-k8s.io", "v1beta1", "ClusterClass", "clusterclasses"),
    kind(
        "controlplane.cluster.x-k8s.io",
        "v1beta1",
        "KubeadmControlPlane",
        "kubeadmcontrolplanes",
    ),
    kind(INFRASTRUCTURE, "v1beta1", "DockerCluster", "dockerclusters"),
    kind(
        INFRASTRUCTURE,
        "v1beta1",
        "DockerClusterTemplate",
        "dockerclustertemplates",
    ),
    kind(
        INFRASTRUCTURE,
        "v1beta1",
        "DockerMachineTemplate",
        "dockermachinetemplates",
    ),
    kind(
        "bootstrap.cluster.x-k8s.io",
        "v1beta1",
        "KubeadmConfigTemplate",
        "kubeadmconfigtemplates",
    ),
    kind(
        "controlplane.cluster.x-k8s.io",
        "v1beta1",
        "KubeadmControlPlaneTemplate",
        "kubeadmcontrolplanetemplates",
    ),
];
