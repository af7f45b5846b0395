//! The programs of Cluster API, and what stands in for the Go operator beside them, built from the Go module in `e2e/clusterapi`.

use std::path::PathBuf;

use super::{cache::Cache, go::Go, module::Module};
use crate::workspace::Workspace;

pub(super) const MODULE: Module = Module {
    folder: "e2e/clusterapi",
    title: "Cluster API",
    kind: "cluster-api",
    programs: "tool",
};

/// Without symbols: nobody debugs these here.
const LINKER_FLAGS: &str = "-s -w";

/// The folder of the programs; twelve minutes on two busy cores the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
    MODULE.build(workspace, cache, go, LINKER_FLAGS)
}
