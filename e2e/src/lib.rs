//! A real Kubernetes control plane for tests, journeys, fault injection and benchmarks.
//!
//! [`ControlPlane`] starts etcd, the API server and the controllers as plain processes and ends them again, however the
//! test ends. Around it: [`Process`] runs the operators under test, [`FaultProxy`] stands between them and the API
//! server, [`AuditLog`] and [`Metrics`] say what they did, [`eventually`] waits for the state of the world.
//!
//! This room runs built programs and never links their code.

pub mod audit;
pub mod control_plane;
pub mod definitions;
pub mod fault_proxy;
pub mod lab;
pub mod metrics;
pub mod process;
pub mod wait;

pub use audit::{AuditEvent, AuditLog};
pub use control_plane::{ControlPlane, Identity, Options};
pub use fault_proxy::{FaultProxy, Point, Weather};
pub use lab::Lab;
pub use metrics::Metrics;
pub use process::{Ended, Process};
pub use wait::eventually;
