//! The clusters that Clusters describe: one owner of the connections to them, and what is known of each without waiting.
//!
//! A cluster that hangs, is slow or has gone costs one timer of its own task and delays nobody. The owner says how a cluster is
//! ([`WorkloadClusters::get`]) and tells when that changes ([`News`]); it decides nothing about what is in a cluster.
//!
//! ```text
//!                      Secret is there            the cluster answers
//!   Disconnected ───▶ Connecting ─────────────────────────▶ Healthy
//!        ▲                 │ it does not                     │ ▲  another kubeconfig: Connecting
//!        │                 ▼                                 │ │
//!        └────────────── Suspect ◀── asked twice, in vain ───┘ │
//!     Secret is gone       └────────── it answers again ───────┘
//! ```
//!
//! A connection belongs to a Cluster (by its uid) and what one version of its kubeconfig says. When a request is not accepted, or TLS fails, the
//! Secret is read once more before the cluster becomes suspect.

pub mod addresses;
mod cluster;
mod discretion;
pub mod kubeconfig;
mod link;
mod metrics;
mod names;
mod owner;
mod patience;
mod probe;
mod pulse;
mod secrets;
mod state;
mod transport;

pub use self::metrics::WorkloadMetrics;
pub use self::owner::{CONNECTIONS, Settings, Workload, WorkloadClusters};
pub use self::state::{Connection, News, Reason, State, Suspicion};
pub use self::transport::{Dial, DialError, Transport, through, transport};

#[cfg(test)]
mod tests;
