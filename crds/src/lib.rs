//! The API: kinds, conditions, names, labels and the file formats of a release.
//!
//! This room parses, prints and validates what a single value can state. It does not look at two objects at once, decides nothing,
//! and touches neither clock, environment, files nor network.

pub mod cluster_addon;
pub mod cluster_stack;
pub mod cluster_stack_release;
pub mod conditions;
pub mod events;
pub mod guide;
pub mod hooks;
pub mod labels;
pub mod manifests;
pub mod names;
pub mod object_name;
pub mod policy;
pub mod providers;
pub mod redaction;
pub mod release_files;
pub mod resource;
pub mod source;
pub mod webhooks;

mod schema;

pub use cluster_addon::{ClusterAddon, ClusterAddonSpec, ClusterAddonStatus};
pub use cluster_stack::{ClusterStack, ClusterStackSpec, ClusterStackStatus};
pub use cluster_stack_release::{ClusterStackRelease, ClusterStackReleaseSpec, ClusterStackReleaseStatus};

/// API group of the three kinds.
pub const GROUP: &str = "clusterstack.x-k8s.io";
/// The only version of [`GROUP`]: stored and served.
pub const VERSION: &str = "v1alpha1";
/// API group of the kinds that a provider brings, such as `OpenStackClusterStackRelease`.
pub const PROVIDER_GROUP: &str = "infrastructure.clusterstack.x-k8s.io";
