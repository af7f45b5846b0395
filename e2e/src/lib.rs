//! A real Kubernetes control plane for tests, journeys, fault injection and benchmarks.
//!
//! [`ControlPlane`] starts etcd, the API server and the controllers as plain processes and ends them again, however the
//! test ends. Around it: [`Process`] runs the operators under test, [`FaultProxy`] stands between them and the API
//! server, [`AuditLog`] and [`Metrics`] say what they did, [`eventually`] waits for the state of the world. On top: [`Operator`],
//! [`releases::Releases`] and [`journey::journey`]; [`travel`] has the ways that are gone again and again, [`addons`] the Clusters on them, [`world`] what is compared there, and
//! [`storm`] goes them in all weathers.
//!
//! This room runs built programs and never links their code.

pub mod addons;
pub mod audit;
mod authority;
pub mod built;
pub mod cloud;
pub mod cluster_api;
pub mod conformance;
pub mod control_plane;
pub mod cosign;
pub mod definitions;
pub mod fault_proxy;
pub mod github;
pub mod helm;
pub mod hooks;
pub mod hostile_server;
pub mod image;
pub mod image_server;
pub mod journey;
pub mod kubelet;
pub mod kwok;
pub mod lab;
pub mod lanes;
pub mod lapse;
pub mod metrics;
pub mod node;
pub mod oci;
pub mod operator;
pub mod oracle;
pub mod own_roles;
pub mod packed;
pub mod planted;
pub mod positions;
pub mod predecessor;
pub mod process;
pub mod provider;
pub mod provider_operator;
pub mod prune;
pub mod registry;
pub mod releases;
pub mod rights;
pub mod shim;
pub mod soak;
pub mod stage;
pub mod stand_in;
pub mod storm;
pub mod summary;
pub mod traces;
pub mod travel;
pub mod usage;
pub mod wait;
pub mod web;
pub mod webhooks;
pub mod workers;
pub mod world;

pub use audit::{AuditEvent, AuditLog};
pub use control_plane::{ControlPlane, Identity, Options};
pub use fault_proxy::{FaultProxy, Forecast, Point, Weather};
pub use journey::Journey;
pub use lab::Lab;
pub use metrics::Metrics;
pub use operator::{Operator, OperatorOptions};
pub use process::{Ended, Process};
pub use wait::eventually;

/// Chooses the implementation of TLS for this process. Without it, the first connection panics where the dependencies of
/// a program bring two of them. Repeating it changes nothing.
pub fn use_one_cryptography() {
    // An error says that one is chosen.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
