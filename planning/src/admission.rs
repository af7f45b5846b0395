//! Whether a request to the API server may pass: the rules about Clusters of our classes, about the deletion of what is in use, and about
//! add-ons that would change the namespace of their Cluster.
//!
//! What a rule of a CRD can say is said there (`crds`) and not again. The messages are those of the Go operator, to the letter: people
//! and programs know them.

mod addon;
mod cluster;
mod deletion;
mod outline;
mod verdict;

pub use addon::addon_update;
pub use cluster::{ClusterChange, ReleasePlace, ReleaseSight};
pub use deletion::{InUse, Users, deletion, users_of_release, users_of_stack};
pub use outline::outline;
pub use verdict::{Refusal, Verdict};

#[cfg(test)]
mod tests;
