//! The operator's validating webhooks, as the API server and the operator have to agree on them: where they are, and which Clusters they
//! are asked about. [`crate::manifests`] makes the configuration of it.

/// Asked about Clusters that are created or change.
pub const CLUSTER_PATH: &str = "/validate-cluster-x-k8s-io-v1beta1-cluster";
/// Asked about ClusterStacks that are to be deleted.
pub const CLUSTER_STACK_PATH: &str = "/validate-clusterstack-x-k8s-io-v1alpha1-clusterstack";
/// Asked about ClusterStackReleases that are to be deleted.
pub const CLUSTER_STACK_RELEASE_PATH: &str = "/validate-clusterstack-x-k8s-io-v1alpha1-clusterstackrelease";
/// Asked about ClusterAddons that name another namespace than before.
pub const CLUSTER_ADDON_PATH: &str = "/validate-clusterstack-x-k8s-io-v1alpha1-clusteraddon";

/// The port of the Pods.
pub const PORT: u16 = 9443;
/// How long the API server waits for an answer, in seconds.
pub const TIMEOUT_SECONDS: i32 = 5;

/// What [`ClassName`](crate::names::ClassName) reads, as an expression for the API server. It also fits a few texts that no class has: numbers
/// beyond all bounds, names beyond 253 characters.
pub const CLASS_NAME_PATTERN: &str = "^[a-z0-9]+-[a-z0-9]+-0*[0-9]-[0-9]+-v[0-9]+(-[a-z0-9]+[.][a-z0-9]+)?$";
