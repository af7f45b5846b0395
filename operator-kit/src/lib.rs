//! What both operators need of the world.
//!
//! This room executes and observes; it never decides. It knows Kubernetes objects, not our kinds: whatever is particular
//! to a kind (a label, a field manager, a projection) is an argument. Everything that leaves the process goes through
//! [`client`], so it has a deadline, a size limit and a place in the request metrics.

pub mod apply;
pub mod client;
pub mod comparison;
pub mod crd_watch;
pub mod delete;
pub mod discovery;
pub mod events;
pub mod failure;
pub mod finalizer;
pub mod flags;
pub mod https;
#[cfg(feature = "in-memory")]
pub mod in_memory;
pub mod lease;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod object;
pub mod objects;
pub mod pages;
pub mod parts;
mod patience;
pub mod process;
pub mod projection;
pub mod published;
pub mod read;
pub mod record;
mod secrets;
pub mod serving;
pub mod shallow;
pub mod status;
pub mod takeover;
pub mod telemetry;
pub mod turns;
pub mod watch_log;
pub mod watching;
pub mod workload;

// What `fuzz` shares with the tests here names this room from outside.
#[cfg(test)]
extern crate self as operator_kit;

#[cfg(test)]
mod stub;
#[cfg(test)]
mod told;
