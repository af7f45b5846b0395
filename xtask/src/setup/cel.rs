//! What evaluates conditions of stages as the Go operator does, built from the Go module in `e2e/cel`.

use std::path::PathBuf;

use super::{cache::Cache, go::Go, module::Module};
use crate::workspace::Workspace;

const MODULE: Module = Module {
    folder: "e2e/cel",
    title: "cel-go",
    kind: "cel",
    programs: ".",
};

/// Without symbols: nobody debugs these here.
const LINKER_FLAGS: &str = "-s -w";

/// The path of the binary; some seconds on two cores the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
    Ok(MODULE.build(workspace, cache, go, LINKER_FLAGS)?.join("cel"))
}
