//! The one binary with programs of others that tests hold us against, built from the Go module in `e2e/outside`.

use std::path::PathBuf;

use super::{cache::Cache, go::Go, module::Module};
use crate::workspace::Workspace;

const MODULE: Module = Module {
    folder: "e2e/outside",
    title: "programs of others",
    kind: "outside",
    programs: ".",
};

/// Without symbols: nobody debugs these here.
const LINKER_FLAGS: &str = "-s -w";

/// The path of the binary; one minute and a half on two cores the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<PathBuf> {
    Ok(MODULE.build(workspace, cache, go, LINKER_FLAGS)?.join("outside"))
}
