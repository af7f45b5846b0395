//! Equality with `helm template` of every profile, byte for byte, output and errors alike.
//!
//! Answers for our own charts and one-line templates are recorded in the repository and hold without the real binary. Everything else asks the
//! binary itself, which `cargo xtask setup` fetches. `STACKWRIGHT_REGENERATE=1` records the answers anew; `STACKWRIGHT_CORPUS` names a folder
//! of real releases and charts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

mod arguments;
mod broken_charts;
mod call;
mod cluster_classes;
mod globs;
mod lab;
mod one_liners;
mod own_charts;
mod recorded;
mod schemas;
mod table;
mod tables;
