//! A small API server in memory, for the tests of operators: discovery, lists, watches, reads and writes, and the one call of all that fails.
//!
//! What it answers is held against a real one by the tests of the core operator. Nothing that ships has the feature of this module.

mod answers;
mod api;
mod apply;
mod asked;
pub mod journey;
mod published;
mod server;

pub use self::api::{Key, Served, WORKLOAD, Write};
pub use self::server::{Fault, MOST, Server};
