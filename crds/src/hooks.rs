//! The lifecycle hooks of Cluster API, as its managers and the operator have to agree on them. [`crate::manifests`] tells the managers of the operator.

/// The port of the Pods.
pub const PORT: u16 = 9442;

/// The API of the calls, and the first two parts of their paths: one version for all minors of Cluster API, 1.10 to 1.14.
pub const API_VERSION: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";

/// How long a manager waits for an answer, in seconds; what its handlers have where they say nothing.
pub const TIMEOUT_SECONDS: u8 = 10;
